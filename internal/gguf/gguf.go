// Package gguf reads the header of a GGUF file, versions 2 and 3, and trusts none of it.
//
// A file is the magic "GGUF", a version, the number of tensors and of metadata fields, the fields, a name, shape, type and offset for each
// tensor, and the data, at multiples of an alignment. Numbers are little-endian; a file of a big-endian machine is refused by name.
//
// Only the header is read. Elements of metadata arrays are skipped until they are asked for, and data stay in the file: a tensor of blocks of codes is dequantised as
// it is read. Shapes are given as torch has them, which is the reverse of the file's. Nothing is permuted: what a converter did to the
// rows of a weight is for a map to undo.
package gguf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/quant"
)

// signature is how a file begins.
const signature = "GGUF"

// Limits that no model's file comes near. A header is read in full, so the limits bound the memory for it.
const (
	maxTensors = 1 << 17 // the largest mixtures of experts have some 10,000
	maxFields  = 1 << 16 // of metadata; files have some 40
	maxText    = 1 << 20 // bytes of a string that is kept or skipped: chat templates take some 10,000
	maxKey     = 1 << 12 // bytes of a name
	maxKept    = 8 << 20 // bytes of all names and strings that are kept
	maxAxes    = 4       // ggml's
	maxHeader  = 1 << 30 // bytes that are walked through: vocabularies take some 10 MB
	maxSkipped = 1 << 21 // strings in arrays: vocabularies have some 300,000, their merges as many
	maxAligned = 1 << 20 // files have 32
)

// File is what the header of a file says.
type File struct {
	Alignment int64
	Fields    []Field
	Tensors   []Tensor

	data     io.ReaderAt
	size     int64
	elements map[string]int64 // where those of each array begin
}

// Field is one of the metadata.
type Field struct {
	Key   string
	Value any // uint64, int64, float64, bool, string or Array
}

// Array is a metadata field of several values, which stay in the file.
type Array struct {
	Kind string // of its elements: "string", "uint32"
	Len  uint64
}

// Tensor is one tensor. Its data are Size bytes of the file from Offset on.
type Tensor struct {
	Name         string
	Type         Type
	Shape        []int // torch's: the last axis has the elements that lie side by side
	Offset, Size int64

	data     io.ReaderAt
	weighted bool // its codes were chosen with an importance matrix
}

// Is reports whether a file begins as GGUF does.
func Is(start []byte) bool {
	return len(start) >= len(signature) && string(start[:len(signature)]) == signature
}

// Read reads the header of a file of size bytes.
func Read(r io.ReaderAt, size int64) (*File, error) {
	s := &scanner{r: r, size: size, kept: maxKept, seen: map[string]bool{}}
	f := &File{Alignment: 32, data: r, size: size, elements: map[string]int64{}}
	err := s.header(f)
	if err == nil {
		err = f.place(r, s.at, size)
	}
	if err != nil {
		return nil, err
	}
	if f.weighted() {
		for i := range f.Tensors {
			f.Tensors[i].weighted = true
		}
	}
	return f, nil
}

// weighted reports that the metadata name an importance matrix, as llama-quantize leaves them.
func (f *File) weighted() bool {
	return slices.ContainsFunc(f.Fields, func(field Field) bool { return strings.HasPrefix(field.Key, "quantize.imatrix.") })
}

// header reads the numbers, the fields and the descriptions of the tensors.
func (s *scanner) header(f *File) error {
	var magic [4]byte
	if err := s.bytes(magic[:]); err != nil || string(magic[:]) != signature {
		return errors.New("not a GGUF file: it does not begin with \"GGUF\"")
	}
	version, err := s.uint32()
	if err != nil {
		return err
	}
	switch {
	case version&0xffff == 0 && version != 0:
		return hint.Add(errors.New("a big-endian GGUF file, which is not read"), "gguf-py/gguf/scripts/gguf_convert_endian.py of llama.cpp converts it")
	case version != 2 && version != 3:
		return hint.Add(fmt.Errorf("GGUF version %d; versions 2 and 3 are read", version), "convert the model again with a current llama.cpp")
	}
	tensors, err := s.count("tensors", maxTensors)
	if err != nil {
		return err
	}
	fields, err := s.count("metadata fields", maxFields)
	if err != nil {
		return err
	}
	for i := range fields {
		field, err := s.field()
		if err != nil {
			return fmt.Errorf("metadata field %d: %w", i, err)
		}
		f.Fields = append(f.Fields, field)
		if _, ok := field.Value.(Array); ok {
			f.elements[field.Key] = s.elements
		}
	}
	if err := f.align(); err != nil {
		return err
	}
	clear(s.seen)
	for i := range tensors {
		t, err := s.tensor()
		if err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		f.Tensors = append(f.Tensors, t)
	}
	return nil
}

// align reads the alignment from the metadata.
func (f *File) align() error {
	field, ok := f.Field("general.alignment")
	if !ok {
		return nil
	}
	if text, ok := field.Value.(string); ok { // of any length, with anything in it
		return fmt.Errorf("general.alignment is %s, not a number", plain.Quote(text))
	}
	n, ok := field.Value.(uint64)
	if !ok || n == 0 || n&(n-1) != 0 || n > maxAligned {
		return fmt.Errorf("general.alignment is %v, not a power of two up to %d", field.Value, maxAligned)
	}
	f.Alignment = int64(n)
	return nil
}

