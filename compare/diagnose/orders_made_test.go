package diagnose_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// wrongly makes of what an operation reads, and of its right result y, the result of a port, in place.
type wrongly = func(in [][]float64, y []float64)

// looped is a mistake that plain loops make of an operation. A neighbour has another name.
type looped struct {
	kind        diagnose.Kind
	says        string
	of          operation
	wrong, near wrongly // near is nil for one that is wrong in the second half of the result alone
}

// hold searches for the mistake, and for its neighbour.
func (l looped) hold(t *testing.T) {
	t.Helper()
	search := func(wrong wrongly) *diagnose.Finding {
		m := model(t)
		if l.of.configure != nil {
			l.of.configure(m.List.Config)
		}
		m.Passes[0].Tokens = 8
		return named(t, m, l.of.made(t, m, wrong))
	}
	if f := search(l.wrong); cmp.Or(f.Mistake.Kind, f.Relation.Kind) != l.kind || f.What != l.says && f.Text() != l.says {
		t.Errorf("%s: %q, want %s: %q", f.Key(), f.Text(), l.kind, l.says)
	}
	near := l.near
	if near == nil {
		near = func(in [][]float64, y []float64) {
			right := slices.Clone(y[:len(y)/2])
			l.wrong(in, y)
			copy(y, right)
		}
	}
	if f := search(near); f.What == l.says || f.Text() == l.says {
		t.Errorf("the neighbour of %s is %q too", l.kind, f.What)
	}
}

// ordering says which element is read at each place of a row.
type ordering func(c int) int

// inOrder are rows of some width in another order.
func (o ordering) inOrder(x []float64, width int) []float64 {
	y := make([]float64, len(x))
	for i := range y {
		y[i] = x[i/width*width+o(i%width)]
	}
	return y
}

// near is an order with the elements of two places exchanged.
func (o ordering) near() ordering {
	return func(c int) int {
		switch c {
		case 0:
			return o(5)
		case 5:
			return o(0)
		}
		return o(c)
	}
}

// moved has rows of n moved by some places.
func moved(n, by int) ordering { return func(c int) int { return (c + n - by) % n } }

// flips has each place with some of its bits turned.
func flips(bits int) ordering { return func(c int) int { return c ^ bits } }

// woven reads each block as rows of n, column by column.
func woven(block, n int) ordering {
	return func(c int) int { k := c % block; return c - k + k%(block/n)*n + k/(block/n) }
}

// wovenBlocks reads blocks of a size as woven reads elements.
func wovenBlocks(size, all, n int) ordering {
	return func(c int) int { return woven(all, n)(c/size)*size + c%size }
}

// ofHeads has a configuration with heads of a size.
func ofHeads(size int, o operation) operation {
	o.configure = func(c *order.Config) { c.HeadDim = size }
	return o
}

// sumOf32 adds two tensors of 8 tokens with 32 channels, as four heads of 16 have.
func sumOf32() operation {
	of := []program.Value{{Shape: []int{1, 8, 32}, Data: wave(256, 1)}, {Shape: []int{1, 8, 32}, Data: wave(256, 9)}}
	return operation{"layers.0.attn_residual", op.Add{}, "btc", []int{1, 8, 32}, of, nil, func(c *order.Config) { c.HeadDim, c.NumHeads = 16, 4 }}
}

