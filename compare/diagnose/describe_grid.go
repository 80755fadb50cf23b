package diagnose

import (
	"math"
	"slices"
)

const (
	mostSteps    = 255 // of a grid: as many as 8 bits count
	leastOnGrid  = 8   // elements that a group needs
	leastApart   = 4   // different multiples of the step in each group
	mostByChance = 0.5 // of the right values that may lie on the same grid
)

// onGrid describes values that are whole multiples of a step, such as numbers that were kept in few bits: one step, or a step for each index of an axis.
// It is nil if the right values lie on the same grid.
func onGrid(s *search, all []observed, of Term) *Description {
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
		if len(set) > 0 {
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

// step is the largest step with all values as whole multiples. It is not ok if there is no step, if the values have too few different multiples, or if the
// right values are multiples of the step as well.
func (g *grid) step() (step float64, ok bool) {
	sorted := slices.Clone(g.want)
	slices.Sort(sorted)
	most, least := sorted[len(sorted)-1], math.Inf(1)
	for k, x := range sorted {
		before := 0.0
		if k > 0 {
			before = sorted[k-1]
		}
		if gap := x - before; gap > most/(2*mostSteps) {
			least = min(least, gap)
		}
	}
	if len(sorted) < leastOnGrid || math.IsInf(least, 1) || most/least > mostSteps {
		return 0, false
	}
	step = most / math.Round(most/least) // the largest value tells the step most exactly
	multiples := map[float64]bool{}
	chance := 0
	for k, x := range g.want {
		slack := 2*g.off[k]*(1+x/most) + 0x1p-20*x
		n := math.Round(x / step)
		if !(math.Abs(x-n*step) <= slack) || slack > step/8 {
			return 0, false
		}
		multiples[n] = true
		if math.Abs(g.right[k]-math.Round(g.right[k]/step)*step) <= slack {
			chance++
		}
	}
	return step, len(multiples) >= leastApart && float64(chance) <= mostByChance*float64(len(g.want))
}
