package program_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Some rows of a mask are the rows of the whole mask, and take the room of these rows: the mask of a long prompt is never there as a whole.
func TestSomeRowsOfAMask(t *testing.T) {
	const tokens, past = 2000, 100
	positions := make([]float64, tokens)
	for k := range positions {
		positions[k] = float64(past + k)
	}
	for _, o := range []op.Mask{{}, {Window: 300}} {
		call := program.Call{Arith: brain, In: []program.Value{tensor(positions, 1, tokens)}, Shape: []int{1, 1, tokens, past + tokens}}
		whole, err := program.Eval(o, call)
		if err != nil {
			t.Fatal(err)
		}
		call.Some = &program.Some{Axis: 2, Keep: []int{0, 7, 8, 1999}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		some, err := program.Eval(o, call)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 8*tokens*(past+tokens)/20 {
			t.Errorf("window %d: four rows of %d took %d bytes", o.Window, past+tokens, took)
		}
		for k, row := range call.Some.Keep {
			if want := whole.Data[row*(past+tokens):][:past+tokens]; !slices.Equal(some.Data[k*(past+tokens):][:past+tokens], want) {
				t.Errorf("window %d: row %d is another", o.Window, row)
			}
		}
	}
}