// tensor reads the description of one tensor. Offset counts from the start of the data until [File.place] has placed the tensor.
func (s *scanner) tensor() (Tensor, error) {
	t := Tensor{data: s.r}
	var err error
	if t.Name, err = s.name(); err != nil {
		return t, err
	}
	axes, err := s.uint32()
	if err != nil {
		return t, err
	}
	if axes > maxAxes {
		return t, fmt.Errorf("%s: %d axes; ggml has %d", plain.Quote(t.Name), axes, maxAxes)
	}
	t.Shape = make([]int, axes)
	for i := range t.Shape {
		n, err := s.uint64()
		if err != nil {
			return t, err
		}
		if n > math.MaxInt64 || uint64(int(n)) != n {
			return t, fmt.Errorf("%s: a size of %d", plain.Quote(t.Name), n)
		}
		t.Shape[len(t.Shape)-1-i] = int(n)
	}
	kind, err := s.uint32()
	if err != nil {
		return t, err
	}
	offset, err := s.uint64()
	if err != nil {
		return t, err
	}
	if t.Type = Type(kind); offset > math.MaxInt64 {
		return t, fmt.Errorf("%s: an offset of %d", plain.Quote(t.Name), offset)
	}
	t.Offset = int64(offset)
	if t.Size, err = bytesOf(t.Type, t.Shape); err != nil {
		return t, fmt.Errorf("%s: %w", plain.Quote(t.Name), err)
	}
	return t, nil
}

// bytesOf is what a tensor takes in the file: whole blocks in each row.
func bytesOf(t Type, shape []int) (int64, error) {
	l, ok := layouts[t]
	if !ok {
		return 0, fmt.Errorf("%s, which ggml does not have", t)
	}
	row := 1
	if len(shape) > 0 {
		row = shape[len(shape)-1]
	}
	if int64(row)%l.elements != 0 {
		return 0, fmt.Errorf("rows of %d elements of %s, whose blocks have %d", row, t, l.elements)
	}
	n, ok := hooks.Elements(shape)
	if !ok {
		return 0, fmt.Errorf("shape %v has more elements than a file can hold", shape)
	}
	return int64(n) / l.elements * l.bytes, nil
}

// place checks that the data of all tensors lie in the file, aligned and without overlap, and sets each tensor's offset.
func (f *File) place(r io.ReaderAt, end, size int64) error {
	if len(f.Tensors) == 0 {
		return nil
	}
	start := (end + f.Alignment - 1) / f.Alignment * f.Alignment
	by := make([]*Tensor, len(f.Tensors))
	for i := range f.Tensors {
		t := &f.Tensors[i]
		by[i] = t
		switch room := size - start; {
		case t.Offset%f.Alignment != 0:
			return fmt.Errorf("tensor %s: its data begin at byte %d, not a multiple of the alignment %d", plain.Quote(t.Name), t.Offset, f.Alignment)
		case room < 0 || t.Offset > room || t.Size > room-t.Offset:
			return hint.Add(fmt.Errorf("tensor %s: %d bytes from byte %d of the data, which have %d", plain.Quote(t.Name), t.Size, t.Offset, max(0, room)),
				"the file may be cut short: compare its size with that of the original")
		}
		t.Offset += start
	}
	slices.SortStableFunc(by, func(a, b *Tensor) int { return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size)) })
	for i := 1; i < len(by); i++ {
		if a, b := by[i-1], by[i]; a.Offset+a.Size > b.Offset {
			return fmt.Errorf("tensor %s: its data overlap those of %s by %d bytes", plain.Quote(b.Name), plain.Quote(a.Name), a.Offset+a.Size-b.Offset)
		}
	}
	return nil
}

// Field finds a metadata field.
func (f *File) Field(key string) (Field, bool) {
	for _, field := range f.Fields {
		if field.Key == key {
			return field, true
		}
	}
	return Field{}, false
}

// Text is a metadata string, such as "general.architecture", or "" if the field is missing or no string. The string may have control characters.
func (f *File) Text(key string) string {
	field, _ := f.Field(key)
	text, _ := field.Value.(string)
	return text
}

// Bool is a boolean metadata field; ok is false for a missing field.
func (f *File) Bool(key string) (is, ok bool) {
	field, _ := f.Field(key)
	is, ok = field.Value.(bool)
	return is, ok
}

// Number is a metadata field that is a number.
func (f *File) Number(key string) (float64, bool) {
	field, _ := f.Field(key)
	return number(field.Value)
}

// number is the value of a field as a number.
func number(value any) (n float64, ok bool) {
	switch v := value.(type) {
	case uint64:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Quantised is the tensor with its codes; false for plain numbers and for unknown formats.
func (t *Tensor) Quantised() (*quant.Tensor, bool) {
	l := layouts[t.Type]
	if l.block == 0 {
		return nil, false
	}
	q := l.block.Tensor(t.Name, t.Shape, t.data, t.Offset)
	if t.weighted && l.block != quant.Q8_0 { // whose quantiser does not use the matrix
		q.Scheme.Name, q.Scheme.Weighted = q.Scheme.Name+" with an importance matrix", true
		q.Scheme.Moves = l.block < quant.Q8_0 // the others choose the nearest codes for the steps that the matrix gives
	}
	return q, true
}

// Dense is the tensor as numbers: the file's numbers, or float32 if the tensor is dequantised on reading. A tensor in an unknown format has
// the format as its unknown dtype.
func (t *Tensor) Dense() container.Tensor {
	if q, ok := t.Quantised(); ok {
		return q.Dense()
	}
	d := container.Tensor{Name: t.Name, DType: layouts[t.Type].dtype, Shape: t.Shape, Data: t.data, Offset: t.Offset}
	if !d.DType.Valid() {
		d.Unknown = t.Type.String()
	}
	return d
}
