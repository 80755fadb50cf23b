package arithmetic_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// tinyModels are the embedded checkpoints, of every family.
var tinyModels = []string{"gemma3n-tiny", "gemma3-tiny", "gemma2-tiny", "gemma-tiny", "llama-tiny", "qwen2-tiny", "qwen3-tiny"}

// modelOf is case n of the sample: a random model, or a tiny checkpoint with a random prompt and decode.
func modelOf(t *testing.T, n int) ordertest.Case {
	t.Helper()
	families := slices.Concat(ordertest.Gemma, ordertest.Plain)
	if n%2 == 0 {
		return ordertest.Draw(t, families[n/2%len(families)], n/2/len(families))
	}
	dir := tinyModels[n/2%len(tinyModels)]
	ck, list := ordertest.Embedded(t, dir)
	c := ordertest.Case{Family: dir, Seed: n, Checkpoint: ck, List: list}
	rng := rand.New(rand.NewPCG(uint64(n), 8))
	for pass := range 1 + rng.IntN(4) {
		ids := make([]int, 1)
		if pass == 0 {
			ids = make([]int, 1+rng.IntN(12))
		}
		for i := range ids {
			ids[i] = rng.IntN(list.Config.VocabSize)
		}
		c.Passes = append(c.Passes, ids)
	}
	return c
}

