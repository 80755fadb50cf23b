package compare_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// The lowest finite numbers of the dtypes, which transformers adds as a mask.
const (
	low32 = -math.MaxFloat32
	low16 = -0x1.fep127 // bfloat16
)

// onePair compares two tensors as an entry of the tiny order.
func onePair(t testing.TB, l, r hooks.Event) compare.Row {
	t.Helper()
	res := run(t, build(t, manifest("local", 0), l), build(t, manifest("reference", 0), r), compare.Options{Order: tiny(t)})
	if len(res.Rows) != 1 {
		t.Fatalf("%d rows", len(res.Rows))
	}
	return res.Rows[0]
}

func TestMaskPattern(t *testing.T) {
	shape := []int{1, 1, 2, 3}
	mask := func(d hooks.DType, v ...float64) hooks.Event { return fire("mask.full", d, shape, v...) }
	causal := mask(hooks.F32, 0, 0, low32, 0, 0, 0)
	tests := []struct {
		why   string
		l, r  hooks.Event
		class gate.Class
		want  measure.Pattern
	}{
		{"the same", causal, causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"−Inf is a way to write it", mask(hooks.F32, 0, 0, -inf, 0, 0, 0), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"so is the lowest bfloat16", mask(hooks.BF16, 0, 0, low16, 0, 0, 0), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"and false, where true means seen", mask(hooks.Bool, 1, 1, 0, 1, 1, 1), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"what is not masked has any value", mask(hooks.F32, 7, 0, low32, -3, 0, 0), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"so is −1e9, after which float32's softmax has 0", mask(hooks.F32, 0, 0, -1e9, 0, 0, 0), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"and −1e8, rounded to bfloat16", mask(hooks.BF16, 0, 0, -1e8, 0, 0, 0), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"and the lowest float32 in float64", mask(hooks.F64, 0, 0, low32, 0, 0, 0), causal, "", measure.Pattern{Masked: 1, Shown: 5}},
		{"−1e4 masks nothing", mask(hooks.F32, 0, 0, -1e4, 0, 0, 0), causal, gate.Value, measure.Pattern{Shown: 5, Gained: 1, Examples: [][]int{{0, 0, 0, 2}}}},
		{
			"one key too few and one too many",
			mask(hooks.F32, 0, 0, 0, low32, 0, 0),
			causal,
			gate.Value,
			measure.Pattern{Shown: 4, Gained: 1, Lost: 1, Examples: [][]int{{0, 0, 0, 2}, {0, 0, 1, 0}}},
		},
		{"NaN masks nothing and is not equal to 0", mask(hooks.F32, 0, 0, low32, notANum, 0, 0), causal, gate.NonFinite, measure.Pattern{Masked: 1, Shown: 4}},
	}
	for _, tt := range tests {
		row := onePair(t, tt.l, tt.r)
		if row.Class != tt.class || row.Gate.From != "pattern" {
			t.Errorf("%s: class %q (%s), gate %q", tt.why, row.Class, row.Detail, row.Gate.From)
		}
		got := *row.Metrics.Pattern
		if diff := cmp.Diff(tt.want.Examples, got.Examples); diff != "" || got.Masked != tt.want.Masked || got.Shown != tt.want.Shown || got.Gained != tt.want.Gained || got.Lost != tt.want.Lost {
			t.Errorf("%s: pattern %+v, want %+v", tt.why, got, tt.want)
		}
	}
	if row := onePair(t, mask(hooks.F32, 0), mask(hooks.F32, 0)); row.Verdict != compare.Match || !hasNote(row, compare.Vacuous) {
		t.Errorf("a mask that masks nothing: %s, notes %v", row.Verdict, row.Notes)
	}
}

// TestMaskOfNaN has a mask that is NaN on both sides: nothing is tested there, as in any tensor.
func TestMaskOfNaN(t *testing.T) {
	broken := fire("mask.full", hooks.F32, []int{1, 1, 1, 2}, 0, notANum)
	row := onePair(t, broken, broken)
	if row.Verdict != compare.Match || row.Metrics.NaNBoth != 1 || !hasNote(row, compare.BothNaN) {
		t.Errorf("verdict %s, notes %v", row.Verdict, row.Notes)
	}
}

func TestMaskedScores(t *testing.T) {
	const name = "layers.0.self_attn.scores_masked"
	scores := func(d hooks.DType, v ...float64) hooks.Event { return fire(name, d, []int{1, 1, 2, 3}, v...) }
	r := scores(hooks.F32, 1, -2, low32, 3, -4, 5)
	tests := []struct {
		why   string
		l     hooks.Event
		class gate.Class
	}{
		{"a masked score absorbs its value", scores(hooks.F32, 1, -2, -3e38, 3, -4, 5), ""},
		{"or is −Inf", scores(hooks.F32, 1, -2, -inf, 3, -4, 5), ""},
		{"what is not masked is compared", scores(hooks.F32, 1, -2, low32, 3, -4, 5.1), gate.Value},
		{"even NaN", scores(hooks.F32, 1, -2, low32, 3, -4, notANum), gate.NonFinite},
		{"a key that should be masked", scores(hooks.F32, 1, -2, 7, 3, -4, 5), gate.Value},
		{"a key that should be seen", scores(hooks.F32, 1, low32, low32, 3, -4, 5), gate.Value},
		{"in bfloat16", scores(hooks.BF16, 1, -2, low16, 3, -4, 5), ""},
		{"in float64", scores(hooks.F64, 1, -2, low32, 3, -4, 5), ""},
		{"or −1e9 with a score", scores(hooks.F32, 1, -2, -1e9+64, 3, -4, 5), ""},
		{"−1e4 with a score is a number", scores(hooks.F32, 1, -2, -1e4, 3, -4, 5), gate.Value},
	}
	for _, tt := range tests {
		row := onePair(t, tt.l, r)
		if row.Class != tt.class {
			t.Errorf("%s: class %q (%s)", tt.why, row.Class, row.Detail)
		}
		if tt.class == "" && (row.Metrics.Masked != 1 || row.Metrics.Compared != 5 || row.Metrics.RelL2 != 0) {
			t.Errorf("%s: metrics %+v", tt.why, row.Metrics)
		}
	}
}

