package compare_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// limits parses a file or fails.
func limits(t testing.TB, text string) *gate.Limits {
	t.Helper()
	l, err := gate.ParseLimits([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// under compares one pair of a tensor x within limits.
func under(t *testing.T, l *gate.Limits, local, ref []float64) compare.Row {
	t.Helper()
	shape := []int{1, 2, len(ref) / 2}
	res := run(t, build(t, manifest("local", hooks.F32), fire("x", hooks.F32, shape, local...)),
		build(t, manifest("reference", hooks.F32), fire("x", hooks.F32, shape, ref...)), compare.Options{Order: names(t, "x"), Judging: compare.Judging{Limits: l}})
	return res.Rows[0]
}

func TestOwnTolerances(t *testing.T) {
	zero := times(some, 0)
	for _, tt := range []struct {
		why, text  string
		local, ref []float64
		match      bool
	}{
		{"wider than the table", "rtol = 0.1", times(some, 1.05), some, true},
		{"and past it", "rtol = 0.04", times(some, 1.05), some, false},
		{"zero is equality", "rtol = 0", some, some, true},
		{"which a rounding error is not", "rtol = 0", times(some, 1+1e-6), some, false},
		{"atol is a root mean square", "atol = 0.26", times(some, 1.05), some, true}, // of 0.05·√(204/8) = 0.2525
		{"past it", "atol = 0.24", times(some, 1.05), some, false},
		{"both add up", "atol = 0.13\nrtol = 0.025", times(some, 1.05), some, true},
		{"over a reference of zero no element may be further off than atol", "atol = 0.01", with(zero, 3, 0.009), zero, true},
		{"past it", "atol = 0.01", with(zero, 3, 0.011), zero, false},
		{"which rtol says nothing about", "rtol = 0.9", with(zero, 3, 1e-9), zero, false},
		{"NaN has no tolerance", "rtol = 1\natol = 1e300", with(some, 3, notANum), some, false},
	} {
		row := under(t, limits(t, "[[tolerance]]\ntensors = \"*\"\n"+tt.text), tt.local, tt.ref)
		if (row.Verdict == compare.Match) != tt.match {
			t.Errorf("%s: %s, %s", tt.why, row.Verdict, row.Detail)
		}
		if row.Gate.From != `tolerances, "*"` {
			t.Errorf("%s: limits from the %s", tt.why, row.Gate.From)
		}
	}
}

// The limits that a file gives for tokens and channels are theirs, and not multiples of the tensor's.
func TestOwnToleranceOfASlice(t *testing.T) {
	list := tiny(t)
	off := changing("norm", 0, func(i int, v float64) float64 {
		if i < 32 { // the first token
			return v * 1.2
		}
		return v
	})
	l, r := model{list: list, change: off}.trace(t, "local"), model{list: list}.trace(t, "reference")
	for text, exit := range map[string]int{
		"rtol = 0.1":                               0, // 0.2/√6 of the tensor, and of the token 0.2 within thrice 0.1
		"rtol = 0.1\ntoken = 0.19":                 1,
		"rtol = 0.1\ntoken = 0.21":                 0,
		"rtol = 0.1\ntoken = 0.21\nchannel = 0.05": 1,
	} {
		res := run(t, l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: limits(t, "[[tolerance]]\ntensors = \"*\"\n"+text)}})
		if res.ExitCode() != exit {
			t.Errorf("%q: exit code %d, want %d", text, res.ExitCode(), exit)
		}
	}
}

// A file of tolerances that says nothing about an entry is an error before anything is compared, unless there is a limit
// for the rest.
func TestEveryEntryNeedsATolerance(t *testing.T) {
	list := tiny(t)
	l, r := model{list: list}.trace(t, "local"), model{list: list}.trace(t, "reference")
	own := limits(t, "[[tolerance]]\ntensors = \"layers.*\"\nrtol = 0.1\n")
	_, err := compare.Traces(t.Context(), l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: own}})
	var unsuitable *compare.UnsuitableError
	if !errors.As(err, &unsuitable) || unsuitable.What != "tolerances" || !strings.Contains(err.Error(), `"embed_tokens`) {
		t.Errorf("entries without a tolerance: %v", err)
	}
	own.Default = &gate.Tolerance{RTol: 0.1}
	if res := run(t, l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: own}}); res.ExitCode() != 0 {
		t.Errorf("with a limit for the rest: %+v", res.Divergence)
	}
	// Token ids, positions and masks have no tolerance and need none.
	own = limits(t, "[[tolerance]]\ntensors = \"layers.*\"\nrtol = 0.1\n")
	run(t, l, r, compare.Options{Order: names(t, "input_ids", "position_ids", "layers.0.in"), Judging: compare.Judging{Limits: own}})
}