// run feeds a case to the port.
func (p *roundingPort) run(t *testing.T, c ordertest.Case) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "local.safetensors")
	_, err := reference.Walk(context.Background(), reference.Job{
		Checkpoint: c.Checkpoint, List: p.model(c.List), DType: p.DType, Passes: c.Passes, Path: path,
		Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return testengine.Open(t, path)
}

const certificatePage = "../../docs/results/certificate.md"

// portsMeasured is how many ports docs/results/certificate.md tells of; -update rewrites what it says.
const portsMeasured = 600

// roundingsRow says what ports showed, and compares it with the docs when they are as many as there.
func roundingsRow(t *testing.T, ports int, name, row string) {
	t.Helper()
	row = "\n| | entries | false BUGs | traces with one |\n|---|---|---|---|\n" + row
	t.Log(row)
	if ports != portsMeasured {
		return
	}
	docs := pagetest.Section(t, certificatePage, pagetest.Text(t, certificatePage), name, row)
	if pagetest.Update() {
		pagetest.Write(t, certificatePage, docs)
	}
}

// falseBugs certifies every entry of a port's trace by itself, and returns those that are called wrong.
func falseBugs(t *testing.T, c ordertest.Case, local *capture.Trace) (bugs []string, entries int) {
	t.Helper()
	i, err := compare.NewIsolator(local, c.List, reference.Weights(c.Checkpoint, local.Manifest().DType), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compare.Alone(t.Context(), local, compare.Options{Order: c.List, All: true, Certification: compare.Certification{Isolator: i}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		if z := row.Isolated; z != nil && z.Outcome == isolate.Bug {
			bugs = append(bugs, fmt.Sprintf("%s, %s: %s", row.Key(), z.Form, singles.Charge(z.Certificate)))
		}
	}
	if r.ExitCode() != 0 && len(bugs) == 0 && r.Isolation.Unidentified == 0 {
		bugs = append(bugs, fmt.Sprintf("exit %d: %v", r.ExitCode(), r.Incomplete))
		if d := r.Divergence; d != nil {
			bugs = append(bugs, fmt.Sprintf("%s: %s %s", d.Row.Key(), d.Row.Class, d.Row.Detail))
		}
	}
	return bugs, r.Isolation.Certified
}

// fewBugs is how many of a port's false BUGs are shown: an engine has one arithmetic for all its entries.
const fewBugs = 3

// A port that rounds at other steps than transformers, whichever, has no bug: over whole traces, of every family, in both
// 16-bit dtypes. TRACEDIFF_ROUNDINGS sets how many are drawn; what 600 showed stands in docs/results/certificate.md.
func TestOtherRoundingsAreNoBug(t *testing.T) {
	n := pagetest.Samples(t, "TRACEDIFF_ROUNDINGS", 20)
	entries, bugs, accused := 0, 0, 0
	for k := range n {
		t.Run(fmt.Sprint(k), func(t *testing.T) { // its trace is gone when it is done
			d := hooks.BF16
			if k%8 >= 6 {
				d = hooks.F16
			}
			c, p := modelOf(t, k), drawRoundingPort(uint64(k), d)
			wrong, certified := falseBugs(t, c, p.run(t, c))
			entries, bugs = entries+certified, bugs+len(wrong)
			if len(wrong) > 0 {
				accused++
				t.Errorf("%s %d in %s, which rounds %.2g of the steps: %d false BUGs\n%s", c.Family, c.Seed, d, p.share, len(wrong), strings.Join(wrong[:min(fewBugs, len(wrong))], "\n"))
			}
		})
	}
	roundingsRow(t, n, "whole traces", fmt.Sprintf("| %d ports | %d | %d | %d |\n", n, entries, bugs, accused))
	if entries < 100*n {
		t.Errorf("%d entries are no sample of what is to be tested", entries)
	}
}

// compute is a single operation of the port on these inputs.
func (p *roundingPort) compute(s singles.Single) singles.Single {
	run := call32{Kernels: p.Kernels, at: p.steps(op.Form(s.Op)), in: s.In, w: s.W, shape: s.Out.Shape}
	s.Out.Data = arithmetics[s.Op.Kind()](run, s.Op)
	if !s.Wide {
		s.Out.Data = p.Rounded(s.Out.Data)
	}
	return s
}

// alikeRows are inputs whose rows have nearly the same statistic: what was just normed, times a factor of the model, rows
// of one number, and rows of which one element is all.
var alikeRows = map[string]func(d singles.Drawing, n int) []float32{
	"just normed": func(d singles.Drawing, n int) []float32 {
		x := d.Norm(singles.Draw(d.Rand, "Gaussian", n, 1), nil, 1e-6, "none")
		for i := range x {
			x[i] *= 1.31
		}
		return x
	},
	"constant": func(_ singles.Drawing, n int) []float32 { return slices.Repeat([]float32{0.7}, n) },
	"one massive element": func(d singles.Drawing, n int) []float32 {
		x := singles.Draw(d.Rand, "Gaussian", n, 1)
		x[n/3] = 1300
		return x
	},
	"the same row": func(_ singles.Drawing, n int) []float32 {
		return singles.Draw(rand.New(rand.NewPCG(uint64(n), 1)), "Gaussian", n, 1)
	},
}

// alikeOps are operations that multiply rows by a statistic, or are one.
var alikeOps = []op.Op{op.RMSNorm{Eps: 1e-6, Gain: op.OnePlus}, op.RMSNorm{Eps: 1e-6, Gain: op.Plain}, op.Softmax{}, op.Std{}, op.Magnitude{}, op.Mean{}}

// alikeEntries is how many entries of a form a trace of alike rows has: the layers of a small model.
const alikeEntries = 24

// alikeShare: one port in so many is tried on rows that are alike, in two dozen traces each.
const alikeShare = 4

// alikeTrace is a trace of one operation, each time with other weights, on rows that are alike: one token or a few.
func (p *roundingPort) alikeTrace(d singles.Drawing, o op.Op, row func(d singles.Drawing, n int) []float32) []singles.Single {
	width, tokens := []int{16, 48, 96}[d.IntN(3)], []int{1, 1, 6}[d.IntN(3)]
	var all []singles.Single
	for range alikeEntries {
		x := singles.Array{Shape: []int{1, tokens, width}}
		for range tokens {
			x.Data = append(x.Data, d.Rounded(row(d, width))...)
		}
		s := singles.Single{Op: o, In: []singles.Array{x}, Out: singles.Array{Shape: []int{1, tokens, width}}}
		switch o.(type) {
		case op.RMSNorm:
			s.W = []singles.Array{d.Array("Gaussian", 1, width)}
		case op.Softmax:
			s.Wide = true
		default:
			s.Out.Shape = []int{1, tokens, 1}
		}
		all = append(all, p.compute(s))
	}
	return all
}

// Rows that have nearly one statistic round it the same way, all of them and in every entry, whatever they are of. That is
// no factor that a mistake gave them.
func TestAlikeRowsOfOtherRoundingsAreNoBug(t *testing.T) {
	n := pagetest.Samples(t, "TRACEDIFF_ROUNDINGS", 20)
	few := n / alikeShare
	bugs, traces, accused := 0, 0, 0
	for k := range few {
		p := drawRoundingPort(uint64(k), hooks.BF16)
		d := singles.Drawing{Rand: rand.New(rand.NewPCG(uint64(k), 9)), Kernels: p.Kernels}
		for _, what := range slices.Sorted(maps.Keys(alikeRows)) {
			for _, o := range alikeOps {
				var wrong []string
				all := p.alikeTrace(d, o, alikeRows[what])
				for _, c := range singles.CertifyAll(t, hooks.BF16, isolate.Options{}, all) {
					if c.Outcome == isolate.Bug {
						wrong = append(wrong, singles.Charge(c))
					}
				}
				traces, bugs = traces+1, bugs+len(wrong)
				if len(wrong) > 0 {
					accused++
					t.Errorf("port %d, %s, rows of %v, %s: %d false BUGs, such as %s", k, what, all[0].In[0].Shape, op.Form(o), len(wrong), wrong[0])
				}
			}
		}
	}
	roundingsRow(t, n, "rows that are alike", fmt.Sprintf("| %d ports, %d traces | %d | %d | %d |\n", few, traces, alikeEntries*traces, bugs, accused))
}

// The port has every operation with inner steps that the independent engine rounds in.
func TestRoundingPortsHaveEveryKind(t *testing.T) {
	if have := slices.Sorted(maps.Keys(arithmetics)); !slices.Equal(have, testengine.Kinds) {
		t.Errorf("the port has %v, the engine %v", have, testengine.Kinds)
	}
}
