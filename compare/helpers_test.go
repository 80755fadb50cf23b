package compare_test

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// confirmer says which constants of a trace the order gives, without a checkpoint; nil for a trace without token ids.
func confirmer(l *capture.Trace, list *order.List) *isolate.Isolator {
	none := func(order.Weight) (program.Rows, error) { return nil, isolate.ErrNoWeights }
	if i, err := isolate.NewConfirmer(l, list, none, hooks.F32); err == nil {
		return i
	}
	return nil
}

// fire is one firing in pass 0 of a tensor with these values, of which the last is repeated until the shape is full.
func fire(name string, d hooks.DType, shape []int, values ...float64) hooks.Event {
	n, ok := hooks.Elements(shape)
	if !ok {
		panic(name)
	}
	var data []byte
	for i := range n {
		data = appendValue(data, d, values[min(i, len(values)-1)])
	}
	return hooks.Event{Name: name, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data}}
}

// in moves an event to another pass.
func in(pass int, e hooks.Event) hooks.Event {
	e.Pass = pass
	return e
}

func appendValue(b []byte, d hooks.DType, v float64) []byte {
	le := binary.LittleEndian
	switch d {
	case hooks.F64:
		return le.AppendUint64(b, math.Float64bits(v))
	case hooks.F32:
		return le.AppendUint32(b, math.Float32bits(float32(v)))
	case hooks.F16:
		return le.AppendUint16(b, floats.F16(float32(v)))
	case hooks.BF16:
		return le.AppendUint16(b, floats.BF16(float32(v)))
	case hooks.F8E4M3:
		return append(b, floats.F8E4M3(float32(v)))
	case hooks.I64:
		return le.AppendUint64(b, uint64(int64(v)))
	case hooks.U64:
		return le.AppendUint64(b, uint64(v))
	case hooks.I32:
		return le.AppendUint32(b, uint32(int32(v)))
	case hooks.Bool:
		return append(b, byte(v))
	}
	panic(d.String())
}

// manifest is that of a complete trace whose scope is everything.
func manifest(side string, d hooks.DType) capture.Manifest {
	return capture.Manifest{
		Side: side, Producer: capture.Producer{Name: side + "-engine", Version: "1.2"}, DType: d,
		Scope: capture.Scope{Level: 3}, Passes: 1, Weights: "unknown",
	}
}

// build writes a complete trace and opens it.
func build(t testing.TB, m capture.Manifest, events ...hooks.Event) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), m.Side+".safetensors")
	w, err := capture.Create(path, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		m.Passes = max(m.Passes, e.Pass+1)
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// unfinished writes a trace whose run failed.
func unfinished(t testing.TB, m capture.Manifest, events ...hooks.Event) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), m.Side+".safetensors")
	w, err := capture.Create(path, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Fail(errTest); err != nil {
		t.Fatal(err)
	}
	return open(t, path+capture.Suffix)
}

type testError string

func (e testError) Error() string { return string(e) }

const errTest = testError("the model stopped")

func open(t testing.TB, path string) *capture.Trace {
	t.Helper()
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// names is an order of names alone.
func names(t testing.TB, list ...string) *order.List {
	t.Helper()
	l, err := order.ReadNames(strings.NewReader(strings.Join(list, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// tiny is the order of the tiny checkpoint: 422 entries, 33 of them derived, in seven layers.
func tiny(t testing.TB) *order.List {
	t.Helper()
	data, err := os.ReadFile("../order/testdata/gemma3n-tiny.config.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// run compares or fails.
func run(t testing.TB, l, r *capture.Trace, o compare.Options) *compare.Result {
	t.Helper()
	if o.Confirmer == nil && o.Isolator == nil && o.Order != nil && o.Order.Config != nil {
		o.Confirmer = confirmer(l, o.Order)
	}
	res, err := compare.Run(context.Background(), l, r, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Contradiction(); err != nil {
		t.Error(err)
	}
	return res
}

// ids is the input of a pass.
func ids(tokens ...float64) hooks.Event {
	return fire("input_ids", hooks.I64, []int{1, len(tokens)}, tokens...)
}
