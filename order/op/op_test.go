package op_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	_ "github.com/tracediff/tracediff/internal/seeds"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// matrix is a weight in memory.
type matrix struct {
	rows, cols int
	data       []float64
	err        error
}

func (m matrix) Size() (int, int) { return m.rows, m.cols }

func (m matrix) Row(dst []float64, i int) error {
	copy(dst, m.data[i*m.cols:(i+1)*m.cols])
	return m.err
}

func vector(data ...float64) program.Value {
	return program.Value{Shape: []int{1, 1, len(data)}, Data: data}
}

func eval(t testing.TB, o op.Op, c program.Call) []float64 {
	t.Helper()
	v, err := program.Eval(o, c)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Shape, c.Shape) {
		t.Fatalf("%s gives shape %v, want %v", o.Kind(), v.Shape, c.Shape)
	}
	return v.Data
}

var (
	exact = program.Arith{DType: hooks.BF16}
	f32   = program.Arith{DType: hooks.F32, Emulated: true}
	bf16  = program.Arith{DType: hooks.BF16, Emulated: true}
)

// Values known from elsewhere: closed forms, and numbers that torch printed.
func TestKnownValues(t *testing.T) {
	one := []int{1, 1, 1}
	for _, c := range []struct {
		name string
		op   op.Op
		in   []program.Value
		want float64
		a    program.Arith
	}{
		{"tanh-GELU", op.GELUTanh{}, []program.Value{vector(-1)}, -0.15880801, exact},
		{"tanh-GELU, tail in float32 as torch has it", op.GELUTanh{}, []program.Value{vector(-3)}, -0.00363743305, f32},
		{"erf-GELU", op.GELU{}, []program.Value{vector(1)}, 0.84134475, exact},
		{"SiLU", op.SiLU{}, []program.Value{vector(1)}, 1 / (1 + math.Exp(-1)), exact},
		{"softcap", op.Softcap{Cap: 30}, []program.Value{vector(45)}, 27.1544476, exact},
		{"softcap of scores", op.Softcap{Cap: 50}, []program.Value{vector(60)}, 41.6827304, exact},
		{"bfloat16 rounds a scale that was cast", op.Scale{By: op.Const{Value: math.Sqrt(2048), Cast: true}}, []program.Value{vector(1)}, 45.25, bf16},
		{"and not a Python number", op.Scale{By: op.Const{Value: math.Sqrt2}}, []program.Value{vector(1)}, float64(float32(math.Sqrt2)), bf16},
		{"magnitude", op.Magnitude{}, []program.Value{vector(3, 4, 0, 0)}, 2.5, exact},
		{"floor of a magnitude in bfloat16", op.Magnitude{Floor: 1e-5}, []program.Value{vector(0, 0)}, math.Sqrt(1.00135803e-05), bf16},
		{"population deviation", op.Std{}, []program.Value{vector(2, 4, 4, 4, 5, 5, 7, 9)}, 2, exact},
		{"cutoff", op.Cutoff{Multiplier: op.Const{Value: 1.6448534, Cast: true}}, []program.Value{vector(1), vector(2)}, 1 + 2*1.6484375, bf16},
		{"shifted ReLU below", op.ShiftedReLU{}, []program.Value{vector(1), vector(2)}, 0, exact},
		{"shifted ReLU above", op.ShiftedReLU{}, []program.Value{vector(3), vector(2)}, 1, exact},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := eval(t, c.op, program.Call{Arith: c.a, In: c.in, Shape: one})[0]
			if !(math.Abs(got-c.want) <= 2e-7*math.Abs(c.want)) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Each gain of the norm does with its weight what its comment says; only the gains named so and OnePlusStored round before it.
func TestGains(t *testing.T) {
	w := matrix{1, 2, []float64{0.3, -0.7}, nil}
	in := []program.Value{vector(1.5, -2.25)}
	inv := 1 / math.Sqrt((1.5*1.5+2.25*2.25)/2+1e-6)
	round := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	for gain, want := range map[op.Gain][]float64{
		op.Plain:   {1.5 * inv * 0.3, -2.25 * inv * -0.7},
		op.NoScale: {1.5 * inv, -2.25 * inv},
		op.OnePlus: {1.5 * inv * 1.3, -2.25 * inv * 0.3},
		op.After:   {round(1.5*inv) * 0.3, round(-2.25*inv) * -0.7},
	} {
		got := eval(t, op.RMSNorm{Eps: 1e-6, Gain: gain}, program.Call{Arith: bf16, In: in, W: []program.Rows{w}, Shape: []int{1, 1, 2}})
		for i := range want {
			if !(math.Abs(got[i]-want[i]) <= 3e-7*math.Abs(want[i])) {
				t.Errorf("%s[%d] = %v, want %v", gain, i, got[i], want[i])
			}
		}
	}
}

// A position is turned by its angle: the length of every pair stays, and the angle between a query and a key depends on
// the distance of their positions alone.
func TestRoPEKeepsLengthsAndDistances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := 2 * rapid.IntRange(1, 8).Draw(t, "half")
		p := rapid.IntRange(0, 5000).Draw(t, "position")
		gap := rapid.IntRange(0, 100).Draw(t, "distance")
		q, k := numbers(t, "q", d), numbers(t, "k", d)
		turn := func(x []float64, at int) []float64 {
			positions := program.Value{Shape: []int{1, 1}, Data: []float64{float64(at)}}
			var tables [2]program.Value
			for i, sin := range []bool{false, true} {
				v, err := program.Eval(op.Rotary{Theta: 1e4, Dim: d, Scaling: "default", Sin: sin}, program.Call{Arith: exact, In: []program.Value{positions}, Shape: []int{1, 1, d}})
				if err != nil {
					t.Fatal(err)
				}
				tables[i] = v
			}
			v, err := program.Eval(op.RoPE{}, program.Call{Arith: exact, In: []program.Value{{Shape: []int{1, 1, 1, d}, Data: x}, tables[0], tables[1]}, Shape: []int{1, 1, 1, d}})
			if err != nil {
				t.Fatal(err)
			}
			return v.Data
		}
		dot := func(a, b []float64) (s float64) {
			for i := range a {
				s += a[i] * b[i]
			}
			return s
		}
		size := math.Sqrt(dot(q, q) * dot(k, k))
		turned := turn(q, p+gap)
		if diff := dot(turned, turned) - dot(q, q); math.Abs(diff) > 1e-12*dot(q, q) {
			t.Fatalf("the length changed by %g", diff)
		}
		// The angles are float32: at position 5000 their rounding is 3e-4.
		if diff := dot(turned, turn(k, p)) - dot(turn(q, gap), turn(k, 0)); math.Abs(diff) > 1e-3*size {
			t.Fatalf("the product depends on the position, by %g of %g", diff, size)
		}
	})
}

