package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	mostSolvedTerms = 64   // terms of a sum whose counts are solved from the rows
	nearCount       = 1e-3 // how far a solved count may be from a whole number
	mostCounts      = 3    // different counts of the terms of a sum: with more counts the rows say nothing
)

// summed is a sum within the operation: the terms of each row in each entry, and the wanted sums.
type summed struct {
	inner
	step  int         // the sum, in the program of the first entry
	terms [][]float64 // for each entry, row by row
	n     int         // terms of a row
}

// otherSums describes sums over wrong terms: over only the first or the last terms of a row, over some terms more than once, or over
// squares of values minus the mean.
func otherSums(x *difference) *Description {
	for _, inner := range x.inners() {
		s, ok := x.summedAt(inner)
		if !ok || !s.isWrong() {
			continue
		}
		d := &Description{Kind: "described.sum", Of: x.step(x.first, s.step), Numbers: s.n}
		if x.aboutMean(&s) {
			x.draft(d).proposes = []Mistake{{Kind: "norm.about-mean", Place: x.site(x.first, s.step)}}
			return s.described(d)
		}
		x.m.work += s.n * s.n
		counts := s.ofEnds()
		if counts == nil {
			counts = s.solved()
		}
		if counts == nil {
			continue
		}
		d.Kind, d.Values = "described.terms", counts[:min(len(counts), mostValues)]
		x.draft(d).proposes = []Mistake{{Kind: "sum.terms", Place: x.site(x.first, s.step), Of: d.Of, Axis: axisWords(0), Numbers: makeNumbers(counts), Edit: placed(x.first.signed(x.m).PlaceOf(s.step))}}
		return s.described(d)
	}
	return nil
}

// described counts all elements of the sums as explained.
func (s *summed) described(d *Description) *Description {
	for n := range s.all {
		d.Elements += len(s.all[n].want)
	}
	d.Explained = d.Elements
	return d
}

// summedAt finds the sum whose result is a value within the operation.
func (x *difference) summedAt(inner inner) (s summed, ok bool) {
	s.inner = inner
	for n := range inner.all {
		t := inner.all[n].e.signed(x.m)
		copies := t.Copies(inner.at)
		if len(copies) != 1 {
			return s, false
		}
		i := t.Steps[copies[0]].Args[inner.at.Arg].Step
		st := &t.Steps[i]
		if st.Prim != program.Sum || program.Size(st.Shape) != len(inner.all[n].want) {
			return s, false
		}
		terms, has := x.valueAt(inner.all[n].e, st.Args[0])
		width := st.Args[0].Last()
		if !has || len(terms) != len(inner.all[n].want)*width || n > 0 && width != s.n {
			return s, false
		}
		if s.terms, s.n = append(s.terms, terms), width; n == 0 {
			s.step = i
		}
	}
	return s, s.n > 1
}

// isWrong reports whether enough wanted sums differ from the sums of the terms.
func (s *summed) isWrong() bool {
	wrong := 0
	for n := range s.all {
		o := &s.all[n]
		for i := range o.want {
			if !silent(o, i) && math.Abs(o.want[i]-o.value[i]) > 2*s.slack(n, i) {
				wrong++
			}
		}
	}
	return wrong >= shownElements/2
}

// slack is how far the sum of row i may be off.
func (s *summed) slack(n, i int) float64 {
	size := 0.0
	for _, v := range s.terms[n][i*s.n:][:s.n] {
		size += math.Abs(v)
	}
	return off(&s.all[n], i) + 0x1p-21*size
}

// rows reports whether a test holds for the sum of each row of all entries.
func (s *summed) rows(is func(row []float64, want, slack float64) bool) bool {
	some := false
	for n := range s.all {
		o := &s.all[n]
		for i, want := range o.want {
			if silent(o, i) || want-want != 0 {
				continue
			}
			if some = true; !is(s.terms[n][i*s.n:][:s.n], want, s.slack(n, i)) {
				return false
			}
		}
	}
	return some
}

// ofEnds returns the counts of the terms if the sum goes over only the first or the last terms of a row. A mean divides by the number of
// all terms or by the number of summed terms. The result is nil for other sums.
func (s *summed) ofEnds() []float64 {
	for k := s.n - 1; k > 0; k-- {
		for _, each := range []float64{1, float64(s.n) / float64(k)} {
			for _, from := range []int{0, s.n - k} {
				if s.rows(func(row []float64, want, slack float64) bool {
					sum := 0.0
					for _, v := range row[from : from+k] {
						sum += v
					}
					return math.Abs(sum*each-want) <= slack*each
				}) {
					counts := make([]float64, s.n)
					for c := range k {
						counts[from+c] = each
					}
					return counts
				}
			}
		}
	}
	return nil
}

