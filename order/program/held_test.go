package program_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// With what an engine holds a product has the values that it has without; every element that is not the rounded value, or not finite, and
// every element of the sample has its bound; and no other's bound is above its ceiling.
func TestHeldBounds(t *testing.T) {
	const n, rows = 1000, 1100
	for _, tokens := range []int{1, 9} {
		for _, special := range []float64{0, math.Inf(1), math.NaN()} {
			t.Run(fmt.Sprintf("%d tokens, %v", tokens, special), func(t *testing.T) {
				x := numbers(tokens*n, 7, bf16)
				x[3] = special
				weight := numbers(rows*n, 8, bf16)
				weight[5*n+3] = special
				copy(weight[9*n:10*n], make([]float64, n)) // a row of zeros
				call := program.Call{
					Arith: bounded(brain), In: []program.Value{tensor(x, 1, tokens, n)},
					W: []program.Rows{matrix{rows, n, weight}}, Shape: []int{1, tokens, rows},
				}
				full := eval(t, op.Linear{}, call)
				held := program.Held{DType: hooks.BF16}
				for i, v := range full.Data {
					y := floats.Round(hooks.BF16, v)
					if column := i % rows; column%97 == 0 || column > 512 && column < 530 { // a few of a block, and all
						y = floats.Round(hooks.BF16, y*1.01)
					}
					held.Data = append(held.Data, y)
				}
				call.Held = &held
				got := eval(t, op.Linear{}, call)
				if got.Columns != rows {
					t.Fatalf("%d columns, want %d", got.Columns, rows)
				}
				sampled, ceilings := 0, 0
				for i, v := range full.Data {
					same := math.Float64bits(got.Bound[i]) == math.Float64bits(full.Bound[i])
					has := got.Sampled(i) || v-v != 0 || held.Data[i] != floats.Round(hooks.BF16, v)
					if got.Sampled(i) {
						sampled++
					}
					if !same {
						ceilings++
					}
					switch {
					case math.Float64bits(got.Data[i]) != math.Float64bits(v):
						t.Fatalf("element %d is %x, want %x", i, got.Data[i], v)
					case has && !same:
						t.Fatalf("element %d has the bound %x, want %x", i, got.Bound[i], full.Bound[i])
					case !(got.Bound[i] >= full.Bound[i]):
						t.Fatalf("element %d has the ceiling %x, below its bound %x", i, got.Bound[i], full.Bound[i])
					}
				}
				if part := len(full.Data) / sampled; part < 7 || part > 9 || special == 0 && ceilings < len(full.Data)/2 {
					t.Errorf("%d of %d elements are in the sample, %d have a ceiling", sampled, len(full.Data), ceilings)
				}
			})
		}
	}
}

