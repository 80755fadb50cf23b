package quant

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
)

// rows are codes in the order of the elements, each row in whole groups: the storage of MLX, compressed-tensors and bitsandbytes. The
// companion tensors have one number a group.
type rows struct {
	codes   container.Tensor                                          // integers of 8 or 32 bits; codes fill them from the lowest bits on
	bits    int                                                       // of a code: 4 or 8
	lo      int                                                       // the lowest code
	group   int                                                       // elements
	scales  container.Tensor                                          // the steps, times by
	one     bool                                                      // scales and zeros have one number, which is that of all groups
	by      float64                                                   // 1, or what scales are divided by
	offsets *container.Tensor                                         // or nil
	zeros   *container.Tensor                                         // codes that stand for zero, or nil
	top     float64                                                   // the code that the usual writer gives the largest magnitude
	scale   func(s *rows, least, most float32) (step, offset float64) // of the usual writer
	early   Rounding
}

func (s *rows) read(c *Codes, r *Reader, from int64, n int) error {
	c.resize(n, s.group)
	c.Lo, c.Hi, c.Early = s.lo, s.lo+1<<s.bits-1, s.early
	r.raw = grown(r.raw, n*s.bits/8)
	if err := fill(&s.codes, r.raw, from*int64(s.bits)/8); err != nil {
		return err
	}
	s.unpack(c.Code, r.raw)
	at := from / int64(s.group)
	if err := s.shared(r, c.Step, &s.scales, at); err != nil {
		return err
	}
	for i := range c.Step {
		c.Step[i] /= s.by
		c.Offset[i] = none
	}
	switch {
	case s.offsets != nil:
		return r.numbers(c.Offset, s.offsets, at)
	case s.zeros != nil:
		if err := s.shared(r, c.Offset, s.zeros, at); err != nil {
			return err
		}
		for i, zero := range c.Offset {
			c.Offset[i] = -float64(zero * c.Step[i])
		}
	}
	return nil
}

// shared reads a number for each group, starting at number from, or the single number of all groups.
func (s *rows) shared(r *Reader, dst []float64, t *container.Tensor, from int64) error {
	if !s.one {
		return r.numbers(dst, t, from)
	}
	if err := r.numbers(dst[:1], t, 0); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = dst[0]
	}
	return nil
}

// unpack writes the codes of raw bytes.
func (s *rows) unpack(code []int16, raw []byte) {
	lo := int16(s.lo)
	switch {
	case s.bits == 4:
		code = code[:2*len(raw)]
		for i, b := range raw {
			code[2*i], code[2*i+1] = int16(b&15)+lo, int16(b>>4)+lo
		}
	case s.codes.DType == hooks.I8:
		code = code[:len(raw)]
		for i, b := range raw {
			code[i] = int16(int8(b))
		}
	default:
		code = code[:len(raw)]
		for i, b := range raw {
			code[i] = int16(b) + lo
		}
	}
}

// numbers reads len(dst) numbers of t from number from on.
func (r *Reader) numbers(dst []float64, t *container.Tensor, from int64) error {
	size := t.DType.Size()
	r.more = grown(r.more, len(dst)*size)
	if err := fill(t, r.more, from*int64(size)); err != nil {
		return err
	}
	return floats.Decode(dst, t.DType, r.more)
}

func (s *rows) step(least, most float32) (float64, bool) {
	step, _ := s.scale(s, least, most)
	return step, true
}

func (s *rows) usual(c *Codes, x []float32) bool {
	c.resize(len(x), s.group)
	c.Lo, c.Hi, c.Early = s.lo, s.lo+1<<s.bits-1, s.early
	for g := range c.Step {
		at := g * s.group
		c.Step[g], c.Offset[g] = s.write(c.Code[at:at+s.group], x[at:at+s.group])
	}
	return true
}

// rounded is v as it is stored in the dtype of the scales.
func (s *rows) rounded(v float32) float64 { return floats.Round(s.scales.DType, float64(v)) }

// write gives a group the codes of the usual writer.
func (s *rows) write(code []int16, x []float32) (step, offset float64) {
	least, most := x[0], x[0]
	for _, v := range x {
		least, most = min(least, v), max(most, v)
	}
	step, offset = s.scale(s, least, most)
	by, from := step, offset
	if s.offsets != nil { // MLX chooses the codes before it rounds the two
		by, from = affine(s.bits, least, most)
	}
	lo, hi := float64(s.lo), float64(s.lo+1<<s.bits-1)
	for i, v := range x {
		code[i] = 0
		switch {
		case by == 0:
		case s.offsets != nil:
			code[i] = int16(min(max(math.RoundToEven(float64((v-float32(from))/float32(by))), lo), hi))
		default:
			code[i] = int16(min(max(math.RoundToEven(float64(v)/by)-math.RoundToEven(from/by), lo), hi))
		}
	}
	return step, offset
}

// affine is mx.quantize: the step is the range over the largest code, with the sign and the size that make the end of the larger magnitude
// a whole number of steps from zero.
func affine(bits int, least, most float32) (step, offset float64) {
	bins := float32(int(1)<<bits - 1)
	scale, edge := -max((most-least)/bins, 1e-7), most
	if abs(least) > abs(most) {
		scale, edge = -scale, least
	}
	if q := float32(math.RoundToEven(float64(edge / scale))); q != 0 {
		return float64(edge / q), float64(edge)
	}
	return float64(scale), 0
}

// affineScale is what MLX stores of that.
func affineScale(s *rows, least, most float32) (step, offset float64) {
	step, offset = affine(s.bits, least, most)
	return s.rounded(float32(step)), s.rounded(float32(offset))
}

// symmetric gives the largest magnitude of a group the code top: 127, or, in compressed-tensors, half the number of steps, 127.5 or 7.5.
func symmetric(s *rows, least, most float32) (step, offset float64) {
	return s.rounded(float32(float64(max(abs(least), abs(most)))/s.top*s.by)) / s.by, none
}

// ranging gives the range of a group, zero included, all codes, the lowest to its least value.
func ranging(s *rows, least, most float32) (step, offset float64) {
	least, most = min(least, 0), max(most, 0)
	lo, hi := float64(s.lo), float64(s.lo+1<<s.bits-1)
	if step = s.rounded((most - least) / float32(hi-lo)); step == 0 {
		return 0, none
	}
	zero := min(max(math.RoundToEven(lo-float64(least)/step), lo), hi)
	return step, -float64(zero * step)
}
