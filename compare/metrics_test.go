package compare_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
)

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
