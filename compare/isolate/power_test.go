package isolate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// accumulatedNoise is the relative error that the accumulated gates see on every element of a healthy port: what some layers
// have left of the rounding before. In bfloat16 that of the blind-spot test, in float32 eight unit roundoffs.
var accumulatedNoise = map[hooks.DType]float64{hooks.BF16: blindNoise, hooks.F32: 0x1p-21}

// powerOf measures one operation.
type powerOf struct {
	drawing
	t *testing.T
	m measured
}

// write is y in the dtype of the entry.
func (p powerOf) write(y []float32) []float32 {
	y = append([]float32{}, y...)
	if p.m.Wide {
		return y
	}
	return p.Rounded(y)
}

// certified reports whether the certificate of an arithmetic stops all of these.
func (p powerOf) certified(arithmetic isolate.Engines, ys ...[]float32) bool {
	var all []singles.Single
	for _, y := range ys {
		s := p.m.Single
		s.Out = s.Out.Replaced(p.write(y))
		all = append(all, s)
	}
	for _, c := range singles.CertifyAll(p.t, p.DType, isolate.Options{Arithmetic: arithmetic}, all) {
		if c.Good() {
			return false
		}
	}
	return true
}

func stretched(y []float32, s float64) []float32 {
	out := make([]float32, len(y))
	for i, v := range y {
		out[i] = float32(float64(v) * s)
	}
	return out
}

// perturbed is the result with weights that are each off by a relative Gaussian error; nil for an operation without any.
func (p powerOf) perturbed(size float64) []float32 {
	if len(p.m.W) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var w []singles.Array
	for _, a := range p.m.W {
		off := make([]float32, len(a.Data))
		for i, v := range a.Data {
			off[i] = float32(float64(v) * (1 + size*rng.NormFloat64()))
		}
		w = append(w, a.Replaced(off))
	}
	return p.m.compute(w)
}

// lines are the indexes of a tensor that a fault of one kind may hit: how far apart the elements of one index lie, and how
// many there are.
type lines struct{ inner, n int }

// linesOf gives a tensor's rows (tokens), channels and heads, by the letters of its axes. An operation that merges heads has
// blocks of channels for them.
func (p powerOf) linesOf(kind byte) (lines, bool) {
	s := p.m.Single
	if kind == 'h' && p.m.heads > 0 {
		return lines{s.Out.Shape[2] / p.m.heads, p.m.heads}, true
	}
	inner := 1
	for a := len(s.Out.Shape) - 1; a >= 0; a-- {
		if letter := s.Letter[a]; letter == kind || kind == 'c' && letter == 's' {
			return lines{inner, s.Out.Shape[a]}, s.Out.Shape[a] > 1
		}
		inner *= s.Out.Shape[a]
	}
	return lines{}, false
}

// swapped is y with one index of the axis replaced by what belongs to the next one.
func (l lines) swapped(y []float32, at int) []float32 {
	out := append([]float32{}, y...)
	for i := range y {
		if k := i / l.inner % l.n; k == at {
			out[i] = y[i+((at+1)%l.n-at)*l.inner]
		}
	}
	return out
}

// oneWrong is how many single rows, channels or heads are tried.
const oneWrong = 8

// certificate is the first cell of the line of each table: what the certificate finds in an arithmetic.
func (p powerOf) certificate(arithmetic isolate.Engines) (cells [5]string) {
	y := p.m.compute(p.m.W)
	if p.certified(arithmetic, y) {
		p.t.Errorf("a healthy %s is stopped", p.m.About)
	}
	cells[0] = size(singles.Smallest(func(e float64) bool { return p.certified(arithmetic, stretched(y, 1+e), stretched(y, 1-e)) }))
	if len(p.m.W) > 0 {
		cells[1] = size(singles.Smallest(func(e float64) bool { return p.certified(arithmetic, p.perturbed(e)) }))
	}
	for k, faults := range p.oneWrong(y) {
		found := 0
		for _, f := range faults {
			if p.certified(arithmetic, f) {
				found++
			}
		}
		if len(faults) > 0 {
			cells[2+k] = rate(found, len(faults))
		}
	}
	return cells
}

