package reference_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// wideFolder names a folder with a checkpoint of E2B's widths in model/ and what transformers computed on it in
// bfloat16.safetensors and float32.safetensors. The gate makes it (.ci/run); it is too large for the repository.
const wideFolder = "TRACEDIFF_WIDE"

// What holds for every entry, evaluated from transformers' own inputs, over all passes of the run together.
const (
	wideUnequal    = 0.001 // share of the elements in bfloat16 that may differ: those whose exact value lies by a midpoint
	wideRelative   = 2e-6  // relative L2 in float32
	wideDetermined = 0.9   // share of all elements in bfloat16 for which the bounds have to leave one number
)

// Sums of 2048 and 8192 products are where an arithmetic that is right on a small model shows what it left out. The small
// checkpoints are embedded and tested always; this one exists only where somebody made it, and where nobody did there is
// nothing to run: the gate has a step of its own that makes it and sets the variable.
func TestWide(t *testing.T) {
	dir := os.Getenv(wideFolder)
	if dir == "" {
		t.Skipf("needs %s: a folder with the traces that .ci/run makes", wideFolder)
	}
	ck := must(checkpoint.Open(filepath.Join(dir, "model")))(t)
	defer ck.Close()
	list := must(order.New(must(order.ReadConfig(ck.Config()))(t)))(t)
	for _, dtype := range []hooks.DType{hooks.BF16, hooks.F32} {
		trace := must(capture.Open(filepath.Join(dir, dtype.String()+".safetensors")))(t)
		defer trace.Close()
		g := transformersTrace{Trace: trace, ck: ck, list: list, passes: must(trace.IDs())(t)}
		if got := trace.Manifest().DType; got != dtype {
			t.Fatalf("%s was computed in %s", trace.Path(), got)
		}
		all := g.isolateAll(t)
		elements, determined := 0, 0
		for _, s := range all {
			if why := s.wrong(dtype); why != "" {
				t.Errorf("%s: %v: %s", dtype, s, why)
			}
			elements, determined = elements+s.elements, determined+s.determined
		}
		if dtype == hooks.BF16 && !(float64(determined) >= wideDetermined*float64(elements)) {
			t.Errorf("the bounds leave one number for %d of %d elements only: they say nothing", determined, elements)
		}
		logWorst(t, dtype, all)
	}
}

// isolated is how an entry's elements, evaluated from the trace's own inputs, agree with the trace's.
type isolated struct {
	*order.Entry
	elements, unequal int     // of the entry's dtype
	outside           int     // not what any number within the bound rounds to
	determined        int     // for which the bound leaves one number
	error2, norm2     float64 // ‖x − y‖² and ‖y‖², what is masked left out
}

// isolateAll evaluates every captured entry of every pass, and sums up by entry.
func (g transformersTrace) isolateAll(t *testing.T) []*isolated {
	t.Helper()
	dtype := g.Manifest().DType
	var tokens []int
	for _, ids := range g.passes {
		tokens = append(tokens, len(ids))
	}
	env := order.Env{
		Arith: program.Arith{DType: dtype, Emulated: true, Bounds: true}, Passes: order.Passes(tokens),
		Read:    func(n order.Node) (program.Value, error) { return g.Value(n.Pass, g.list.Entries[n.Entry].Name) },
		Weights: reference.Weights(g.ck, dtype),
	}
	have := func(n order.Node) bool { _, ok := g.Lookup(n.Pass, g.list.Entries[n.Entry].Name); return ok }
	var all []*isolated
	for at := range g.list.Entries {
		e := &g.list.Entries[at]
		if _, argument := e.Op.(op.Given); argument {
			continue
		}
		s := &isolated{Entry: e}
		for pass := range g.passes {
			cut := must(g.list.Cut(have, order.Node{Entry: at, Pass: pass}))(t)
			x := must(cut.Value(context.Background(), env))(t)
			s.add(e.DTypeOf(dtype), x, must(g.Value(pass, e.Name))(t).Data)
		}
		all = append(all, s)
	}
	return all
}

// add compares a value before its last rounding to d, with its bounds, and what transformers has.
func (s *isolated) add(d hooks.DType, x program.Value, y []float64) {
	s.elements += len(y)
	for i, v := range x.Data {
		rounded := floats.Round(d, v)
		lo, hi := floats.Round(d, v-x.Bound[i]), floats.Round(d, v+x.Bound[i])
		if rounded != y[i] {
			s.unequal++
		}
		if !(lo <= y[i] && y[i] <= hi) {
			s.outside++
		}
		if lo == hi {
			s.determined++
		}
		if y[i] > -1e37 { // a masked score is the lowest finite number, beside which the others would not count
			s.error2 += (rounded - y[i]) * (rounded - y[i])
			s.norm2 += y[i] * y[i]
		}
	}
}

// relative is ‖x − y‖ / ‖y‖, 0 when nothing differs.
func (s *isolated) relative() float64 {
	if s.error2 == 0 {
		return 0
	}
	return math.Sqrt(s.error2 / s.norm2)
}

func (s *isolated) share() float64 { return float64(s.unequal) / float64(s.elements) }

// wrong says what is more than rounding explains, "" when nothing is.
func (s *isolated) wrong(d hooks.DType) string {
	// The softmax is float32 in every model, and no order of its sum is the reference's: its bits are not determined.
	d = s.DTypeOf(d)
	// One element may always differ, within its bound as all others: of the magnitudes, one a token, it would be 5 %.
	most := max(1, int(wideUnequal*float64(s.elements)))
	switch {
	case s.elements == 0:
		return "it has no elements"
	case s.outside > 0:
		return "elements that correct arithmetic does not give"
	case d == hooks.F32 && !(s.relative() <= wideRelative):
		return fmt.Sprintf("relative L2 is above %g", wideRelative)
	case d != hooks.F32 && s.unequal > most:
		return fmt.Sprintf("more than %d are unequal", most)
	}
	return ""
}

func (s *isolated) String() string {
	return fmt.Sprintf("%s (%s): %d of %d unequal, %d outside their bounds, relative L2 %.2g, %.3f %% determined",
		s.Name, s.Op.Kind(), s.unequal, s.elements, s.outside, s.relative(), 100*float64(s.determined)/float64(s.elements))
}

// logWorst prints the sums, and the entries that are nearest to their limit.
func logWorst(t *testing.T, d hooks.DType, all []*isolated) {
	t.Helper()
	elements, unequal := 0, 0
	var judged []*isolated
	for _, s := range all {
		if s.DTypeOf(d) == d {
			elements, unequal = elements+s.elements, unequal+s.unequal
			judged = append(judged, s)
		}
	}
	measure := (*isolated).share
	if d == hooks.F32 {
		measure = (*isolated).relative
	}
	slices.SortFunc(judged, func(a, b *isolated) int { return cmp.Compare(measure(b), measure(a)) })
	t.Logf("%s: %d entries, %d of %d elements equal (%.4f %%); the worst:", d, len(all), elements-unequal, elements, 100-100*float64(unequal)/float64(elements))
	for _, s := range judged[:min(5, len(judged))] {
		t.Logf("  %v", s)
	}
}
