package weights_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// TestTensorsLargerThanWhatIsReadAtOnce has tensors of several blocks, and what is wrong in the last of them.
func TestTensorsLargerThanWhatIsReadAtOnce(t *testing.T) {
	numbers := func(rows, columns int) []float64 {
		values := make([]float64, rows*columns)
		state := uint64(rows)
		for i := range values {
			state = state*6364136223846793005 + 1442695040888963407
			values[i] = float64(int64(state)>>47) / (1 << 10)
		}
		return values
	}
	tests := []struct {
		name          string
		rows, columns int
		plant         func(*tensor)
		class         weights.Class
		kind          weights.Kind
		row, column   int
	}{
		{"equal", 3, 70000, func(*tensor) {}, weights.Equal, "", -1, -1},
		{"the last element of wide rows", 3, 70000, func(x *tensor) { x.values[3*70000-1]++ }, weights.Different, weights.WrongBlock, 2, 69999},
		{"the last element of many rows", 3000, 50, func(x *tensor) { x.values[3000*50-1]++ }, weights.Different, weights.WrongBlock, 2999, 49},
		{"a vector's last element", 1, 140000, func(x *tensor) { x.shape = []int{140000}; x.values[139999]++ }, weights.Different, weights.WrongBlock, 0, 139999},
		{"transposed", 600, 600, func(x *tensor) { x.transpose() }, weights.Mistake, weights.Transposed, 0, 1},
		{"transposed, with another shape", 700, 1100, func(x *tensor) { x.transpose() }, weights.Mistake, weights.Transposed, -1, -1},
		{"transposed, and one element more", 600, 600, func(x *tensor) { x.transpose(); x.values[599*600+2]++ }, weights.Different, "", 0, 1},
		{"rows in another order", 3000, 50, func(x *tensor) { x.reorder(func(i int) int { return i/100*100 + i%2*50 + i%100/2 }) }, weights.Mistake, weights.Interleaved, 1, 0},
		{"rows in another order, and one element more", 3000, 50, func(x *tensor) {
			x.reorder(func(i int) int { return i/100*100 + i%2*50 + i%100/2 })
			x.values[2950*50+7]++
		}, weights.Different, "", 1, 0},
		{"the tail of one row shifted", 3, 70000, func(x *tensor) { copy(x.row(2), slices.Clone(x.row(2)[1:])) }, weights.Mistake, weights.Shifted, 2, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values := numbers(tt.rows, tt.columns)
			shape := []int{tt.rows, tt.columns}
			x := &tensor{shape: slices.Clone(shape), dtype: hooks.F32, values: slices.Clone(values)}
			tt.plant(x)
			if len(x.shape) == 1 {
				shape = x.shape
			}
			original := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: shape, DType: hooks.F32, Data: bytes.NewReader(encode(hooks.F32, values))}}}
			row := find(t, compare(t, checkpoint{"w": x}, original), "w")
			if row.Class != tt.class || row.Kind != tt.kind && (tt.kind != "" || tt.class == weights.Equal) {
				t.Errorf("%s %s: %s", row.Class, row.Kind, row.What)
			}
			switch {
			case row.At == nil && tt.row >= 0, row.At != nil && (row.At.Row != tt.row || row.At.Column != tt.column):
				t.Errorf("at %+v, want row %d, column %d", row.At, tt.row, tt.column)
			}
		})
	}
}

// counted counts the bytes that are read.
type counted struct {
	*bytes.Reader
	read int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	c.read += int64(len(p))
	return c.Reader.ReadAt(p, off)
}