// Orders of elements are named: of a tensor that is read, of the result, and of a tensor that is read in an order in which the result is put back.
func TestOrdersAreNamed(t *testing.T) {
	second := func(of ordering, width int) wrongly {
		return func(in [][]float64, y []float64) {
			for i, x := range of.inOrder(in[1], width) {
				y[i] = in[0][i] + x
			}
		}
	}
	result := func(of ordering, width int) wrongly {
		return func(_ [][]float64, y []float64) { copy(y, of.inOrder(y, width)) }
	}
	back := func(of ordering, width int) wrongly {
		return func(in [][]float64, y []float64) {
			for i, x := range linear(of.inOrder(in[0], width), grid(squareOf16().matrix), nil) {
				y[i/width*width+of(i%width)] = x
			}
		}
	}
	const read, context = "layers.*.self_attn.o_proj has its channels in the wrong order: ", "layers.*.self_attn.context has its channels in the wrong order: "
	for _, c := range []struct {
		kind  diagnose.Kind
		says  string
		of    operation
		made  func(of ordering, width int) wrongly
		width int
		order ordering
	}{
		{"elements.rolled", "layers.*.self_attn.o_proj is shifted by 1 along its channels", sumOf8(), second, 16, moved(16, 1)},
		{"elements.rolled", "layers.*.self_attn.o_proj is shifted by 1 along its tokens", sumOf8(), second, 128, moved(128, 16)},
		{"elements.rolled", "the result is shifted by -2 along its channels", sumOf8(), result, 16, moved(16, -2)},
		{"elements.rolled-and-back", "layers.*.self_attn.context is shifted by 1 along its channels, and the result is shifted back", squareOf16(), back, 16, moved(16, 1)},
		{"elements.halves-exchanged", "the halves of layers.*.self_attn.o_proj along its channels are swapped", sumOf8(), second, 16, moved(16, 8)},
		{"elements.halves-exchanged-and-back", "the halves of layers.*.self_attn.context along its channels are swapped, and the result is swapped back", squareOf16(), back, 16, moved(16, 8)},
		{"elements.reversed", "layers.*.self_attn.o_proj is reversed along its channels", sumOf8(), second, 16, flips(15)},
		{"elements.reversed-and-back", "layers.*.self_attn.context is reversed along its channels, and the result is reversed back", squareOf16(), back, 16, flips(15)},
		{"elements.blocks", read + "blocks of 2, such as heads, are read as [4, 2] with the axes exchanged", ofHeads(4, sumOf8()), second, 16, wovenBlocks(2, 8, 2)},
		{"elements.blocks-and-back", context + "blocks of 2, such as heads, are read as [4, 2] with the axes exchanged, and the result is put back", ofHeads(4, squareOf16()), back, 16, wovenBlocks(2, 8, 2)},
		{"elements.blocks-reversed", read + "its blocks of 4, such as heads, are in reverse order", ofHeads(4, sumOf8()), second, 16, flips(12)},
		{"elements.blocks-reversed-and-back", context + "its blocks of 4, such as heads, are in reverse order, and the result is put back", ofHeads(4, squareOf16()), back, 16, flips(12)},
		{"elements.neighbours-exchanged", read + "elements 2j and 2j+1 are swapped", sumOf8(), second, 16, flips(1)},
		{"elements.neighbours-exchanged-and-back", context + "elements 2j and 2j+1 are swapped, and the result is put back", squareOf16(), back, 16, flips(1)},
		{"elements.each-block-reversed", read + "each block of 4 is reversed", sumOf8(), second, 16, flips(3)},
		{"elements.each-block-reversed-and-back", context + "each block of 4 is reversed, and the result is put back", squareOf16(), back, 16, flips(3)},
		{"elements.interleaved-and-back", "layers.*.self_attn.context is read as 4 interleaved parts along its channels, and the result is put back", ofHeads(4, squareOf16()), back, 16, woven(16, 4)},
		{"elements.interleaved-and-back", "layers.*.self_attn.context is read as 2 interleaved parts along its channels, and the result is put back", ofHeads(4, squareOf16()), back, 16, woven(16, 2)},
		{"elements.by-turns", "the result has its channels in the wrong order: read as 4 interleaved parts, [4, 4] with the axes exchanged", ofHeads(4, sumOf8()), result, 16, woven(16, 4)},
		{"elements.blocks-interleaved", "the result has its channels in the wrong order: each block of 4 is interleaved where it should be halves, or the reverse", ofHeads(4, sumOf8()), result, 16, woven(4, 2)},
		{"elements.blocks-by-turns", "the result has its channels in the wrong order: each block of 16 is read as 4 interleaved parts, [4, 4] with the axes exchanged", sumOf32(), result, 32, woven(16, 4)},
		{"elements.axes-exchanged", "layers.*.self_attn.o_proj is read with its tokens and its channels exchanged", sumOf8(), second, 128, func(i int) int { return i%16*8 + i/16 }},
		{"channels.reordered", "the channels are in the wrong order: 12 of 16 (channel 1 is channel 5; channel 2 is channel 10; channel 3 is channel 15; ...)", sumOf8(), result, 16, func(c int) int { return c * 5 % 16 }},
		{"channels.many-others", "channel 1 is channel 4; channel 2 is channel 7; channel 3 is channel 12; and 10 more", sumOf8(), result, 16, func(c int) int { return []int{0, 4, 7, 12, 3, 12, 7, 4, 3, 11, 2, 9, 1, 2, 4, 15}[c] }},
	} {
		looped{c.kind, c.says, c.of, c.made(c.order, c.width), c.made(c.order.near(), c.width)}.hold(t)
	}
}
