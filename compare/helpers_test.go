package compare_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
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

// The traces of these tests are written as those of the independent engine are.

func fire(name string, d hooks.DType, shape []int, values ...float64) hooks.Event {
	return testengine.Fire(name, d, shape, values...)
}

func in(pass int, e hooks.Event) hooks.Event { return testengine.InPass(pass, e) }

func appendValue(b []byte, d hooks.DType, v float64) []byte { return floats.Append(b, d, v) }

func manifest(side string, d hooks.DType) capture.Manifest { return testengine.Manifest(side, d) }

func build(t testing.TB, m capture.Manifest, events ...hooks.Event) *capture.Trace {
	t.Helper()
	return testengine.Build(t, m, events...)
}

func open(t testing.TB, path string) *capture.Trace {
	t.Helper()
	return testengine.Open(t, path)
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

// run compares, or tests a trace alone where there is no reference, or fails.
func run(t testing.TB, l, r *capture.Trace, o compare.Options) *compare.Result {
	t.Helper()
	return made(t, l, o, func(o compare.Options) (*compare.Result, error) { return traces(l, r, o) })
}

// traces compares, or tests a trace alone where there is no reference.
func traces(l, r *capture.Trace, o compare.Options) (*compare.Result, error) {
	if r == nil {
		return compare.Alone(context.Background(), l, o)
	}
	return compare.Traces(context.Background(), l, r, o)
}

// runAB compares two traces of which neither is right, or fails.
func runAB(t testing.TB, a, b *capture.Trace, o compare.Options) *compare.Result {
	t.Helper()
	return made(t, a, o, func(o compare.Options) (*compare.Result, error) {
		return compare.AB(context.Background(), a, b, o)
	})
}

// made makes a comparison, or fails.
func made(t testing.TB, l *capture.Trace, o compare.Options, of func(o compare.Options) (*compare.Result, error)) *compare.Result {
	t.Helper()
	if o.Confirmer == nil && o.Isolator == nil && o.Order != nil && o.Order.Config != nil {
		o.Confirmer = confirmer(l, o.Order)
	}
	res, err := of(o)
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

// rowOf compares two tensors and returns the row.
func rowOf(t testing.TB, p testengine.Pair) compare.Row {
	t.Helper()
	l, r := p.Traces(t)
	return run(t, l, r, compare.Options{Order: names(t, "x")}).Rows[0]
}
