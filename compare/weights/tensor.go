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

	Format string // of a tensor of codes, such as "Q8_0"; else empty
	Grid   *Grid  // of a tensor of codes; else nil

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

// Grid has, for each element of a tensor of codes, the numbers that its code could have stood for: Low, Low+Step, ... up to High. Each
// reader has float32 elements in the tensor's shape.
type Grid struct {
	Step, Low, High io.ReaderAt
	// Slack is how far a number may be from its code beside that: a writer chose the code before it rounded the scale. nil: not at all.
	Slack io.ReaderAt
	// Unit and Offset are those of each code, as a kernel may need them: nothing is compared by them. nil: not known.
	Unit, Offset io.ReaderAt

	Group  int  // so many elements of a row share a step, or a step of steps
	Apart  bool // the elements of a group may stand apart, in a row of Group elements: those of one step and one lowest number are one
	Shared bool // one step is that of all elements: a group need not fill its codes
	Moves  bool // the format moves errors from code to code (GPTQ, AWQ): no value alone is wrong
	Mixed  bool // some writers of the format move errors, and others take the nearest codes

	// Codes are those of the whole tensor of the file, from whose element First on the rows of this one lie: row i is the file's row
	// Row(i), of the whole tensor; Row may be nil where it is row i. nil where the elements do not lie in the file's rows.
	Codes *quant.Tensor
	First int64
	Row   func(i int) int
}

// element is the number of the first element of a row in Codes.
func (g *Grid) element(row, columns int) int64 {
	row += int(g.First / int64(columns))
	if g.Row != nil {
		row = g.Row(row)
	}
	return int64(row) * int64(columns)
}

// from is the grid from some element on.
func (g *Grid) from(element int64) *Grid {
	const size = 4
	part := *g
	part.First += element
	part.Step, part.Low, part.High = sectionOf(g.Step, element*size), sectionOf(g.Low, element*size), sectionOf(g.High, element*size)
	if g.Slack != nil {
		part.Slack = sectionOf(g.Slack, element*size)
	}
	if g.Unit != nil && g.Offset != nil {
		part.Unit, part.Offset = sectionOf(g.Unit, element*size), sectionOf(g.Offset, element*size)
	}
	return &part
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

// float32s is buffer.read for a plane of a grid.
func (b *buffer) float32s(dst []float64, data io.ReaderAt, from int) error {
	return b.read(dst, data, hooks.F32, from)
}

// squeezed is a shape without its axes of 1.
func squeezed(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n == 1 })
}
