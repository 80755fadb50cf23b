// Package quant reads weights that are stored as codes: small integers, where each group shares a step and an offset. It knows the
// blocks of ggml, the affine groups of MLX, and the integers with separate scales of transformers' checkpoints.
//
// A value is step·code + offset. Every step and offset is exact in float64, and so is a product of a step and a code, so that a value
// is rounded once, to float32. Where the original computes in float32, as ggml does, this gives its bits (blocks.go has the proof).
//
// Nothing is read before it is asked for, and never more than a piece of some MiB at a time.
package quant

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// Codes are consecutive elements of a tensor in row-major order. Element i has the value Step[i/Group]·Code[i] + Offset[i/Group].
type Codes struct {
	Group  int // elements that share a step and an offset
	Lo, Hi int // the codes that the format has
	Code   []int16
	Step   []float64 // may be negative, zero or, in a damaged file, NaN
	Offset []float64 // −0 where the format has none: adding it changes no number, not even a zero's sign
	Super  int       // groups whose steps are multiples of one number; 0: each has its own
	Early  Rounding  // how steps and offsets were rounded after the codes were chosen; zero where they were rounded before
}

// Rounding bounds the change by storing a number: Relative times its magnitude, or Least if that is more.
type Rounding struct{ Relative, Least float64 }

// The roundings of the dtypes in which steps and offsets are stored.
var (
	toF16  = Rounding{0x1p-11, 0x1p-25}
	toBF16 = Rounding{0x1p-8, 0x1p-134}
	toF32  = Rounding{0x1p-24, 0x1p-150}
)

var roundings = map[hooks.DType]Rounding{hooks.F16: toF16, hooks.BF16: toBF16, hooks.F32: toF32}

// of is the bound for one number.
func (r Rounding) of(v float64) float64 { return max(math.Abs(v)*r.Relative, r.Least) }

// none is the offset of a format without one.
var none = math.Copysign(0, -1)

// resize makes room for n elements, and keeps nothing of what was there.
func (c *Codes) resize(n, group int) {
	c.Group, c.Super = group, 0
	c.Code = grown(c.Code, n)
	c.Step = grown(c.Step, (n+group-1)/group)
	c.Offset = grown(c.Offset, (n+group-1)/group)
}

func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// each calls fill for the elements from first on that belong in dst, group by group.
func (c *Codes) each(dst []float32, first int, fill func(c *Codes, g int, codes []int16, dst []float32)) {
	for len(dst) > 0 {
		g := first / c.Group
		n := min(len(dst), (g+1)*c.Group-first)
		fill(c, g, c.Code[first:first+n], dst[:n])
		dst, first = dst[n:], first+n
	}
}

// values dequantises codes of one group.
func values(c *Codes, g int, codes []int16, dst []float32) {
	step, offset := c.Step[g], c.Offset[g]
	for len(codes) >= 8 && len(dst) >= 8 { // bounds are checked once for all of them
		q, to := (*[8]int16)(codes), (*[8]float32)(dst)
		to[0] = float32(float64(step*float64(q[0])) + offset)
		to[1] = float32(float64(step*float64(q[1])) + offset)
		to[2] = float32(float64(step*float64(q[2])) + offset)
		to[3] = float32(float64(step*float64(q[3])) + offset)
		to[4] = float32(float64(step*float64(q[4])) + offset)
		to[5] = float32(float64(step*float64(q[5])) + offset)
		to[6] = float32(float64(step*float64(q[6])) + offset)
		to[7] = float32(float64(step*float64(q[7])) + offset)
		codes, dst = codes[8:], dst[8:]
	}
	for i, code := range codes {
		dst[i] = float32(float64(step*float64(code)) + offset)
	}
}

// Scheme is a way of storing weights.
type Scheme struct {
	Name string // for people: "Q4_K", "MLX affine, 4 bits, groups of 64"
	// Moves: the usual writers move the error of a code to other codes, or weigh it by activations. A code that is not the nearest is no
	// mistake there.
	Moves bool
	// Mixed: some writers of the format do that, and others take the nearest codes; nothing in a file says which.
	Mixed bool
	// Shared: one step is that of all elements of a tensor.
	Shared bool
	// Weighted: the steps were chosen with an importance matrix.
	Weighted bool
}

// Tensor is one tensor that is stored as codes.
type Tensor struct {
	Name   string
	Shape  []int // torch's: outputs, inputs
	Scheme Scheme
	Unit   int // reads begin and end at multiples of so many elements

	source source
	group  int
	grain  int // reads of planes are widened to multiples of it
}

// source reads codes. A source is shared by readers, which bring the memory.
type source interface {
	// read fills c with the n elements from number from on.
	read(c *Codes, r *Reader, from int64, n int) error
	// usual is the usual writer's result for x; false for a format without a usual writer.
	usual(c *Codes, x []float32) bool
	// step is the usual writer's step for a group with these ends; false where it does not follow from them.
	step(least, most float32) (float64, bool)
}

// Elements is their number.
func (t *Tensor) Elements() int64 {
	n, _ := hooks.Elements(t.Shape)
	return int64(n)
}

// Usual fills c with what the usual writer of the format makes of the values x: ggml's reference quantisers, mx.quantize, the largest
// magnitude of a group over the largest code. len(x) is a multiple of Unit. It is false where no writer is usual: for formats that move
// errors or have an importance matrix, and where one step is that of all elements.
func (t *Tensor) Usual(c *Codes, x []float32) bool {
	return !t.Scheme.Moves && !t.Scheme.Shared && !t.Scheme.Weighted && t.source.usual(c, x)
}

// UsualStep is the magnitude of the step that the usual writer gives a group of values from least to most; false where it searches for it,
// or where none is usual.
func (t *Tensor) UsualStep(least, most float64) (float64, bool) {
	if t.Scheme.Moves || t.Scheme.Shared || t.Scheme.Weighted {
		return 0, false
	}
	step, ok := t.source.step(float32(least), float32(most))
	return math.Abs(step), ok
}

// Reader reads a tensor, and keeps memory for reuse. It is for one goroutine.
type Reader struct {
	tensor          *Tensor
	raw             []byte
	more            []byte
	values, scratch []float64
}

// Reader returns a reader of t.
func (t *Tensor) Reader() *Reader { return &Reader{tensor: t} }

// Codes fills c with the n elements from number from on; both are multiples of the tensor's Unit. The memory of c is used again.
func (r *Reader) Codes(c *Codes, from int64, n int) error {
	if err := r.within(from, n); err != nil || n == 0 {
		c.resize(0, 1)
		return err
	}
	return r.tensor.source.read(c, r, from, n)
}

// within reports a range that is not of whole units of the tensor.
func (r *Reader) within(from int64, n int) error {
	unit, all := int64(r.tensor.Unit), r.tensor.Elements()
	if from < 0 || n < 0 || from > all || int64(n) > all-from || from%unit != 0 || int64(n)%unit != 0 {
		return fmt.Errorf("elements %d to %d of %d, in units of %d", from, from+int64(n), all, unit)
	}
	return nil
}

// fill reads len(p) bytes at off.
func fill(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file has become shorter since it was opened: %w", io.ErrUnexpectedEOF)
	}
	return err
}
