package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// lastRelations looks for relations that hold where no mistake and no other tensor gives the elements: an error of low rank, slots of a cache with values
// from elsewhere, and a weight of random numbers.
func lastRelations(s *search) error {
	x := s.differs
	if x == nil {
		return nil
	}
	// In 16 bits the errors of the elements hide what a low rank leaves. Of a large matrix it is not known whether a few channels of the operand make the error,
	// and steps before the product may make any error.
	if d := lowRank(x); d != nil && s.first.Call.DType == hooks.F32 && denseOf(s, &x.results[0]) != nil && readsInput(s.first) {
		p := s.first.Program
		of := weightTerm(s.first.Weights[p.Steps[p.Steps[p.Out.Step].Args[1].Step].Index()].Name)
		return s.state(statement{Relation: Relation{Kind: "error.of-low-rank", Of: of, N: int(d.Values[0])}, of: s.entries, solved: d.Numbers})
	}
	if slots := foreignSlots(x); slots != nil {
		at := makeSpots(spot{counts: order.AxisKey, at: slots})
		return s.state(statement{Relation: Relation{Kind: "slots.foreign", Of: Term{Kind: TheCache}, At: at}, of: s.entries, exact: true})
	}
	return randomWeights(s)
}

// readsInput reports whether the product at the end of an entry reads a captured tensor.
func readsInput(e *Entry) bool {
	p := e.Program
	return p.Steps[p.Steps[p.Out.Step].Args[0].Step].Prim == program.Input
}

// mostFromRight is the largest share of the wrong elements that may be numbers of the right results if the wrong elements come from elsewhere. In 16 bits
// many numbers are equal by chance.
func mostFromRight(d hooks.DType) float64 {
	if d == hooks.F32 {
		return 1. / 8
	}
	return 3. / 4
}

// fromRight reports whether so many wrong elements are numbers of the right results that the wrong elements may be right numbers in other places.
func fromRight(x *difference) bool {
	right := map[float64]bool{}
	for n := range x.results {
		for _, v := range x.results[n].value {
			right[v] = true
		}
	}
	wrong, has := 0, 0
	for n := range x.results {
		o := &x.results[n]
		for i, v := range o.want {
			if wrongElement(o, i) {
				if wrong++; right[v] {
					has++
				}
			}
		}
	}
	return float64(has) > mostFromRight(x.first.Call.DType)*float64(wrong)
}

// foreignSlots lists the wrong slots of earlier passes, in entries that compute nothing. Nearly all elements of a listed slot are wrong, and all elements
// of every other slot are right. The list is nil if all slots of earlier passes are wrong, since the port may have changed the whole cache. It is also nil for
// a mask, and if the wrong elements are right numbers in other places.
func foreignSlots(x *difference) (slots []int) {
	for n := range x.results {
		o := &x.results[n]
		at := strings.IndexByte(o.axes, order.AxisKey)
		past := x.m.Passes[o.e.Node.Pass].Past
		if at < 0 || past == 0 || len(masksOf(o.e)) > 0 || o.shape[at] < past || slices.ContainsFunc(o.e.Program.Steps, func(s program.Step) bool { return s.Prim.Computes() }) {
			return nil
		}
		wrong, all := make([]int, o.shape[at]), len(o.want)/o.shape[at]
		for i := range o.want {
			if wrongElement(o, i) {
				wrong[i/program.Size(o.shape[at+1:])%o.shape[at]]++
			}
		}
		var here []int
		for k, n := range wrong {
			switch {
			case n == 0:
			case k < past && 10*n >= 9*all:
				here = append(here, k)
			default:
				return nil
			}
		}
		if len(here) == 0 || len(here) == past || slots != nil && !slices.Equal(here, slots) {
			return nil
		}
		slots = here
	}
	if len(slots) > 0 && fromRight(x) {
		return nil
	}
	return slots
}
