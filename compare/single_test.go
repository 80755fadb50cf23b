package compare_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// single is one operation by itself: its inputs and weights, and what a port made of them.
type single struct {
	op     op.Op
	in, w  []array
	out    array
	wide   bool // the result is float32 whatever the model's dtype
	about  string
	letter string // axes of out
}

// array is a tensor of float32s that the model's dtype has too.
type array struct {
	shape []int
	data  []float32
}

// Size is that of a matrix, a vector being one row.
func (a array) Size() (rows, cols int) {
	if len(a.shape) == 1 {
		return 1, a.shape[0]
	}
	return a.shape[0], a.shape[1]
}

// Row copies one.
func (a array) Row(dst []float64, i int) error {
	for k := range dst {
		dst[k] = float64(a.data[i*len(dst)+k])
	}
	return nil
}

// replaced is a with other numbers.
func (a array) replaced(data []float32) array { return array{a.shape, data} }

func (a array) event(name string, d hooks.DType) hooks.Event {
	data := make([]byte, 0, len(a.data)*d.Size())
	for _, v := range a.data {
		data = appendValue(data, d, float64(v))
	}
	return hooks.Event{Name: name, Tensor: hooks.Tensor{DType: d, Shape: a.shape, Data: data}}
}

func (a array) entry(name string, o op.Op, axes string) *order.Entry {
	e := &order.Entry{Name: name, Layer: -1, Level: 1, Op: o, Axes: axes}
	for _, n := range a.shape {
		e.Shape = append(e.Shape, order.Dim(n))
	}
	return e
}

// certifyAll isolates operations as entries of one trace.
func certifyAll(t testing.TB, d hooks.DType, o isolate.Options, all []single) []*isolate.Certificate {
	t.Helper()
	known := tiny(t)
	input, _ := known.Lookup(order.InputIDs)
	entries, events := []*order.Entry{input}, []hooks.Event{ids(2)}
	weights := map[string]array{}
	for k, s := range all {
		e := s.out.entry(fmt.Sprintf("single.%d", k), s.op, s.letter)
		dtype := d
		if s.wide {
			e.DType, dtype = hooks.F32.String(), hooks.F32
		}
		for i, in := range s.in {
			leaf := in.entry(fmt.Sprintf("%s.in.%d", e.Name, i), op.Identity{}, "")
			entries, events = append(entries, leaf), append(events, in.event(leaf.Name, d))
			e.Inputs = append(e.Inputs, order.Ref{Name: leaf.Name})
		}
		for i, w := range s.w {
			name := fmt.Sprintf("%s.w.%d", e.Name, i)
			weights[name], e.Weights = w, append(e.Weights, order.Weight{Name: name, Shape: w.shape})
		}
		entries, events = append(entries, e), append(events, s.out.event(e.Name, dtype))
	}
	trace := build(t, manifest("local", d), events...)
	i, err := compare.NewIsolator(trace, known.Keep(entries), func(w order.Weight) (program.Rows, error) { return weights[w.Name], nil }, o)
	if err != nil {
		t.Fatal(err)
	}
	certs := make([]*isolate.Certificate, len(all))
	for k := range all {
		if certs[k], err = i.Certify(context.Background(), fmt.Sprintf("single.%d", k), 0); err != nil {
			t.Fatalf("%s: %v", all[k].about, err)
		}
	}
	return certs
}
