package hooks

import "fmt"

// DType is the element type of a [Tensor]. Values are little-endian in memory and in files.
type DType uint8

// The element types that tracediff reads and writes. The zero value is not a type.
const (
	F64    DType = iota + 1
	F32          // IEEE 754 binary32
	F16          // IEEE 754 binary16
	BF16         // the upper half of a binary32
	F8E4M3       // 4 exponent bits, no infinities, NaN is 0x7f and 0xff
	F8E5M2       // 5 exponent bits, IEEE-like infinities and NaN
	I64
	I32
	I16
	I8
	U64
	U32
	U16
	U8
	Bool // one byte, 0 or 1
)

// dtypes holds, per type: its size in bytes, its safetensors name and its torch name.
var dtypes = [...]struct {
	size        int
	name, torch string
}{
	F64: {8, "F64", "float64"}, F32: {4, "F32", "float32"}, F16: {2, "F16", "float16"}, BF16: {2, "BF16", "bfloat16"},
	F8E4M3: {1, "F8_E4M3", "float8_e4m3fn"}, F8E5M2: {1, "F8_E5M2", "float8_e5m2"},
	I64: {8, "I64", "int64"}, I32: {4, "I32", "int32"}, I16: {2, "I16", "int16"}, I8: {1, "I8", "int8"},
	U64: {8, "U64", "uint64"}, U32: {4, "U32", "uint32"}, U16: {2, "U16", "uint16"}, U8: {1, "U8", "uint8"},
	Bool: {1, "BOOL", "bool"},
}

// Valid reports whether d is one of the constants of this package.
func (d DType) Valid() bool { return d > 0 && int(d) < len(dtypes) }

// Size returns the bytes of one element; 0 for an invalid type.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// String returns the name as torch spells it, such as "bfloat16".
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].torch
}

// Safetensors returns the name as safetensors files spell it, such as "BF16".
func (d DType) Safetensors() string {
	if !d.Valid() {
		return d.String()
	}
	return dtypes[d].name
}

// Float reports whether d is a floating-point type.
func (d DType) Float() bool { return d >= F64 && d <= F8E5M2 }

// Integer reports whether d is a type of whole numbers, of any width, signed or unsigned. A boolean does not count.
func (d DType) Integer() bool { return d >= I64 && d <= U8 }

// ParseDType reads either spelling, torch's or safetensors'. The match is exact.
func ParseDType(s string) (DType, error) {
	for d := F64; d.Valid(); d++ {
		if s == dtypes[d].name || s == dtypes[d].torch {
			return d, nil
		}
	}
	return 0, fmt.Errorf("unknown dtype %q", s)
}

// MarshalText writes the name of the type, as [DType.String] has it. The zero value is an error.
func (d DType) MarshalText() ([]byte, error) {
	if !d.Valid() {
		return nil, fmt.Errorf("%s is not an element type", d)
	}
	return []byte(d.String()), nil
}

// UnmarshalText reads the name of a type, see [ParseDType].
func (d *DType) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDType(string(text))
	return err
}
