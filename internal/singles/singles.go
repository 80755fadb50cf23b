// Package singles certifies single operations without a model: inputs, weights and a port's result are written as one
// trace. The package also certifies the entries of a trace of a model, and draws inputs of several kinds.
//
// Only tests import the package.
package singles

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// Single is one operation with inputs, weights and the result of a port.
type Single struct {
	Op     op.Op
	In, W  []Array
	Out    Array
	Wide   bool // the result is float32 whatever the model's dtype
	About  string
	Letter string // axes of out
}

// Array is a tensor of float32s that the model's dtype has too.
type Array struct {
	Shape []int
	Data  []float32
}

// Size is that of a matrix, a vector being one row.
func (a Array) Size() (rows, cols int) {
	if len(a.Shape) == 1 {
		return 1, a.Shape[0]
	}
	return a.Shape[0], a.Shape[1]
}

// Row copies one.
func (a Array) Row(dst []float64, i int) error {
	for k := range dst {
		dst[k] = float64(a.Data[i*len(dst)+k])
	}
	return nil
}

// Replaced is a with other numbers.
func (a Array) Replaced(data []float32) Array { return Array{a.Shape, data} }

// Event is the tensor under a name, in a dtype.
func (a Array) Event(name string, d hooks.DType) hooks.Event {
	data := make([]byte, 0, len(a.Data)*d.Size())
	for _, v := range a.Data {
		data = floats.Append(data, d, float64(v))
	}
	return hooks.Event{Name: name, Tensor: hooks.Tensor{DType: d, Shape: a.Shape, Data: data}}
}

// Entry is an entry of the tensor's shape.
func (a Array) Entry(name string, o op.Op, axes string) *order.Entry {
	e := &order.Entry{Name: name, Layer: -1, Level: 1, Op: o, Axes: axes}
	for _, n := range a.Shape {
		e.Shape = append(e.Shape, order.Dim(n))
	}
	return e
}

// CertifyAll isolates operations as entries of one trace.
func CertifyAll(t testing.TB, d hooks.DType, o isolate.Options, all []Single) []*isolate.Certificate {
	t.Helper()
	_, known := ordertest.Embedded(t, "gemma3n-tiny")
	input, _ := known.Lookup(order.InputIDs)
	entries, events := []*order.Entry{input}, []hooks.Event{testengine.Fire(order.InputIDs, hooks.I64, []int{1, 1}, 2)}
	weights := map[string]Array{}
	for k, s := range all {
		e := s.Out.Entry(fmt.Sprintf("single.%d", k), s.Op, s.Letter)
		dtype := d
		if s.Wide {
			e.DType, dtype = hooks.F32.String(), hooks.F32
		}
		for i, in := range s.In {
			leaf := in.Entry(fmt.Sprintf("%s.in.%d", e.Name, i), op.Identity{}, "")
			entries, events = append(entries, leaf), append(events, in.Event(leaf.Name, d))
			e.Inputs = append(e.Inputs, order.Ref{Name: leaf.Name})
		}
		for i, w := range s.W {
			name := fmt.Sprintf("%s.w.%d", e.Name, i)
			weights[name], e.Weights = w, append(e.Weights, order.Weight{Name: name, Shape: w.Shape})
		}
		entries, events = append(entries, e), append(events, s.Out.Event(e.Name, dtype))
	}
	trace := testengine.Build(t, testengine.Manifest("local", d), events...)
	i, err := compare.NewIsolator(trace, known.Keep(entries), func(w order.Weight) (program.Rows, error) { return weights[w.Name], nil }, o)
	if err != nil {
		t.Fatal(err)
	}
	certs := make([]*isolate.Certificate, len(all))
	for k := range all {
		if certs[k], err = i.Certify(context.Background(), fmt.Sprintf("single.%d", k), 0); err != nil {
			t.Fatalf("%s: %v", all[k].About, err)
		}
	}
	return certs
}

// Charge is what a certificate has against an entry.
func Charge(c *isolate.Certificate) string {
	return fmt.Sprintf("%s, %d of %d outside by %.3g, scale %.9g ± %.2g, %s", c.Outcome, c.Outside, c.Elements,
		float64(c.Worst), float64(c.Scale), float64(c.ScaleError), c.Arithmetic)
}

// Smallest is the smallest size of a fault that is found, with all larger ones: +Inf when not even the largest is.
func Smallest(found func(size float64) bool) float64 {
	last := math.Inf(1)
	for _, s := range Sizes {
		if !found(s) {
			break
		}
		last = s
	}
	return last
}

// Sizes are the sizes of faults that are tried, from the largest down: three a decade.
var Sizes = func() (all []float64) {
	for e := -1; e >= -8; e-- {
		for _, m := range []float64{5, 2, 1} {
			all = append(all, m*math.Pow(10, float64(e)))
		}
	}
	return all
}()
