package compare_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// naive computes metrics from their definitions, one quantity at a time and each in a loop of its own.
type naive struct {
	shape []int
	dtype hooks.DType
	l, r  []float64
}

// finitePairs are the pairs that the sums are over.
func (n naive) finitePairs() (l, r []float64) {
	for i := range n.l {
		if !math.IsNaN(n.l[i]-n.r[i]) && !math.IsInf(n.l[i], 0) && !math.IsInf(n.r[i], 0) {
			l, r = append(l, n.l[i]), append(r, n.r[i])
		}
	}
	return l, r
}

func norm(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return math.Sqrt(sum)
}

func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func over(err, den float64) float64 {
	if err == 0 {
		return 0
	}
	return err / den
}

func (n naive) relL2() float64 {
	l, r := n.finitePairs()
	return over(norm(minus(l, r)), norm(r))
}

func (n naive) rms() float64 {
	l, r := n.finitePairs()
	return norm(minus(l, r)) / math.Sqrt(float64(len(l)))
}

func (n naive) cosine() float64 {
	l, r := n.finitePairs()
	if norm(l) == 0 || norm(r) == 0 {
		return math.NaN()
	}
	return dot(l, r) / norm(l) / norm(r)
}

func (n naive) scale() float64 {
	l, r := n.finitePairs()
	if norm(r) == 0 {
		return math.NaN()
	}
	return dot(l, r) / dot(r, r)
}

func (n naive) maxAbs() (max float64, at int) {
	at = -1
	for i := range n.l {
		if d := math.Abs(n.l[i] - n.r[i]); d > max && !math.IsInf(d, 0) {
			max, at = d, i
		}
	}
	return max, at
}

func (n naive) unequal() (count int64, steps uint64) {
	l, r := n.finitePairs()
	for i := range l {
		if d := floats.Distance(n.dtype, l[i], r[i]); d > 0 {
			count++
			steps = max(steps, d)
		}
	}
	return count, steps
}

func (n naive) nonFinite() (differ, bothNaN int64) {
	for i := range n.l {
		a, b := n.l[i], n.r[i]
		switch {
		case math.IsNaN(a) && math.IsNaN(b), math.IsInf(a, 1) && math.IsInf(b, 1):
			bothNaN++
		case (math.IsNaN(a) || math.IsInf(a, 0) || math.IsNaN(b) || math.IsInf(b, 0)) && a != b:
			differ++
		}
	}
	return differ, bothNaN
}

// slice gathers the pairs of one index of one axis.
func (n naive) slice(axis, index int) (l, r []float64) {
	inner := 1
	for _, s := range n.shape[axis+1:] {
		inner *= s
	}
	for i := range n.l {
		if i/inner%n.shape[axis] == index && !math.IsNaN(n.l[i]-n.r[i]) && !math.IsInf(n.l[i], 0) && !math.IsInf(n.r[i], 0) {
			l, r = append(l, n.l[i]), append(r, n.r[i])
		}
	}
	return l, r
}

// median of the norms of the slices that are not zero.
func (n naive) median(axis int) float64 {
	var norms []float64
	for i := range n.shape[axis] {
		if _, r := n.slice(axis, i); norm(r) > 0 {
			norms = append(norms, norm(r))
		}
	}
	if len(norms) == 0 {
		return 0
	}
	slices.Sort(norms)
	return norms[(len(norms)-1)/2]
}

func (n naive) worst(axis int) (index int, err float64) {
	median := n.median(axis)
	err = -1
	for i := range n.shape[axis] {
		l, r := n.slice(axis, i)
		if e := over(norm(minus(l, r)), max(norm(r), median)); e > err {
			index, err = i, e
		}
	}
	return index, err
}

func near(t *rapid.T, what string, got compare.Number, want float64) {
	t.Helper()
	g := float64(got)
	same := g == want || math.IsNaN(g) && math.IsNaN(want)
	if !same && !(math.Abs(g-want) <= 1e-12*math.Abs(want)+1e-15) {
		t.Fatalf("%s is %g, want %g", what, g, want)
	}
}

