package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// inPart yields edits of steps and numbers in the tokens with unexplained elements. The other tokens are right.
func inPart(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, e := range s.entries {
			axis := tokenAxis(s.subject, e)
			if axis < 0 {
				return
			}
			size := e.Program.Out.Shape[axis]
			if _, n := e.leftTokens(axis); n == 0 || n == size && size > 1 {
				return
			}
		}
		tokens := someTokens(s)
		for _, all := range []generator{structure, productsLast, again, otherNumbers} {
			for m := range all(s) {
				if m.Tokens = tokens; !yield(m) {
					return
				}
			}
		}
	}
}

// tokenAxis is the axis of the result that counts tokens; −1 if no axis does.
func tokenAxis(x *subject, e *Entry) int {
	axes := x.m.List.Entries[e.Node.Entry].Axes
	if len(axes) != len(e.Program.Out.Shape) {
		return -1
	}
	return strings.IndexByte(axes, order.AxisToken)
}

// leftTokens reports for each token along an axis whether the token has unexplained elements, and counts the tokens that have some.
func (e *Entry) leftTokens(axis int) (has []bool, n int) {
	if e.tokens == nil {
		shape := e.Program.Out.Shape
		inner := product(shape[axis+1:])
		e.tokens = make([]bool, shape[axis])
		for _, i := range e.Left {
			e.tokens[i/inner%shape[axis]] = true
		}
	}
	for _, left := range e.tokens {
		if left {
			n++
		}
	}
	return e.tokens, n
}

// onlyInTokens takes the result of an edited program in tokens with unexplained elements, and the entry's own result in the other tokens. It is nil for a
// nil edit.
func onlyInTokens(x *subject, e *Entry, d *program.Edited) *program.Edited {
	axis := tokenAxis(x, e)
	if d == nil || axis < 0 {
		return nil
	}
	own, ok := x.valueOf(e, nil)
	other, has := x.valueOf(e, d)
	if !ok || !has {
		return nil
	}
	shape := e.Program.Out.Shape
	inner := product(shape[axis+1:])
	left, _ := e.leftTokens(axis)
	for i := range own.Data {
		if left[i/inner%shape[axis]] {
			own.Data[i], own.Bound[i] = other.Data[i], other.Bound[i]
		}
	}
	return given(e, own)
}

// someTokens are the tokens with unexplained elements. If their ids are larger than the ids of all other tokens, the smallest id is known too. This
// happens past the end of a table that is shorter than the vocabulary.
func someTokens(s *search) Tokens {
	var left, right []float64
	for _, e := range s.entries {
		n := order.Node{Entry: s.m.List.Index(order.InputIDs), Pass: e.Node.Pass}
		axis := tokenAxis(s.subject, e)
		if n.Entry < 0 || axis < 0 || !s.m.Has(n) {
			return Tokens{Some: true}
		}
		v, err := s.m.Read(n)
		if s.failed(err) || len(v.Data) != e.Program.Out.Shape[axis] {
			return Tokens{Some: true}
		}
		has, _ := e.leftTokens(axis)
		for t, id := range v.Data {
			if has[t] {
				left = append(left, id)
			} else {
				right = append(right, id)
			}
		}
	}
	if len(left) == 0 || len(right) == 0 || slices.Min(left) <= slices.Max(right) {
		return Tokens{Some: true}
	}
	for _, f := range s.numbers {
		if f.plain && f.value > slices.Max(right) && f.value <= slices.Min(left) && strings.Contains(f.field, "vocab") {
			return Tokens{Some: true, From: some(f.value), Called: f.words}
		}
	}
	return Tokens{Some: true, From: some(slices.Min(left))}
}