// Every element has its bound where that is asked for, and where nothing would be gained: of a small weight, of float64, of inputs with
// bounds, of a sum with a bias, in another arithmetic.
func TestHeldBoundsOfAll(t *testing.T) {
	const n, rows = 1024, 1024
	x, weight := numbers(n, 7, bf16), numbers(rows*n, 8, bf16)
	in := tensor(x, 1, 1, n)
	wide := in
	wide.Bound = mapped(x, func(v float64) float64 { return v * v * 0x1p-20 })
	w, bias := matrix{rows, n, weight}, matrix{1, rows, weight[:rows]}
	rigorous, hull := bounded(brain), bounded(brain)
	rigorous.Rigorous, hull.Hull = true, true
	for name, c := range map[string]struct {
		o     op.Op
		arith program.Arith
		in    program.Value
		w     []program.Rows
		of    hooks.DType
	}{
		"rigorous":  {op.Linear{}, rigorous, in, []program.Rows{w}, hooks.BF16},
		"hull":      {op.Linear{}, hull, in, []program.Rows{w}, hooks.BF16},
		"float64":   {op.Linear{}, bounded(brain), in, []program.Rows{w}, hooks.F64},
		"bounds":    {op.Linear{}, bounded(brain), wide, []program.Rows{w}, hooks.BF16},
		"bias":      {op.Linear{Bias: true}, bounded(brain), in, []program.Rows{w, bias}, hooks.BF16},
		"small":     {op.Linear{}, bounded(brain), in, []program.Rows{matrix{rows - 1, n, weight[:(rows-1)*n]}}, hooks.BF16},
		"no bounds": {op.Linear{}, brain, in, []program.Rows{w}, hooks.BF16},
		"choices":   {op.Linear{}, bounded(brain), in, []program.Rows{w}, hooks.BF16},
	} {
		count, _ := c.w[0].Size()
		call := program.Call{Arith: c.arith, In: []program.Value{c.in}, W: c.w, Shape: []int{1, 1, count}}
		if name == "choices" {
			p, err := program.Of(c.o, op.Form, 0, call.Shape, [][]int{{1, 1, n}}, [][2]int{{rows, n}})
			if err != nil {
				t.Fatal(err)
			}
			call.Choices = p.Own()
		}
		full := eval(t, c.o, call)
		call.Held = &program.Held{Data: full.Data, DType: c.of}
		got := eval(t, c.o, call)
		if got.Columns != 0 {
			t.Errorf("%s: it is sampled", name)
		}
		for i := range full.Bound {
			if math.Float64bits(got.Bound[i]) != math.Float64bits(full.Bound[i]) {
				t.Fatalf("%s: element %d has the bound %x, want %x", name, i, got.Bound[i], full.Bound[i])
			}
		}
	}
}

// In float32 an engine has few elements to the bit. Those that are within a floor have a ceiling, and all others their bounds, so that the same elements are
// within their bounds as where all bounds are computed. With Alone, those within a floor have the floor as their bound.
func TestHeldBoundsInFloat32(t *testing.T) {
	const n, rows, tokens = 1000, 1100, 9
	arith := bounded(brain)
	arith.DType = hooks.F32
	call := program.Call{
		Arith: arith, In: []program.Value{tensor(numbers(tokens*n, 7, bf16), 1, tokens, n)},
		W: []program.Rows{matrix{rows, n, numbers(rows*n, 8, bf16)}}, Shape: []int{1, tokens, rows},
	}
	full := eval(t, op.Linear{}, call)
	held := program.Held{DType: hooks.F32}
	for i, v := range full.Data { // up to twice the bound away, and some numbers that float32 has not
		y := v + full.Bound[i]*float64(i%41-20)/10
		if i%83 > 0 {
			y = floats.Round(hooks.F32, y)
		}
		held.Data = append(held.Data, y)
	}
	within := func(v, e, y float64) bool { return math.Abs(y-v) <= e }
	for _, held.Alone = range []bool{false, true} {
		call.Held = &held
		got := eval(t, op.Linear{}, call)
		ceilings, floors, outside := 0, 0, 0
		for i, v := range full.Data {
			y, bound, want := held.Data[i], got.Bound[i], full.Bound[i]
			if !within(v, want, y) {
				outside++
			}
			switch {
			case got.Data[i] != v:
				t.Fatalf("element %d is %x, want %x", i, got.Data[i], v)
			case within(v, bound, y) != within(v, want, y):
				t.Fatalf("element %d is within %x of %x: %v; within the bound %x: %v", i, bound, y, within(v, bound, y), want, within(v, want, y))
			case bound == want:
			case y != floats.Round(hooks.F32, y), !within(v, want, y):
				t.Fatalf("element %d has %x in place of its bound %x", i, bound, want)
			case bound > want && (!held.Alone || y == v && math.IsInf(bound, 1)):
				ceilings++
			case bound < want && held.Alone:
				floors++
			default:
				t.Fatalf("element %d has %x in place of its bound %x", i, bound, want)
			}
		}
		if all := len(full.Data); outside < all/4 || !held.Alone && ceilings < all/50 || held.Alone && (floors < all/50 || ceilings == 0) {
			t.Errorf("of %d elements %d are outside, %d have a ceiling and %d a floor", all, outside, ceilings, floors)
		}
	}
}

