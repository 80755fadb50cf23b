package isolate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// The tensor of the blind-spot test: tokens × channels, of blindHeads heads.
const (
	blindTokens, blindChannels, blindHeads = 512, 1024, 16
	blindNoise                             = 0x1p-8 // of every port, relative: two unit roundoffs of bfloat16
)

// blindFaults are planted in a port's tensor, in place.
var blindFaults = []struct {
	name  string
	plant func(rng *rand.Rand, y []float32)
}{
	{"healthy", func(*rand.Rand, []float32) {}},
	{"one NaN", func(rng *rand.Rand, y []float32) { y[rng.IntN(len(y))] = float32(math.NaN()) }},
	{"scale 1.03", scaledBy(1.03)},
	{"scale 2", scaledBy(2)},
	{"bias missing (0.05 sd)", func(_ *rand.Rand, y []float32) {
		for i := range y {
			y[i] -= 0.05
		}
	}},
	{"last token zeroed", func(_ *rand.Rand, y []float32) { clear(y[len(y)-blindChannels:]) }},
	{"last token = other token", func(rng *rand.Rand, y []float32) {
		copy(y[len(y)-blindChannels:], y[(1+rng.IntN(len(y)/blindChannels-2))*blindChannels:])
	}},
	{"1 of 16 heads negated", func(rng *rand.Rand, y []float32) {
		eachOfHead(rng, y, func(head []float32) {
			for i := range head {
				head[i] = -head[i]
			}
		})
	}},
	{"2 channels swapped", func(rng *rand.Rand, y []float32) {
		a := rng.IntN(blindChannels)
		b := (a + 1 + rng.IntN(blindChannels-1)) % blindChannels
		for t := 0; t < len(y); t += blindChannels {
			y[t+a], y[t+b] = y[t+b], y[t+a]
		}
	}},
	{"RoPE pairing wrong, 1 head", func(rng *rand.Rand, y []float32) {
		token := 0
		eachOfHead(rng, y, func(head []float32) {
			mispair(head, token)
			token++
		})
	}},
	{"tokens permuted", func(rng *rand.Rand, y []float32) {
		rng.Shuffle(len(y)/blindChannels, func(a, b int) {
			for c := range blindChannels {
				i, j := a*blindChannels+c, b*blindChannels+c
				y[i], y[j] = y[j], y[i]
			}
		})
	}},
	{"0.1 % elements +20 %", func(rng *rand.Rand, y []float32) {
		for range len(y) / 1000 {
			y[rng.IntN(len(y))] *= 1.2
		}
	}},
}

func scaledBy(s float32) func(*rand.Rand, []float32) {
	return func(_ *rand.Rand, y []float32) {
		for i := range y {
			y[i] *= s
		}
	}
}

// eachOfHead hands out one head of every token.
func eachOfHead(rng *rand.Rand, y []float32, do func(head []float32)) {
	const width = blindChannels / blindHeads
	from := rng.IntN(blindHeads) * width
	for t := 0; t < len(y); t += blindChannels {
		do(y[t+from:][:width])
	}
}

// mispair takes the rotation of pairs (j, j+d/2) back and turns pairs (2j, 2j+1) by the same angles.
func mispair(head []float32, token int) {
	half := len(head) / 2
	turn := func(i, j, pair int, back float64) {
		sin, cos := math.Sincos(back * float64(token) * math.Pow(1e4, -float64(pair)/float64(half)))
		a, b := float64(head[i]), float64(head[j])
		head[i], head[j] = float32(a*cos-b*sin), float32(a*sin+b*cos)
	}
	for j := range half {
		turn(j, j+half, j, -1)
	}
	for j := range half {
		turn(2*j, 2*j+1, j, 1)
	}
}

// A blind-spot data set: how the reference and the noise are drawn.
type blindSet struct {
	name  string
	heavy bool
}

var blindSets = []blindSet{{"Plain data", false}, {"Massive activations and heavy-tailed noise", true}}

// reference is Gaussian; heavy adds two massive activations on token 0 and a hot channel, as residual streams have them.
func (s blindSet) reference(rng *rand.Rand) []float32 {
	x := make([]float32, blindTokens*blindChannels)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	if s.heavy {
		x[100], x[700] = 1500, -900
		for i := 300; i < len(x); i += blindChannels {
			x[i] *= 30
		}
	}
	return x
}

// port is the reference with noise on every element: Gaussian, or Student's t with three degrees of freedom, of the same
// standard deviation.
func (s blindSet) port(rng *rand.Rand, ref []float32) []float32 {
	y := make([]float32, len(ref))
	for i, r := range ref {
		z := rng.NormFloat64()
		if s.heavy {
			a, b, c := rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()
			z /= math.Sqrt(a*a + b*b + c*c)
		}
		y[i] = float32(float64(r) * (1 + blindNoise*z))
	}
	return y
}

// blindK are the multiples of the noise floor that are looked at. Our own gate has 4 in 16 bits and 8 in float32.
var blindK = []float64{3, 4, 8}

