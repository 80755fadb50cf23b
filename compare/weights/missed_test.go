package weights_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
)

// spreadOver are n numbers from low to high, in no order.
func spreadOver(n int, low, high float64, d hooks.DType) *tensor {
	x := &tensor{shape: []int{n}, values: make([]float64, n)}
	state := uint64(11)
	for i := range x.values {
		state = state*6364136223846793005 + 1442695040888963407
		x.values[i] = low + (high-low)*float64(state>>40)/(1<<24)
	}
	x.cast(d)
	return x
}

// against compares one tensor with its original.
func against(t *testing.T, x *tensor, d hooks.DType, original []float64) weights.Row {
	t.Helper()
	side := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: x.shape, DType: d, Data: bytes.NewReader(encode(d, original))}}}
	return find(t, compare(t, checkpoint{"w": x}, side), "w")
}

// TestATensorThatWasNotLoadedIsNoCast: rounded to eight bits or to nothing, every tensor is ones or zeros.
func TestATensorThatWasNotLoadedIsNoCast(t *testing.T) {
	for _, from := range []hooks.DType{hooks.BF16, hooks.F32} {
		for _, to := range []hooks.DType{hooks.BF16, hooks.F16, hooks.F32} {
			for _, tt := range []struct{ low, high, value float64 }{{0.98, 1.05, 1}, {-9e-4, 9e-4, 0}, {0.9999, 1.0009, 1}, {-1e-9, 1e-9, 0}} {
				x := spreadOver(256, tt.low, tt.high, from)
				original := slices.Clone(x.values)
				x.dtype = to
				x.each(func(float64) float64 { return tt.value })
				honest := &tensor{values: slices.Clone(original)}
				if honest.cast(to); slices.Equal(honest.values, x.values) && tt.value != 0 || slices.Equal(original, x.values) {
					continue // the cast of the original is just that
				}
				if row := against(t, x, from, original); row.Class.Right() {
					t.Errorf("%s to %s, all %g: %s %s", from, to, tt.value, row.Class, row.Rounding)
				}
			}
		}
	}
}
