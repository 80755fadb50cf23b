package compare_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// lastRows is a trace whose logits have one row in each pass, that of the token which is back places before the last, times a
// factor. It says that the row is the last.
func lastRows(t *testing.T, from *capture.Trace, back int, factor float64) *capture.Trace {
	t.Helper()
	sources := from.Sources()
	for i := range sources {
		s := &sources[i]
		if s.Name != "logits" || s.Shape[1] < 2 {
			continue
		}
		rec, _ := from.Lookup(s.Pass, s.Name)
		x, err := from.Read(rec)
		if err != nil {
			t.Fatal(err)
		}
		width := s.Shape[2] * s.DType.Size()
		row := x.Data[(s.Shape[1]-1-back)*width:][:width]
		one := byFactor(factor)(hooks.Tensor{DType: s.DType, Shape: []int{1, 1, s.Shape[2]}, Data: row})
		s.Shape, s.Data, s.LastRow = one.Shape, bytes.NewReader(one.Data), true
	}
	m := from.Manifest()
	m.Passes = 0
	trace, err := capture.Assemble("last rows", sources, m, from.Sequence(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Logits of the last token alone are compared with that row of the reference's: what is right matches, whichever side has one row,
// and an error in it, or another token's row, is a mismatch of the logits. The row is certified by itself.
func TestLogitsOfTheLastTokenAlone(t *testing.T) {
	const dir = "gemma3-tiny"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.float32.safetensors")
	right := lastRows(t, golden, 0, 1)
	for _, c := range []struct {
		what       string
		local, ref *capture.Trace
		verdict    compare.Verdict
		exit       int
		right      bool
	}{
		{"your port", right, golden, compare.Match, 0, true},
		{"the reference", golden, right, compare.Match, 0, true},
		{"both", right, right, compare.Match, 0, true},
		{"scaled", lastRows(t, golden, 0, 1.001), golden, compare.Mismatch, 1, false},
		{"the row before", lastRows(t, golden, 1, 1), golden, compare.Mismatch, 1, false},
	} {
		res := isolated(t, dir, c.local, c.ref)
		r := rowOfKey(t, res, "logits")
		if r.Verdict != c.verdict || res.ExitCode() != c.exit || r.Isolated == nil || r.Isolated.Good() != c.right {
			t.Errorf("%s: %s %s (%s), exit %d, %v, isolated %+v", c.what, r.Verdict, r.Class, r.Detail, res.ExitCode(), res.Incomplete, r.Isolated)
		}
	}
	if res := isolated(t, dir, right, nil); res.ExitCode() != 0 || res.Mismatches > 0 || len(res.Incomplete) > 0 {
		t.Errorf("alone: exit %d, %d mismatches, incomplete: %v", res.ExitCode(), res.Mismatches, res.Incomplete)
	}
}

// Which mistakes a run would have shown is asked of entries that have the last row alone, too: what they would show if they had been captured
// whole, with the entries between them, is worked out of all rows.
func TestSightOfTheLastTokenAlone(t *testing.T) {
	const dir = "llama-tiny"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/prefill.bfloat16.safetensors")
	right := lastRows(t, golden, 0, 1)
	sources := slices.DeleteFunc(right.Sources(), func(s capture.Source) bool { return s.Name == "lm_head" || s.Name == "norm.in" || s.Name == "norm" })
	local, err := capture.Assemble("last rows", sources, capture.Manifest{DType: hooks.BF16}, right.Sequence(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	ck, list := ordertest.Embedded(t, dir)
	res := run(t, local, golden, compare.Options{Order: list, All: true, Certification: compare.Certification{Sight: true, Isolator: isolator(t, local, ck, list), ReferenceIsolator: isolator(t, golden, ck, list)}})
	if res.Mismatches > 0 || res.Sight == nil || res.Sight.Known == 0 || len(res.Sight.Seen) == 0 {
		t.Fatalf("%d mismatches, incomplete %v, sight %+v", res.Mismatches, res.Incomplete, res.Sight)
	}
}
