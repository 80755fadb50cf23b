package hooks

import (
	"fmt"
	"math/bits"
)

// Tensor is a dense array as it lies in memory: row-major, contiguous, little-endian.
// It owns nothing: Data may be a view of a live buffer.
type Tensor struct {
	DType DType
	Shape []int  // empty for a scalar
	Data  []byte // product(Shape) elements of DType.Size() bytes each
}

// Elements returns the product of shape, 1 for a scalar. It reports false for a negative size, and when the product of
// the sizes other than 0 would not fit an int64 at 8 bytes an element.
func Elements(shape []int) (int, bool) {
	n := uint64(1)
	zero := false
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
		if d == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<60-1 {
			return 0, false
		}
		n = lo
	}
	if zero {
		return 0, true
	}
	return int(n), true
}

// Check returns an error unless the type is known and Data holds exactly the elements of Shape.
func (t Tensor) Check() error {
	if !t.DType.Valid() {
		return fmt.Errorf("tensor has no dtype")
	}
	n, ok := Elements(t.Shape)
	if !ok {
		return fmt.Errorf("shape %v is not possible", t.Shape)
	}
	if want := n * t.DType.Size(); len(t.Data) != want {
		return fmt.Errorf("%s tensor of shape %v needs %d bytes, has %d", t.DType, t.Shape, want, len(t.Data))
	}
	return nil
}
