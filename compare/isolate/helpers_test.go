package isolate_test

import (
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// tiny is the order of the tiny checkpoint.
func tiny(t testing.TB) *order.List {
	t.Helper()
	_, list := ordertest.Embedded(t, "gemma3n-tiny")
	return list
}

// tokensOf is the input of a pass.
func tokensOf(tokens ...float64) hooks.Event {
	return testengine.Fire(order.InputIDs, hooks.I64, []int{1, len(tokens)}, tokens...)
}

// compared compares two traces, or fails.
func compared(t testing.TB, local, reference *capture.Trace, o compare.Options) *compare.Result {
	t.Helper()
	r, err := compare.Traces(t.Context(), local, reference, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