// solved solves the counts of the terms from the rows by least squares. A count near a multiple of 1, or of 1/n, is rounded. It is nil if there are too
// few rows, and if the counts do not give the sums or have more than [mostCounts] different values.
func (s *summed) solved() []float64 {
	rows := 0
	for n := range s.all {
		rows += len(s.all[n].want)
	}
	if s.n > mostSolvedTerms || rows < s.n+shownElements {
		return nil
	}
	gram, right := make([]float64, s.n*s.n), make([]float64, s.n*s.n)
	s.rows(func(row []float64, want, _ float64) bool {
		for i, a := range row {
			for j, b := range row {
				gram[i*s.n+j] += a * b
			}
			right[i*s.n] += a * want
		}
		return true
	})
	if !eliminated(gram, right, s.n) {
		return nil
	}
	counts := make([]float64, s.n)
	for c := range counts {
		counts[c] = right[c*s.n]
		for _, whole := range []float64{1, float64(s.n)} { // a count, or a count divided by n
			if w := math.Round(counts[c] * whole); math.Abs(counts[c]*whole-w) <= nearCount*max(1, math.Abs(w)) {
				counts[c] = w / whole
				break
			}
		}
	}
	given := s.rows(func(row []float64, want, slack float64) bool {
		sum := 0.0
		for c, v := range row {
			sum += counts[c] * v
		}
		return math.Abs(sum-want) <= 2*slack
	})
	if n, _, _ := differentNumbers(counts); !given || n > mostCounts {
		return nil
	}
	return counts
}

// aboutMean reports whether the sum is over squares, and the wanted sum is over squares of values minus their mean.
func (x *difference) aboutMean(s *summed) bool {
	t := x.first.signed(x.m)
	sq := &t.Steps[t.Steps[s.step].Args[0].Step]
	if sq.Prim != program.Mul || !sq.Args[0].Same(sq.Args[1]) {
		return false
	}
	at := edit.Place{Step: t.PlaceOf(t.Steps[s.step].Args[0].Step).Step, Arg: 0}
	for n := range s.all {
		p := s.all[n].e.signed(x.m)
		copies := p.Copies(at)
		if len(copies) != 1 {
			return false
		}
		v, ok := x.valueAt(s.all[n].e, p.Steps[copies[0]].Args[0])
		if !ok || len(v) != len(s.terms[n]) {
			return false
		}
		for i, want := range s.all[n].want {
			row := v[i*s.n:][:s.n]
			mean, sum := 0.0, 0.0
			for _, y := range row {
				mean += y / float64(s.n)
			}
			for _, y := range row {
				sum += (y - mean) * (y - mean)
			}
			if o := &s.all[n]; !silent(o, i) && !(math.Abs(sum-want) <= s.slack(n, i)) {
				return false
			}
		}
	}
	return true
}

// countedTerms multiplies the terms of a sum by numbers.
func countedTerms(s *subject, e *Entry, m Mistake) *program.Edited {
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	copies := t.Copies(s.place(m))
	numbers := m.Numbers.list()
	for _, i := range copies {
		x := t.Steps[i].Args[0]
		if t.Steps[i].Prim != program.Sum || x.Last() != len(numbers) {
			return nil
		}
		shape := slices.Repeat([]int{1}, len(x.Shape))
		shape[len(shape)-1] = len(numbers)
		ed.Pass(i, ed.Sum("", ed.Mul("", x, ed.Other(program.Value{Shape: shape, Data: numbers}))))
	}
	if len(copies) == 0 {
		return nil
	}
	return ended(ed)
}

// aboutMeans subtracts the mean in sums of squares, and nowhere else.
func aboutMeans(_ *subject, e *Entry, _ Mistake) *program.Edited {
	ed := edit.NewEditor(e.Program)
	all := edit.Means(e.Program)
	for _, sq := range all {
		x := e.Program.Steps[sq].Args[0]
		y := ed.Sub("", x, ed.Mean("", x))
		ed.Pass(sq, ed.Mul("", y, y))
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}
