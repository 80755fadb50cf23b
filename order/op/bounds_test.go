package op_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// bounded is float32 arithmetic with bounds, and rigorous with those that hold for every order of summation.
var (
	bounded  = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}
	rigorous = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true, Rigorous: true}
)

// within fails unless y is within the bound of an operation's one element, and the bound is below most.
func within(t *testing.T, o op.Op, c program.Call, y float32, most float64) {
	t.Helper()
	v, err := program.Eval(o, c)
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(float64(y) - v.Data[0]); !(off <= v.Bound[0]) {
		t.Errorf("%s: %v is %g from %v, the bound is %g", o.Kind(), y, off, v.Data[0], v.Bound[0])
	}
	if v.Bound[0] > most {
		t.Errorf("%s: the bound %g is above %g", o.Kind(), v.Bound[0], most)
	}
}

// The deviation of a constant row is zero, where the root has no derivative: a float32 mean that is off makes it as large
// as that error.
func TestBoundOfADeviationOfZero(t *testing.T) {
	const n = 1000
	row := make([]float64, n)
	var sum float32
	for i := range row {
		row[i] = float64(float32(0.1))
		sum += 0.1
	}
	mean := sum / n
	if mean == 0.1 {
		t.Fatal("the mean is exact: nothing is tested")
	}
	within(t, op.Std{}, program.Call{Arith: rigorous, In: []program.Value{vector(row...)}, Shape: []int{1, 1, 1}}, float32(math.Abs(float64(mean-0.1))), 1e-4)
}

// Accumulators may begin with the bias: each product is then rounded at its size.
func TestBoundOfALargeBias(t *testing.T) {
	const n, bias = 100, 4096
	w, x := make([]float64, n), make([]float64, n)
	sum := float32(bias)
	for i := range w {
		w[i], x[i] = 1, float64(float32(1)/float32(i+3))
		sum += float32(x[i])
	}
	c := program.Call{Arith: bounded, In: []program.Value{vector(x...)}, W: []program.Rows{matrix{1, n, w, nil}, matrix{1, 1, []float64{bias}, nil}}, Shape: []int{1, 1, 1}}
	within(t, op.Linear{Bias: true}, c, sum, 1e-1)
	for _, s := range program.Summations() {
		c.Sum = &s
		if s.Lanes == 1 && !s.Reversed && !s.Pairwise { // the order in which it was added, and therefore exact
			within(t, op.Linear{Bias: true}, c, sum, 1e-1)
		}
	}
}

// What is below the normal numbers may be taken for zero.
func TestBoundBelowTheNormalNumbers(t *testing.T) {
	tiny := float64(float32(math.Exp(-95)))
	if tiny == 0 || tiny >= 0x1p-126 {
		t.Fatalf("%g is no subnormal number", tiny)
	}
	c := program.Call{Arith: bounded, In: []program.Value{vector(-95, 0)}, Shape: []int{1, 1, 2}}
	within(t, op.Softmax{}, c, 0, 3*tiny)
}

// An order gives the same sum whether its terms are exact, and added by a plain loop, or have bounds.
func TestOrdersOfExactTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	for _, n := range []int{1, 3, 64, 100, 257} {
		w, x := make([]float64, n), make([]float64, n)
		for i := range w {
			w[i], x[i] = float64(float32(rng.NormFloat64())), float64(float32(rng.NormFloat64()))
		}
		in := vector(x...)
		for _, s := range program.Summations() {
			c := program.Call{Arith: bounded, In: []program.Value{in}, W: []program.Rows{matrix{1, n, w, nil}}, Shape: []int{1, 1, 1}}
			c.Sum = &s
			plain := eval(t, op.Linear{}, c)
			c.In[0].Bound = make([]float64, n)
			if slow := eval(t, op.Linear{}, c); slow[0] != plain[0] {
				t.Errorf("%d products, %s: %v, with bounds %v", n, s, plain[0], slow[0])
			}
		}
	}
}