// oneWrong are results with one wrong row, one wrong channel and one wrong head: another one's. What is written the same
// is no fault.
func (p powerOf) oneWrong(y []float32) (all [3][][]float32) {
	rng := rand.New(rand.NewPCG(8, 8))
	right := p.write(y)
	for k, kind := range []byte("tch") {
		l, ok := p.linesOf(kind)
		for range oneWrong {
			if !ok {
				break
			}
			if wrong := l.swapped(y, rng.IntN(l.n)); !slices.Equal(p.write(wrong), right) {
				all[k] = append(all[k], wrong)
			}
		}
	}
	return all
}

// gateRows are the lines of the accumulated gates: scale, weights, then a row, a channel and a head.
func (p powerOf) gateRows() [5][]string {
	y := p.m.compute(p.m.W)
	shape := p.m.Out.Shape
	noisy := func(y []float32) []float32 {
		out := make([]float32, len(y))
		for i, v := range y {
			out[i] = float32(float64(v) * (1 + accumulatedNoise[p.DType]*p.NormFloat64()))
		}
		return out
	}
	healthy := noisy(y)
	exact := newExactReference(p.t, p.m.Letter, shape, y)
	floor := exact.errors(p.t, healthy)
	stopped := func(port []float32) []bool {
		port = noisy(port)
		row := pairing{shape, y, port, healthy, p.DType}.caught()
		off := above(exact.errors(p.t, port), floor)
		var own []bool
		for _, k := range blindK {
			own = append(own, !(off <= k))
		}
		return append(own, row...)
	}
	alarm := stopped(y)
	var out [5][]string
	out[0] = sizes(alarm, func(e float64) []bool { return stopped(stretched(y, 1+e)) })
	if len(p.m.W) > 0 {
		out[1] = sizes(alarm, func(e float64) []bool { return stopped(p.perturbed(e)) })
	}
	for k, faults := range p.oneWrong(y) {
		if len(faults) > 0 {
			out[2+k] = counts(alarm, faults, stopped)
		}
	}
	return out
}

// counts is how many of some faults each gate stops.
func counts(alarm []bool, faults [][]float32, stopped func([]float32) []bool) []string {
	found := make([]int, len(alarm))
	for _, f := range faults {
		for i, s := range stopped(f) {
			if s {
				found[i]++
			}
		}
	}
	var row []string
	for i, n := range found {
		if alarm[i] {
			row = append(row, falseAlarm)
			continue
		}
		row = append(row, rate(n, len(faults)))
	}
	return row
}

// falseAlarm stands for a gate that stops the healthy port: what else it stops shows nothing.
const falseAlarm = "✗"

// sizes is the smallest size of a fault that each gate stops.
func sizes(alarm []bool, stopped func(float64) []bool) []string {
	least, open := make([]float64, len(alarm)), make([]bool, len(alarm))
	for i := range least {
		least[i], open[i] = math.Inf(1), !alarm[i]
	}
	for _, s := range singles.Sizes {
		any := false
		for i, found := range stopped(s) {
			if open[i] = open[i] && found; open[i] {
				least[i], any = s, true
			}
		}
		if !any {
			break
		}
	}
	var row []string
	for i, s := range least {
		if alarm[i] {
			row = append(row, falseAlarm)
		} else {
			row = append(row, size(s))
		}
	}
	return row
}

// size is a number of the steps in few characters; what is not even found at the largest is "no".
func size(s float64) string {
	if math.IsInf(s, 1) {
		return "no"
	}
	return strings.Replace(fmt.Sprintf("%.0e", s), "e-0", "e-", 1)
}

// titles are the faults, a table each.
var titles = []string{"A wrong scale", "Noise on every weight", "One wrong row", "One wrong channel", "One wrong head"}

