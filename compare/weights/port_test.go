package weights_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
)

// tensor is a tensor of a port in the making: plain numbers, and what they are stored as.
type tensor struct {
	shape  []int
	dtype  hooks.DType
	values []float64

	format          string // of codes
	step, low, high []float64
	slack           []float64
	group           int
	moves           bool

	add float64
}

// checkpoint is a port in the making.
type checkpoint map[string]*tensor

// open reads a fixture. Its numbers are taken as they are.
func open(t testing.TB, name string) (checkpoint, weights.Side) {
	t.Helper()
	f, err := dump.Open("../../fixtures/" + name + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	port, side := checkpoint{}, weights.Side{Path: name, Format: "safetensors"}
	for i := range f.Tensors {
		x := &f.Tensors[i]
		n, _ := hooks.Elements(x.Shape)
		raw, values := make([]byte, x.Size()), make([]float64, n)
		if _, err := x.ReadAt(raw, 0); err != nil {
			t.Fatal(err)
		}
		if err := floats.Decode(values, x.DType, raw); err != nil {
			t.Fatal(err)
		}
		port[x.Name] = &tensor{shape: slices.Clone(x.Shape), dtype: x.DType, values: values}
		side.Tensors = append(side.Tensors, &weights.Tensor{Name: x.Name, Shape: x.Shape, DType: x.DType, Data: bytes.NewReader(raw)})
	}
	return port, side
}

// side is the port as a checkpoint that is compared.
func (c checkpoint) side() weights.Side {
	s := weights.Side{Path: "port", Format: "test"}
	for _, name := range slices.Sorted(keys(c)) {
		x := c[name]
		t := &weights.Tensor{Name: name, Shape: x.shape, DType: x.dtype, Data: bytes.NewReader(encode(x.dtype, x.values)), Add: x.add}
		if x.step != nil {
			t.Coding = quant.Scheme{Name: x.format, Moves: x.moves}.Coding(&quant.Grid{
				Planes: quant.Planes{Step: bytes.NewReader(encode(hooks.F32, x.step)), Low: bytes.NewReader(encode(hooks.F32, x.low)), High: bytes.NewReader(encode(hooks.F32, x.high))},
				Group:  x.group,
			})
			if x.slack != nil {
				t.Coding.Data().Slack = bytes.NewReader(encode(hooks.F32, x.slack))
			}
		}
		s.Tensors = append(s.Tensors, t)
	}
	return s
}

func keys(c checkpoint) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range c {
			if !yield(k) {
				return
			}
		}
	}
}

// encode stores numbers that the dtype has.
func encode(d hooks.DType, values []float64) []byte {
	var b []byte
	for _, x := range values {
		switch d {
		case hooks.F64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		case hooks.F32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		case hooks.F16:
			b = binary.LittleEndian.AppendUint16(b, floats.F16(float32(x)))
		case hooks.BF16:
			b = binary.LittleEndian.AppendUint16(b, floats.BF16(float32(x)))
		default:
			panic("no such dtype in this test")
		}
	}
	return b
}

// cast stores a tensor in another dtype, to nearest even.
func (x *tensor) cast(d hooks.DType) {
	x.dtype = d
	for i, v := range x.values {
		x.values[i] = float64(float32(v))
		switch d {
		case hooks.F16:
			x.values[i] = float64(floats.FromF16(floats.F16(float32(v))))
		case hooks.BF16:
			x.values[i] = float64(floats.FromBF16(floats.BF16(float32(v))))
		}
	}
}

// rows and columns of a matrix.
func (x *tensor) size() (rows, columns int) { return x.shape[0], len(x.values) / x.shape[0] }

func (x *tensor) row(r int) []float64 {
	_, n := x.size()
	return x.values[r*n : (r+1)*n]
}

// reorder gives row i the one that from says.
func (x *tensor) reorder(from func(i int) int) {
	rows, n := x.size()
	var values []float64
	for i := range rows {
		values = append(values, x.values[from(i)*n:(from(i)+1)*n]...)
	}
	x.values = values
}

// reorderColumns does the same with columns.
func (x *tensor) reorderColumns(from func(i int) int) {
	rows, n := x.size()
	values := make([]float64, len(x.values))
	for r := range rows {
		for c := range n {
			values[r*n+c] = x.values[r*n+from(c)]
		}
	}
	x.values = values
}

// transpose turns rows into columns; the shape turns, too.
func (x *tensor) transpose() {
	rows, n := x.size()
	values := make([]float64, 0, len(x.values))
	for c := range n {
		for r := range rows {
			values = append(values, x.values[r*n+c])
		}
	}
	x.values, x.shape = values, []int{n, rows}
}

// each changes every number.
func (x *tensor) each(f func(float64) float64) {
	for i, v := range x.values {
		x.values[i] = f(v)
	}
}

// compare compares a port with the original.
func compare(t testing.TB, port checkpoint, original weights.Side) *weights.Result {
	t.Helper()
	r, err := weights.Compare(context.Background(), port.side(), original, weights.Options{Hidden: 16, HeadDim: 8})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// find is the row of a tensor.
func find(t testing.TB, r *weights.Result, name string) weights.Row {
	t.Helper()
	for _, row := range r.Tensors {
		if row.Name == name {
			return row
		}
	}
	t.Fatalf("no row for %s", name)
	return weights.Row{}
}
