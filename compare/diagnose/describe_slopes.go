package diagnose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// leastAlong is the smallest size of an axis along which a slope is measured.
const leastAlong = 4

// slopes describes results with an addend that grows by the same number from one token or key to the next. The number is the same everywhere, or differs
// along one or two other axes, such as heads and layers.
func slopes(x *difference) *Description {
	first := &x.results[0]
	for _, letter := range []byte{order.AxisKey, order.AxisToken} {
		at := strings.IndexByte(first.axes, letter)
		if at < 0 {
			continue
		}
		var steps []observed
		for n := range x.results {
			if o, ok := along(&x.results[n], at); ok {
				steps = append(steps, o)
			}
		}
		if len(steps) == 0 {
			continue
		}
		axes := slices.DeleteFunc(axesIn(x.search, steps), func(a axis) bool { return a.made || a.counts == oneOf(letter) })
		for _, set := range append([][]int{nil}, append(single(len(axes)), pairsOf(len(axes))...)...) {
			f := fit{kind: "described.slope"}
			groups, ok := groupsBy(axes, set, steps)
			if !ok {
				continue
			}
			if f.of(steps, groups); f.explains() {
				d := descriptionOf(x.search, &f, axes, set, theResult)
				d.Called, d.Like = oneOf(letter), Term{}
				x.draft(d).proposes = slopeMistakes(x.search, &f, axes, set, letter)
				return d
			}
		}
	}
	return nil
}

// slopeMistakes propose that a slope was added to the result, or to a term if the result is a sum. The slope is multiplied by the index of the token or
// key, counted from the first, from the query or from the last: see [fromFirst].
func slopeMistakes(s *search, f *fit, axes []axis, set []int, letter byte) (all []Mistake) {
	m := Mistake{Kind: "slopes.inserted", Other: axisWords(letter)}
	if len(set) > 0 && !modelAxes(axes, set) {
		return nil
	}
	m.Axis = axesWords(axes, set)
	for _, numbers := range f.numbersOf() {
		if !fewNumbers(numbers, 0) {
			continue
		}
		m.Numbers = makeNumbers(numbers)
		for _, term := range termsOfResult(s) {
			m.Of, m.Edit = term.of, placed(term.at)
			for _, m.N = range []int{fromFirst, fromQuery, fromLast} {
				all = append(all, m)
			}
		}
	}
	return all
}

// valuePlace is a value and the place where a step reads the value.
type valuePlace struct {
	of Term
	at edit.Place
}

// mostAddedTo is the most terms of a sum that termsOfResult lists.
const mostAddedTo = 4

// termsOfResult lists the result and, if the result is a sum, the terms that have the size of the result. A term that is a sum is listed with its terms.
func termsOfResult(s *search) []valuePlace {
	t := s.first.signed(s.m)
	all := []valuePlace{{theResult, edit.Place{Arg: result}}}
	for steps := []int{t.Out.Step}; len(steps) > 0; steps = steps[1:] {
		st := &t.Steps[steps[0]]
		switch st.Prim {
		case program.Add, program.Sub, program.Round, program.Copy:
		default:
			continue
		}
		for a, v := range st.Args {
			if program.Size(v.Shape) != program.Size(t.Out.Shape) || len(all) > mostAddedTo {
				continue
			}
			if st.Prim == program.Add || st.Prim == program.Sub {
				all = append(all, valuePlace{s.value(s.first, v), edit.Place{Step: t.PlaceOf(steps[0]).Step, Arg: a}})
			}
			steps = append(steps, v.Step)
		}
	}
	return all
}

// pairsOf lists the sets of two axes, out of n axes.
func pairsOf(n int) (all [][]int) {
	for a := range n {
		for b := range a {
			all = append(all, []int{b, a})
		}
	}
	return all
}

// along returns the differences of a value from one index of an axis to the next, or false for an axis shorter than leastAlong.
func along(o *observed, at int) (observed, bool) {
	if len(o.shape) <= at || o.shape[at] < leastAlong {
		return observed{}, false
	}
	stride := program.Size(o.shape[at+1:])
	d := observed{shape: slices.Clone(o.shape), axes: o.axes, e: o.e}
	d.shape[at]--
	for i := range o.want {
		if i/stride%o.shape[at] == o.shape[at]-1 {
			continue
		}
		k := i + stride
		e := o.half[i] + o.half[k]
		if silent(o, i) || silent(o, k) {
			e = anyNumber
		}
		d.value, d.off = append(d.value, o.value[k]-o.value[i]), append(d.off, o.off[i]+o.off[k])
		d.want, d.half = append(d.want, o.want[k]-o.want[i]), append(d.half, e)
	}
	return d, true
}
