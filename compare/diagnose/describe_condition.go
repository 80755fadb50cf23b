package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

const (
	leastEachSide = 8    // right elements, and wrong elements, that a condition needs
	leastSide     = 0.1  // of all elements, added to leastEachSide
	leastLimit    = 0.25 // of the root mean square of the value, for a limit of its magnitude: a smaller limit may have many causes
)

// condition says that the elements differ exactly where a value is above or below a number. The value is a step or an input, with a number for each
// element or for each row. It is empty if no value separates the wrong elements from the right ones.
func (x *difference) condition() string {
	for _, b := range x.bases()[1:] {
		if text := x.limited(b); text != "" {
			return text
		}
	}
	for _, b := range x.rowBases() {
		if text := x.limited(b); text != "" {
			return text
		}
	}
	return ""
}

// told is an element: its value, and whether the element is wrong.
type told struct {
	x     float64
	wrong bool
}

// limited says that results are wrong exactly where a value, or its magnitude, is above or below a number.
func (x *difference) limited(b base) string {
	for _, absolute := range []bool{false, true} {
		var all []told
		wrong, square := 0, 0.0
		for n := range x.results {
			o := &x.results[n]
			groups := len(b.values[n])
			each := len(o.want) / groups
			for g := range groups {
				t := told{x: b.values[n][g]}
				any := false
				for i := g * each; i < (g+1)*each; i++ {
					any = any || !silent(o, i) && (o.want[i] != 0 || o.value[i] != 0)
					t.wrong = t.wrong || wrongElement(o, i)
				}
				if !any || t.x-t.x != 0 || t.x <= -hides {
					continue
				}
				if absolute {
					t.x = math.Abs(t.x)
				}
				if t.wrong {
					wrong++
				}
				all, square = append(all, t), square+t.x*t.x
			}
		}
		right := len(all) - wrong
		if least := leastEachSide + int(leastSide*float64(len(all))); wrong < least || right < least {
			return ""
		}
		slices.SortFunc(all, func(a, b told) int { return cmp.Compare(a.x, b.x) })
		for _, above := range []bool{false, true} {
			at := wrong
			if above {
				at = right
			}
			sides := !slices.ContainsFunc(all[:at], func(t told) bool { return t.wrong == above }) && all[at-1].x < all[at].x
			limit := all[at-1].x/2 + all[at].x/2
			if sides && (!absolute || limit*limit >= leastLimit*leastLimit*square/float64(len(all))) {
				return conditionWords(b.of, absolute, above, limit)
			}
		}
	}
	return ""
}

// rowBases are the values of the program with one number for each row of the result.
func (x *difference) rowBases() (all []base) {
	t := x.first.signed(x.m)
	want := slices.Clone(t.Out.Shape)
	if len(want) == 0 || want[len(want)-1] < leastWidth {
		return nil
	}
	want[len(want)-1] = 1
	for i := range t.Steps {
		st := &t.Steps[i]
		if !slices.Equal(st.Shape, want) || st.Prim == program.Round || len(t.Copies(t.PlaceOf(i))) != 1 {
			continue
		}
		b := base{of: x.value(x.first, t.Result(i))}
		for n := range x.results {
			o := &x.results[n]
			p := o.e.signed(x.m)
			copies := p.Copies(t.PlaceOf(i))
			if o.e.Few != nil || len(copies) != 1 {
				break
			}
			v, ok := x.valueAt(o.e, p.Result(copies[0]))
			if !ok || len(v) == 0 || len(o.want)%len(v) != 0 {
				break
			}
			b.values = append(b.values, v)
		}
		if len(b.values) == len(x.results) {
			all = append(all, b)
		}
	}
	return all
}
