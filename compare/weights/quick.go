package weights

import (
	"context"
	"encoding/binary"
	"math"
	"sync"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// quick is pass for a rounding, up to the first wrong element, which bad is; nil if all are right. It keeps no account of rows.
func (s *sides) quick(ctx context.Context, round rounding) (t *tally, bad *part, err error) {
	r, local, v := s.r, s.local, s.view
	t = &tally{}
	round32 := single(round, v.t.DType)
	most := math.Inf(1)
	if round.dtype != 0 {
		most = largestOf(round)
	}
	bits := round == rounding{dtype: hooks.F16} && local.DType == hooks.F16 && v.t.DType == hooks.BF16 && !v.moves(v.t)
	_, columns := local.flat()
	var rounded []float64
	for p := range v.parts {
		if bits && p.columns() == columns && t.values.varies && t.given.varies {
			x, l, err := r.raw(ctx, local, v.t, p)
			if err != nil {
				return nil, nil, err
			}
			if at := t.castBits(x, l, most); at >= 0 {
				row, column := p.r0+at/columns, at%columns
				return nil, &part{row, row + 1, column, column + 1}, nil
			}
			continue
		}
		b, err := s.read(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		x, l := b.original, b.local[:len(b.original)]
		y := x
		if round != (rounding{}) {
			y = room(&rounded, len(x))
			for i, f := range x {
				if round32 != nil {
					y[i] = float64(round32(float32(f)))
				} else {
					y[i] = round.of(f)
				}
			}
		}
		for i, f := range y {
			if l[i] != f && (f == f || l[i] == l[i]) {
				row, column := p.r0+i/p.columns(), p.c0+i%p.columns()
				return nil, &part{row, row + 1, column, column + 1}, nil
			}
		}
		t.values.add(l)
		t.given.add(x)
		if t.elements += len(x); round.dtype == 0 {
			continue
		}
		for i, f := range y {
			t.rounds(x[i], f, most)
		}
	}
	return t, nil, nil
}

// rounds counts a number of the original that became f; what is beyond most has no place.
func (t *tally) rounds(g, f, most float64) {
	if d := f - g; d-d == 0 {
		t.wrong += float64(d * d)
		t.whole += float64(g * g)
	}
	if f == 0 && g != 0 {
		t.vanished++
	} else if g-g == 0 && math.Abs(g) > most {
		t.beyond++
	}
}

// exactF16 maps the bits of a bfloat16 to the float16 bits of the same number; a number that float16 lacks maps to 1<<16.
var exactF16 = sync.OnceValue(func() *[1 << 16]uint32 {
	const none = 1 << 16
	var table [1 << 16]uint32
	for b := range table {
		g := floats.FromBF16(uint16(b))
		if table[b] = none; floats.RoundF16(g) == g && g-g == 0 {
			table[b] = uint32(floats.F16(g))
		}
	}
	return &table
})

// raw reads whole rows of both sides in their stored bytes. Both slices share one buffer.
func (r *reader) raw(ctx context.Context, local, original *Tensor, p part) (x, l []byte, err error) {
	_, columns := local.flat()
	size := p.size() * original.DType.Size()
	both := room(&r.bits, size+p.size()*local.DType.Size())
	x, l = both[:size], both[size:]
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	at := int64(p.r0) * int64(columns)
	if err := fill(x, original.Data, at*int64(original.DType.Size())); err != nil {
		return nil, nil, inTensor(original, err)
	}
	if err := fill(l, local.Data, at*int64(local.DType.Size())); err != nil {
		return nil, nil, inTensor(local, err)
	}
	return x, l, nil
}

// castBits is a part of quick for bfloat16 x that became float16 l: most numbers are told by their bits. It returns the element that is not
// right; −1 for none. The sums are those of quick, to the bit.
func (t *tally) castBits(x, l []byte, most float64) int {
	exact, whole := exactF16(), t.whole
	for i := range len(x) / 2 {
		from, to := binary.LittleEndian.Uint16(x[2*i:]), binary.LittleEndian.Uint16(l[2*i:])
		g := float64(floats.FromBF16(from))
		if exact[from] == uint32(to) {
			whole += float64(g * g)
			continue
		}
		f, is := float64(floats.RoundF16(float32(g))), float64(floats.FromF16(to))
		if !same(is, f) {
			return i
		}
		t.whole = whole
		t.rounds(g, f, most)
		whole = t.whole
	}
	t.whole = whole
	t.elements += len(x) / 2
	return -1
}

// single returns a function for a plain rounding of float32 numbers, several times faster; nil for other roundings and dtypes.
func single(r rounding, original hooks.DType) func(float32) float32 {
	switch {
	case r.cut || r.clamp || r.via != 0 || !holds(original, hooks.F32):
		return nil
	case r.dtype == hooks.BF16:
		return floats.RoundBF16
	case r.dtype == hooks.F16:
		return floats.RoundF16
	}
	return nil
}