// blindSeeds is how many seeds the table in docs/results/certificate.md is of, which is compared with what so many show; -update rewrites it.
const blindSeeds = 200

const certificateDocs = "../../docs/results/certificate.md"

// Eleven faults and a healthy port against an exact reference, the floor from another healthy draw. TRACEDIFF_BLINDSPOT
// sets the number of seeds. The certificate stops all faults and no healthy port, and so does the verdict of both together.
func TestBlindSpots(t *testing.T) {
	seeds := pagetest.Samples(t, "TRACEDIFF_BLINDSPOT", 0)
	if seeds == 0 {
		t.Skip("needs TRACEDIFF_BLINDSPOT: how many seeds")
	}
	header := []string{"injected"}
	for _, g := range gates {
		header = append(header, g.name)
	}
	for _, k := range blindK {
		header = append(header, fmt.Sprintf("floor × %g", k))
	}
	header = append(header, "certificate", "both together")
	docs := pagetest.Text(t, certificateDocs)
	for n, set := range blindSets {
		counts := make([][]int, len(blindFaults))
		for f := range counts {
			counts[f] = make([]int, len(header)-1)
		}
		var lock sync.Mutex
		t.Run(set.name, func(t *testing.T) {
			for seed := range seeds {
				t.Run("", func(t *testing.T) { // its traces are gone when it is done
					t.Parallel()
					trial := set.trial(t, uint64(seed), uint64(n))
					lock.Lock()
					defer lock.Unlock()
					for f, found := range trial {
						for i, caught := range found {
							if caught {
								counts[f][i]++
							}
						}
					}
				})
			}
		})
		table := blindTable(header, counts, seeds)
		t.Logf("%s, %d seeds:\n\n%s", set.name, seeds, table)
		for f, c := range counts {
			for k, last := range c[len(c)-2:] {
				if f == 0 && last > 0 || f > 0 && last < seeds {
					t.Errorf("%s, %s: the %s stops it in %d of %d", set.name, blindFaults[f].name, []string{"certificate", "verdict of both"}[k], last, seeds)
				}
			}
		}
		if seeds == blindSeeds {
			docs = pagetest.Section(t, certificateDocs, docs, set.name, "\n"+table)
		} else if seeds < blindSeeds {
			blindSample(t, docs, set.name, counts, seeds)
		}
	}
	if pagetest.Update() && seeds == blindSeeds {
		pagetest.Write(t, certificateDocs, docs)
	}
}

// blindSample holds some of the seeds to the table of all: what stops all does, and what stops none does not.
func blindSample(t *testing.T, docs, name string, counts [][]int, seeds int) {
	t.Helper()
	_, rest, _ := strings.Cut(docs, "<!-- "+name+" -->\n")
	for f, c := range counts {
		_, row, ok := strings.Cut(rest, "\n| "+blindFaults[f].name+" | ")
		row, _, _ = strings.Cut(row, " |\n")
		cells := strings.Split(row, " | ")
		if !ok || len(cells) != len(c) {
			t.Errorf("%s, %s: the table in %s has %d cells, want %d", name, blindFaults[f].name, certificateDocs, len(cells), len(c))
			continue
		}
		for i, n := range c {
			if cells[i] == "all" && n < seeds || cells[i] == "0" && n > 0 {
				t.Errorf("%s, %s, column %d: stopped in %d of %d, which is not what the %q of %s says", name, blindFaults[f].name, i, n, seeds, cells[i], certificateDocs)
			}
		}
	}
}

