package compare_test

import (
	"context"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A product with a large weight is certified by the bounds of a sample where each of its elements is the rounded value, or as near to it as
// its own bound allows; where one is not, by all bounds.
func TestLargeProductsAreSampled(t *testing.T) {
	c := ordertest.DrawWith(t, "gemma", 3, func(config map[string]any) {
		config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"] = 1024, 1056, 1
	})
	const name = "layers.0.mlp.gate_proj"
	passes := [][]int{{1, 5, 7}}
	right := walked(t, c.Checkpoint, c.List, hooks.BF16, passes, false)
	certificate := func(trace *capture.Trace) *certify.Certificate {
		i, err := certify.NewIsolator(trace, c.List, reference.Weights(c.Checkpoint, hooks.BF16), certify.IsolateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := i.Certify(context.Background(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	i, err := certify.NewIsolator(right, c.List, reference.Weights(c.Checkpoint, hooks.BF16), certify.IsolateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole := run(t, right, right, compare.Options{Order: c.List, All: true, Isolator: i, Alone: true})
	if n := whole.Isolation.Sampled; n != 3 { // gate_proj, up_proj, down_proj
		t.Errorf("%d rows are sampled, want 3", n)
	}
	changed := func(by int) *capture.Trace {
		return tamper(t, right, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
			if key != name {
				return nil, 0
			}
			const at = 8 // the first column of a block that is not in the sample
			bits := math.Float32bits(float32(data[at])) + uint32(by)<<16
			data[at] = float64(math.Float32frombits(bits))
			return data, hooks.BF16
		})
	}
	exact := certificate(right)
	if exact.Outcome != certify.Exact || exact.Sampled == 0 || exact.Sampled > exact.Elements/7 || !(exact.Power > 0) || !(exact.Reach > 0 && exact.Reach < 1e-3) {
		t.Errorf("the walk's own: %+v", exact)
	}
	if wrong := certificate(changed(1)); wrong.Outcome != certify.Bug || wrong.Outside != 1 || wrong.Sampled != 0 {
		t.Errorf("one element is the next number: %+v", wrong)
	}
}
