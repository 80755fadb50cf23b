package reference_test

import (
	"context"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// transformersTrace is a trace of transformers with the checkpoint and the order that it is of.
type transformersTrace struct {
	*capture.Trace
	ck     *checkpoint.Checkpoint
	list   *order.List
	passes [][]int
}

// goldens opens the embedded traces of a dtype.
func goldens(t testing.TB, dtype hooks.DType) []transformersTrace {
	t.Helper()
	names, err := fs.Glob(ondisk.Files(), "golden/*/*."+dtype.String()+".safetensors")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens in %s: %v", dtype, err)
	}
	var all []transformersTrace
	for _, name := range names {
		g := transformersTrace{Trace: testengine.OpenGolden(t, name)}
		g.ck, g.list = ordertest.Embedded(t, strings.Split(name, "/")[1])
		g.passes = must(g.IDs())(t)
		all = append(all, g)
	}
	return all
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// walk runs a golden's passes through the walk and returns its trace.
func (g transformersTrace) walk(t testing.TB, exact bool) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	_, err := reference.Walk(context.Background(), reference.Job{
		Checkpoint: g.ck, List: g.list, DType: g.Manifest().DType, Exact: exact, Passes: g.passes, Path: path,
		Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tr := must(capture.Open(path))(t)
	t.Cleanup(func() { tr.Close() })
	return tr
}

// agreement is how many of so many elements are equal.
type agreement struct{ equal, elements int }

func (a *agreement) add(x, y []float64) {
	for i := range x {
		if x[i] == y[i] {
			a.equal++
		}
	}
	a.elements += len(x)
}

func (a agreement) share() float64 { return float64(a.equal) / float64(a.elements) }

// relL2 is ‖x − y‖ / ‖y‖, masked scores left out; the absolute error where y is zero.
func relL2(x, y []float64) float64 {
	const masked = -6e4 // half the lowest number of float16 and below: no score is
	var d, n float64
	for i := range x {
		if x[i] < masked && y[i] < masked {
			continue
		}
		d += (x[i] - y[i]) * (x[i] - y[i])
		n += y[i] * y[i]
	}
	if n == 0 {
		n = 1
	}
	return math.Sqrt(d / n)
}

// against compares a walk with the golden, entry by entry. probs_f32 are float32 in every dtype and pooled apart.
func (g transformersTrace) against(t *testing.T, w *capture.Trace) (all agreement, errs []float64, worst string) {
	t.Helper()
	last := -1.0
	for _, r := range g.Records() {
		x, y := must(w.Value(r.Pass, r.Name))(t), must(g.Value(r.Pass, r.Name))(t)
		if !slices.Equal(x.Shape, y.Shape) {
			t.Errorf("%s: %s is %v in the walk, %v in transformers", g.Path(), r.Name, x.Shape, y.Shape)
			continue
		}
		err := relL2(x.Data, y.Data)
		errs = append(errs, err)
		if math.IsNaN(err) {
			t.Errorf("%s: the walk's %s of pass %d is not a number where transformers' is", g.Path(), r.Name, r.Pass)
		}
		if err > last {
			last, worst = err, capture.Key(r.Pass, r.Name, 0)
		}
		if e, _ := g.list.Lookup(r.Name); e.DType != "float32" {
			all.add(x.Data, y.Data)
		}
	}
	slices.Sort(errs)
	return all, errs, worst
}

// accumulated limits what a whole run of the walk may differ by from transformers: in 16 bits the share of equal
// elements of all goldens together and, in bfloat16, of each; the relative L2 of the median and of the worst entry of each.
// Measured: bfloat16 99.999 % and a worst of 2.5e-5; float16 99.1 % and 6e-4, where one tie spreads; float32, where sums
// in another order differ in their last bits, a median of 8e-7 and a worst of 2.1e-5. Of the tiny Gemma 3n, fewer than ten
// elements of 200,000 differ in bfloat16.
var accumulated = map[hooks.DType]struct{ equal, each, median, worst float64 }{
	hooks.BF16: {0.999, 0.999, 0, 1e-2},
	hooks.F16:  {0.99, 0, 1e-5, 5e-3},
	hooks.F32:  {0, 0, 2e-6, 1e-4},
}

// The walk with every rounding point reproduces transformers over whole runs.
func TestWalkReproducesTransformers(t *testing.T) {
	for dtype, limit := range accumulated {
		var pooled agreement
		for _, g := range goldens(t, dtype) {
			all, errs, worst := g.against(t, g.walk(t, false))
			pooled.equal, pooled.elements = pooled.equal+all.equal, pooled.elements+all.elements
			median, last := errs[len(errs)/2], errs[len(errs)-1]
			t.Logf("%s: %d of %d elements differ, relative L2 median %.2g, worst %.2g in %s", g.Path(), all.elements-all.equal, all.elements, median, last, worst)
			if unequal := all.elements - all.equal; dtype == hooks.BF16 && strings.Contains(g.Path(), "gemma3n-tiny") && unequal*200_000 >= 10*max(all.elements, 200_000) {
				t.Errorf("%s: %d of %d elements differ, want fewer than ten of 200,000", g.Path(), unequal, all.elements)
			}
			if all.share() < limit.each { // one family that is off would drown among the others
				t.Errorf("%s: %.4f %% of the elements are equal, want %.4f %%", g.Path(), 100*all.share(), 100*limit.each)
			}
			if median > limit.median || last > limit.worst {
				t.Errorf("%s: median %.3g, worst %.3g in %s; want at most %.3g and %.3g", g.Path(), median, last, worst, limit.median, limit.worst)
			}
		}
		t.Logf("%s: %.4f %% of %d elements equal", dtype, 100*pooled.share(), pooled.elements)
		if pooled.share() < limit.equal {
			t.Errorf("%s: %.4f %% of the elements are equal, want %.4f %%", dtype, 100*pooled.share(), 100*limit.equal)
		}
	}
}

// The walk without rounding stays within float32's own rounding of what transformers computes in it. Measured: median
// 4e-7 to 9e-7, worst 3e-5.
func TestExactWalkIsNearFloat32(t *testing.T) {
	for _, g := range goldens(t, hooks.F32) {
		_, errs, worst := g.against(t, g.walk(t, true))
		median, last := errs[len(errs)/2], errs[len(errs)-1]
		t.Logf("%s: exact against float32: median %.2g, worst %.2g in %s", g.Path(), median, last, worst)
		if !(median <= 2e-6 && last <= 1e-4) {
			t.Errorf("%s: median %.3g, worst %.3g in %s", g.Path(), median, last, worst)
		}
	}
}
