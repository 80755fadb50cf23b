package reference_test

import (
	"bytes"
	"context"
	"io/fs"
	"math"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
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
	names, err := fs.Glob(fixtures.Files, "golden/*/*."+dtype.String()+".safetensors")
	if err != nil || len(names) == 0 {
		t.Fatalf("no goldens in %s: %v", dtype, err)
	}
	var all []transformersTrace
	for _, name := range names {
		data := must(fs.ReadFile(fixtures.Files, name))(t)
		g := transformersTrace{Trace: must(capture.OpenReader(name, bytes.NewReader(data), int64(len(data))))(t)}
		g.ck, g.list = openModel(t, strings.Split(name, "/")[1])
		g.passes = must(g.IDs())(t)
		all = append(all, g)
	}
	return all
}

func openModel(t testing.TB, name string) (*checkpoint.Checkpoint, *order.List) {
	t.Helper()
	ck := must(checkpoint.OpenFS(name, must(fs.Sub(fixtures.Files, name))(t)))(t)
	return ck, must(order.New(must(order.ReadConfig(ck.Config()))(t)))(t)
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

// agreement counts the elements of two tensors that are equal, masked scores left out.
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

// relL2 is ‖x − y‖ / ‖y‖ over what is not masked; the absolute error where y is zero.
func relL2(x, y []float64) float64 {
	var d, n float64
	for i := range x {
		if y[i] < -1e37 && x[i] < -1e37 || y[i] == -65504 || math.IsInf(y[i], -1) {
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

func TestWalkAgainstGoldens(t *testing.T) {
	for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
		for _, g := range goldens(t, dtype) {
			w := g.walk(t, false)
			var all, rotary agreement
			var errs []float64
			worst, at := 0.0, ""
			for _, r := range g.Records() {
				e, _ := g.list.Lookup(r.Name)
				x, y := must(w.Value(r.Pass, r.Name))(t), must(g.Value(r.Pass, r.Name))(t)
				err := relL2(x.Data, y.Data)
				errs = append(errs, err)
				if err > worst {
					worst, at = err, r.Name
				}
				if e.DType != "float32" {
					all.add(x.Data, y.Data)
				}
				if strings.HasPrefix(r.Name, "rotary") {
					rotary.add(x.Data, y.Data)
				}
			}
			sort.Float64s(errs)
			t.Logf("%s: equal %.5f %% (%d differ), median %.2g p99 %.2g worst %.2g %s", g.Path(), 100*all.share(), all.elements-all.equal, errs[len(errs)/2], errs[len(errs)*99/100], worst, at)
		}
	}
}

func TestIsolated(t *testing.T) {
	for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
		for _, g := range goldens(t, dtype) {
			var all agreement
			worst, at := 0.0, ""
			tokens := []int{}
			for _, p := range g.passes {
				tokens = append(tokens, len(p))
			}
			bad := 0
			env := order.Env{
				Arith: op.Arith{DType: dtype, Emulated: true, Bounds: true}, Passes: order.Passes(tokens),
				Read:    func(n order.Node) (op.Value, error) { return g.Value(n.Pass, g.list.Entries[n.Entry].Name) },
				Weights: reference.Weights(g.ck, dtype),
			}
			have := func(n order.Node) bool { _, ok := g.Lookup(n.Pass, g.list.Entries[n.Entry].Name); return ok }
			for _, r := range g.Records() {
				e, _ := g.list.Lookup(r.Name)
				if _, arg := e.Op.(op.Argument); arg {
					continue
				}
				cut := must(g.list.Cut(have, order.Node{Entry: g.list.Index(r.Name), Pass: r.Pass}))(t)
				x := must(cut.Value(context.Background(), env))(t)
				y := must(g.Value(r.Pass, r.Name))(t)
				d := e.DTypeOf(dtype)
				n := 0
				for i := range x.Data {
					lo, hi := floats.Round(d, x.Data[i]-x.Bound[i]), floats.Round(d, x.Data[i]+x.Bound[i])
					if !(y.Data[i] >= lo && y.Data[i] <= hi) {
						n++
						if n < 3 {
							t.Logf("%s %s[%d] %v of [%v %v] exact %v bound %v", g.Path(), r.Name, i, y.Data[i], lo, hi, x.Data[i], x.Bound[i])
						}
					}
				}
				bad += n
				env.Round(x, d)
				if err := relL2(x.Data, y.Data); err > worst {
					worst, at = err, r.Name
				}
				if e.DType != "float32" {
					all.add(x.Data, y.Data)
				}
			}
			t.Logf("%s: equal %.5f %% (%d differ of %d), worst %.2g %s; inconsistent %d", g.Path(), 100*all.share(), all.elements-all.equal, all.elements, worst, at, bad)
		}
	}
}
