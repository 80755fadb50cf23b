package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// laterInputs yields tensors of the layer that are computed from the entry, in place of tensors that the program reads. The port then has two operations
// in the wrong order, such as rotation before a norm.
func laterInputs(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range leafSteps(t, program.Input) {
			n := s.first.Inputs[t.Steps[i].Index()]
			if n.Pass != s.first.Node.Pass || repeatable(s, i) {
				continue
			}
			for _, later := range computedLater(s) {
				m := Mistake{Kind: "input.other", Place: order.NameOf(later).Role(), By: tensorTerm(later), For: tensorTerm(s.m.List.Entries[n.Entry].Name), Source: later, Edit: placed(t.PlaceOf(i))}
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

// sameAgain is the largest relative L2 distance of two results of an operation that count as equal: an epsilon may move them.
const sameAgain = 0.01

// repeatable reports whether the right operation, applied to its own result, gives the same result again or the input. A norm without weights, a copy and
// a minus do so. Such an operation would explain any wrong result by a tensor that is computed from the wrong result.
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
