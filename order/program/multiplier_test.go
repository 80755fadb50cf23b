package program_test

import (
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// beside is a weight whose engine doubles its operand, has one number more behind each row, and adds products in turn, each sum rounded.
type beside struct{ matrix }

func (b beside) Product(x, bound []float64) program.Product {
	_, n := b.Size()
	p := program.Product{W: longer(b), Sum: func(w, x, bound []float64) (v, e float64) {
		for i := range w {
			v = floats.Round(hooks.BF16, v+floats.Round(hooks.BF16, w[i]*x[i]))
			if bound != nil {
				e += bound[i]
			}
		}
		return v, e
	}}
	for from := 0; from < len(x); from += n {
		for _, v := range x[from:][:n] {
			p.X = append(p.X, 2*v)
		}
		p.X = append(p.X, 0.5)
		if bound != nil {
			p.Bound = append(append(p.Bound, bound[from:][:n]...), 1)
		}
	}
	return p
}

// longer are rows with a 3 behind each.
type longer struct{ matrix }

func (l longer) Size() (rows, cols int) {
	rows, cols = l.matrix.Size()
	return rows, cols + 1
}

func (l longer) Row(dst []float64, i int) error {
	dst[len(dst)-1] = 3
	return l.matrix.Row(dst[:len(dst)-1], i)
}

// A product is what the engine multiplies, and its sum is the engine's own; a bias is added to that. The operand is the program's: it stays as it was.
func TestProductsOfEngines(t *testing.T) {
	const tokens, n, outs = 3, 8, 5
	x := tensor(numbers(tokens*n, 70, bf16), 1, tokens, n)
	was := slices.Clone(x.Data)
	w, bias := matrix{outs, n, numbers(outs*n, 71, bf16)}, matrix{1, outs, numbers(outs, 72, bf16)}
	for _, biased := range []bool{false, true} {
		for _, a := range []program.Arith{brain, bounded(brain)} {
			c := program.Call{Arith: a, In: []program.Value{x}, W: []program.Rows{beside{w}}, Shape: []int{1, tokens, outs}}
			if biased {
				c.W = append(c.W, bias)
			}
			p, err := programOf(op.Linear{Bias: biased}, c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Eval(c)
			if err != nil {
				t.Fatal(err)
			}
			for k := range tokens {
				for o := range outs {
					v := 0.0
					for i := range n {
						v = floats.Round(hooks.BF16, v+floats.Round(hooks.BF16, w.data[o*n+i]*2*was[k*n+i]))
					}
					v = floats.Round(hooks.BF16, v+1.5)
					if biased {
						v = float64(float32(v + bias.data[o])) // the dtype of the entry is its own
					}
					if got.Data[k*outs+o] != v {
						t.Fatalf("bias %t, token %d, output %d: %v, want %v", biased, k, o, got.Data[k*outs+o], v)
					}
					if a.Bounds && got.Bound[k*outs+o] < 1 {
						t.Fatalf("the bound is %v, want 1 or more", got.Bound[k*outs+o])
					}
				}
			}
			if !slices.Equal(x.Data, was) {
				t.Fatal("the operand was changed")
			}
		}
	}
}