// drawPair draws two tensors of one shape: mostly near each other, with zeros of both signs, NaN and infinities.
func drawPair(t *rapid.T) naive {
	n := naive{
		shape: rapid.SliceOfN(rapid.IntRange(1, 4), 0, 4).Draw(t, "shape"),
		dtype: rapid.SampledFrom([]hooks.DType{hooks.F64, hooks.F32, hooks.F16, hooks.BF16}).Draw(t, "dtype"),
	}
	size, _ := hooks.Elements(n.shape)
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
	for range size {
		r := rapid.Float64Range(-100, 100).Draw(t, "r")
		l := r
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			l = rapid.SampledFrom(special).Draw(t, "l")
		case 1:
			r = rapid.SampledFrom(special).Draw(t, "r")
		case 2:
			l = rapid.SampledFrom(special).Draw(t, "both")
			r = l
		case 3, 4, 5:
			l = r * (1 + rapid.Float64Range(-0.1, 0.1).Draw(t, "noise"))
		}
		n.l = append(n.l, floats.Round(n.dtype, l))
		n.r = append(n.r, floats.Round(n.dtype, r))
	}
	return n
}

// rowOf compares two tensors and returns the row.
func rowOf(t testing.TB, n naive) compare.Row {
	t.Helper()
	l, r := n.traces(t)
	return run(t, l, r, compare.Options{Order: names(t, "x")}).Rows[0]
}

func (n naive) traces(t testing.TB) (l, r *capture.Trace) {
	t.Helper()
	return build(t, manifest("local", n.dtype), fire("x", n.dtype, n.shape, n.l...)),
		build(t, manifest("reference", n.dtype), fire("x", n.dtype, n.shape, n.r...))
}

func TestMetricsAreTheirDefinitions(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		n := drawPair(t)
		m := rowOf(outer, n).Metrics
		finite, r := n.finitePairs()
		if m.Elements != int64(len(n.l)) || m.Compared != int64(len(finite)) {
			t.Fatalf("%d elements, %d compared, want %d and %d", m.Elements, m.Compared, len(n.l), len(finite))
		}
		near(t, "relative L2", m.RelL2, n.relL2())
		near(t, "RMS", m.RMS, n.rms())
		near(t, "cosine", m.Cosine, n.cosine())
		near(t, "scale", m.Scale, n.scale())
		near(t, "norm", m.Norm, norm(r))
		most, at := n.maxAbs()
		near(t, "max abs", m.MaxAbs, most)
		if at >= 0 {
			near(t, "local value there", m.LocalAt, n.l[at])
			near(t, "reference value there", m.ReferenceAt, n.r[at])
			if got := place(m.Worst, n.shape); got != at {
				t.Fatalf("worst element %v, which is number %d, want %d", m.Worst, got, at)
			}
		} else if m.Worst != nil {
			t.Fatalf("worst element %v, but none differs", m.Worst)
		}
		if count, steps := n.unequal(); m.Unequal != count || m.MaxULP != steps {
			t.Fatalf("%d unequal, %d steps at most; want %d and %d", m.Unequal, m.MaxULP, count, steps)
		}
		if differ, both := n.nonFinite(); m.NonFinite != differ || m.NaNBoth != both {
			t.Fatalf("%d not finite on one side, %d NaN on both; want %d and %d", m.NonFinite, m.NaNBoth, differ, both)
		}
		checkAxes(t, m, n)
		checkStats(t, "local", m.Local, finite)
		checkStats(t, "reference", m.Reference, r)
	})
}

// place is the number of an element in row-major order.
func place(index, shape []int) int {
	at := 0
	for i, x := range index {
		at = at*shape[i] + x
	}
	return at
}

