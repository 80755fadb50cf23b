package measure

import (
	"math"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// floats measures a strip of two tensors of floats.
func (b *block) floats(m *measurement, s *strip) {
	if m.tokens {
		b.choose(m, s)
	}
	surveys := b.exclude(m, s)
	b.Compared += int64(s.n - len(s.holes))
	if !s.same {
		b.differences(m, s)
	}
	if m.scale != 1 {
		s.multiply(m.scale, &surveys)
	}
	b.products(m, s)
	right := lanes.MomentsOf(s.r, s.holes, surveys[reference])
	left := right
	if !s.same {
		left = lanes.MomentsOf(s.l, s.holes, surveys[local])
	}
	b.Side[local].Merge(&left)
	b.Side[reference].Merge(&right)
}

// multiply scales a strip and its totals.
func (s *strip) multiply(by float64, surveys *[2]lanes.Survey) {
	for i := range s.r {
		s.r[i] *= by
	}
	surveys[reference].Total = lanes.Total(s.r)
	if s.same {
		surveys[local].Total = surveys[reference].Total
		return
	}
	for i := range s.l {
		s.l[i] *= by
	}
	surveys[local].Total = lanes.Total(s.l)
}

// exclude finds the excluded elements, which most strips lack, and surveys the others.
func (b *block) exclude(m *measurement, s *strip) (surveys [2]lanes.Survey) {
	surveys[reference] = lanes.SurveyOf(s.r)
	surveys[local] = surveys[reference]
	if !s.same {
		surveys[local] = lanes.SurveyOf(s.l)
	}
	if surveys[reference].Within(m.huge[reference]) && surveys[local].Within(m.huge[local]) {
		return surveys
	}
	surveys = [2]lanes.Survey{lanes.Nothing, lanes.Nothing}
	b.holes = b.holes[:0]
	for i, x := range s.l {
		y := s.r[i]
		if math.Abs(x) < m.huge[local] && math.Abs(y) < m.huge[reference] || b.counts(&m.masking, x, y, int64(b.first+s.at+i)) {
			surveys[local].Add(x)
			surveys[reference].Add(y)
		} else {
			b.holes = append(b.holes, i)
			s.clear(m, i)
		}
	}
	s.holes = b.holes
	surveys[local].Total, surveys[reference].Total = lanes.Total(s.l), lanes.Total(s.r)
	return surveys
}

// clear makes an element 0 on both sides.
func (s *strip) clear(m *measurement, i int) {
	s.l[i], s.r[i] = 0, 0
	for side, v := range m.views {
		if raw := s.raw[side]; raw != nil {
			size := v.Rec.DType.Size()
			clear(raw[i*size : (i+1)*size])
		}
	}
}

// differences counts the elements that differ, and finds the largest difference.
func (b *block) differences(m *measurement, s *strip) {
	unequal, most := int64(0), uint64(0)
	if m.views[local].Rec.DType == m.views[reference].Rec.DType {
		unequal, most = floats.Steps(m.coarser, s.raw[local], s.raw[reference], s.n)
	} else {
		for i, x := range s.l {
			if x == s.r[i] {
				continue
			}
			if steps := floats.Distance(m.coarser, x, s.r[i]); steps > 0 {
				unequal++
				most = max(most, steps)
			}
		}
	}
	b.unequal += unequal
	b.maxULP = max(b.maxULP, most)
	// Two numbers of different dtypes may differ and be equal in the coarser.
	if d := lanes.Largest(s.l, s.r); d > b.most.by {
		i := 0
		for math.Abs(s.l[i]-s.r[i]) != d {
			i++
		}
		b.differ(difference{d, int64(b.first + s.at + i), s.l[i], s.r[i]})
	}
}

// products adds up the strip's runs, and with them the rows and the columns.
func (b *block) products(m *measurement, s *strip) {
	b.eachRun(m, s, func(at, n, row, col int) {
		l, r := s.l[at:at+n], s.r[at:at+n]
		b.addRun(m, row, lanes.Products(l, r))
		if m.byColumn {
			lanes.AddColumns(b.cols.diff[col:], b.cols.ref[col:], l, r)
		}
	})
}

// eachRun calls with the first element of each run of the strip, how many it has, the row of the block, and where the sums of its
// columns begin.
func (b *block) eachRun(m *measurement, s *strip, with func(at, n, row, col int)) {
	for at := 0; at < s.n; {
		place := b.col + s.at + at // from the start of the row in which the block begins
		row, col := place/m.last, place%m.last
		n := min(s.n-at, m.last-col)
		if m.last > lanes.Block {
			col = s.at + at
		}
		with(at, n, row, col)
		at += n
	}
}

// addRun takes in the sums of a run.
func (b *block) addRun(m *measurement, row int, sum lanes.Squares) {
	b.sum.Add(sum)
	if m.byRow {
		b.rows.diff[row] += sum.Diff
		b.rows.ref[row] += sum.Ref
	}
}
