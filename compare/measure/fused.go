package measure

import (
	"bytes"
	"math"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
	"github.com/tracediff/tracediff/order"
)

// shortest is the shortest row for which the fused passes are faster.
const shortest = 2 * lanes.Count

// fusible sets the limits for measuring strips in stored form: two sides of one float type, by sums, without a transform. Logits are decoded,
// for the choice of tokens.
func (m *measurement) fusible() {
	dl, dr := m.views[local].Rec.DType, m.views[reference].Rec.DType
	if m.kind == closely && dl == dr && m.scale == 1 && !m.tokens && (m.last >= shortest || m.elements <= m.last) {
		m.fused = lanes.NewLimits(dr, m.huge, m.rule == order.Allowed)
	}
}

// stored cuts a strip out of a block, as it is stored.
func (b *block) stored(m *measurement, at int) (s strip) {
	s.at, s.n = at, min(lanes.Strip, b.n-at)
	for side, v := range m.views {
		if side == reference || !m.alone {
			size := v.Rec.DType.Size()
			s.raw[side] = b.raw[side][at*size : (at+s.n)*size]
		}
	}
	dl, dr := m.views[local].Rec.DType, m.views[reference].Rec.DType
	s.same = m.alone || dl == dr && bytes.Equal(s.raw[local], s.raw[reference])
	return s
}

// fuse measures a strip of floats in stored form. For a strip that it cannot measure it returns false and adds nothing.
func (b *block) fuse(m *measurement, s *strip) bool {
	f := &b.fused
	left := s.raw[local]
	if s.same {
		left = nil
	}
	seen, count := f.Look(m.fused, left, s.raw[reference]), s.n
	if !seen.Plain {
		if !m.fused.Sorts() {
			return false
		}
		b.locate(m) // while every element of the strip it is in counts
		b.sort(m, s)
		seen, count = f.Again()
	}
	b.Compared += int64(count)
	b.unequal += seen.Unequal
	b.maxULP = max(b.maxULP, seen.Steps)
	b.fusedRuns(m, s)
	if d := f.Largest(); !s.same && d > max(b.most.by, b.farthest.by) {
		b.farthest = farthest{d, *s}
		if !seen.Plain || count < s.n {
			b.locate(m) // while it is known what counts
		}
	}
	for side, o := range f.Moments(count) {
		b.Side[side].Merge(&o)
	}
	return true
}

// sort takes in the elements that do not count.
func (b *block) sort(m *measurement, s *strip) {
	sorted := b.fused.Classify()
	b.Masked += sorted.Masked
	b.specials.both += sorted.NaN
	for side := range b.Side {
		b.Side[side].NaN += sorted.NaN
		b.Side[side].NegInf += sorted.Low
	}
	var l, r [1]float64
	for _, i := range sorted.Odd {
		_ = floats.Decode(r[:], m.coarser, s.raw[reference][i*m.coarser.Size():]) // a type that was decoded before
		if l = r; !s.same {
			_ = floats.Decode(l[:], m.coarser, s.raw[local][i*m.coarser.Size():])
		}
		if b.counts(&m.masking, l[0], r[0], int64(b.first+s.at+i)) {
			b.fused.Count(i)
		}
	}
}

// fusedRuns adds up the strip's runs: see products.
func (b *block) fusedRuns(m *measurement, s *strip) {
	first := m.last - (b.col+s.at)%m.last // elements until a row ends
	aligned := first >= s.n || first%lanes.Count == 0 && m.last%lanes.Count == 0
	if !aligned {
		b.fused.Totals()
	}
	b.eachRun(m, s, func(at, n, row, col int) {
		var diff, ref []float64
		if m.byColumn {
			diff, ref = b.cols.diff[col:], b.cols.ref[col:]
		}
		b.addRun(m, row, b.fused.Run(at, n, aligned, diff, ref))
	})
}

// locate finds the place of a strip's largest difference, if the difference is the largest so far. A difference below an earlier block's is
// never the worst, so its place is not searched.
func (b *block) locate(m *measurement) {
	by := b.farthest.by
	if by <= b.most.by || by <= math.Float64frombits(m.far.Load()) {
		return
	}
	s := &b.farthest.strip
	s.l, s.r = b.values[local][:s.n], b.values[reference][:s.n]
	_ = floats.Decode(s.l, m.coarser, s.raw[local]) // as above
	_ = floats.Decode(s.r, m.coarser, s.raw[reference])
	for i, x := range s.l {
		if math.Abs(x-s.r[i]) == by && b.fused.Counts(i) {
			b.differ(difference{by, int64(b.first + s.at + i), x, s.r[i]})
			return
		}
	}
}
