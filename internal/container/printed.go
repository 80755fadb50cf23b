package container

import "github.com/tracediff/tracediff/hooks"

// Printed marks a tensor that was read from a text with some of its elements, rounded to decimals. The other elements are [Elided].
type Printed struct {
	Half     float64 // half a unit of the last decimal: the numbers that print alike
	Elements int64   // that are printed
	All      int64   // that the tensor has
	Sum      float64 // the program's float32 sum of all elements, rounded to six decimals; only with HasSum
	HasSum   bool
}

// Elided returns the bytes for an element that the text does not print: a NaN that no program makes. It is nil for a dtype without NaN.
func Elided(d hooks.DType) []byte {
	switch d {
	case hooks.F32:
		return []byte{0xd5, 0x1d, 0xc5, 0x7f}
	case hooks.F16:
		return []byte{0xd5, 0x7e}
	case hooks.BF16:
		return []byte{0xd5, 0x7f}
	}
	return nil
}