func blindTable(header []string, counts [][]int, seeds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for f, c := range counts {
		fmt.Fprintf(&b, "| %s |", blindFaults[f].name)
		for _, n := range c {
			fmt.Fprintf(&b, " %s |", rate(n, seeds))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// rate is how many of all, in few characters.
func rate(n, of int) string {
	switch n {
	case 0:
		return "0"
	case of:
		return "all"
	}
	return fmt.Sprintf("%d/%d", n, of)
}

// trial plants every fault once and says, fault by fault, who stops it: the gates of other tools, ours at several k, and
// the certificate.
func (s blindSet) trial(t *testing.T, seed, set uint64) [][]bool {
	rng := rand.New(rand.NewPCG(seed, set))
	ref := s.reference(rng)
	floor, port := s.port(rng, ref), s.port(rng, ref)
	shape := []int{1, blindTokens, blindChannels}
	exact := newExactReference(t, "btc", shape, ref)
	noise := exact.errors(t, floor)
	var found [][]bool
	for f := range blindFaults {
		p := pairing{shape, ref, append([]float32{}, port...), floor, hooks.BF16}
		blindFaults[f].plant(rng, p.port)
		row := p.caught()
		off := above(exact.errors(t, p.port), noise)
		for _, k := range blindK {
			row = append(row, !(off <= k))
		}
		found = append(found, row)
	}
	for f, c := range singles.CertifyAll(t, hooks.BF16, isolate.Options{}, s.isolated(rng, port)) {
		found[f] = append(found[f], c.Outcome == isolate.Bug)
	}
	for f, stopped := range s.together(t, rng, ref, port, floor) {
		found[f] = append(found[f], stopped)
	}
	return found
}

// certifiedTokens is how many tokens the certificate sees: enough for it.
const certifiedTokens = 16

// isolated is a norm of the port's tensor by the port itself, with every fault in turn in what comes out.
func (s blindSet) isolated(rng *rand.Rand, port []float32) []singles.Single {
	g := drawing{singles.Drawing{Rand: rng, Kernels: testengine.Kernels{Adder: testengine.Adder{Block: 1, Lanes: 16, Fused: true, Tree: true}, DType: hooks.BF16}}}
	x := singles.Array{Shape: []int{1, certifiedTokens, blindChannels}, Data: g.Rounded(append([]float32{}, port[:certifiedTokens*blindChannels]...))}
	y := singles.Rows(x, func(row []float32) []float32 { return g.Norm(row, nil, 1e-6, "none") })
	var all []singles.Single
	for f := range blindFaults {
		out := singles.Array{Shape: y.Shape, Data: append([]float32{}, y.Data...)}
		blindFaults[f].plant(rng, out.Data)
		g.Rounded(out.Data)
		all = append(all, singles.Single{Op: op.RMSNorm{Eps: 1e-6, Gain: op.NoScale}, In: []singles.Array{x}, Out: out, About: blindFaults[f].name})
	}
	return all
}

// together says of every fault whether a whole comparison stops it: gate and certificate, of a norm in which the fault is, with
// the error of everything before in its input. That input is a row of a table for each token, so that it is
// certified on either side, as a healthy operation is.
func (s blindSet) together(t *testing.T, rng *rand.Rand, ref, port, floor []float32) []bool {
	g := drawing{singles.Drawing{Rand: rng, Kernels: testengine.Kernels{Adder: testengine.Adder{Block: 1, Lanes: 16, Fused: true, Tree: true}, DType: hooks.BF16}}}
	norm := op.RMSNorm{Eps: 1e-6, Gain: op.NoScale}
	x := func(of []float32) singles.Array {
		return singles.Array{Shape: []int{1, certifiedTokens, blindChannels}, Data: g.Rounded(slices.Clone(of[:certifiedTokens*blindChannels]))}
	}
	y := func(x singles.Array) singles.Array {
		return singles.Rows(x, func(row []float32) []float32 { return g.Rounded(g.Norm(row, nil, float32(norm.Eps), "none")) })
	}
	list, trace, isolator := blindModel(t, norm)
	reference := trace("reference", x(ref), y(x(ref)))
	noise, err := compare.NewNoiseFloor(compared(t, trace("local", x(floor), y(x(floor))), reference, compare.Options{Order: list, All: true}))
	if err != nil {
		t.Fatal(err)
	}
	var stopped []bool
	for f := range blindFaults {
		out := y(x(port))
		blindFaults[f].plant(rng, out.Data)
		g.Rounded(out.Data)
		local := trace("local", x(port), out)
		r := compared(t, local, reference, compare.Options{
			Order:         list,
			All:           true,
			Judging:       compare.Judging{Noise: noise},
			Certification: compare.Certification{Isolator: isolator(local, x(port)), ReferenceIsolator: isolator(reference, x(ref))},
		})
		stopped = append(stopped, r.ExitCode() != 0)
	}
	return stopped
}

// blindModel is an order of two entries, an embedding and its norm, with what makes traces of it and isolators.
func blindModel(t *testing.T, norm op.Op) (*order.List, func(side string, x, y singles.Array) *capture.Trace, func(*capture.Trace, singles.Array) *compare.Isolator) {
	known := tiny(t)
	input, _ := known.Lookup(order.InputIDs)
	shape := singles.Array{Shape: []int{1, certifiedTokens, blindChannels}}
	embedded := shape.Entry("embedded", op.Lookup{Rows: certifiedTokens}, "btc")
	embedded.Inputs = []order.Ref{{Name: input.Name}}
	embedded.Weights = []order.Weight{{Name: "table", Shape: []int{certifiedTokens, blindChannels}}}
	normed := shape.Entry("normed", norm, "btc")
	normed.Inputs = []order.Ref{{Name: embedded.Name}}
	list := known.Keep([]*order.Entry{input, embedded, normed})
	tokens := make([]float64, certifiedTokens)
	for i := range tokens {
		tokens[i] = float64(i)
	}
	trace := func(side string, x, y singles.Array) *capture.Trace {
		return testengine.Build(t, testengine.Manifest(side, hooks.BF16), tokensOf(tokens...), x.Event(embedded.Name, hooks.BF16), y.Event(normed.Name, hooks.BF16))
	}
	isolator := func(of *capture.Trace, x singles.Array) *compare.Isolator {
		table := singles.Array{Shape: []int{certifiedTokens, blindChannels}, Data: x.Data}
		i, err := compare.NewIsolator(of, list, func(order.Weight) (program.Rows, error) { return table, nil }, isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	return list, trace, isolator
}
