package compare_test

import (
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Two sides that see different keys do not differ by rounding, even where the score that one of them masks is, on both, what
// correct arithmetic may give: only numbers are excused as drift.
func TestOtherKeysAreNoDrift(t *testing.T) {
	const width, keys, limit = 64, 4, -0x1p26
	known := tiny(t)
	input, _ := known.Lookup(order.InputIDs)
	table := singles.Array{Shape: []int{3, width}, Data: make([]float32, 3*width)}
	for i := range table.Data {
		table.Data[i] = 0x1p10
	}
	weight := singles.Array{Shape: []int{keys, width}, Data: make([]float32, keys*width)}
	for i := range weight.Data {
		weight.Data[i] = 0x1p-10 * float32(1+i/width)
		if i < width {
			weight.Data[i] = -0x1p10
		}
	}
	x := singles.Array{Shape: []int{1, 1, width}, Data: nil}.Entry("x", op.Lookup{Rows: 3}, "btc")
	x.Inputs, x.Weights = []order.Ref{{Name: order.InputIDs}}, []order.Weight{{Name: "table", Shape: table.Shape}}
	scores := singles.Array{Shape: []int{1, 1, keys}, Data: nil}.Entry("scores", op.Linear{}, "btk")
	scores.Inputs, scores.Weights = []order.Ref{{Name: "x"}}, []order.Weight{{Name: "weight", Shape: weight.Shape}}
	scores.Compare = order.Allowed
	list := known.Keep([]*order.Entry{input, x, scores})
	weights := func(w order.Weight) (program.Rows, error) {
		return map[string]singles.Array{"table": table, "weight": weight}[w.Name], nil
	}

	side := func(name string, first float64) *capture.Trace {
		return build(t, manifest(name, hooks.F32), ids(2), singles.Array{Shape: []int{1, 1, width}, Data: table.Data[:width]}.Event("x", hooks.F32),
			fire("scores", hooks.F32, []int{1, 1, keys}, first, 128, 192, 256))
	}
	isolator := func(trace *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(trace, list, weights, isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	local, ref := side("local", limit-16), side("reference", limit+8)
	res := run(t, local, ref, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: isolator(local), ReferenceIsolator: isolator(ref)}})
	r := rowOfKey(t, res, "scores")
	if r.Isolated == nil || !r.Isolated.Good() || r.Metrics.Pattern.Lost != 1 {
		t.Fatalf("isolated %+v, pattern %+v", r.Isolated, r.Metrics.Pattern)
	}
	if r.Verdict != compare.Mismatch || r.Class != gate.Value || res.ExitCode() != 1 {
		t.Errorf("%s %s (%s), %v", r.Verdict, r.Class, r.Detail, r.Notes)
	}
}
