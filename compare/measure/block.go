package measure

import (
	"bytes"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// block is one block of a pair of tensors, and what was measured of it. A worker has one and uses it for one block after
// another: its buffers, 3 MiB at most, are all the memory that measuring takes beside the slices of the axes.
type block struct {
	tally
	first, n int // its elements, of the view
	col      int // the place of the first one in its row

	rows, cols sliceSums // of the part of each row, and of each column or, where rows are longer than a block, of each element
	tops       []pick    // of the part of each row

	raw    [2][]byte
	values [2][lanes.Strip]float64
	holes  []int // buffer of strip.holes
}

// sliceSums are Σ(l−r)² and Σr² of some slices.
type sliceSums struct{ diff, ref []float64 }

// reset makes n sums of nothing.
func (s *sliceSums) reset(n int) {
	if cap(s.diff) < n {
		s.diff, s.ref = make([]float64, n), make([]float64, n)
	}
	s.diff, s.ref = s.diff[:n], s.ref[:n]
	clear(s.diff)
	clear(s.ref)
}

// begin makes the block the k-th of a measurement, with nothing measured yet.
func (b *block) begin(m *measurement, k int) {
	b.tally, b.first = empty, k*lanes.Block
	b.n, b.col = min(lanes.Block, m.elements-b.first), b.first%m.last
	rows := (b.col + b.n + m.last - 1) / m.last
	b.rows.reset(0)
	b.cols.reset(0)
	b.tops = b.tops[:0]
	if m.byRow {
		b.rows.reset(rows)
	}
	if m.byColumn {
		b.cols.reset(min(m.last, lanes.Block))
	}
	if m.tokens {
		for range rows {
			b.tops = append(b.tops, noPick)
		}
	}
}

// read reads the block's elements.
func (b *block) read(m *measurement) error {
	for side, v := range m.views {
		if side == local && m.alone {
			continue
		}
		size := b.n * v.Rec.DType.Size()
		if cap(b.raw[side]) < size {
			b.raw[side] = make([]byte, size)
		}
		b.raw[side] = b.raw[side][:size]
		if err := v.read(b.raw[side], b.first, b.n); err != nil {
			return err
		}
	}
	return nil
}

// measure measures a block that was read, strip by strip.
func (b *block) measure(m *measurement) error {
	for at := 0; at < b.n; at += lanes.Strip {
		s, err := b.decode(m, at)
		if err != nil {
			return err
		}
		switch m.kind {
		case patterns:
			b.patterns(m, &s)
		case exactly:
			b.exactly(m, &s)
		default:
			b.floats(m, &s)
		}
	}
	return nil
}

// strip is a few elements of a block.
type strip struct {
	at, n int // in the block
	l, r  []float64
	raw   [2][]byte // nil for the local side of a tensor that is alone
	same  bool      // both sides have the same bits, and l and r are the same memory
	holes []int     // elements that do not count, in ascending order; they are 0 in l, r and raw
}

// decode cuts a strip out of a block.
func (b *block) decode(m *measurement, at int) (s strip, err error) {
	s.at, s.n = at, min(lanes.Strip, b.n-at)
	for side, v := range m.views {
		if side == reference || !m.alone {
			size := v.Rec.DType.Size()
			s.raw[side] = b.raw[side][at*size : (at+s.n)*size]
		}
	}
	dl, dr := m.views[local].Rec.DType, m.views[reference].Rec.DType
	s.r = b.values[reference][:s.n]
	if err := floats.Decode(s.r, dr, s.raw[reference]); err != nil {
		return s, err
	}
	if s.same = m.alone || dl == dr && bytes.Equal(s.raw[local], s.raw[reference]); s.same {
		s.l = s.r
		return s, nil
	}
	s.l = b.values[local][:s.n]
	return s, floats.Decode(s.l, dl, s.raw[local])
}
