package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// The positions of each pass follow from the token ids. Wrong ones move the rotation of queries and keys alike, so that
// everything behind them is right given them.
func TestPositionsAloneGoOnFromTheTokens(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	moved := func(key string, by float64, d hooks.DType) *compare.Result {
		return isolated(t, "gemma3-tiny", replaced(t, golden, []string{key}, func(x hooks.Tensor) hooks.Tensor {
			out := hooks.Tensor{DType: d, Shape: x.Shape}
			for _, v := range elementsOf(x) {
				out.Data = appendValue(out.Data, d, v+by)
			}
			return out
		}), nil)
	}
	for key, detail := range map[string]string{"position_ids": "token 0 is at 1, not 0", "pass1/position_ids": "token 0 is at "} {
		res := moved(key, 1, hooks.I64)
		if r := rowOfKey(t, res, key); r.Verdict != compare.Mismatch || r.Class != gate.Value || !strings.Contains(r.Detail, detail) || r.Blame != compare.Root || res.ExitCode() != 1 {
			t.Errorf("%s + 1: %s %s (%s), exit %d", key, r.Verdict, r.Class, r.Detail, res.ExitCode())
		}
		if res.Decided != "the order, which has another value there; nothing was computed" {
			t.Errorf("%s + 1: decided by %s", key, res.Decided)
		}
		if res := moved(key, 0, hooks.I32); res.ExitCode() != 0 {
			t.Errorf("%s as int32: exit %d, %+v", key, res.ExitCode(), res.Divergence)
		}
	}
}

// movedPositions is a trace in which the positions of a pass, or of all passes with none, are one more.
func movedPositions(t *testing.T, golden *capture.Trace, keys ...string) *capture.Trace {
	return replaced(t, golden, keys, func(x hooks.Tensor) hooks.Tensor {
		out := hooks.Tensor{DType: x.DType, Shape: x.Shape}
		for _, v := range elementsOf(x) {
			out.Data = appendValue(out.Data, x.DType, v+1)
		}
		return out
	})
}

// Two traces with the same unusual positions: nobody knows which positions were meant, and the tensor shows nothing.
func TestPositionsThatBothSidesHaveWrong(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	moved := movedPositions(t, golden, "position_ids")
	ck, list := ordertest.Embedded(t, "gemma3-tiny")
	i, err := compare.NewIsolator(moved, list, reference.Weights(ck, hooks.F32), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for what, o := range map[string]compare.Options{
		"without certificates": {Order: list, All: true},
		"with certificates":    {Order: list, All: true, Certification: compare.Certification{Isolator: i, ReferenceIsolator: i}},
	} {
		res := run(t, moved, moved, o)
		r := rowOfKey(t, res, "position_ids")
		if r.Facts.Content != compare.Untested || res.ExitCode() != 1 || !slices.Contains(res.Untested, "position_ids") || !strings.Contains(fmt.Sprint(r.Notes), "token 0 is at 1, not 0") {
			t.Errorf("%s: %s, content %s, %v, exit %d", what, r.Verdict, r.Facts.Content, r.Notes, res.ExitCode())
		}
		if r := rowOfKey(t, res, "pass1/position_ids"); r.Facts.Content == compare.Untested {
			t.Errorf("%s: the positions of a right pass are untested", what)
		}
	}
}

// An error past its limit is no drift if the two sides were given different positions, in any pass that it was computed from.
func TestNothingDriftsFromDifferentPositions(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	ck, list := ordertest.Embedded(t, "gemma3-tiny")
	const entry = "layers.0.self_attn.o_proj"
	noise := func(x hooks.Tensor) hooks.Tensor { // one unit in the last place of one element
		x.Data = slices.Clone(x.Data)
		x.Data[0] ^= 1
		return x
	}
	for moved, gap := range map[string]string{"": "", "position_ids": "position_ids: the two sides did not have the same input"} {
		local := replaced(t, golden, []string{entry}, noise)
		if moved != "" {
			local = movedPositions(t, local, moved)
		}
		o := compare.Options{Order: list, All: true, Judging: compare.Judging{Limits: limits(t, "[[tolerance]]\ntensors = \""+entry+"\"\nrtol = 0\n[[tolerance]]\ntensors = \"*\"\nrtol = 1")}}
		var err error
		for of, into := range map[*capture.Trace]**compare.Isolator{local: &o.Isolator, golden: &o.ReferenceIsolator} {
			if *into, err = compare.NewIsolator(of, list, reference.Weights(ck, hooks.F32), isolate.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		r := rowOfKey(t, run(t, local, golden, o), entry)
		if (r.Verdict == compare.Match) != (moved == "") || !strings.Contains(r.Gap, gap) {
			t.Errorf("positions of %q moved: %s, %s; %q", moved, r.Verdict, r.Detail, r.Gap)
		}
	}
}

// A further firing of position_ids is not held to the tokens by the first, and a single trace without certificates shows a wrong number of positions.
func TestPositionsOfFurtherFirings(t *testing.T) {
	positions := func(values ...float64) hooks.Event {
		return fire("position_ids", hooks.I64, []int{1, len(values)}, values...)
	}
	list := tiny(t)
	for what, c := range map[string]struct {
		events []hooks.Event
		want   map[string]compare.Verdict
	}{
		"a further firing": {[]hooks.Event{ids(2, 5), positions(1, 2), positions(0, 1)}, map[string]compare.Verdict{"position_ids": compare.Mismatch, "position_ids#1": compare.Match}},
		"one too many":     {[]hooks.Event{ids(2, 5), positions(0, 1, 2)}, map[string]compare.Verdict{"position_ids": compare.Mismatch}},
	} {
		res, err := compare.Alone(t.Context(), build(t, manifest("local", hooks.F32), c.events...), compare.Options{Order: list, All: true})
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range c.want {
			if r := rowOfKey(t, res, key); r.Verdict != want {
				t.Errorf("%s: %s is %s (%s)", what, key, r.Verdict, r.Detail)
			}
		}
	}
}
