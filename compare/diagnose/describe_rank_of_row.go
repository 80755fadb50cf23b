package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	mostRanked = 1 << 14 // elements of a row that is sorted
	leastRows  = 4       // rows that have a value of the same rank, at least
)

// rankedRows describes values with one number per row: an element of the row of another value, always of the same rank, such as the largest or the k-th
// largest. An example is a cutoff that is found by sorting.
func rankedRows(x *difference) *Description {
	for _, inner := range x.inners() {
		rows := 0
		for n := range inner.all {
			rows += len(inner.all[n].want)
		}
		if last := len(inner.all[0].shape) - 1; rows < leastRows || last < 0 || inner.all[0].shape[last] != 1 {
			continue
		}
		t := x.first.signed(x.m)
		var seen []program.Var
		for i := range t.Steps {
			for a, v := range t.Steps[i].Args {
				at := edit.Place{Step: t.PlaceOf(i).Step, Arg: a}
				if v.Last() < leastRows || v.Last() > mostRanked || slices.ContainsFunc(seen, v.Same) || program.Size(v.Shape) != v.Last()*len(inner.all[0].want) {
					continue
				}
				seen = append(seen, v)
				rank, ok := x.rankIn(inner.all, at)
				if !ok {
					continue
				}
				d := &Description{Kind: "described.ranked", Of: inner.of, Like: x.value(x.first, v), Values: []float64{float64(rank)}, Explained: rows, Elements: rows}
				x.draft(d).proposes = []Mistake{{Kind: "value.of-rank", Of: inner.of, By: d.Like, N: rank, Edit: placed(inner.at, at)}}
				return d
			}
		}
	}
	return nil
}

// rankIn is the rank of the values in the rows of an operand, from 1 for the largest. It is not ok if a value is not in its row, or if the ranks differ.
func (x *difference) rankIn(all []observed, at edit.Place) (rank int, ok bool) {
	wrong := 0
	for n := range all {
		o := &all[n]
		v, has := placedValue(x.subject, o.e, at)
		if !has || len(o.want) == 0 || len(v)%len(o.want) != 0 {
			return 0, false
		}
		width := len(v) / len(o.want)
		for i, want := range o.want {
			if silent(o, i) || want-want != 0 {
				return 0, false
			}
			row := slices.Clone(v[i*width:][:width])
			slices.Sort(row)
			x.m.work += width
			k := width - 1
			for k >= 0 && !(math.Abs(row[k]-want) <= off(o, i)+0x1p-21*math.Abs(want)) {
				k--
			}
			if k < 0 || rank > 0 && rank != width-k {
				return 0, false
			}
			if rank = width - k; math.Abs(want-o.value[i]) > 4*off(o, i) {
				wrong++
			}
		}
	}
	return rank, wrong >= leastRows
}

// placedValue is the value of an operand of a step in an entry.
func placedValue(s *subject, e *Entry, at edit.Place) ([]float64, bool) {
	t := e.signed(s.m)
	copies := t.Copies(at)
	if len(copies) != 1 {
		return nil, false
	}
	return s.valueAt(e, t.Steps[copies[0]].Args[at.Arg])
}

// ofRank puts the element of one rank in each row of an operand in place of a value.
func ofRank(s *subject, e *Entry, m Mistake) *program.Edited {
	d, ok := s.edit(m)
	if !ok || len(d.At) != 2 {
		return nil
	}
	v, ok := placedValue(s, e, d.At[1])
	if !ok {
		return nil
	}
	return s.at(e, d.At[0], func(ed *edit.Editor, own program.Var) program.Var {
		one := own.Shape
		if spread := e.signed(s.m); spreads(spread, own) {
			one = spread.Result(own.Step).Shape
		}
		rows := program.Size(one)
		if rows == 0 || len(v)%rows != 0 || m.N < 1 || m.N > len(v)/rows {
			return ed.Fail("shapes")
		}
		width := len(v) / rows
		x := program.Value{Shape: one}
		for r := range rows {
			row := slices.Clone(v[r*width:][:width])
			slices.Sort(row)
			x.Data = append(x.Data, row[width-m.N])
		}
		return ed.Expand(ed.Other(x), own.Shape)
	})
}
