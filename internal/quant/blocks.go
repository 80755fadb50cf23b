package quant

import (
	"encoding/binary"
	"io"

	"github.com/tracediff/tracediff/internal/floats"
)

// Block is a block format of ggml: that many elements in that many bytes, one block after the other.
//
// Dequantising gives the bits of ggml's dequantize_row functions, whichever order they multiply in. A step is a float16 times a scale
// of at most 8 bits, a value is a step times a code of at most 8 bits: at most 11 + 7 + 6 bits, which float32 holds. The one operation
// that rounds is the addition of an offset, which float64 holds exactly before it is rounded once.
type Block uint8

// The formats that are read.
const (
	Q4_0 Block = iota + 1
	Q4_1
	Q5_0
	Q5_1
	Q8_0
	Q4_K
	Q5_K
	Q6_K
)

// block is a format's layout. decode writes the codes, steps and offsets of one block; quantise, the writer's arithmetic, makes them from
// values.
type block struct {
	name            string
	elements, bytes int
	group, lo, hi   int
	early           Rounding
	decode          func(code []int16, step, offset []float64, b []byte)
	quantise        quantiser
	step            func(least, most float32) float64 // the one of quantise; nil: it is searched for
}

// blocks is indexed by Block.
var blocks = [...]block{
	Q4_0: {"Q4_0", 32, 18, 32, -8, 7, toF16, decodeQ40, signed(-8), signedStep(-8)},
	Q4_1: {"Q4_1", 32, 20, 32, 0, 15, toF16, decodeQ41, ranged(15), rangedStep(15)},
	Q5_0: {"Q5_0", 32, 22, 32, -16, 15, toF16, decodeQ50, signed(-16), signedStep(-16)},
	Q5_1: {"Q5_1", 32, 24, 32, 0, 31, toF16, decodeQ51, ranged(31), rangedStep(31)},
	Q8_0: {"Q8_0", 32, 34, 32, -128, 127, toF16, decodeQ80, quantiseQ80, signedStep(-127)},
	Q4_K: {"Q4_K", 256, 144, 32, 0, 15, Rounding{}, decodeQ4K, search{hi: 15, from: -1, steps: 20}.super, nil},
	Q5_K: {"Q5_K", 256, 176, 32, 0, 31, Rounding{}, decodeQ5K, search{hi: 31, from: -0.5, steps: 15}.super, nil},
	Q6_K: {"Q6_K", 256, 210, 16, -32, 31, Rounding{}, decodeQ6K, quantiseQ6K, nil},
}

// super is how many groups of a block share what their steps are multiples of.
func (f *block) super() int {
	if n := f.elements / f.group; n > 1 {
		return n
	}
	return 0
}

// String is ggml's name of the format.
func (b Block) String() string { return blocks[b].name }

// Elements is the number of elements of a block.
func (b Block) Elements() int { return blocks[b].elements }

// Bytes is the number of bytes of a block.
func (b Block) Bytes() int { return blocks[b].bytes }

// Tensor is a tensor of blocks that lie one after the other in data from offset on. Rows have whole blocks.
func (b Block) Tensor(name string, shape []int, data io.ReaderAt, offset int64) *Tensor {
	n := b.Elements()
	return &Tensor{Name: name, Shape: shape, Scheme: Scheme{Name: b.String()}, Unit: n, source: blocksAt{b, data, offset}, group: n, grain: n}
}

// blocksAt is where the blocks of a tensor lie.
type blocksAt struct {
	format Block
	data   io.ReaderAt
	offset int64
}

func (s blocksAt) read(c *Codes, r *Reader, from int64, n int) error {
	f := &blocks[s.format]
	r.raw = grown(r.raw, n/f.elements*f.bytes)
	if err := fill(s.data, r.raw, s.offset+from/int64(f.elements)*int64(f.bytes)); err != nil {
		return err
	}
	s.format.decode(c, r.raw)
	return nil
}

// decode fills c with the elements of whole blocks.
func (b Block) decode(c *Codes, raw []byte) {
	f := &blocks[b]
	f.each(c, len(raw)/f.bytes, func(i int, code []int16, step, offset []float64) {
		f.decode(code, step, offset, raw[i*f.bytes:(i+1)*f.bytes])
	})
}

// each fills c with n blocks, one by one.
func (f *block) each(c *Codes, n int, fill func(i int, code []int16, step, offset []float64)) {
	c.resize(n*f.elements, f.group)
	c.Lo, c.Hi, c.Early, c.Super = f.lo, f.hi, f.early, f.super()
	for i, groups := 0, f.elements/f.group; i < n; i++ {
		fill(i, c.Code[i*f.elements:(i+1)*f.elements], c.Step[i*groups:(i+1)*groups], c.Offset[i*groups:(i+1)*groups])
	}
}

func (s blocksAt) step(least, most float32) (float64, bool) {
	if f := &blocks[s.format]; f.step != nil {
		return f.step(least, most), true
	}
	return 0, false
}

func (s blocksAt) usual(c *Codes, x []float32) bool {
	f := &blocks[s.format]
	f.each(c, len(x)/f.elements, func(i int, code []int16, step, offset []float64) {
		f.quantise(code, step, offset, x[i*f.elements:(i+1)*f.elements])
	})
	return true
}

func half(b []byte) float64 { return float64(floats.FromF16(binary.LittleEndian.Uint16(b))) }

