package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// resultOnGrid is [onGrid] of the result.
func resultOnGrid(x *difference) *Description {
	return onGrid(x.search, x.results, theResult, edit.Place{Arg: result})
}

// innerOnGrid is [onGrid] of the first value within the operation that lies on a grid.
func innerOnGrid(x *difference) *Description {
	for _, inner := range x.inners() {
		if inner.number {
			continue
		}
		if d := onGrid(x.search, inner.all, inner.of, inner.at); d != nil {
			return d
		}
	}
	return nil
}

const (
	mostSteps    = 255 // of a grid: as many as 8 bits count
	mostHalvings = 18  // of the largest value, for a step that is a power of two
	mostBetween  = 4   // steps between the nearest values
	leastOnGrid  = 8   // elements that a group needs
	leastApart   = 4   // different multiples of the step in each group
	mostByChance = 0.5 // of the right values that may lie on the same grid
)

// onGrid describes values that are whole multiples of a step, as numbers in few bits are. All values share a step, or each index of an axis has a step. The
// result is nil if the right values are multiples of the step, too. A shared step is proposed as a mistake.
func onGrid(s *search, all []observed, of Term, at edit.Place) *Description {
	axes := axesIn(s, all)
	sets := append([][]int{nil}, single(len(axes))...)
	if rows := rowsIn(axes); len(rows) > 1 {
		sets = append(sets, rows)
	}
	for _, set := range sets {
		groups, total := gridsBy(axes, set, all)
		d := &Description{Kind: "described.grid", Of: of, Explained: total, Elements: total, Numbers: len(groups), Wrong: len(groups)}
		for k := range groups {
			g := &groups[k]
			if len(set) > 1 && g.wrong == 0 { // a row that is right
				d.Explained, d.Numbers, d.Wrong = d.Explained-len(g.want), d.Numbers-1, d.Wrong-1
				continue
			}
			step, ok := g.step()
			if !ok {
				d = nil
				break
			}
			if len(d.Values) < mostValues {
				d.Values = append(d.Values, step)
			}
		}
		if d == nil || len(d.Values) == 0 {
			continue
		}
		if len(set) == 0 {
			s.draft(d).proposes = gridMistakes(of, at, d.Values[0])
		} else {
			var by []string
			for _, a := range set {
				by = append(by, axes[a].counts)
			}
			d.Kind, d.By = "described.grids", listed(by)
		}
		return d
	}
	return nil
}

// reachesTop reports whether values in the upper half of the grid are odd multiples of the step. Numbers with few significant bits are not: the larger
// the number, the larger its step.
func (g *grid) reachesTop(step, most float64) bool {
	odd, all := 0, 0
	for _, x := range g.want {
		if 2*x <= most {
			continue
		}
		if all++; math.Mod(math.Round(x/step), 2) == 1 {
			odd++
		}
	}
	return 4*odd >= all
}

// gridMistakes are the ways to round a value to multiples of a step.
func gridMistakes(of Term, at edit.Place, step float64) (all []Mistake) {
	for _, x := range []float64{shortest(step*(1-nearStep), step*(1+nearStep)), powerOfTwoNear(step), step} {
		m := Mistake{Kind: "value.on-grid", Of: of, X: some(x), Edit: placed(at)}
		cut := m
		cut.Rounding = TowardZero
		all = append(all, m, cut)
	}
	return all
}

// nearStep is how far the step of a grid may be off, relative to the step.
const nearStep = 0x1p-18

// powerOfTwoNear is the power of two that a step may be, or the step itself.
func powerOfTwoNear(step float64) float64 {
	if x := math.Exp2(math.Round(math.Log2(step))); math.Abs(x-step) <= nearStep*step {
		return x
	}
	return step
}

// roundedToGrid rounds the value at a place to multiples of a number: to the nearest, or toward 0.
func roundedToGrid(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		step := ed.Literal(m.X.Value)
		x := ed.Div("", v, step)
		if m.Rounding == TowardZero {
			zero := ed.Literal(0)
			x = ed.Sub("", ed.Floor(ed.Max(x, zero)), ed.Floor(ed.Max(ed.Neg(x), zero)))
		} else {
			x = ed.Floor(ed.Add("", x, ed.Literal(0.5)))
		}
		return ed.Mul("", x, step)
	})
}

// gridsBy returns the values of each group of elements, and the count of all values.
func gridsBy(axes []axis, set []int, all []observed) (groups []grid, total int) {
	by, ok := groupsBy(axes, set, all)
	if !ok {
		return nil, 0
	}
	groups = make([]grid, by.count)
	for n, of := range by.of {
		for i, key := range of {
			groups[key].add(&all[n], i)
			total++
		}
	}
	return slices.DeleteFunc(groups, func(g grid) bool { return len(g.want) == 0 }), total
}

// single lists the sets of one axis, out of n axes.
func single(n int) (all [][]int) {
	for a := range n {
		all = append(all, []int{a})
	}
	return all
}

// grid has the magnitudes of the values of a group, and counts the wrong ones.
type grid struct {
	want, right, off []float64
	wrong            int
}

func (g *grid) add(o *observed, i int) {
	if wrongElement(o, i) {
		g.wrong++
	}
	g.want, g.right, g.off = append(g.want, math.Abs(o.want[i])), append(g.right, math.Abs(o.value[i])), append(g.off, o.half[i])
}

// step is the largest step with all values as whole multiples: one of at most mostSteps, or a power of two. It is not ok if there is no step, if the values
// have too few different multiples, or if the right values are multiples of the step as well.
func (g *grid) step() (step float64, ok bool) {
	sorted := slices.Sorted(slices.Values(g.want))
	most, least := sorted[len(sorted)-1], math.Inf(1)
	if len(sorted) < leastOnGrid || most-most != 0 || most == 0 {
		return 0, false
	}
	before := 0.0
	for _, x := range sorted {
		if gap := x - before; gap > most/(2*mostSteps) {
			least = min(least, gap)
		}
		before = x
	}
	for part := 1.0; part <= mostBetween; part++ { // neighbours may be several steps apart
		n := math.Round(part * most / least)
		if step := most / n; n <= mostSteps && g.multiples(step, most) { // the largest value tells the step most exactly
			return step, true
		}
	}
	_, top := math.Frexp(most)
	for e := range mostHalvings {
		if step := math.Ldexp(1, top-e); g.multiples(step, most) && g.reachesTop(step, most) {
			return step, true
		}
	}
	return 0, false
}

// multiples reports whether all values are multiples of a step, and the right values are not.
func (g *grid) multiples(step, most float64) bool {
	all := map[float64]bool{}
	chance := 0
	for k, x := range g.want {
		slack := 2*g.off[k]*(1+x/most) + 0x1p-20*x
		n := math.Round(x / step)
		if !(math.Abs(x-n*step) <= slack) || slack > step/8 {
			return false
		}
		all[n] = true
		if math.Abs(g.right[k]-math.Round(g.right[k]/step)*step) <= slack {
			chance++
		}
	}
	return len(all) >= leastApart && float64(chance) <= mostByChance*float64(len(g.want))
}
