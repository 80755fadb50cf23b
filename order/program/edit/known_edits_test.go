package edit_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/programtest"
)

// formulaOf makes the program of a formula of one input of two rows of eight.
func formulaOf(t *testing.T, shape []int, f func(b *program.Builder, in []program.Var) program.Var) (*program.Program, program.Call) {
	t.Helper()
	x := make([]float64, 16)
	for i := range x {
		x[i] = float64((7*i+3)%16)/8 - 0.9375
	}
	c := program.Call{
		Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{programtest.Tensor(x, 1, 2, 8)}, Shape: shape,
	}
	p, err := programtest.Program(programtest.Of(f), c)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

// gives holds an edit to the numbers of a row of the input.
func gives(t *testing.T, d *program.Edited, c program.Call, want func(x []float64) []float64) {
	t.Helper()
	if d == nil {
		t.Fatal("the edit does not go with the program")
	}
	p, call := d.Whole(c)
	v, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	var all []float64
	for row := range 2 {
		all = append(all, want(c.In[0].Data[8*row:][:8])...)
	}
	for i, x := range all {
		if math.Abs(v.Data[i]-x) > 1e-6 {
			t.Fatalf("element %d is %v, not %v", i, v.Data[i], x)
		}
	}
}

// products are what parts of a row give that are read by turns, or as halves.
func products(from, to, by int) func(x []float64) []float64 {
	return func(x []float64) (y []float64) {
		for j := range 4 {
			y = append(y, x[from+j*by]*x[to+j*by])
		}
		return y
	}
}

func TestPartsThatAreReadByTurnsAreReadAsHalves(t *testing.T) {
	for _, turns := range []bool{false, true} {
		p, c := formulaOf(t, []int{1, 2, 4}, func(b *program.Builder, in []program.Var) program.Var {
			if turns {
				return b.Mul("", b.View(in[0], []int{1, 2, 4}, []int{16, 8, 2}, 0), b.View(in[0], []int{1, 2, 4}, []int{16, 8, 2}, 1))
			}
			return b.Mul("", b.Slice(in[0], 2, 0, 4), b.Slice(in[0], 2, 4, 8))
		})
		parts := edit.NewStepIndex(p, nameless)
		all := parts.Edits().Turns()
		if len(all) != 1 {
			t.Fatalf("turns %v: %d edits", turns, len(all))
		}
		want := products(0, 1, 2)
		if turns {
			want = products(0, 4, 1)
		}
		gives(t, all[0].Apply(parts), c, want)
	}
}

func TestNormsOfParts(t *testing.T) {
	p, c := formulaOf(t, []int{1, 2, 8}, func(b *program.Builder, in []program.Var) program.Var {
		x := in[0]
		return b.Mul("product", x, b.Rsqrt("rsqrt", b.Add("+eps", b.Mean("mean", b.Mul("square", x, x)), b.Scalar("eps", 1e-3))))
	})
	gives(t, edit.MeansOfParts(p, 2), c, func(x []float64) (y []float64) {
		for i := range x {
			a, b := x[i/2*2], x[i/2*2+1]
			y = append(y, x[i]/math.Sqrt((a*a+b*b)/2+1e-3))
		}
		return y
	})
	if edit.MeansOfParts(p, 3) != nil || edit.MeansOfParts(p, 8) != nil {
		t.Error("there are no parts of these sizes")
	}
}

func TestAProductBehindTheRest(t *testing.T) {
	p, c := formulaOf(t, []int{1, 2, 4}, func(b *program.Builder, in []program.Var) program.Var {
		return b.Tanh("tanh", b.Mul("gated", b.Slice(in[0], 2, 0, 4), b.Slice(in[0], 2, 4, 8)))
	})
	parts := edit.NewStepIndex(p, nameless)
	mul := edit.StepsOf(p, program.Mul)[0]
	gives(t, edit.ProductLast(parts, edit.Place{Step: parts.PlaceOf(mul).Step, Arg: 1}), c, func(x []float64) (y []float64) {
		for j := range 4 {
			y = append(y, math.Tanh(x[j])*x[4+j])
		}
		return y
	})
}

// softmaxOf is that of some numbers of a row.
func softmaxOf(x []float64, of ...int) (y []float64) {
	sum := 0.0
	for _, i := range of {
		y = append(y, math.Exp(x[i]))
		sum += math.Exp(x[i])
	}
	for k := range y {
		y[k] /= sum
	}
	return y
}

func softmax(b *program.Builder, x program.Var) program.Var {
	exp := b.Exp("exp", b.Sub("difference", x, b.RowMax(x)))
	return b.Div("quotient", exp, b.Sum("sum", exp))
}

func TestSoftmaxesOfAnotherPart(t *testing.T) {
	every := []int{0, 1, 2, 3, 4, 5, 6, 7}
	chosen := func(b *program.Builder) program.Var { return b.Constant("", []float64{2, 5, 2, 5}, []int{1, 2, 2}) }
	p, c := formulaOf(t, []int{1, 2, 2}, func(b *program.Builder, in []program.Var) program.Var {
		return softmax(b, b.Gather(2, in[0], chosen(b)))
	})
	gives(t, edit.SoftmaxOfAll(p), c, func(x []float64) []float64 {
		y := softmaxOf(x, every...)
		return []float64{y[2], y[5]}
	})
	p, c = formulaOf(t, []int{1, 2, 2}, func(b *program.Builder, in []program.Var) program.Var {
		return b.Gather(2, softmax(b, in[0]), chosen(b))
	})
	gives(t, edit.SoftmaxOfChosen(p), c, func(x []float64) []float64 { return softmaxOf(x, 2, 5) })
	p, c = formulaOf(t, []int{1, 2, 6}, func(b *program.Builder, in []program.Var) program.Var {
		return b.Slice(softmax(b, b.Cat(2, b.Slice(in[0], 2, 0, 6), b.Slice(in[0], 2, 6, 8))), 2, 0, 6)
	})
	if got := len(edit.Joined(p)); got != 2 {
		t.Fatalf("%d tensors are joined for the softmax", got)
	}
	gives(t, edit.SoftmaxWithout(p, 1, -1e30), c, func(x []float64) []float64 { return softmaxOf(x, every[:6]...) })
}

// A tensor that is laid out anew is what it was: an edit is of the same step with and without.
func TestWhatIsLaidOutAnewIsTheSameToAnEdit(t *testing.T) {
	of := func(copied bool) *edit.StepIndex {
		p, _ := formulaOf(t, []int{1, 2, 8}, func(b *program.Builder, in []program.Var) program.Var {
			y := b.Tanh("tanh", in[0])
			if copied {
				y = b.Cat(0, y)
			}
			return b.Add("sum", y, in[0])
		})
		return edit.NewStepIndex(p, nameless)
	}
	a, b := of(false), of(true)
	if x, y := a.PlaceOf(a.Out.Step), b.PlaceOf(b.Out.Step); x != y {
		t.Error("the sum is not the same step")
	}
}
