// Package kernel has the arithmetic of the built-in model: products with weights that stay in their file's format, and
// the operations between them with a rounding wherever the model's dtype rounds.
//
// Activations are float32 slices whose values are exactly representable in the model's dtype. Sums run in float64 in a
// fixed order per output element and are rounded to float32 once, so results do not depend on the number of cores.
package kernel

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// Matrix is a weight in its file's format, read as the model's dtype: values are rounded to the dtype, as on loading a checkpoint with a
// dtype.
type Matrix struct {
	Rows, Cols int
	data       []byte
	format     hooks.DType // of data: F32, BF16 or F16
	arith      Arith
	file       io.ReaderAt // has data from begin on; nil for none
	begin      int64
}

// In has products read the weight from a file, in which it begins at so many bytes. A view of a mapped file costs a page fault for every
// few pages, and its small pages keep rows from being fetched ahead; reading a piece into a buffer that stays in the second-level cache
// costs less than that.
func (m *Matrix) In(file io.ReaderAt, at int64) { m.file, m.begin = file, at }

// NewMatrix makes a matrix of a float32, bfloat16 or float16 tensor; a vector becomes one row. Data is used in place.
func NewMatrix(t hooks.Tensor, a Arith) (Matrix, error) {
	if err := t.Check(); err != nil {
		return Matrix{}, err
	}
	m := Matrix{Rows: 1, data: t.Data, format: t.DType, arith: a}
	switch len(t.Shape) {
	case 1:
		m.Cols = t.Shape[0]
	case 2:
		m.Rows, m.Cols = t.Shape[0], t.Shape[1]
	default:
		return Matrix{}, fmt.Errorf("weight of shape %v is neither a vector nor a matrix", t.Shape)
	}
	switch t.DType {
	case hooks.F32, hooks.BF16, hooks.F16:
		return m, nil
	}
	return Matrix{}, fmt.Errorf("weight is %s; float32, bfloat16 and float16 are read", t.DType)
}

// Row writes row i to dst, which has Cols elements.
func (m *Matrix) Row(dst []float32, i int) {
	size := m.format.Size()
	row := m.data[i*m.Cols*size : (i+1)*m.Cols*size]
	switch m.format {
	case hooks.BF16:
		for k := range dst {
			dst[k] = floats.FromBF16(binary.LittleEndian.Uint16(row[2*k:]))
		}
	case hooks.F16:
		for k := range dst {
			dst[k] = floats.FromF16(binary.LittleEndian.Uint16(row[2*k:]))
		}
	default:
		for k := range dst {
			dst[k] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))
		}
	}
	if m.format != m.arith.DType {
		m.arith.Round(dst)
	}
}

// widen writes columns [from, from+len(dst)) of row i of data, some rows of the weight, to dst.
func (m *Matrix) widen(dst []float64, data []byte, i, from int) {
	size := m.format.Size()
	at := (i*m.Cols + from) * size
	row := data[at : at+len(dst)*size]
	switch {
	case m.format == hooks.BF16 && m.arith.DType != hooks.F16:
		widenBF16(dst, row)
	case m.format == hooks.F32 && m.arith.DType == hooks.F32:
		for k := range dst {
			dst[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:])))
		}
	default:
		for k := range dst {
			dst[k] = float64(m.arith.R(m.at(row, k)))
		}
	}
}

// widenBF16 widens four elements a load: products with one token spend most of their time here.
func widenBF16(dst []float64, row []byte) {
	for len(dst) >= 4 && len(row) >= 8 {
		u := binary.LittleEndian.Uint64(row)
		dst[0] = float64(math.Float32frombits(uint32(u) << 16))
		dst[1] = float64(math.Float32frombits(uint32(u) & 0xffff0000))
		dst[2] = float64(math.Float32frombits(uint32(u>>16) & 0xffff0000))
		dst[3] = float64(math.Float32frombits(uint32(u>>32) & 0xffff0000))
		dst, row = dst[4:], row[8:]
	}
	for k := range dst {
		dst[k] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*k:])) << 16))
	}
}

func (m *Matrix) at(row []byte, k int) float32 {
	switch m.format {
	case hooks.BF16:
		return floats.FromBF16(binary.LittleEndian.Uint16(row[2*k:]))
	case hooks.F16:
		return floats.FromF16(binary.LittleEndian.Uint16(row[2*k:]))
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(row[4*k:]))
}