func numbers(t *rapid.T, name string, n int) []float64 {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.Float32Range(-8, 8).Draw(t, "x")) }), n, n).Draw(t, name)
}

// The windows of masks: the query itself and the window−1 keys before it, in a prefill and in a decode step that sees a
// truncated cache.
func TestMaskWindows(t *testing.T) {
	for _, c := range []struct {
		window    int
		positions []float64
		keys      int
		seen      []string
	}{
		{0, []float64{0, 1, 2}, 3, []string{"x..", "xx.", "xxx"}},
		{2, []float64{0, 1, 2}, 3, []string{"x..", "xx.", ".xx"}},
		{3, []float64{7}, 3, []string{"xxx"}},
		{2, []float64{7, 8}, 3, []string{"xx.", ".xx"}},
		{0, []float64{4}, 5, []string{"xxxxx"}},
	} {
		tokens := len(c.positions)
		got := eval(t, op.Mask{Window: c.window}, program.Call{Arith: f32, In: []program.Value{{Shape: []int{1, tokens}, Data: c.positions}}, Shape: []int{1, 1, tokens, c.keys}})
		for q, row := range c.seen {
			for k, want := range row {
				if v := got[q*c.keys+k]; v != 0 && v != -math.MaxFloat32 || (v == 0) != (want == 'x') {
					t.Errorf("window %d, query %d, key %d: %v, want %c", c.window, q, k, v, want)
				}
			}
		}
	}
}

// A product does not depend on how many cores share it, to the last bit, whatever the sizes.
func TestLinearIsTheSameOnAnyNumberOfCores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(float32(rng.NormFloat64()))
		}
		return x
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, size := range [][3]int{{1, 1, 1}, {5, 33, 7}, {4, 100, 64}, {9, 257, 31}} {
		tokens, out, in := size[0], size[1], size[2]
		c := program.Call{
			Arith: program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true}, In: []program.Value{{Shape: []int{1, tokens, in}, Data: draw(tokens * in)}},
			W: []program.Rows{matrix{out, in, draw(out * in), nil}, matrix{1, out, draw(out), nil}}, Shape: []int{1, tokens, out},
		}
		runtime.GOMAXPROCS(1)
		want, err := program.Eval(op.Linear{Bias: true}, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, cores := range []int{2, 7, 16} {
			runtime.GOMAXPROCS(cores)
			got, err := program.Eval(op.Linear{Bias: true}, c)
			if err != nil || !slices.Equal(got.Data, want.Data) || !slices.Equal(got.Bound, want.Bound) {
				t.Errorf("%v on %d cores: not the numbers of one core (%v)", size, cores, err)
			}
		}
	}
}