func checkAxes(t *rapid.T, m *compare.Metrics, n naive) {
	t.Helper()
	var want []string
	for axis, size := range n.shape {
		if size > 1 {
			want = append(want, fmt.Sprintf("axis %d", axis))
		}
	}
	var got []string
	for _, a := range m.Axes {
		got = append(got, a.Axis)
		index, err := n.worst(a.Number)
		near(t, fmt.Sprintf("worst of axis %d", a.Number), a.RelL2, err)
		// Two slices may be equally bad up to the last bit: the one named has to be as bad as the worst.
		l, r := n.slice(a.Number, a.Worst)
		near(t, fmt.Sprintf("error of slice %d, where %d is the worst,", a.Worst, index), compare.Number(over(norm(minus(l, r)), max(norm(r), n.median(a.Number)))), err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("axes %q, want %q", got, want)
	}
}

func checkStats(t *rapid.T, side string, s compare.Stats, x []float64) {
	t.Helper()
	if len(x) == 0 {
		if !math.IsNaN(float64(s.Mean)) || !math.IsNaN(float64(s.Min)) || !math.IsNaN(float64(s.Std)) {
			t.Fatalf("%s: statistics of nothing are %+v", side, s)
		}
		return
	}
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	if math.Abs(float64(s.Mean)-mean) > 1e-10 || math.Abs(float64(s.Std)-math.Sqrt(variance)) > 1e-6 {
		t.Fatalf("%s: mean %g, standard deviation %g; want %g and %g", side, s.Mean, s.Std, mean, math.Sqrt(variance))
	}
	if float64(s.Min) != slices.Min(x) || float64(s.Max) != slices.Max(x) {
		t.Fatalf("%s: %g to %g, want %g to %g", side, s.Min, s.Max, slices.Min(x), slices.Max(x))
	}
}

// TestSidesChangePlaces has what is symmetric, and how the rest changes, when local and reference change places.
func TestSidesChangePlaces(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		l, r := drawPair(t).traces(outer)
		o := compare.Options{Order: names(outer, "x")}
		m, w := run(outer, l, r, o).Rows[0].Metrics, run(outer, r, l, o).Rows[0].Metrics
		near(t, "max abs", m.MaxAbs, float64(w.MaxAbs))
		near(t, "RMS", m.RMS, float64(w.RMS))
		near(t, "cosine", m.Cosine, float64(w.Cosine))
		if m.Unequal != w.Unequal || m.MaxULP != w.MaxULP || m.NonFinite != w.NonFinite || m.NaNBoth != w.NaNBoth {
			t.Fatalf("counts %+v and, changed, %+v", m, w)
		}
		if diff := cmp.Diff(fmt.Sprint(m.Local), fmt.Sprint(w.Reference)); diff != "" {
			t.Fatal(diff)
		}
		if m.Norm > 0 && w.Norm > 0 && !math.IsInf(float64(m.RelL2), 0) {
			near(t, "relative L2 times the norm", m.RelL2*m.Norm, float64(w.RelL2*w.Norm))
		}
	})
}

func TestUnequalIsOfTheCoarserDType(t *testing.T) {
	// 1 + 2^−10 is 1 in bfloat16; 1 + 2^−7 is its neighbour.
	l := build(t, manifest("local", hooks.F32), fire("x", hooks.F32, []int{4}, 1+1.0/1024, 1+1.0/128, 2, 4))
	r := build(t, manifest("reference", hooks.BF16), fire("x", hooks.BF16, []int{4}, 1, 1, 2, 4))
	row := run(t, l, r, compare.Options{Order: names(t, "x")}).Rows[0]
	if m := row.Metrics; m.Unequal != 1 || m.MaxULP != 1 {
		t.Errorf("%d unequal by %d, want 1 by 1", m.Unequal, m.MaxULP)
	}
	if row.Gate.From != "table, bfloat16" || !hasNote(row, compare.MixedDType) {
		t.Errorf("gate %q, notes %v", row.Gate.From, row.Notes)
	}
}

func TestStandardDeviationFarFromZero(t *testing.T) {
	values := []float64{1e8, 1e8 + 1, 1e8 + 2, 1e8 + 3}
	m := rowOf(t, naive{[]int{4}, hooks.F64, values, values}).Metrics
	if want := math.Sqrt(1.25); math.Abs(float64(m.Local.Std)-want) > 1e-12 {
		t.Errorf("standard deviation %g, want %g", m.Local.Std, want)
	}
}

func TestResultIsJSON(t *testing.T) {
	l := build(t, manifest("local", hooks.F32), fire("x", hooks.F32, []int{2}, 1, math.NaN()))
	r := build(t, manifest("reference", hooks.F32), fire("x", hooks.F32, []int{2}, 0, math.Inf(1)))
	b, err := json.Marshal(run(t, l, r, compare.Options{Order: names(t, "x"), Scope: capture.Scope{Level: 2}}))
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Rows []struct {
			Metrics struct {
				RelL2  any `json:"rel_l2"`
				Cosine any `json:"cosine"`
				MaxAbs any `json:"max_abs"`
			} `json:"metrics"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	m := back.Rows[0].Metrics
	if m.RelL2 != "Infinity" || m.Cosine != "NaN" || m.MaxAbs != 1.0 {
		t.Errorf("as JSON: %+v", m)
	}
}
