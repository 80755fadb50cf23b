package measure

import (
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/lanes"
)

// block is one block of a pair of tensors, with its measurements. A worker uses its block for one part after another: the buffers, 3 MiB at
// most, and the slices of the axes are all the memory of measuring.
type block struct {
	tally
	stretch
	rows, cols sliceSums // of the part of each row, and of each column or, where rows are longer than a block, of each element
	tops       []pick    // of the part of each row

	buffers
	fused    lanes.Fused
	farthest farthest
}

// stretch is which elements of the view a block has.
type stretch struct {
	first, n int
	col      int // the place of the first one in its row
}

// buffers are of what is measured.
type buffers struct {
	raw    [2][]byte // a block
	values [2][lanes.Strip]float64
	holes  []int // of strip.holes
}

// farthest is a difference larger than the largest of the tally, if there is one whose place is not known yet.
type farthest struct {
	by    float64
	strip strip // it is in
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
	first := k * lanes.Block
	b.tally, b.stretch, b.farthest.by = empty, stretch{first, min(lanes.Block, m.elements-first), first % m.last}, 0
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
		s := b.stored(m, at)
		if m.fused != nil && b.fuse(m, &s) {
			continue
		}
		b.locate(m) // before its buffers are used for others
		if err := b.decode(m, &s); err != nil {
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
	b.locate(m)
	return nil
}

// strip is a few elements of a block.
type strip struct {
	at, n int // in the block
	l, r  []float64
	raw   [2][]byte // nil for the local side of a single tensor
	same  bool      // both sides have the same bits, and l and r are the same memory
	holes []int     // elements that do not count, in ascending order; they are 0 in l, r and raw
}

// decode makes numbers of a strip.
func (b *block) decode(m *measurement, s *strip) error {
	dl, dr := m.views[local].Rec.DType, m.views[reference].Rec.DType
	s.r = b.values[reference][:s.n]
	if err := floats.Decode(s.r, dr, s.raw[reference]); err != nil {
		return err
	}
	if s.same {
		s.l = s.r
		return nil
	}
	s.l = b.values[local][:s.n]
	return floats.Decode(s.l, dl, s.raw[local])
}
