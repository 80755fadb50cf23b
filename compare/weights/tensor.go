package weights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
)

// Tensor is one tensor of a checkpoint. Its elements are read on demand.
type Tensor struct {
	Name    string // by which the two sides are paired
	Key     string // what its file calls it, for people; empty: Name
	Shape   []int  // as torch has it: the last axis is the fastest
	DType   hooks.DType
	Unknown string      // a format that is not read, by its name; else empty
	Data    io.ReaderAt // the elements of DType, row-major, little-endian

	Coding quant.Coding // of a tensor of codes; else nil

	// Add is what the file has more than the original by its own rules, as 1 where it has 1+w for the weight w of a norm.
	Add float64
	// How says what was done to the file's tensor to have the original's layout, such as "axes a b -> b a"; empty for nothing.
	How string

	// Place is where the file has an element, where that is not the element of the same number; false where several make it. nil: it is there.
	Place func(element int) (Spot, bool)
	// Instead is the tensor in the layout that the port's format gives the original of some name, had it that name in the file; nil where that is the
	// layout it has. The same layout is the same tensor.
	Instead func(original string) *Tensor

	part partOf
}

// partOf is where a part of a tensor is.
type partOf struct {
	of    *Tensor // nil for a whole tensor
	first int     // how many of its elements are before the part
}

// spot is where the file has an element.
func (t *Tensor) spot(element int) Spot {
	for ; t.part.of != nil; t = t.part.of {
		element += t.part.first
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
func (t *Tensor) key() string { return cmp.Or(t.Key, t.Name) }

// Codes is the format of its codes, such as "Q8_0"; empty for numbers.
func (t *Tensor) Codes() string {
	if t.Coding == nil {
		return ""
	}
	return t.Coding.Data().Name
}

// format is what its elements are stored as.
func (t *Tensor) format() string { return cmp.Or(t.Codes(), t.Unknown, t.DType.String()) }

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
		list = append(list, t.section(at, shape))
	}
	return list
}

