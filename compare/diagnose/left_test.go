package diagnose_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// A mistake that gives one of two entries is no name. The finding says which mistake it is, how many entries it gives, and how many elements it leaves of the next.
// Where no mistake gives an entry, the one that leaves least is said to be near if it leaves at most half of the error.
func TestNearestSaysWhatItLeaves(t *testing.T) {
	const difference = "step add.sum is a difference, not a sum"
	m := model(t)
	residual := func(name string, f func(x, y float64, i int) float64) *diagnose.Entry {
		return planted(t, m, name, 0, func(in, _ [][]float64) []float64 {
			out := slices.Clone(in[0])
			for i := range out {
				out[i] = f(in[0][i], in[1][i], i)
			}
			return out
		})
	}
	minus := func(x, y float64, _ int) float64 { return x - y }
	noise := func(_, _ float64, i int) float64 { return 50 * math.Sin(float64(i*i)) }
	nearly := func(x, y float64, i int) float64 { return (x - y) * (1 + 1e-3*math.Sin(float64(i*i))) }
	const first, second = "layers.0.attn_residual", "layers.1.attn_residual"

	m = model(t)
	entries := []*diagnose.Entry{residual(first, minus), residual(second, noise)}
	f, err := diagnose.Find(t.Context(), m, entries)
	if err != nil {
		t.Fatal(err)
	}
	if f.Named() || f.Nearest == "" || f.Left == nil {
		t.Fatalf("%+v, nearest %+v", f, f.Left)
	}
	size := len(entries[1].Left)
	if l := *f.Left; f.Nearest != difference || l.Gives != 1 || l.Of != 2 || l.First != second || l.Elements < size*9/10 || l.OfElements != size {
		t.Errorf("nearest %q, which leaves %+v", f.Nearest, l)
	}

	m = model(t)
	if f, err = diagnose.Find(t.Context(), m, []*diagnose.Entry{residual(first, nearly)}); err != nil {
		t.Fatal(err)
	}
	if f.Named() || f.Left == nil {
		t.Fatalf("%q, nearest %q %+v", f.Text(), f.Nearest, f.Left)
	}
	if l := f.Left; f.Nearest != difference || l.Gives != 0 || l.Of != 1 || l.First != first || l.Elements < l.OfElements/2 || !(l.RelL2 > 1e-4 && l.RelL2 < 2e-3) || !(l.Right > 0.5) {
		t.Errorf("nearest %q, which leaves %+v", f.Nearest, l)
	}

	m = model(t)
	if f, err = diagnose.Find(t.Context(), m, []*diagnose.Entry{residual(first, noise)}); err != nil || f.Named() || f.Nearest != "" || f.Left != nil {
		t.Errorf("of noise %q is near, and leaves %+v (%v)", f.Nearest, f.Left, err)
	}
}

// A mistake that gives all elements, too few of which rule the right operation out, is near and no name. The finding says so.
func TestAMistakeThatShowsTooLittleIsNear(t *testing.T) {
	for scale := 1.0; scale < 1<<12; scale *= 1.003 {
		m := model(t)
		numbers := m.Read
		m.Read = func(n order.Node) (program.Value, error) {
			v, err := numbers(n)
			for i := range v.Data {
				v.Data[i] = float64(float32(v.Data[i] * scale))
			}
			return v, err
		}
		e := planted(t, m, "layers.0.input_layernorm", 0, func(in, w [][]float64) []float64 { return normed(in[0], w[0], 1e-3) })
		if n := len(e.Left); n == 0 || n >= 8 {
			continue
		}
		f := named(t, m, e)
		if f.Named() || f.Left == nil || f.Left.Gives != f.Left.Of || !strings.HasPrefix(f.Nearest, "epsilon is 0.001") || !strings.HasPrefix(f.Text(), "unexplained: one mistake reproduces all elements") {
			t.Errorf("%d elements left: %q, nearest %q, which leaves %+v", len(e.Left), f.Text(), f.Nearest, f.Left)
		}
		return
	}
	t.Fatal("no scale leaves a few elements")
}