// TestOneWrongElementAmongZerosIsReadAFewTimes: every shift, every other tensor and every rounding gives the zeros, and is asked of the
// wrong element first.
func TestOneWrongElementAmongZerosIsReadAFewTimes(t *testing.T) {
	const side, size, most = 512, 512 * 512 * 4, 10
	var local, original weights.Side
	var all []*counted
	for i := range 5 {
		for _, s := range []*weights.Side{&local, &original} {
			raw := make([]byte, size)
			if i == 4 && s == &local {
				copy(raw[size-side*4*12-100:], encode(hooks.F32, []float64{1}))
			}
			c := &counted{Reader: bytes.NewReader(raw)}
			all = append(all, c)
			s.Tensors = append(s.Tensors, &weights.Tensor{Name: fmt.Sprintf("w%d", i), Shape: []int{side, side}, DType: hooks.F32, Data: c})
		}
	}
	r, err := weights.Compare(context.Background(), local, original, weights.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if row := find(t, r, "w4"); row.Class != weights.Different || row.Unequal != 1 || row.At.Row != 499 || row.At.Column != 487 {
		t.Errorf("%s at %+v: %s", row.Class, row.At, row.What)
	}
	for i, c := range all {
		if c.read > most*size {
			t.Errorf("tensor %d of side %d is read %.1f times", i/2, i%2, float64(c.read)/size)
		}
	}
}

// TestFloat16IsToldByItsBits has a tensor of several blocks of bfloat16 that the port has as float16, with what has no place there, and one
// wrong number far on.
func TestFloat16IsToldByItsBits(t *testing.T) {
	const rows, columns = 700, 300
	for _, tt := range []struct {
		name  string
		plant func(original, port *tensor)
		class weights.Class
		kind  weights.Kind
		notes string
	}{
		{"all right", func(_, _ *tensor) {}, weights.Cast, "", ""},
		{"a zero of the other sign", func(o, p *tensor) { o.values[200000], p.values[200000] = 0, math.Copysign(0, -1) }, weights.Cast, "", ""},
		{"NaN for NaN", func(o, p *tensor) { o.values[200000], p.values[200000] = math.NaN(), math.NaN() }, weights.Cast, "", ""},
		{"a number that becomes zero", func(o, p *tensor) { o.values[200000], p.values[200000] = 1e-9, 0 }, weights.Cast, "", "1 number is too small for float16 and became zero"},
		{"a number that is rounded", func(o, p *tensor) { o.values[200000], p.values[200000] = 0x1.8p-24, 0x1p-23 }, weights.Cast, "", ""},
		{"a number that is rounded down", func(o, p *tensor) { o.values[200000], p.values[200000] = 0x1.8p-24, 0x1p-24 }, weights.Mistake, weights.Rounded, ""},
		{"a number beyond float16", func(o, p *tensor) { o.values[200000], p.values[200000] = 1e6, math.Inf(1) }, weights.Mistake, weights.Overflow, ""},
		{"zero for a number", func(_, p *tensor) { p.values[200000] = 0 }, weights.Mistake, weights.ZeroBlock, ""},
		{"NaN for a number", func(_, p *tensor) { p.values[200000] = math.NaN() }, weights.Mistake, weights.NotFinite, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			original, port := normal(rows, columns, 3), normal(rows, columns, 3)
			tt.plant(original, port)
			original.cast(hooks.BF16)
			wrong, squares := 0.0, 0.0
			for _, v := range original.values {
				if d := float64(floats.FromF16(floats.F16(float32(v)))) - v; d-d == 0 {
					wrong, squares = wrong+d*d, squares+v*v
				}
			}
			port.cast(hooks.F16)
			side := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: []int{rows, columns}, DType: hooks.BF16, Data: bytes.NewReader(encode(hooks.BF16, original.values))}}}
			row := find(t, compare(t, checkpoint{"w": port}, side), "w")
			if row.Class != tt.class || row.Kind != tt.kind || !strings.Contains(strings.Join(row.Notes, "\n"), tt.notes) {
				t.Errorf("%s %s: %s %q", row.Class, row.Kind, row.What, row.Notes)
			}
			if row.Class == weights.Cast && row.Relative != math.Sqrt(wrong/squares) {
				t.Errorf("relative distance %g, want %g", row.Relative, math.Sqrt(wrong/squares))
			}
			if row.At != nil && (row.At.Row != 200000/columns || row.At.Column != 200000%columns) {
				t.Errorf("at %+v", row.At)
			}
		})
	}
}
