package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// inWrongPart is the difference in the part of the results with wrong elements: the rest is right, and says nothing. It is nil if all of the results is wrong.
func inWrongPart(x *difference) (in *difference, part Spots) {
	if part = x.part(); part == "" {
		return nil, ""
	}
	all := slices.Clone(x.results)
	for n := range all {
		o := &all[n]
		of := part.of(x.subject, o.e)
		if of == nil || o.e.Few != nil {
			return nil, ""
		}
		o.half = slices.Clone(o.half)
		for i := range o.half {
			if !of.has(i) {
				o.half[i] = math.Inf(1)
			}
		}
	}
	return differenceOf(x.search, all), part
}

// inBlock describes the difference in the wrong part of the results as an analysis describes a whole difference. For example, two parts of a product share
// the scale of one part.
func inBlock(analysis func(x *difference) *Description) func(x *difference) *Description {
	return func(x *difference) *Description {
		in, part := x.block()
		if in == nil {
			return nil
		}
		d := analysis(in)
		if d == nil || x.err != nil || len(x.draft(d).proposes) == 0 {
			return nil
		}
		for k := range x.draft(d).proposes {
			x.draft(d).proposes[k].Only = part
		}
		return d
	}
}

// statisticsOfRows describes operands that have one number in each row, a statistic of the row of the right operand: a kernel hands over the mean in place
// of the tensor.
func statisticsOfRows(x *difference) *Description {
	for _, inner := range x.inners() {
		if inner.number || !constantRows(inner.all) {
			continue
		}
		for _, f := range statistics {
			values := x.rowsOf(inner.all, f, inner.at)
			if values == nil {
				break
			}
			for n := range values { // the port stores the statistic in place of the operand
				floats.RoundAll(x.first.Call.DType, values[n])
			}
			if g, ok := multipleOf(inner.all, values, false); !ok || !g.has(1) {
				continue
			}
			m := Mistake{Kind: "value.statistic", Of: inner.of, By: inner.of, For: Term{Kind: RowStatistic, Name: f.name}, Edit: placed(inner.at)}
			d := &Description{Kind: "described.statistic", Of: inner.of, Like: inner.of, Cases: []string{m.statistic()}}
			for k := range inner.all {
				d.Elements += len(inner.all[k].want)
			}
			d.Explained, d.Numbers, d.Wrong = d.Elements, 1, 1
			x.draft(d).proposes = []Mistake{m}
			return d
		}
		if x.err != nil {
			return nil
		}
	}
	return nil
}

// constantRows reports whether every row has elements with one wanted number, and whether the right rows differ from it.
func constantRows(all []observed) bool {
	wrong := 0
	for n := range all {
		o := &all[n]
		if len(o.shape) == 0 || o.shape[len(o.shape)-1] < leastRows {
			return false
		}
		width := o.shape[len(o.shape)-1]
		for row := 0; row < len(o.want); row += width {
			for i := row + 1; i < row+width; i++ {
				if !(math.Abs(o.want[i]-o.want[row]) <= off(o, i)+off(o, row)) {
					return false
				}
				if wrongElement(o, i) {
					wrong++
				}
			}
		}
	}
	return wrong >= leastRows
}

// asStatistic puts a statistic of each row of an operand in place of the operand.
func asStatistic(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var {
		x, ok := statisticOf(ed, m.For.Name, v)
		if !ok {
			return ed.Fail("shapes")
		}
		return ed.Expand(ed.R(x), v.Shape)
	})
}
