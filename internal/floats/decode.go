package floats

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tracediff/tracediff/hooks"
)

// Decode reads len(dst) elements of dtype d, little-endian, from the start of src. Every float type fits a float64
// exactly; so do integers up to 2^53, larger ones are rounded. A boolean is the value of its byte. It returns an error
// for an unknown dtype and when src is too short, and then leaves dst as it was.
func Decode(dst []float64, d hooks.DType, src []byte) error {
	if !d.Valid() {
		return fmt.Errorf("decoding elements of unknown dtype %s", d)
	}
	if len(src)/d.Size() < len(dst) {
		return fmt.Errorf("decoding %d elements of %s from %d bytes", len(dst), d, len(src))
	}
	if d.Float() {
		decodeFloats(dst, d, src)
	} else {
		decodeIntegers(dst, d, src)
	}
	return nil
}

func decodeFloats(dst []float64, d hooks.DType, src []byte) {
	le := binary.LittleEndian
	switch d {
	case hooks.F64:
		for i := range dst {
			dst[i] = math.Float64frombits(le.Uint64(src[8*i:]))
		}
	case hooks.F32:
		decodeF32(dst, src)
	case hooks.F16:
		for i := range dst {
			dst[i] = float64(FromF16(le.Uint16(src[2*i:])))
		}
	case hooks.BF16:
		decodeBF16(dst, src)
	case hooks.F8E4M3:
		for i, b := range src[:len(dst)] {
			dst[i] = e4m3[b]
		}
	case hooks.F8E5M2:
		for i, b := range src[:len(dst)] {
			dst[i] = e5m2[b]
		}
	}
}

// decodeF32 takes four at a time, which is twice as fast: the bounds are checked once for all of them.
func decodeF32(dst []float64, src []byte) {
	n := firstF32(dst, src)
	dst, src = dst[n:], src[4*n:]
	for le := binary.LittleEndian; len(dst) >= 4 && len(src) >= 16; dst, src = dst[4:], src[16:] {
		dst[0] = float64(math.Float32frombits(le.Uint32(src)))
		dst[1] = float64(math.Float32frombits(le.Uint32(src[4:])))
		dst[2] = float64(math.Float32frombits(le.Uint32(src[8:])))
		dst[3] = float64(math.Float32frombits(le.Uint32(src[12:])))
	}
	for i := range dst {
		dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
	}
}

// decodeBF16 takes four numbers by one load: weights are read by the billion. A bfloat16 is the upper half of a float32.
func decodeBF16(dst []float64, src []byte) {
	n := firstBF16(dst, src)
	dst, src = dst[n:], src[2*n:]
	for len(dst) >= 4 && len(src) >= 8 {
		v := binary.LittleEndian.Uint64(src)
		dst[0] = float64(FromBF16(uint16(v)))
		dst[1] = float64(FromBF16(uint16(v >> 16)))
		dst[2] = float64(FromBF16(uint16(v >> 32)))
		dst[3] = float64(FromBF16(uint16(v >> 48)))
		dst, src = dst[4:], src[8:]
	}
	for i := range dst {
		dst[i] = float64(FromBF16(binary.LittleEndian.Uint16(src[2*i:])))
	}
}

// e4m3 and e5m2 have the value of each byte: looking one up is many times as fast as putting its bits together.
var e4m3, e5m2 = valuesOf(FromF8E4M3), valuesOf(FromF8E5M2)

func valuesOf(value func(uint8) float32) (values [256]float64) {
	for b := range values {
		values[b] = float64(value(uint8(b)))
	}
	return values
}

func decodeIntegers(dst []float64, d hooks.DType, src []byte) {
	le := binary.LittleEndian
	switch d {
	case hooks.I64:
		for i := range dst {
			dst[i] = float64(int64(le.Uint64(src[8*i:])))
		}
	case hooks.I32:
		for i := range dst {
			dst[i] = float64(int32(le.Uint32(src[4*i:])))
		}
	case hooks.I16:
		for i := range dst {
			dst[i] = float64(int16(le.Uint16(src[2*i:])))
		}
	case hooks.I8:
		for i := range dst {
			dst[i] = float64(int8(src[i]))
		}
	case hooks.U64:
		for i := range dst {
			dst[i] = float64(le.Uint64(src[8*i:]))
		}
	case hooks.U32:
		for i := range dst {
			dst[i] = float64(le.Uint32(src[4*i:]))
		}
	case hooks.U16:
		for i := range dst {
			dst[i] = float64(le.Uint16(src[2*i:]))
		}
	case hooks.U8, hooks.Bool:
		for i := range dst {
			dst[i] = float64(src[i])
		}
	}
}

// Append appends numbers as elements of dtype d, little-endian. A float is rounded to d, an integer cut off. It panics for an unknown dtype.
func Append(b []byte, d hooks.DType, values ...float64) []byte {
	le := binary.LittleEndian
	for _, v := range values {
		switch d {
		case hooks.F64:
			b = le.AppendUint64(b, math.Float64bits(v))
		case hooks.F32:
			b = le.AppendUint32(b, math.Float32bits(float32(v)))
		case hooks.F16:
			b = le.AppendUint16(b, F16(float32(v)))
		case hooks.BF16:
			b = le.AppendUint16(b, BF16(float32(v)))
		case hooks.F8E4M3:
			b = append(b, F8E4M3(float32(v)))
		case hooks.F8E5M2:
			b = append(b, F8E5M2(float32(v)))
		case hooks.I64:
			b = le.AppendUint64(b, uint64(int64(v)))
		case hooks.U64:
			b = le.AppendUint64(b, uint64(v))
		case hooks.I32, hooks.U32:
			b = le.AppendUint32(b, uint32(int64(v)))
		case hooks.I16, hooks.U16:
			b = le.AppendUint16(b, uint16(int64(v)))
		case hooks.I8, hooks.U8, hooks.Bool:
			b = append(b, byte(int64(v)))
		default:
			panic("floats: elements of unknown dtype " + d.String())
		}
	}
	return b
}
