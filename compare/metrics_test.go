package compare_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// naive is two tensors of one shape and dtype.
type naive struct {
	shape []int
	dtype hooks.DType
	l, r  []float64
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

// TestSidesChangePlaces has what is symmetric, and how the rest changes, when local and reference change places.
func TestSidesChangePlaces(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		l, r := drawPair(t).traces(outer)
		o := compare.Options{Order: names(outer, "x")}
		m, w := run(outer, l, r, o).Rows[0].Metrics, run(outer, r, l, o).Rows[0].Metrics
		near(t, "max abs", m.MaxAbs, float64(w.MaxAbs), 0)
		near(t, "RMS", m.RMS, float64(w.RMS), 0)
		near(t, "cosine", m.Cosine, float64(w.Cosine), 1)
		if m.Unequal != w.Unequal || m.MaxULP != w.MaxULP || m.NonFinite != w.NonFinite || m.NaNBoth != w.NaNBoth {
			t.Fatalf("counts %+v and, changed, %+v", m, w)
		}
		if diff := cmp.Diff(fmt.Sprint(m.Local), fmt.Sprint(w.Reference)); diff != "" {
			t.Fatal(diff)
		}
		if m.Norm > 0 && w.Norm > 0 && !math.IsInf(float64(m.RelL2), 0) {
			near(t, "relative L2 times the norm", m.RelL2*m.Norm, float64(w.RelL2*w.Norm), 0)
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

// TestStandardDeviationFarFromZero has numbers whose squares leave nothing of their differences in float64.
func TestStandardDeviationFarFromZero(t *testing.T) {
	for _, center := range []float64{1e5, 1e8, 1e12} {
		rng := rand.New(rand.NewPCG(5, 5))
		o := oracle{shape: []int{3, 25000}, dl: hooks.F64, dr: hooks.F64}
		for range 75000 {
			o.l = append(o.l, center+rng.NormFloat64())
		}
		o.r = o.l
		m := rowOf(t, naive{o.shape, hooks.F64, o.l, o.l}).Metrics
		std := o.std(o.l, o.counted())
		if off := math.Abs(float64(m.Local.Std)/std - 1); off > 1e-14 {
			t.Errorf("at %g the standard deviation is %v, want %v: off by %g", center, m.Local.Std, std, off)
		}
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
