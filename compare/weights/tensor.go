package weights

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
)

// Tensor is one tensor of a checkpoint. Its elements are read when they are needed.
type Tensor struct {
	Name    string // by which the two sides are paired
	Key     string // what its file calls it, for people; empty: Name
	Shape   []int  // as torch has it: the last axis is the fastest
	DType   hooks.DType
	Unknown string      // a format that is not read, by its name; else empty
	Data    io.ReaderAt // the elements of DType, row-major, little-endian

	Format string        // of a tensor of codes, such as "Q8_0"; else empty
	Coding *quant.Coding // of a tensor of codes; else nil

	// Add is what the file has more than the original by its own rules, as 1 where it has 1+w for the weight w of a norm.
	Add float64
	// How says what was done to the file's tensor to have the original's layout, such as "axes a b -> b a"; empty for nothing.
	How string

	// Place is where the file has an element, where that is not the element of the same number; false where several make it. nil: it is there.
	Place func(element int) (Spot, bool)
	// Instead is the tensor in the layout that the port's format gives the original of some name, had it that name in the file; nil where that is the
	// layout it has. The same layout is the same tensor.
	Instead func(original string) *Tensor

	of    *Tensor // the tensor that this is a part of; nil for a whole one
	first int     // how many of its elements are before the part
}

// spot is where the file has an element.
func (t *Tensor) spot(element int) Spot {
	for ; t.of != nil; t = t.of {
		element += t.first
	}
	if t.Place != nil {
		if s, ok := t.Place(element); ok {
			return s
		}
	}
	_, columns := t.flat()
	return Spot{t.key(), element / columns, element % columns}
}

// key is what people know the tensor by.
func (t *Tensor) key() string {
	if t.Key != "" {
		return t.Key
	}
	return t.Name
}

// format is what its elements are stored as.
func (t *Tensor) format() string {
	switch {
	case t.Format != "":
		return t.Format
	case t.Unknown != "":
		return t.Unknown
	}
	return t.DType.String()
}

// elements is how many elements it has.
func (t *Tensor) elements() int {
	n, _ := hooks.Elements(t.Shape)
	return n
}

// flat is the shape as rows of the last axis. A vector is one row.
func (t *Tensor) flat() (rows, columns int) {
	if len(t.Shape) < 2 {
		return 1, t.elements()
	}
	columns = t.Shape[len(t.Shape)-1]
	if columns == 0 {
		return 0, 0
	}
	return t.elements() / columns, columns
}

// shaped is a tensor in another shape, of as many elements.
func shaped(t *Tensor, shape []int) *Tensor {
	turned := *t
	turned.Shape = shape
	return &turned
}

// matrices are the two last axes of a tensor of three axes or more.
func matrices(t *Tensor) []*Tensor {
	if len(t.Shape) < 2 {
		return nil
	}
	if len(t.Shape) == 2 {
		return []*Tensor{t}
	}
	shape := t.Shape[len(t.Shape)-2:]
	size := shape[0] * shape[1]
	var list []*Tensor
	for at := 0; at < t.elements(); at += size {
		part := *t
		part.Shape, part.Data, part.of, part.first = shape, sectionOf(t.Data, int64(at*t.DType.Size())), t, at
		part.Instead = nil
		if t.Coding != nil {
			part.Coding = t.Coding.From(int64(at), sectionOf)
		}
		list = append(list, &part)
	}
	return list
}

// check reports what keeps a tensor from being read.
func (t *Tensor) check() error {
	n, ok := hooks.Elements(t.Shape)
	switch {
	case t.Unknown != "":
		return fmt.Errorf("%s is not read", t.Unknown)
	case !ok:
		return fmt.Errorf("shape %v has more elements than a file can hold", t.Shape)
	case !t.DType.Valid():
		return errors.New("its dtype is not known")
	case n > 0 && t.Data == nil:
		return errors.New("it has no data")
	}
	return nil
}

// buffer reads elements of one dtype as float64, with memory that is used again.
type buffer struct{ raw []byte }

func (b *buffer) read(dst []float64, data io.ReaderAt, d hooks.DType, from int) error {
	size := d.Size()
	if n := len(dst) * size; cap(b.raw) < n {
		b.raw = make([]byte, n)
	}
	raw := b.raw[:len(dst)*size]
	if err := fill(raw, data, int64(from)*int64(size)); err != nil {
		return err
	}
	return floats.Decode(dst, d, raw)
}

// fill reads all of raw.
func fill(raw []byte, data io.ReaderAt, at int64) error {
	n, err := data.ReadAt(raw, at)
	switch {
	case n == len(raw):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// squeezed is a shape without its axes of 1.
func squeezed(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}