// powers are the operations of one width and dtype.
func powers(t *testing.T, w width, d hooks.DType) (all []powerOf) {
	rng := rand.New(rand.NewPCG(uint64(w.hidden), uint64(d)))
	g := drawing{singles.Drawing{Rand: rng, Kernels: testengine.Kernels{Adder: testengine.Adder{Block: 1, Lanes: 16, Fused: true, Tree: true}, DType: d}}}
	names, ops := g.measuredOps(w)
	for i, m := range ops {
		m.About = names[i]
		all = append(all, powerOf{g, t, m})
	}
	return all
}

// section is the tables of one width and dtype.
func section(t *testing.T, w width, d hooks.DType) string {
	columns := []string{"operation", "certificate", "strict"}
	for _, k := range blindK {
		columns = append(columns, fmt.Sprintf("floor × %g", k))
	}
	for _, g := range gates {
		columns = append(columns, g.name)
	}
	tables := make([]strings.Builder, len(titles))
	for i, title := range titles {
		fmt.Fprintf(&tables[i], "\n%s, %s, %s:\n\n| %s |\n|%s\n", title, w.name, d, strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	}
	for _, p := range powers(t, w, d) {
		auto, others := p.certificate(isolate.Auto), p.gateRows()
		strict := auto // there is no other arithmetic in float32
		if d != hooks.F32 {
			strict = p.certificate(isolate.Strict)
		}
		for k := range titles {
			if auto[k] != "" {
				fmt.Fprintf(&tables[k], "| %s | %s | %s | %s |\n", p.m.About, auto[k], strict[k], strings.Join(others[k], " | "))
			}
		}
	}
	var b strings.Builder
	for i := range tables {
		b.WriteString(tables[i].String())
	}
	return b.String()
}

const powerDocs = "../../docs/results/power.md"

// sampled are the operations whose power is measured by default, at the tiny width: a few seconds of work.
var sampled = []string{"rms_norm plain", "linear hidden", "linear bias", "scores", "context", "gelu_tanh", "add"}

// The power of the certificate is what docs/results/power.md says: by default that of some operations at the tiny width. With
// TRACEDIFF_POWER=1 all tables are made, at the width of E2B too and with the gates of accumulated errors beside; -update
// then writes them.
func TestPower(t *testing.T) {
	docs := pagetest.Text(t, powerDocs)
	if pagetest.Samples(t, "TRACEDIFF_POWER", 0) > 0 {
		measureAll(t, docs)
		return
	}
	for _, d := range []hooks.DType{hooks.BF16, hooks.F32} {
		_, docs, _ := strings.Cut(docs, fmt.Sprintf("<!-- tiny %s -->", d))
		for _, p := range powers(t, tinyWidth, d) {
			if !slices.Contains(sampled, p.m.About) {
				continue
			}
			for k, cell := range p.certificate(isolate.Auto) {
				_, table, _ := strings.Cut(docs, titles[k])
				if line := fmt.Sprintf("\n| %s | %s |", p.m.About, cell); cell != "" && !strings.Contains(strings.SplitN(table, "\n\n", 3)[1], line) {
					t.Errorf("%s, %s: %s is found at %s, which is not what docs/results/power.md says", p.m.About, d, titles[k], cell)
				}
			}
		}
	}
}

// measureAll makes all tables, those of each width and dtype beside the others.
func measureAll(t *testing.T, docs string) {
	type part struct{ name, made string }
	var parts []*part
	t.Run("measured", func(t *testing.T) {
		for _, w := range []width{tinyWidth, e2bWidth} {
			for _, d := range []hooks.DType{hooks.BF16, hooks.F32} {
				p := &part{name: fmt.Sprintf("%s %s", w.name, d)}
				parts = append(parts, p)
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					p.made = section(t, w, d)
				})
			}
		}
	})
	for _, p := range parts {
		docs = pagetest.Section(t, powerDocs, docs, p.name, p.made)
	}
	if pagetest.Update() {
		pagetest.Write(t, powerDocs, docs)
	}
}
