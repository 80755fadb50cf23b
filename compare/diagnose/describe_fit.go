package diagnose

import (
	"cmp"
	"math"
	"slices"
)

// anyNumber is the error of an element that fits any number.
var anyNumber = math.Inf(1)

// fit is a factor, or an addend, for each group of elements. The number takes the right value of an element to the wanted value.
type fit struct {
	kind  Kind
	right float64 // the number that keeps the right value

	groups              []group // by the number of the group
	numbers             int     // of groups with a number
	elements, explained int
	apart               int // elements of groups whose number is not right
	apartGroups         int
}

// group is the interval of a group's number, from the intervals of its elements, and the count of these elements.
type group struct {
	low, high float64
	n         int  // 0 for a group without a number
	settled   bool // some elements contradict the number
	given     int  // elements that a settled number gives
	right     int  // elements that the right number gives
}

func (g *group) middle() float64    { return g.low/2 + g.high/2 }
func (g *group) has(x float64) bool { return x >= g.low && x <= g.high }

// of fits the number of each group.
func (f *fit) of(all []observed, by grouping) {
	f.groups = make([]group, by.count)
	for n := range all {
		o := &all[n]
		for i, key := range by.of[n] {
			low, high, ok := f.interval(o, i)
			if !ok {
				continue
			}
			g := &f.groups[key]
			if g.n == 0 {
				g.low, g.high = low, high
				f.numbers++
			}
			g.low, g.high, g.n = max(g.low, low), min(g.high, high), g.n+max(o.each, 1)
		}
	}
	f.settle(all, by)
	for n := range all {
		for i := range all[n].value {
			if silent(&all[n], i) {
				continue
			}
			f.elements += max(all[n].each, 1)
			g := &f.groups[by.of[n][i]]
			if g.n == 0 || g.low > g.high {
				continue
			}
			if f.gives(&all[n], i, g.middle()) {
				f.explained += max(all[n].each, 1)
				g.given += max(all[n].each, 1)
			}
			if g.settled && f.gives(&all[n], i, f.right) {
				g.right += max(all[n].each, 1)
			}
		}
	}
	for k := range f.groups {
		if g := &f.groups[k]; g.n > 0 && !g.has(f.right) && g.low <= g.high {
			f.apart += g.n
			f.apartGroups++
		}
	}
}

// settle gives a number to groups in which elements contradict each other: the median of the quarter of elements with the narrowest intervals.
func (f *fit) settle(all []observed, by grouping) {
	type said struct{ x, width float64 }
	contrary := map[int][]said{}
	for key := range f.groups {
		if g := &f.groups[key]; g.low > g.high && g.n >= leastEachSide {
			contrary[key] = nil
		}
	}
	if len(contrary) == 0 {
		return
	}
	for n := range all {
		for i, key := range by.of[n] {
			if of, ok := contrary[key]; ok {
				if low, high, ok := f.interval(&all[n], i); ok {
					contrary[key] = append(of, said{low/2 + high/2, high - low})
				}
			}
		}
	}
	for key, of := range contrary {
		slices.SortFunc(of, func(a, b said) int { return cmp.Compare(a.width, b.width) })
		of = of[:max(len(of)/4, 1)] // the narrowest intervals
		width := of[len(of)-1].width
		slices.SortFunc(of, func(a, b said) int { return cmp.Compare(a.x, b.x) })
		x := of[len(of)/2].x
		g := &f.groups[key]
		g.low, g.high, g.settled = x-width/2, x+width/2, true
	}
}

// off is how far an element may be off: twice the sum of both errors, since intermediate values round as well.
func off(o *observed, i int) float64 { return 2 * (o.half[i] + o.off[i]) }

// silent reports whether an element says nothing: any number fits, or the wanted and the right value are both as low as masked scores.
func silent(o *observed, i int) bool {
	return math.IsInf(o.half[i], 0) || o.want[i] < -hides && o.value[i] < -hides
}

// interval is the interval of the number of an element; ok is false for an element that says little.
func (f *fit) interval(o *observed, i int) (low, high float64, ok bool) {
	v, y, e := o.value[i], o.want[i], off(o, i)
	if e-e != 0 || y-y != 0 {
		return 0, 0, false
	}
	if f.right == 0 {
		return y - v - e, y - v + e, true
	}
	if !(math.Abs(v) > 4*e) {
		return 0, 0, false
	}
	low, high = (y-e)/v, (y+e)/v
	return min(low, high), max(low, high), true
}

// gives reports whether a number gives the wanted value of an element.
func (f *fit) gives(o *observed, i int, x float64) bool {
	v := o.value[i] * x
	e := off(o, i) * max(1, math.Abs(x))
	if f.right == 0 {
		v, e = o.value[i]+x, off(o, i)
	}
	return math.Abs(o.want[i]-v) <= e
}

// explains reports whether the numbers explain nearly all elements and mean something: each number has several elements, and most wrong numbers have
// intervals that are narrow enough to tell how wrong they are.
func (f *fit) explains() bool {
	if float64(f.explained) < leastShare*float64(f.elements) || f.apart < shownElements || f.elements < leastAGroup*f.numbers || f.apart < leastAGroup*f.apartGroups {
		return false
	}
	told := 0
	for k := range f.groups {
		g := &f.groups[k]
		if g.n == 0 {
			continue
		}
		if g.low > g.high || g.settled && (float64(g.given) < leastShare*float64(g.n) || float64(g.right) > mostAlike*float64(g.n)) {
			return false
		}
		if far := math.Abs(g.middle() - f.right); !g.has(f.right) && g.high-g.low <= far/2 {
			told++
		}
	}
	return 2*told > f.apartGroups
}

// has reports whether a vector has the numbers of all groups.
func (f *fit) has(x []float64) bool {
	for k := range f.groups {
		if g := &f.groups[k]; g.n == 0 || !g.has(x[k]) {
			return false
		}
	}
	return len(f.groups) == len(x)
}