// What a float32 program makes of a sum lies within the bound, whichever order it adds in; and the bound is no larger
// than it has to be to say so.
func TestBoundsHoldForOrdersOfSummation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		w, x := numbers(t, "w", n), numbers(t, "x", n)
		c := program.Call{
			Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{vector(x...)},
			W: []program.Rows{matrix{1, n, w, nil}}, Shape: []int{1, 1, 1},
		}
		v, err := program.Eval(op.Linear{}, c)
		if err != nil {
			t.Fatal(err)
		}
		var forward, backward float32
		var size float64
		for i := range n {
			forward += float32(w[i]) * float32(x[i])
			backward += float32(w[n-1-i]) * float32(x[n-1-i])
			size += math.Abs(w[i] * x[i])
		}
		for _, y := range []float32{forward, backward} {
			if !(math.Abs(float64(y)-v.Data[0]) <= v.Bound[0]) {
				t.Fatalf("%v is %g from %v, the bound is %g", y, float64(y)-v.Data[0], v.Data[0], v.Bound[0])
			}
		}
		// Below the normal numbers a product and a sum of each term may be lost, and the result.
		if worst := 0x1p-24*float64(n+3)*size*4 + float64(2*n+2)*0x1p-126; v.Bound[0] > worst {
			t.Fatalf("the bound %g is above that of any order, %g", v.Bound[0], worst)
		}
	})
}

// A rounding point turns an interval into the numbers that lie in it: one, unless a midpoint does.
func TestRoundingOfIntervals(t *testing.T) {
	for _, c := range []struct{ x, bound, want, wantBound float64 }{
		{1 + 1.0/512, 1e-6, 1, 0}, // bfloat16 has 1 and 1+1/128
		{1 + 1.0/256, 1e-6, 1, 1.0 / 128},
		{1 + 1.0/256 - 1e-5, 1e-6, 1, 0},
		{3, 0, 3, 0},
	} {
		v := program.Value{Shape: []int{1}, Data: []float64{c.x}, Bound: []float64{c.bound}}
		program.Arith{DType: hooks.BF16, Emulated: true, Bounds: true}.Round(v, hooks.BF16)
		if v.Data[0] != c.want || v.Bound[0] != c.wantBound {
			t.Errorf("%v ± %v becomes %v ± %v, want %v ± %v", c.x, c.bound, v.Data[0], v.Bound[0], c.want, c.wantBound)
		}
	}
}

// What cannot be computed is an error, not a panic: ids that the table does not have, a weight that does not read.
func TestErrors(t *testing.T) {
	table := matrix{3, 2, make([]float64, 6), nil}
	ids := func(id float64) program.Call {
		return program.Call{Arith: f32, In: []program.Value{{Shape: []int{1, 1}, Data: []float64{id}}}, W: []program.Rows{table}, Shape: []int{1, 1, 2}}
	}
	for _, id := range []float64{-1, 3, 1e300, 0.5, math.NaN(), math.Inf(1)} {
		if _, err := program.Eval(op.Lookup{Rows: 3}, ids(id)); err == nil {
			t.Errorf("id %v was looked up", id)
		}
		if _, err := program.Eval(op.Lookup{Rows: 3, Fallback: true}, ids(id)); err != nil {
			t.Errorf("id %v does not fall back to row 0: %v", id, err)
		}
	}
	broken := errors.New("cannot read")
	w := matrix{40, 2, make([]float64, 80), broken}
	if _, err := program.Eval(op.Linear{}, program.Call{Arith: f32, In: []program.Value{vector(1, 2)}, W: []program.Rows{w}, Shape: []int{1, 1, 40}}); !errors.Is(err, broken) {
		t.Errorf("a weight that does not read: %v", err)
	}
	if _, err := program.Eval(op.Argument{}, program.Call{}); err == nil {
		t.Error("an argument was computed")
	}
}

func TestForm(t *testing.T) {
	for want, o := range map[string]op.Op{
		"tanh": op.Tanh{}, "rms_norm(eps, gain=oneplus)": op.RMSNorm{Eps: 1e-6, Gain: op.OnePlus},
		"scale(by.cast, by.value)": op.Scale{By: op.Const{Value: 2, Cast: true}}, "scale(by.value)": op.Scale{By: op.Const{Value: 3}},
		"mask": op.Mask{}, "mask(window)": op.Mask{Window: 4}, "linear(bias)": op.Linear{Bias: true},
	} {
		if got := op.Form(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