// nibbles writes 32 codes: the lower halves of 16 bytes, then the upper ones, less a bias.
func nibbles(code []int16, b []byte, bias int16) {
	q, low, high := (*[16]byte)(b), (*[16]int16)(code), (*[16]int16)(code[16:])
	for i, v := range q {
		low[i] = int16(v&15) - bias
		high[i] = int16(v>>4) - bias
	}
}

// fives writes 32 codes as nibbles does, each with a fifth bit: bit i of the word is that of element i.
func fives(code []int16, bits uint32, b []byte, bias int16) {
	q, low, high := (*[16]byte)(b), (*[16]int16)(code), (*[16]int16)(code[16:])
	for i, v := range q {
		low[i] = int16(uint32(v&15)|bits>>i<<4&16) - bias
		high[i] = int16(uint32(v>>4)|bits>>(i+16)<<4&16) - bias
	}
}

// Q4_0: d, 16 bytes of codes; d·(q − 8).
func decodeQ40(code []int16, step, offset []float64, b []byte) {
	step[0], offset[0] = half(b), none
	nibbles(code, b[2:18], 8)
}

// Q4_1: d, m, 16 bytes of codes; d·q + m.
func decodeQ41(code []int16, step, offset []float64, b []byte) {
	step[0], offset[0] = half(b), half(b[2:])
	nibbles(code, b[4:20], 0)
}

// Q5_0: d, 32 fifth bits, 16 bytes of codes; d·(q − 16).
func decodeQ50(code []int16, step, offset []float64, b []byte) {
	step[0], offset[0] = half(b), none
	fives(code, binary.LittleEndian.Uint32(b[2:]), b[6:22], 16)
}

// Q5_1: d, m, 32 fifth bits, 16 bytes of codes; d·q + m.
func decodeQ51(code []int16, step, offset []float64, b []byte) {
	step[0], offset[0] = half(b), half(b[2:])
	fives(code, binary.LittleEndian.Uint32(b[4:]), b[8:24], 0)
}

// Q8_0: d, 32 signed bytes; d·q.
func decodeQ80(code []int16, step, offset []float64, b []byte) {
	step[0], offset[0] = half(b), none
	to, q := (*[32]int16)(code), (*[32]byte)(b[2:34])
	for i, v := range q {
		to[i] = int16(int8(v))
	}
}

// scalesK unpacks eight 6-bit scales and eight 6-bit minima from 12 bytes: groups 0 to 3 have the lower bits of bytes 0 to 3 and 4 to 7,
// groups 4 to 7 the nibbles of bytes 8 to 11 with the upper two bits of the other bytes.
func scalesK(step, offset []float64, b []byte) {
	d, least, s := half(b), half(b[2:]), b[4:16]
	for j := range 4 {
		step[j] = d * float64(s[j]&63)
		offset[j] = -(least * float64(s[j+4]&63))
		step[j+4] = d * float64(s[j+8]&15|s[j]>>6<<4)
		offset[j+4] = -(least * float64(s[j+8]>>4|s[j+4]>>6<<4))
	}
}

// Q4_K: d, dmin, 12 bytes of scales and minima, 128 bytes of codes, 64 elements in 32 bytes; d·sc·q − dmin·m for eight groups of 32.
func decodeQ4K(code []int16, step, offset []float64, b []byte) {
	scalesK(step, offset, b)
	for j := range 4 {
		q, low, high := (*[32]byte)(b[16+32*j:]), (*[32]int16)(code[64*j:]), (*[32]int16)(code[64*j+32:])
		for i, v := range q {
			low[i], high[i] = int16(v&15), int16(v>>4)
		}
	}
}

// Q5_K: as Q4_K, with 32 bytes of fifth bits before the codes: bit g of byte i is that of element i of group g.
func decodeQ5K(code []int16, step, offset []float64, b []byte) {
	scalesK(step, offset, b)
	fifth := (*[32]byte)(b[16:48])
	for j := range 4 {
		q, low, high := (*[32]byte)(b[48+32*j:]), (*[32]int16)(code[64*j:]), (*[32]int16)(code[64*j+32:])
		for i, v := range q {
			h := fifth[i] >> (2 * j)
			low[i], high[i] = int16(v&15|h&1<<4), int16(v>>4|h&2<<3)
		}
	}
}

// Q6_K: 128 bytes of lower four bits, 64 of upper two, 16 signed scales, d; d·sc·(q − 32) for 16 groups of 16. Of 128 elements, element
// i and i + 64 share byte i of the lower bits, and the four from i mod 32 on, 32 apart, a byte of the upper ones.
func decodeQ6K(code []int16, step, offset []float64, b []byte) {
	d := half(b[208:])
	for j := range 16 {
		step[j], offset[j] = d*float64(int8(b[192+j])), none
	}
	for n := range 2 {
		low, high, to := (*[64]byte)(b[64*n:]), (*[32]byte)(b[128+32*n:]), (*[128]int16)(code[128*n:])
		for i, h := range high {
			to[i] = int16(low[i]&15|h&3<<4) - 32
			to[i+32] = int16(low[i+32]&15|h>>2&3<<4) - 32
			to[i+64] = int16(low[i]>>4|h>>4&3<<4) - 32
			to[i+96] = int16(low[i+32]>>4|h>>6<<4) - 32
		}
	}
}
