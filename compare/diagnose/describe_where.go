package diagnose

import (
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
)

// wrongElement reports whether an element is wrong.
func wrongElement(o *observed, i int) bool {
	if o.wrong != nil {
		return o.wrong[i]
	}
	return !silent(o, i) && !(math.Abs(o.want[i]-o.value[i]) <= off(o, i))
}

// place says where the results differ: at which indexes of the axes in By, or of all axes if By is empty.
func (d *Description) place(s *search, all []observed) string {
	axes := axesIn(s, all)
	if d.By != "" {
		axes = slices.DeleteFunc(axes, func(x axis) bool { return !slices.Contains(strings.Split(d.By, listed([]string{"", ""})), x.counts) })
	}
	return within(axes, all, wrongElement)
}

// within says at which indexes of the axes a test holds for an element, if the test holds for no element at other indexes. It is empty if the test holds
// at all indexes.
func within(axes []axis, all []observed, is func(o *observed, i int) bool) string {
	var places []string
	for _, x := range axes {
		if x.counts == layerAxis || x.counts == distanceWord || x.size > mostPlacesOfAxis {
			continue
		}
		has, wrong := make([]int, x.size), make([]int, x.size)
		for n := range all {
			o := &all[n]
			index := x.index(o)
			for i := range o.want {
				if silent(o, i) {
					continue
				}
				k := index(i)
				if has[k]++; is(o, i) {
					wrong[k]++
				}
			}
		}
		var in, out []int
		for k := range has {
			switch {
			case wrong[k] > 0:
				in = append(in, k)
			case has[k] >= leastAGroup:
				out = append(out, k)
			}
		}
		if len(in) == 0 || len(out) == 0 {
			continue
		}
		places = append(places, indexPlace(x.counts, in, out))
	}
	return listed(places)
}

// mostPlacesOfAxis is the largest size of an axis with indexes that are listed.
const mostPlacesOfAxis = 1 << 12

// distanceAxis counts the positions from a key to the query. It is not ok for values without queries or keys.
func distanceAxis(s *search, all []observed) (axis, bool) {
	query, key := strings.IndexByte(all[0].axes, order.AxisToken), strings.IndexByte(all[0].axes, order.AxisKey)
	if query < 0 || key < 0 || all[0].shape[key] < 2 {
		return axis{}, false
	}
	queries, keys := 0, 0
	for n := range all {
		o := &all[n]
		queries, keys = max(queries, firstIndex(s, o, order.AxisToken)+o.shape[query]), max(keys, o.shape[key])
	}
	return axis{counts: distanceWord, size: queries + keys, made: true, index: func(o *observed) func(i int) int {
		first, ofQuery, ofKey := firstIndex(s, o, order.AxisToken), o.along(query), o.along(key)
		return func(i int) int { return first + ofQuery(i) - ofKey(i) + keys }
	}}, true
}

// ofItsData describes entries whose operation is right in other layers or passes: their own data are wrong.
func ofItsData(x *difference) *Description {
	s := x.search
	if s.m.Rest == nil {
		return nil
	}
	rest, err := s.m.Rest()
	if s.failed(err) {
		return nil
	}
	var right []*Entry
	for _, e := range rest {
		if e.Program.Work() > 0 && slices.Equal(windowsOf(e), windowsOf(s.first)) && slices.Equal(formsOf(e), formsOf(s.first)) {
			right = append(right, e)
		}
	}
	if len(right) == 0 {
		return nil
	}
	d := &Description{Kind: "described.data", Of: theResult, Right: rightElsewhere(s, s.entries, right)}
	for _, w := range s.first.Weights {
		d.Like = weightTerm(w.Name)
	}
	if len(s.first.Weights) != 1 || onlyPasses(s, right) {
		d.Like = Term{}
	}
	d.count(x.results)
	return d
}

// onlyPasses reports whether some right entries are in a layer of the wrong entries, in a different pass.
func onlyPasses(s *search, right []*Entry) bool {
	layers := layersOf(s, s.entries)
	return slices.ContainsFunc(layersOf(s, right), func(l string) bool { return slices.Contains(layers, l) })
}

// formsOf are the steps of an entry, with the numbers and windows of the formula.
func formsOf(e *Entry) (all []string) {
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		all = append(all, st.Site+st.Prim.String()+short(st.Number().Value+st.Sight().Window))
	}
	return all
}

// count counts the elements of results, and counts the wrong ones as explained.
func (d *Description) count(results []observed) {
	for n := range results {
		for i := range results[n].want {
			if d.Elements++; wrongElement(&results[n], i) {
				d.Explained++
			}
		}
	}
}

// somewhere describes results by how many elements differ, and by how much.
func somewhere(x *difference) *Description {
	d := &Description{Kind: "described.somewhere", Of: theResult}
	d.count(x.results)
	far, size := 0.0, 0.0
	for n := range x.results {
		o := &x.results[n]
		for i, y := range o.want {
			if d := y - o.value[i]; d-d == 0 && !silent(o, i) {
				far, size = far+d*d, size+o.value[i]*o.value[i]
			}
		}
	}
	d.Values = []float64{math.Sqrt(far / size)}
	if !(far > 0 && size > 0) {
		return nil
	}
	return d
}
