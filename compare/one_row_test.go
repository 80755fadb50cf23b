package compare_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// In a pass of one token a channel is one element, and its error over the size of the median one says nothing that a factor would bound: the
// worst channel has no limit there, and the tensor has. With two tokens, or with a limit of a person's own, it has one.
func TestChannelsOfOneRowHaveNoLimit(t *testing.T) {
	const name = "layers.0.mlp.down_proj"
	whole := tiny(t)
	first, _ := whole.Lookup("input_ids")
	e, _ := whole.Lookup(name)
	list := whole.Keep([]*order.Entry{first, e})
	width := int(e.Shape[len(e.Shape)-1])
	row := func(massive, next float64) []float64 {
		x := make([]float64, width)
		for i := range x {
			x[i] = 1
		}
		x[0], x[1] = massive, next
		return x
	}
	channel := 0.5
	for _, of := range []struct {
		what          string
		tokens        int
		massive, next float64 // of the local side; the reference has 4096 and 1
		limits        *gate.Limits
		mismatch      string // in words; empty for a match
	}{
		{"one row, one element", 1, 4096, 9, nil, ""},
		{"two rows, one channel", 2, 4096, 9, nil, "worst channel"},
		{"one row, all of it", 1, 2048, 1, nil, "relative L2 of the tensor"},
		{"one row, a limit of a person's own", 1, 4096, 9, &gate.Limits{Default: &gate.Tolerance{RTol: 0.1, Channel: &channel}}, "worst channel"},
		{"one row, another limit of a person's own", 1, 4096, 9, &gate.Limits{Default: &gate.Tolerance{RTol: 0.1}}, ""},
	} {
		side := func(side string, massive, next float64) []hooks.Event {
			tokens := make([]float64, of.tokens)
			var data []float64
			for i := range of.tokens {
				tokens[i] = float64(i + 3)
				data = append(data, row(massive, next)...)
			}
			return []hooks.Event{ids(tokens...), fire(name, hooks.BF16, []int{1, of.tokens, width}, data...)}
		}
		l := build(t, manifest("local", hooks.BF16), side("local", of.massive, of.next)...)
		r := build(t, manifest("reference", hooks.BF16), side("reference", 4096, 1)...)
		res := run(t, l, r, compare.Options{Order: list, Judging: compare.Judging{Limits: of.limits}, All: true})
		got := rowOfKey(t, res, name)
		if of.mismatch == "" && got.Verdict != compare.Match || of.mismatch != "" && (got.Verdict != compare.Mismatch || !strings.Contains(got.Detail, of.mismatch)) {
			t.Errorf("%s: %s (%s), want %q", of.what, got.Verdict, got.Detail, of.mismatch)
		}
		for _, c := range got.Gate.Checks {
			if c.What == "channel" && of.tokens == 1 && (of.limits == nil || of.limits.Default.Channel == nil) {
				t.Errorf("%s: the worst channel has the limit %v", of.what, c.Limit)
			}
		}
	}
}