// The bounds of some rows are those that they have among all, however many elements of the others have their bounds one by one.
func TestHeldBoundsOfRows(t *testing.T) {
	const n, rows, tokens = 1000, 1100, 12
	x, weight := numbers(tokens*n, 7, bf16), numbers(rows*n, 8, bf16)
	call := program.Call{
		Arith: bounded(brain), In: []program.Value{tensor(x, 1, tokens, n)},
		W: []program.Rows{matrix{rows, n, weight}}, Shape: []int{1, tokens, rows},
	}
	held := program.Held{DType: hooks.BF16}
	for i, v := range eval(t, op.Linear{}, call).Data {
		y := floats.Round(hooks.BF16, v)
		if i%rows == 100 { // one of each token
			y = floats.Round(hooks.BF16, y*1.01)
		}
		held.Data = append(held.Data, y)
	}
	call.Held = &held
	whole := eval(t, op.Linear{}, call)
	for token := range tokens {
		call.In = []program.Value{tensor(x[token*n:][:n], 1, 1, n)}
		call.Held, call.Shape = &program.Held{Data: held.Data[token*rows:][:rows], DType: held.DType}, []int{1, 1, rows}
		got := eval(t, op.Linear{}, call)
		for i, v := range got.Data {
			at := token*rows + i
			if math.Float64bits(v) != math.Float64bits(whole.Data[at]) || math.Float64bits(got.Bound[i]) != math.Float64bits(whole.Bound[at]) {
				t.Fatalf("element %d of token %d is %x ± %x by itself, %x ± %x among all", i, token, v, got.Bound[i], whole.Data[at], whole.Bound[at])
			}
		}
	}
}

// Where all that is asked is whether each element is what the engine has, a large product has the bounds of those that are not the rounded
// value, or not finite, and nothing is said of the others; an operation that is no product has its values alone. Values are the same.
func TestHeldAlone(t *testing.T) {
	const n, rows, tokens = 1000, 1100, 3
	x, weight := numbers(tokens*n, 7, bf16), numbers(rows*n, 8, bf16)
	x[3] = math.Inf(1)
	weights := []program.Rows{matrix{rows, n, weight}}
	call := program.Call{Arith: bounded(brain), In: []program.Value{tensor(x, 1, tokens, n)}, W: weights, Shape: []int{1, tokens, rows}}
	full := eval(t, op.Linear{}, call)
	held := &program.Held{DType: hooks.BF16, Alone: true}
	for i, v := range full.Data {
		if held.Data = append(held.Data, floats.Round(hooks.BF16, v)); i%rows%97 == 0 {
			held.Data[i] *= 1.01
		}
	}
	call.Held = held
	got, others := eval(t, op.Linear{}, call), 0
	for i, v := range full.Data {
		want := math.Inf(1)
		if v-v != 0 || held.Data[i] != floats.Round(hooks.BF16, v) {
			want = full.Bound[i]
		} else {
			others++
		}
		if math.Float64bits(got.Data[i]) != math.Float64bits(v) || got.Bound[i] != want {
			t.Fatalf("element %d is %x within %x, want %x within %x", i, got.Data[i], got.Bound[i], v, want)
		}
	}
	if others < len(full.Data)/2 {
		t.Errorf("%d of %d elements are the rounded value", others, len(full.Data))
	}
	norm := program.Call{Arith: call.Arith, In: []program.Value{tensor(x[n:], 1, tokens-1, n)}, W: []program.Rows{matrix{1, n, weight[:n]}}, Shape: []int{1, tokens - 1, n}}
	o := op.RMSNorm{Eps: 1e-6, Gain: op.Plain}
	whole := eval(t, o, norm)
	norm.Held = &program.Held{Data: whole.Data, DType: hooks.BF16, Alone: true}
	bare := eval(t, o, norm)
	for i, v := range whole.Data {
		if bare.Bound != nil || math.Abs(bare.Data[i]-v) > 1e-12*math.Abs(v) {
			t.Fatalf("element %d of a norm is %v, want %v and no bounds", i, bare.Data[i], v)
		}
	}
}
