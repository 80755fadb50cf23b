package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// weightsElsewhere yields, for each weight that the entry reads, other weights of the same shape, and weights of the same role in other layers.
func weightsElsewhere(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, w := range weightsRead(s, program.Weight, program.Matrix) {
			for _, all := range []iter.Seq[Mistake]{otherWeights(w)(s), instances(s, Mistake{Of: weightTerm(w.Name)}, sameRole(s.subject, w.Name))} {
				for m := range all {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// weightsRead lists the weights that the first entry reads in steps of some kinds, one of each role.
func weightsRead(s *search, prims ...program.Prim) (all []order.Weight) {
	t := s.first.signed(s.m)
	for _, i := range leafSteps(t, prims...) {
		all = append(all, s.first.Weights[t.Steps[i].Index()])
	}
	return all
}

// changedWeights yields weights that were changed.
func changedWeights(s *search) iter.Seq[Mistake] {
	return ofWeights(s, weightMistakes(s.subject), program.Weight, program.Matrix)
}

// unloaded yields vectors that were not loaded: a bias of 0, a gain of 1. The memory still has its initial numbers.
func unloaded(s *search) iter.Seq[Mistake] {
	return ofWeights(s, []Mistake{{Kind: "weight.zero"}, {Kind: "weight.one"}}, program.Weight)
}

// ofWeights yields each of the mistakes for each weight.
func ofWeights(s *search, all []Mistake, prims ...program.Prim) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		weights := weightsRead(s, prims...)
		for _, m := range all {
			kind := m.Kind
			for _, w := range weights {
				m.Kind, m.Of, m.Place = kind, weightTerm(w.Name), order.NameOf(w.Name).Role()
				if kind == "weight.rope-rows" && headless(s.subject, w.Name) {
					m.Kind = interleavedKind
				}
				if m.Coding != (Coding{}) && !m.Coding.Scales.fits(w.Shape[len(w.Shape)-1]) {
					continue
				}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// weightMistakes are the changes that a weight is tried with, without the weight.
func weightMistakes(s *subject) (all []Mistake) {
	add := func(kinds ...Kind) {
		for _, k := range kinds {
			all = append(all, Mistake{Kind: k})
		}
	}
	add("weight.reshaped", "weight.clipped-at-zero", "weight.unsigned")
	all = append(all, rounded(Float8E4M3, NoScale), rounded(Float8E5M2, NoScale))
	add("weight.transposed", "weight.plus-one", "weight.stored-plus-one", "weight.minus-one", "weight.negated", "weight.zero", "weight.one", "weight.inverted")
	all = append(all, Mistake{Kind: "weight.rounded-dtype", DType: hooks.BF16}, Mistake{Kind: "weight.rounded-dtype", DType: hooks.F16})
	all = append(all, roundedInRows()...)
	for _, n := range []int{2, 4} {
		for k := range n {
			if all = append(all, Mistake{Kind: "weight.one-shard", N: k, M: n}); n > 2 {
				all = append(all, Mistake{Kind: "weight.shard-missing", N: k, M: n})
			}
		}
	}
	head := s.m.List.Config.HeadDim
	for _, n := range []int{2, head / 2} {
		if n > 1 && head%n == 0 && n < head {
			all = append(all, Mistake{Kind: "weight.rope-rows", N: head, M: n, K: head / n}, Mistake{Kind: "weight.rope-channels", N: head, M: n, K: head / n})
		}
	}
	for _, n := range []int{2, 4, 8} {
		all = append(all, Mistake{Kind: "weight.first-shard-everywhere", N: n})
	}
	sides := []int{2, 4, 8, 16, 32}
	for _, a := range sides {
		for _, b := range sides {
			if all = append(all, Mistake{Kind: "weight.tiles-by-columns", N: a, M: b}); a != b { // with equal sides, both kinds are the same
				all = append(all, Mistake{Kind: "weight.tiles-by-rows", N: a, M: b})
			}
		}
	}
	all = append(all, rotatedWeights()...)
	all = append(all, roundedOtherwise()...)
	for _, pair := range misreadPairs {
		all = append(all, Mistake{Kind: "weight.bits-misread", DType: pair[0], By: dtypeTerm(pair[1])})
	}
	all = append(
		all,
		Mistake{Kind: "weight.bytes-swapped", DType: hooks.BF16}, Mistake{Kind: "weight.bytes-swapped", DType: hooks.F16}, Mistake{Kind: "weight.cut-off", DType: hooks.BF16},
	)
	for _, by := range factorsOf(s) {
		all = append(all, Mistake{Kind: "weight.multiplied", By: literal(by), Called: s.numbers.called(by, 1, "")})
	}
	return all
}

// factorsOf lists the numbers by which a weight may be multiplied: powers of two, and numbers of the configuration.
func factorsOf(s *subject) []float64 {
	usual := []float64{2, 0.5, 4, 0.25, 8, 0.125}
	all := slices.Clone(usual)
	for _, n := range s.numbers {
		known := slices.ContainsFunc(usual, func(x float64) bool { return same(x, n.value) })
		if n.value != 1 && (!known || strings.HasPrefix(n.words, "√hidden")) {
			all = append(all, n.value)
		}
	}
	return all
}

// changedWeight makes one of weightChanges.
func changedWeight(_ *subject, e *Entry, m Mistake) *program.Edited {
	return reweighted(e, func(_ int, w program.Rows) program.Rows { return weightChanges[m.Kind](w, m, e.Call.DType) }, m.Place)
}

// reweighted replaces the weights of some roles. of gets a whole weight and its number in the entry, and returns the weight that the port reads, or
// nil if the mistake does not fit the weight.
func reweighted(e *Entry, of func(k int, w program.Rows) program.Rows, roles ...string) *program.Edited {
	ed, some := edit.NewEditor(e.Program), false
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		if st.Prim != program.Weight && st.Prim != program.Matrix || !slices.Contains(roles, order.NameOf(e.Weights[st.Index()].Name).Role()) {
			continue
		}
		own := e.Call.W[st.Index()]
		w := own
		kept, part := own.(someOf)
		if part {
			w = kept.All()
		}
		other := of(st.Index(), w)
		if other != nil && part {
			other = kept.Of(other)
		}
		if other == nil || !sameSize(own, other) {
			return nil
		}
		ed.OtherWeight(i, other)
		some = true
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// someOf is a weight in part: the rows or elements that an entry needs.
type someOf interface {
	All() program.Rows
	Of(all program.Rows) program.Rows // the same part of another weight
}

func sameSize(own, other program.Rows) bool {
	a, b := other.Size()
	x, y := own.Size()
	return a == x && b == y
}

// otherWeights yields other weights with the shape of w, in the same layer or in no layer. Weights that have the shape only when transposed come
// last.
func otherWeights(w order.Weight) generator {
	return func(s *search) iter.Seq[Mistake] {
		return func(yield func(Mistake) bool) {
			own := listedWeight(s.subject, w)
			for _, kind := range []Kind{"weight.other", transposedKind} {
				shape := own.Shape
				if kind == transposedKind {
					shape = reversed(shape)
				}
				for _, other := range shaped(s.subject, own, shape) {
					m := Mistake{Kind: kind, Place: order.NameOf(own.Name).Role(), By: weightTerm(other), For: weightTerm(own.Name), Source: other}
					if !order.NameOf(own.Name).Within() { // the name tells the layer
						m.By.Name, m.For.Name = other, own.Name
					}
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// transposedKind is the mistake of another weight that is transposed.
const transposedKind Kind = "weight.other-transposed"

// otherWeight reads the weight of another role.
func otherWeight(s *subject, e *Entry, m Mistake) *program.Edited {
	return weightInstead(s, e, m.Place, func(own string) string { return order.NameOf(m.Source).Beside(order.NameOf(own)).String() }, m.Kind == transposedKind)
}

// weightInstead reads another weight, transposed or not, in place of the weight of a role. named gives the name of the other weight.
func weightInstead(s *subject, e *Entry, role string, named func(own string) string, turn bool) *program.Edited {
	return reweighted(e, func(k int, _ program.Rows) program.Rows {
		own := listedWeight(s, e.Weights[k])
		other, ok := s.weightOf(named(own.Name))
		shape := own.Shape
		if turn {
			shape = reversed(shape)
		}
		if !ok || other.Name == own.Name || !slices.Equal(other.Shape, shape) {
			return nil
		}
		rows, err := s.m.Weights(other)
		if s.failed(err) {
			return nil
		}
		if turn {
			return turned(rows)
		}
		return rows
	}, role)
}
