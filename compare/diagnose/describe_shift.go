package diagnose

import (
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// shiftedWeights describes products with a matrix that has a number added to its weights: one number, or a number for each row, such as wrong zero points
// of a quantised weight. Each output then has an addend: the number times the sum of the inputs.
func shiftedWeights(x *difference) *Description {
	p := x.first.Program
	end := &p.Steps[p.Out.Step]
	if end.Prim != program.Affine || p.Steps[end.Args[1].Step].Prim != program.Matrix {
		return nil
	}
	var all []observed
	for n := range x.results {
		o, ok := x.bySums(&x.results[n])
		if !ok {
			return nil
		}
		all = append(all, o)
	}
	axes := axesIn(x.search, all)
	for _, set := range append([][]int{nil}, append(single(len(axes)), pairsOf(len(axes))...)...) {
		f := fit{kind: "described.shift", right: 1}
		groups, ok := groupsBy(axes, set, all)
		if !ok || len(set) > 0 && !modelAxes(axes, set) {
			continue
		}
		if f.of(all, groups); !f.explains() {
			continue
		}
		for k := range f.groups {
			f.groups[k].low, f.groups[k].high = f.groups[k].low-1, f.groups[k].high-1
		}
		f.right = 0
		name := x.first.Weights[p.Steps[end.Args[1].Step].Index()].Name
		d := descriptionOf(x.search, &f, axes, set, weightTerm(name))
		d.Like = Term{}
		m := Mistake{Kind: "weight.shifted", Place: order.NameOf(name).Role(), Of: d.Of, Axis: axesWords(axes, set)}
		for _, numbers := range f.numbersOf() {
			if m.Numbers = makeNumbers(numbers); fewNumbers(numbers, 0) {
				x.draft(d).proposes = append(x.draft(d).proposes, m)
			}
		}
		return d
	}
	return nil
}

// bySums gives each element the sum of the element's inputs as the value. The wanted value is the sum plus the error of the element. The
// factor from the value to the wanted value is 1 plus the number that the port adds to each weight.
func (x *difference) bySums(o *observed) (observed, bool) {
	a := wideOf(x.search, o.e)
	if a == nil || len(o.want) != len(a.x)/a.cols*a.rows {
		return observed{}, false
	}
	sums := *o
	sums.wrong = nil
	sums.value, sums.want = make([]float64, len(o.want)), make([]float64, len(o.want))
	for t := range len(a.x) / a.cols {
		sum := 0.0
		for _, v := range a.x[t*a.cols:][:a.cols] {
			sum += v
		}
		for r := range a.rows {
			i := t*a.rows + r
			sums.value[i], sums.want[i] = sum, sum+o.want[i]-o.value[i]
		}
	}
	return sums, true
}

// shiftedWeight adds a number to the weights of each row.
func shiftedWeight(s *subject, e *Entry, m Mistake) *program.Edited {
	return reweighted(e, func(_ int, w program.Rows) program.Rows {
		rows, cols := w.Size()
		x, ok := alongRows(s, e, rows, m)
		if !ok {
			return nil
		}
		return changedRows(w, func(i int, row []float64) {
			for c := range cols {
				row[c] += x[i]
			}
		})
	}, m.Place)
}

// alongRows are the numbers of a mistake for each row of a matrix: one number for all rows, or a number for each channel of the result.
func alongRows(s *subject, e *Entry, rows int, m Mistake) (all []float64, ok bool) {
	all = make([]float64, rows)
	shape := e.Program.Out.Shape
	x := program.Value{Shape: []int{1}, Data: m.Numbers.list()}
	if ok = len(x.Data) == 1; m.Axis != "" {
		x, ok = alongAxis(s, e, shape, m)
	}
	for i := range all {
		switch {
		case !ok:
		case len(x.Data) == 1:
			all[i] = x.Data[0]
		case len(x.Data) == rows && shape[len(shape)-1] == rows:
			all[i] = x.Data[i]
		default:
			ok = false
		}
	}
	return all, ok
}
