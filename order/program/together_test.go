package program_test

import (
	"math"
	"sync/atomic"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// read counts the rows that are read of a weight, by several goroutines.
type read struct {
	matrix
	rows *atomic.Int64
}

func (r read) Row(dst []float64, i int) error {
	r.rows.Add(1)
	return r.matrix.Row(dst, i)
}

// products are calls of one operation for passes of so many tokens, with and without what an engine holds.
func productsOf(t *testing.T, o op.Op, arith program.Arith, w []program.Rows, passes []int, held bool) (programs []*program.Program, calls []program.Call) {
	rows, n := w[0].Size()
	var sizes [][2]int
	for _, w := range w {
		a, b := w.Size()
		sizes = append(sizes, [2]int{a, b})
	}
	for k, tokens := range passes {
		call := program.Call{Arith: arith, In: []program.Value{tensor(numbers(tokens*n, uint64(20+k), bf16), 1, tokens, n)}, W: w, Shape: []int{1, tokens, rows}}
		p, err := program.Of(o, op.Form, 0, call.Shape, [][]int{{1, tokens, n}}, sizes)
		if err != nil {
			t.Fatal(err)
		}
		if held {
			h := &program.Held{DType: hooks.BF16}
			for i, v := range eval(t, o, call).Data {
				h.Data = append(h.Data, floats.Round(hooks.BF16, v*(1+float64(i%50/49)*0x1p-8)))
			}
			call.Held = h
		}
		programs, calls = append(programs, p), append(calls, call)
	}
	return programs, calls
}

// Products of several passes that are computed together have the values and the bounds that each has by itself, and read the weight once.
func TestTogether(t *testing.T) {
	const n = 1024
	single := program.Arith{DType: hooks.F32, Emulated: true}
	for _, c := range []struct {
		arith program.Arith
		rows  int
		held  bool
	}{{bounded(brain), 40, false}, {bounded(single), 40, false}, {brain, 40, false}, {exact, 40, false}, {bounded(brain), 1030, true}} {
		var count atomic.Int64
		w := []program.Rows{read{matrix{c.rows, n, numbers(c.rows*n, 3, bf16)}, &count}}
		programs, calls := productsOf(t, op.Linear{}, c.arith, w, []int{3, 1, 6, 1}, c.held)
		count.Store(0)
		got, ok, err := program.Together(programs, calls)
		if err != nil || !ok || count.Load() != int64(c.rows) {
			t.Fatalf("%+v: %v %v, %d rows were read, want %d", c.arith, ok, err, count.Load(), c.rows)
		}
		for k, p := range programs {
			want, err := p.Eval(calls[k])
			if err != nil {
				t.Fatal(err)
			}
			if got[k].Columns != want.Columns || len(got[k].Bound) != len(want.Bound) || len(got[k].Data) != len(want.Data) || got[k].Shape[1] != want.Shape[1] {
				t.Fatalf("pass %d: %v and %v", k, got[k].Shape, want.Shape)
			}
			for i, v := range want.Data {
				if math.Float64bits(got[k].Data[i]) != math.Float64bits(v) {
					t.Fatalf("pass %d: element %d is %x, want %x", k, i, got[k].Data[i], v)
				}
				if has := want.Sampled(i) || c.held && calls[k].Held.Data[i] != floats.Round(hooks.BF16, v); want.Bound != nil && has && math.Float64bits(got[k].Bound[i]) != math.Float64bits(want.Bound[i]) {
					t.Fatalf("pass %d: element %d has the bound %x, want %x", k, i, got[k].Bound[i], want.Bound[i])
				}
			}
		}
	}
}

// What is more than a product of exact inputs in the program's own arithmetic is not computed with others.
func TestNotTogether(t *testing.T) {
	const rows, n = 8, 16
	w := []program.Rows{matrix{rows, n, numbers(rows*n, 3, bf16)}}
	for name, change := range map[string]func(p []*program.Program, c []program.Call){
		"bounds":     func(_ []*program.Program, c []program.Call) { c[1].In[0].Bound = numbers(n, 4, bf16) },
		"choices":    func(p []*program.Program, c []program.Call) { c[0].Choices = p[0].Own() },
		"arithmetic": func(_ []*program.Program, c []program.Call) { c[1].Rigorous = true },
		"sums":       func(_ []*program.Program, c []program.Call) { c[0].Sum = &program.Summations()[0]; c[1].Sum = c[0].Sum },
		"held":       func(_ []*program.Program, c []program.Call) { c[1].Held = &program.Held{DType: hooks.BF16} },
		"shape":      func(_ []*program.Program, c []program.Call) { c[1].In[0].Data = c[1].In[0].Data[1:] },
		"no input":   func(_ []*program.Program, c []program.Call) { c[1].In = nil },
	} {
		programs, calls := productsOf(t, op.Linear{}, bounded(brain), w, []int{2, 1}, false)
		change(programs, calls)
		if _, ok, err := program.Together(programs, calls); ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	bias := append(w, matrix{1, rows, numbers(rows, 5, bf16)})
	programs, calls := productsOf(t, op.Linear{Bias: true}, bounded(brain), bias, []int{2, 1}, false)
	if _, ok, err := program.Together(programs, calls); ok || err != nil {
		t.Errorf("bias: %v, %v", ok, err)
	}
	norm, err := program.Of(op.RMSNorm{Eps: 1e-6, Gain: op.NoScale}, op.Form, 0, []int{1, 2, n}, [][]int{{1, 2, n}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := program.Together([]*program.Program{norm}, calls[:1]); ok || err != nil {
		t.Errorf("a norm: %v, %v", ok, err)
	}
}
