package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// laterInputs yields tensors of the layer that the order computes from the entry in place of those that the program reads: the engine then has two operations in the other order, as
// where it rotates before a norm.
func laterInputs(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range leafSteps(t, program.Input) {
			n := s.first.Inputs[t.Steps[i].Index()]
			if n.Pass != s.first.Node.Pass || repeatable(s, i) {
				continue
			}
			for _, later := range computedLater(s) {
				m := Mistake{Kind: "input.other", Place: order.NameOf(later).Role(), By: tensorTerm(later), For: tensorTerm(s.m.List.Entries[n.Entry].Name), Source: later, Edit: placed(t.Of(i))}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// computedLater lists the captured tensors of the layer that are computed from the entry.
func computedLater(s *search) (all []string) {
	target := s.first.Node.Entry
	layer := order.NameOf(s.m.List.Entries[target].Name)
	from := map[int]bool{target: true}
	for k := target + 1; k < len(s.m.List.Entries) && layer.Within(); k++ {
		e := &s.m.List.Entries[k]
		from[k] = slices.ContainsFunc(e.Inputs, func(r order.Ref) bool { return !r.Prev && from[s.m.List.Index(r.Name)] })
		if from[k] && layer.SameLayer(order.NameOf(e.Name)) && s.m.Has(order.Node{Entry: k, Pass: s.first.Node.Pass}) {
			all = append(all, e.Name)
		}
	}
	return all
}

// sameAgain is how far two results of an operation are from each other, for each unit of their size, that are the same one: an epsilon may move them.
const sameAgain = 0.01

// repeatable reports whether the right operation makes of its own result, in place of an input, that result again or the input: as a norm without weights does, a copy and a minus. Of
// a tensor that follows from any wrong result it would then give that result.
func repeatable(s *search, input int) bool {
	right, ok := s.valueOf(s.first, nil)
	read, has := s.valueAt(s.first, s.first.Program.Result(input))
	if !ok || !has || len(right.Data) != len(read) {
		return true
	}
	ed := edit.NewEditor(s.first.Program)
	ed.OtherInput(input, program.Value{Shape: s.first.Program.Steps[input].Shape, Data: right.Data})
	again, ok := s.valueOf(s.first, ended(ed))
	return !ok || apart(again.Data, right.Data) < sameAgain || apart(again.Data, read) < sameAgain
}

// apart is the relative L2 error of numbers.
func apart(x, right []float64) float64 {
	far, size := 0.0, 0.0
	for i, v := range right {
		far, size = far+(x[i]-v)*(x[i]-v), size+v*v
	}
	return math.Sqrt(far / size)
}
