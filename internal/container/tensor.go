// Package container holds what the readers of dump files have in common: named tensors, dense or strided, over bytes that stay in
// their file, and zip archives that are not trusted.
//
// No tensor is read when a file is opened. [Tensor.ReadAt] gives the elements in row-major order, little-endian, whatever
// their strides and their byte order in the file are, with a few MiB of memory at most.
package container

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// MaxRank is the number of axes beyond which no framework goes (numpy: 64, torch: 64).
const MaxRank = 64

// A view may repeat its storage, such as an expanded tensor: up to maxRepeated bytes, or maxRepeats times. A storage of four bytes can claim
// any size.
const (
	maxRepeated = 64 << 20
	maxRepeats  = 4096
)

// Tensor is one tensor of a file. Its elements lie in Data, the one with the indexes i at Offset + Σ iₙ·Strides[n] elements.
type Tensor struct {
	Name    string
	DType   hooks.DType
	Unknown string // the dtype's name where it is not one of ours: the tensor cannot be read then
	Shape   []int  // empty for a scalar
	Strides []int  // in elements; nil: row-major, without gaps

	Data   io.ReaderAt
	Offset int64 // bytes in Data before the first element
	Big    bool  // the bytes of an element are stored with the highest first

	Printed *Printed // set for a tensor from a text, with some elements only
}

// Check reports a tensor whose elements do not all lie within the storage bytes of Data.
func (t *Tensor) Check(storage int64) error {
	n, ok := hooks.Elements(t.Shape)
	switch {
	case len(t.Shape) > MaxRank:
		return fmt.Errorf("a shape of %d axes, more than %d", len(t.Shape), MaxRank)
	case !ok:
		return fmt.Errorf("shape %v has more elements than a file can hold", t.Shape)
	case t.Offset < 0:
		return fmt.Errorf("its data begin %d bytes before the storage", -t.Offset)
	case t.Strides != nil && len(t.Strides) != len(t.Shape):
		return fmt.Errorf("%d strides for %d axes", len(t.Strides), len(t.Shape))
	case t.Unknown != "" || n == 0:
		return nil
	}
	size := int64(t.DType.Size())
	if t.Strides == nil {
		if have := (storage - t.Offset) / size; storage < t.Offset || int64(n) > have {
			return fmt.Errorf("shape %v of %s takes %d bytes, but its data have %d", t.Shape, t.DType, int64(n)*size, max(0, storage-t.Offset))
		}
		return nil
	}
	room := (storage-t.Offset)/size - 1 // elements after the first
	if storage < t.Offset || room < 0 {
		return fmt.Errorf("its data begin at byte %d of a storage of %d", t.Offset, storage)
	}
	for i, stride := range t.Strides {
		if stride < 0 {
			return fmt.Errorf("strides %v: a negative one", t.Strides)
		}
		last := int64(t.Shape[i] - 1)
		if stride > 0 && last > room/int64(stride) {
			return fmt.Errorf("shape %v with strides %v reaches beyond its storage of %d bytes", t.Shape, t.Strides, storage)
		}
		room -= last * int64(stride)
	}
	if bytes := int64(n) * size; bytes > max(maxRepeated, maxRepeats*min(storage, 1<<40)) {
		return fmt.Errorf("shape %v with strides %v repeats a storage of %d bytes %d times", t.Shape, t.Strides, storage, bytes/max(storage, 1))
	}
	return nil
}

// Size is the number of bytes of the elements in row-major order.
func (t *Tensor) Size() int64 {
	n, _ := hooks.Elements(t.Shape)
	return int64(n) * int64(t.DType.Size())
}

// ReadAt reads bytes of the row-major, little-endian elements, as [io.ReaderAt] does. A file that has become shorter is an
// error that wraps [io.ErrUnexpectedEOF].
func (t *Tensor) ReadAt(p []byte, off int64) (int, error) {
	size, whole := int64(t.DType.Size()), t.Size()
	if off < 0 || off > whole || size == 0 {
		return 0, fmt.Errorf("offset %d of %d bytes", off, whole)
	}
	var end error
	if rest := whole - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	if len(p) == 0 {
		return 0, end
	}
	// Elements are gathered whole: where a caller cuts one, a copy has it.
	from, to := off/size, (off+int64(len(p))+size-1)/size
	into := p
	if off%size != 0 || int64(len(p))%size != 0 {
		into = make([]byte, (to-from)*size)
	}
	if err := t.gather(into, from, to-from); err != nil {
		return 0, err
	}
	if t.Big {
		for at := int64(0); at < int64(len(into)); at += size {
			slices.Reverse(into[at : at+size])
		}
	}
	if len(into) != len(p) {
		copy(p, into[off%size:])
	}
	return len(p), end
}

// readFull fills p from an offset of the storage.
func (t *Tensor) readFull(p []byte, off int64) error {
	n, err := t.Data.ReadAt(p, t.Offset+off)
	switch {
	case n == len(p):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return fmt.Errorf("the file has become shorter since it was opened: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// Indexes are those of an element of a tensor of this shape, by the number of the element.
func Indexes(number int64, shape []int) []int {
	at := make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		at[i] = int(number % int64(shape[i]))
		number /= int64(shape[i])
	}
	return at
}
