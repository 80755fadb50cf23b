package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// scaledBy is a product with a number.
type scaledBy struct{ By float64 }

func (scaledBy) Kind() string { return "scaled" }

func (o scaledBy) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Mul("product", in[0], b.Scalar("scale", o.By))
}

// computed is an entry of a model whose operation is another one, and whose tensor is what wrong makes of what the entry reads, in float32.
func computed(t *testing.T, o program.Op, wrong func(x float64) float64) (*diagnose.Model, *diagnose.Entry) {
	t.Helper()
	m := model(t)
	const name = "layers.0.input_layernorm"
	at := m.List.Index(name)
	entry := &m.List.Entries[at]
	entry.Op, entry.Weights = o, nil
	n := order.Node{Entry: m.List.Index(entry.Inputs[0].Name)}
	x, err := m.Read(n)
	if err != nil {
		t.Fatal(err)
	}
	e := &diagnose.Entry{Node: order.Node{Entry: at}, Inputs: []order.Node{n}, Items: []*int{nil}}
	e.Call = program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{x}, Shape: x.Shape}
	if e.Program, err = program.Of(o, func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, [][]int{x.Shape}, nil); err != nil {
		t.Fatal(err)
	}
	h := &honest{e: e}
	for _, v := range x.Data {
		h.y = append(h.y, float64(float32(wrong(v))))
	}
	e.Judge = h
	right, err := e.Program.Eval(e.Call)
	if err != nil {
		t.Fatal(err)
	}
	e.Left, _ = h.Leaves(right, len(h.y))
	return m, e
}

// A number past which the result does not change any more is the step left out. One that the data tell stays what it is, and so does one of which they tell a few.
func TestNumbersPastWhichNothingChanges(t *testing.T) {
	for _, c := range []struct {
		cap  float64 // the port's; 0 for none
		want string
	}{
		{0, "the soft cap is missing"},
		{1e7, "the soft cap is missing"},
		{8, "the soft cap is 8"},
		{1, "the soft cap is 1"}, // and one of -1 has the same values
	} {
		m, e := computed(t, op.Softcap{Cap: 3}, func(x float64) float64 {
			if c.cap == 0 {
				return x
			}
			return math.Tanh(x/c.cap) * c.cap
		})
		m.Without = edit.LeftOut.String() // the name that it has else
		if f := named(t, m, e); f.What != c.want {
			t.Errorf("a soft cap of %g: %q, %v", c.cap, f.What, f.Undecided)
		}
	}
}

// A scale of attention is 1/√n: so is a wrong one, though it be near the right one. A number near the right one that is not so is none.
func TestScalesThatAreRootsOfWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		by   float64
		want string
	}{
		{1 / math.Sqrt(65), "the factor is 0.124035 (1/√65)"},
		{1 / math.Sqrt(63), "the factor is 0.125988 (1/√63)"},
		{1 / math.Sqrt(64.5), ""},
	} {
		m, e := computed(t, scaledBy{1. / 8}, func(x float64) float64 { return x * float64(float32(c.by)) })
		if f := named(t, m, e); f.What != c.want {
			t.Errorf("a scale of %g: %q", c.by, f.What)
		}
	}
}

// Where the result is the right one times one number, that number is solved before the elements are looked for in other orders.
func TestAScaleOfTheWholeResultIsSolvedAtOnce(t *testing.T) {
	for by, want := range map[float64]bool{0.37: true, 0: false} {
		i := 0
		m, e := computed(t, scaledBy{1. / 8}, func(x float64) float64 {
			if i++; by == 0 {
				return x * (1 + math.Sin(float64(i*i))/3)
			}
			return x * float64(float32(by))
		})
		f := named(t, m, e)
		if looked := slices.Contains(f.Looked, "orders of elements"); f.Named() != want || looked == want {
			t.Errorf("a scale of %g: %q, looked at %q", by, f.Text(), f.Looked)
		}
	}
}