// section is a part of a tensor, from some element on.
func (t *Tensor) section(from int, shape []int) *Tensor {
	part := *t
	part.Shape, part.Data, part.part, part.Instead = shape, sectionOf(t.Data, int64(from)*int64(t.DType.Size())), partOf{t, from}, nil
	if t.Coding != nil {
		part.Coding = quant.From(t.Coding, int64(from), sectionOf)
	}
	return &part
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

// buffer reads elements of one dtype as float64 into reused memory.
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

// view is a tensor of the original in the places that a relation gives its elements: row r is row rows[r] of the tensor, column c is
// column columns[c], and before both it may be transposed. nil orders change nothing.
type view struct {
	t          *Tensor
	rows       []int32
	columns    []int32
	transposed bool
}

// size is the view as rows and columns.
func (v view) size() (rows, columns int) {
	rows, columns = v.t.flat()
	if v.transposed {
		return columns, rows
	}
	return rows, columns
}

// moves reports whether elements stand elsewhere than in a tensor.
func (v view) moves(t *Tensor) bool {
	return v.t != t || v.rows != nil || v.columns != nil || v.transposed
}

// Sizes of what is read at once, in elements.
const (
	chunk = 1 << 16
	tile  = 512 // of a transposed tensor, in both directions
)

// part is a rectangle of a tensor: rows r0 to r1 and columns c0 to c1, the ends not included.
type part struct{ r0, r1, c0, c1 int }

func (p part) columns() int { return p.c1 - p.c0 }
func (p part) size() int    { return (p.r1 - p.r0) * (p.c1 - p.c0) }

// parts yields the rectangles in which a view is read: whole rows if they fit, tiles of a transposed view.
func (v view) parts(yield func(part) bool) {
	rows, columns := v.size()
	high, wide := max(1, chunk/max(columns, 1)), columns
	switch {
	case v.transposed:
		high, wide = tile, tile
	case columns > chunk && v.columns == nil:
		wide = chunk
	}
	for r := 0; r < rows; r += high {
		for c := 0; c < columns; c += wide {
			if !yield(part{r, min(r+high, rows), c, min(c+wide, columns)}) {
				return
			}
		}
	}
}

// reader reads views and tensors into reused memory. A reader belongs to one goroutine.
type reader struct {
	buf  buffer
	bits []byte
	row  []float64 // of a view whose elements change places

	local, original []float64
	bounds          quant.Bounds
}

func room[T any](p *[]T, n int) []T {
	if cap(*p) < n {
		*p = make([]T, n)
	}
	return (*p)[:n]
}

// plane fills dst with a rectangle of a tensor's elements.
func (r *reader) plane(dst []float64, t *Tensor, p part, read func([]float64, int) error) error {
	_, columns := t.flat()
	if p.columns() == columns {
		return read(dst, p.r0*columns)
	}
	for row := p.r0; row < p.r1; row++ {
		if err := read(dst[(row-p.r0)*p.columns():][:p.columns()], row*columns+p.c0); err != nil {
			return err
		}
	}
	return nil
}

// values fills dst with a rectangle of a tensor.
func (r *reader) values(dst []float64, t *Tensor, p part) error {
	return r.plane(dst, t, p, func(dst []float64, from int) error { return r.buf.read(dst, t.Data, t.DType, from) })
}

// view fills dst with a rectangle of a view.
func (r *reader) view(dst []float64, v view, p part) error {
	switch {
	case v.transposed:
		turned := part{p.c0, p.c1, p.r0, p.r1}
		from := room(&r.row, p.size())
		if err := r.values(from, v.t, turned); err != nil {
			return err
		}
		n, m := p.r1-p.r0, p.columns()
		for i := range n {
			for j := range m {
				dst[i*m+j] = from[j*n+i]
			}
		}
		return nil
	case v.columns != nil:
		_, columns := v.t.flat()
		for row := p.r0; row < p.r1; row++ {
			whole := room(&r.row, columns)
			if err := r.values(whole, v.t, part{row, row + 1, 0, columns}); err != nil {
				return err
			}
			into := dst[(row-p.r0)*p.columns():]
			for c := p.c0; c < p.c1; c++ {
				into[c-p.c0] = whole[v.columns[c]]
			}
		}
		return nil
	case v.rows == nil:
		return r.values(dst, v.t, p)
	}
	for row := p.r0; row < p.r1; { // consecutive rows are read at once
		n := 1
		for row+n < p.r1 && v.rows[row+n] == v.rows[row]+int32(n) {
			n++
		}
		at := int(v.rows[row])
		if err := r.values(dst[(row-p.r0)*p.columns():][:n*p.columns()], v.t, part{at, at + n, p.c0, p.c1}); err != nil {
			return err
		}
		row += n
	}
	return nil
}

// block is a rectangle of both sides. Where the port has codes, the bounds are what its elements could be.
type block struct {
	part
	local, original []float64
	coding          quant.Coding
	quant.Bounds
}

// clone is a copy that stays when the next block is read.
func (b *block) clone() block {
	return block{b.part, slices.Clone(b.local), slices.Clone(b.original), b.coding, b.Bounds.Clone()}
}

// group is how many elements of a row share what the coding has; 1 for numbers.
func (b *block) group() int { return groupOf(b.coding) }

// moves reports codes of a format that moves errors.
func (b *block) moves() bool { return b.coding != nil && b.coding.Moves() }

func groupOf(c quant.Coding) int {
	if c == nil {
		return 1
	}
	return max(1, c.Data().Group)
}

// read reads a rectangle of a port's tensor, and of what it may be.
func (r *reader) read(ctx context.Context, local *Tensor, v view, p part) (block, error) {
	b := block{part: p, coding: local.Coding, local: room(&r.local, p.size()), original: room(&r.original, p.size())}
	if err := ctx.Err(); err != nil {
		return b, err
	}
	if err := r.values(b.local, local, p); err != nil {
		return b, inTensor(local, err)
	}
	if err := r.view(b.original, v, p); err != nil {
		return b, inTensor(v.t, err)
	}
	if c := local.Coding; c != nil {
		err := r.bounds.Read(c.Data(), p.size(), func(dst []float64, plane io.ReaderAt) error {
			return r.plane(dst, local, p, func(dst []float64, from int) error { return r.buf.read(dst, plane, hooks.F32, from) })
		})
		if b.Bounds = r.bounds; err != nil {
			return b, inTensor(local, err)
		}
	}
	return b, nil
}