// TestMaskedScoresHaveNoFloor has a score of a masked key that is larger than all others: it is a term of the sum, and
// nothing of it is left in the result.
func TestMaskedScoresHaveNoFloor(t *testing.T) {
	shape := []int{1, 1, 2, 3}
	trace := func(side string, masked ...float64) *capture.Trace {
		return build(t, manifest(side, hooks.F32), fire("layers.0.self_attn.scores", hooks.F32, shape, 1, -2, 1e6, 3, -4, 5),
			fire("layers.0.self_attn.scores_masked", hooks.F32, shape, masked...))
	}
	l, r := trace("local", 1, -2, low32, 3, -4, 6), trace("reference", 1, -2, low32, 3, -4, 5)
	if res := run(t, l, r, compare.Options{Order: tiny(t)}); res.Mismatches != 1 || res.Rows[1].Metrics.Floor != 0 {
		t.Errorf("a wrong score: %+v", res.Rows[1].Metrics)
	}
}

// TestMaskedScoresWithoutARule has scores in an order of names alone. The mask value is in both, and nothing but the rest
// may decide: in the norm it would outweigh every error.
func TestMaskedScoresWithoutARule(t *testing.T) {
	r := []float64{1, -2, low32, 3, -4, 5}
	wrong := slices.Clone(r)
	wrong[5] = -5
	for _, tt := range []struct {
		why  string
		l    []float64
		want float64 // relative L2 of what is not masked
	}{{"equal", r, 0}, {"one score negated", wrong, 10 / math.Sqrt(55)}} {
		m := rowOf(t, testengine.Pair{Shape: []int{1, 1, 2, 3}, DType: hooks.F32, Local: tt.l, Reference: r}).Metrics
		if m.Masked != 1 || !(math.Abs(float64(m.RelL2)-tt.want) <= 1e-12) {
			t.Errorf("%s: %d masked, relative L2 %g, want %g", tt.why, m.Masked, m.RelL2, tt.want)
		}
	}
	if row := rowOf(t, testengine.Pair{Shape: []int{1, 1, 2, 3}, DType: hooks.F32, Local: with(r, 2, -3e38), Reference: r}); row.Verdict != compare.Mismatch {
		t.Error("without a rule two mask values are two values")
	}
}

// Whatever an engine masks with, and in which dtype it stores that, its softmax is the same to the bit: nothing of it is a
// mistake. One key too many or too few still is.
func TestMasksOfAnySizeAreCertified(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	masked := func(r hooks.Event) bool {
		return strings.HasPrefix(r.Name, "mask.") || strings.HasSuffix(r.Name, "scores_masked")
	}
	for _, c := range []struct {
		what string
		d    hooks.DType
		by   float64 // in place of the lowest number; 0 leaves it
	}{{"in float64", hooks.F64, 0}, {"−1e9", hooks.F32, -1e9}, {"−1e8", hooks.F32, -1e8}, {"−Inf in float64", hooks.F64, -inf}} {
		for _, wrong := range []bool{false, true} {
			local := testengine.Rewritten(t, golden, nil, func(key string, e hooks.Event) []hooks.Event {
				if !masked(e) {
					return []hooks.Event{e}
				}
				out := hooks.Tensor{DType: c.d, Shape: e.Tensor.Shape}
				for i, v := range elementsOf(e.Tensor) {
					if v < -1e30 && c.by != 0 {
						v = c.by
					}
					if wrong && key == "layers.1.self_attn.scores_masked" && i == len(e.Tensor.Data)/4-1 { // the last query does not see itself
						v = -1e9
					}
					out.Data = appendValue(out.Data, c.d, v)
				}
				e.Tensor = out
				return []hooks.Event{e}
			})
			for _, ref := range []*capture.Trace{nil, golden} {
				res := isolated(t, "gemma3-tiny", local, ref)
				if !wrong && (res.ExitCode() != 0 || res.Isolation.Bugs > 0) {
					t.Errorf("%s, reference %t: exit %d, %d bugs, %+v", c.what, ref != nil, res.ExitCode(), res.Isolation.Bugs, res.Divergence)
				}
				if r := rowOfKey(t, res, "layers.1.self_attn.scores_masked"); wrong && (r.Blame != compare.Root || r.Verdict != compare.Mismatch) {
					t.Errorf("%s, a key too few, reference %t: %s %s", c.what, ref != nil, r.Verdict, r.Blame)
				}
			}
		}
	}
}