const allowUp = "[[allow]]\ntensors = \"layers.3.mlp.up_proj\"\nreason = \"known: the weight is quantized\"\n"

func TestAllowedMismatch(t *testing.T) {
	list := tiny(t)
	const name = "layers.3.mlp.up_proj"
	scaled := changing(name, 0, func(_ int, v float64) float64 { return v * 1.5 })
	nan := changing(name, 0, func(i int, v float64) float64 {
		if i == 7 {
			return notANum
		}
		return v
	})
	r := model{list: list}.trace(t, "reference")
	for _, tt := range []struct {
		why, text string
		change    func(*order.Entry, *hooks.Event) bool
		exit      int
		keys      int
	}{
		{"a wrong value that is known", allowUp, scaled, 0, 1},
		{"in a pass that the line is not about", allowUp + "passes = \"1-\"\n", scaled, 1, 0},
		{"a NaN hides behind no such line", allowUp, nan, 1, 0},
		{"unless it says so", allowUp + "classes = [\"NONFINITE\"]\n", nan, 0, 1},
		{"nor does a tensor that is missing", allowUp, without(name), 1, 0},
		{"unless it says so", allowUp + "classes = [\"MISSING\"]\n", without(name), 0, 1},
		{"nothing to allow", allowUp, nil, 0, 0},
	} {
		res := run(t, model{list: list, change: tt.change}.trace(t, "local"), r, compare.Options{Order: list, Judging: compare.Judging{Limits: limits(t, tt.text)}})
		if res.ExitCode() != tt.exit || len(res.Allowed) != 1 || len(res.Allowed[0].Keys) != tt.keys {
			t.Errorf("%s: exit code %d, allowed %+v, divergence %+v", tt.why, res.ExitCode(), res.Allowed, res.Divergence)
		}
		for _, row := range res.Rows {
			if row.Allowed != "" && (row.Verdict != compare.Mismatch || row.Name != name || row.Allowed != "known: the weight is quantized") {
				t.Errorf("%s: %s is %s, allowed because %q", tt.why, row.Name, row.Verdict, row.Allowed)
			}
		}
	}
}

// What is allowed is not what was tested, and different token ids are never allowed.
func TestAllowingEverythingIsNoSuccess(t *testing.T) {
	list := tiny(t)
	all := limits(t, "[[allow]]\ntensors = \"*\"\nclasses = [\"VALUE\", \"SHAPE\", \"NONFINITE\", \"DTYPE\", \"MISSING\"]\nreason = \"everything\"\n")
	off := func(e *order.Entry, ev *hooks.Event) bool {
		if ev.Tensor.DType.Float() {
			*ev = edited(*ev, func(_ int, v float64) float64 { return -2 * v })
		}
		return true
	}
	r := model{list: list}.trace(t, "reference")
	if res := run(t, model{list: list, change: off}.trace(t, "local"), r, compare.Options{Order: list, Judging: compare.Judging{Limits: all}}); res.Mismatches == 0 && res.Coverage.Tested > 40 {
		t.Errorf("%d entries count as tested", res.Coverage.Tested)
	}
	other := model{list: list, passes: [][]float64{{2, 500, 501, 502, 503, 505}}}.trace(t, "local")
	if res := run(t, other, r, compare.Options{Order: list, Judging: compare.Judging{Limits: all}}); res.ExitCode() != 1 || res.Divergence == nil {
		t.Error("different token ids are allowed")
	}
}
