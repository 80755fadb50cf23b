package container

import "github.com/tracediff/tracediff/hooks"

// Printed says of a tensor that it is read from a text, which has some of its elements, rounded to decimals. The others are
// [Elided].
type Printed struct {
	Half     float64 // a printed element stands for all numbers that are at most so far from it
	Elements int64   // that are printed
	All      int64   // that the tensor has
	Sum      float64 // of all elements, as the program added them up in float32, rounded to six decimals; only with HasSum
	HasSum   bool
}

// Elided are the bytes that stand for an element of a text that is not printed: a NaN that no program makes. It is nil for a dtype that
// has no such.
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
