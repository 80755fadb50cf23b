package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Matrices that are changed in plain loops are named by their key; their neighbours are not.
func TestWeightsMadeInLoopsAreNamed(t *testing.T) {
	product := func(rows, cols int) operation {
		o := operation{"layers.0.self_attn.o_proj", op.Linear{}, "btc", []int{1, 8, rows}, []program.Value{{Shape: []int{1, 8, cols}, Data: wave(8*cols, 1)}}, nil, nil}
		for r := range rows {
			o.matrix = append(o.matrix, wave(cols, 31*r+2))
		}
		return o
	}
	// with is the product with a matrix whose number at i, j is another one.
	with := func(o operation, number func(i, j int) float64) func(in [][]float64, y []float64) {
		rows, cols := len(o.matrix), len(o.matrix[0])
		return func(in [][]float64, y []float64) {
			for i := range y {
				y[i] = 0
				for j := range cols {
					y[i] += in[0][i/rows*cols+j] * number(i%rows, j)
				}
			}
		}
	}
	wide, tall, half := product(16, 64), product(16, 24), product(16, 24)
	swapped := func(x float64) float64 { // the bytes of a float16
		bits := uint16(0)
		if x < 0 {
			bits = 0x8000
		}
		x = math.Abs(x)
		e := math.Floor(math.Log2(x))
		bits |= uint16(math.RoundToEven(x*math.Exp2(10-e))) - 0x400 + uint16(e+15)<<10
		bits = bits<<8 | bits>>8
		y := float64(bits&0x3ff) * math.Exp2(-24)
		if exponent := bits >> 10 & 0x1f; exponent > 0 {
			y = (1 + float64(bits&0x3ff)/0x400) * math.Exp2(float64(exponent)-15)
		}
		if bits&0x8000 != 0 {
			return -y
		}
		return y
	}
	for _, row := range half.matrix {
		for j, x := range row {
			if y := swapped(x); math.Abs(y) >= 0x1p15 { // it may not be finite
				row[j] = 0.5
			}
		}
	}
	rounded := func(o operation, top float64) func(i, j int) float64 {
		codes := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}
		return func(i, j int) float64 {
			largest, best := 0.0, 0.0
			for _, x := range o.matrix[i][j/32*32:][:32] {
				largest = max(largest, math.Abs(x))
			}
			scale, x := math.Exp2(math.Floor(math.Log2(largest))-top), o.matrix[i][j]
			for _, code := range codes {
				if math.Abs(math.Abs(x)/scale-code) < math.Abs(math.Abs(x)/scale-best) {
					best = code
				}
			}
			return math.Copysign(best*scale, x)
		}
	}
	// saturated are codes with an offset that are cut off at the largest signed code.
	saturated := func(o operation, most float64) func(i, j int) float64 {
		return func(i, j int) float64 {
			step := f32(largest(grid{o.matrix[i]}) / 127)
			return f32((min(math.RoundToEven(f32(o.matrix[i][j]/step))+128, most) - 128) * step)
		}
	}
	// in is the number at a place in the memory of a matrix whose rows are some numbers apart.
	in := func(o operation, at, apart int) float64 {
		if at/apart >= len(o.matrix) || at%apart >= len(o.matrix[0]) {
			return 0
		}
		return o.matrix[at/apart][at%apart]
	}
	for _, c := range []rowPlant{
		{"weight.rows-read-apart(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight,n=32,m=24)", tall, with(tall, func(i, j int) float64 { return in(tall, i*32+j, 24) }), with(tall, func(i, j int) float64 { return in(tall, i*32+j+i/8, 24) })},
		{"weight.rows-read-apart(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight,n=24,m=32)", tall, with(tall, func(i, j int) float64 { return in(tall, i*24+j, 32) }), with(tall, func(i, j int) float64 { return in(tall, i*24+j+i/8, 32) })},
		{"weight.columns-read-later(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight,n=12,k=12)", tall, with(tall, func(i, j int) float64 { return in(tall, i*24+j+j/12*12, 24) }), with(tall, func(i, j int) float64 { return in(tall, i*24+j+j/12*(12+i/8), 24) })},
		{"weight.codes-saturated(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight,coding=int8:0)", tall, with(tall, saturated(tall, 127)), with(tall, saturated(tall, 120))},
		{"weight.reshaped(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight)", tall, with(tall, func(i, j int) float64 { at := i*24 + j; return tall.matrix[at%16][at/16] }), with(tall, func(i, j int) float64 { at := i*24 + j; return tall.matrix[(at+1)%16][at/16] })},
		{"weight.bytes-swapped(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight,dtype=float16)", half, with(half, func(i, j int) float64 { return swapped(half.matrix[i][j]) }), with(half, func(i, j int) float64 { return swapped(half.matrix[i][j]) / 3 })},
		{"weight.rounded-mxfp4(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight,coding=e2m1:32)", wide, with(wide, rounded(wide, 2)), with(wide, rounded(wide, 1.5))},
	} {
		c.look(t)
	}
}

// Rows of a matrix with a bias that stand in another order are named by the matrix.
func TestRowsOfWeightsMadeInLoopsAreNamed(t *testing.T) {
	for _, c := range []struct {
		key           string
		is, neighbour func(i int) int
	}{
		{"weight.rows-many-others(place=layers.*.self_attn.q_proj.weight,of=weight:layers.*.self_attn.q_proj.weight,n=21,runs=0=3;1=8;2=13;3=18;4=23;5=4;6=9;7=14;8=19;9=0;10=5;11=10;12=15;13=20;14=1;15=6;16=11;17=16;18=21;19=2;20=7;21=12;22=17;23=22)", func(i int) int { return (5*i + 3) % 24 }, func(i int) int { return (i + 3) % 24 }},
	} {
		find := func(is func(i int) int) diagnose.Mistake {
			m := weighted(t)
			e := rightEntry(t, m, query)
			w := gridOf(e.Weights[0])
			wrong := make(grid, len(w))
			for i := range w {
				wrong[i] = w[is(i)]
			}
			return found(t, m, e, linear(e.Call.In[0].Data, wrong, gridOf(e.Weights[1])[0]))
		}
		if m := find(c.is); m.Key() != c.key {
			t.Errorf("%q: %s <nil>, want %s", m.String(), m.Key(), c.key)
		}
		if m := find(c.neighbour); strings.HasPrefix(c.key, string(m.Kind)+"(") {
			t.Errorf("the neighbour of %s is %q", c.key, m.String())
		}
	}
}
