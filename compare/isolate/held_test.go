package isolate_test

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// walked is the walk over passes in bfloat16.
func walked(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, passes [][]int) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	job := reference.Job{Checkpoint: ck, List: list, DType: hooks.BF16, Passes: passes, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}}}
	if _, err := reference.Walk(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	return testengine.Open(t, path)
}

// A product with a large weight is certified by the bounds of a sample where each of its elements is the rounded value, or as near to it as
// its own bound allows; where one is not, by all bounds.
func TestLargeProductsAreSampled(t *testing.T) {
	c := ordertest.DrawWith(t, "gemma", 3, func(config map[string]any) {
		config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"] = 1024, 1056, 1
	})
	const name = "layers.0.mlp.gate_proj"
	passes := [][]int{{1, 5, 7}}
	right := walked(t, c.Checkpoint, c.List, passes)
	certificate := func(trace *capture.Trace) *isolate.Certificate {
		i, err := compare.NewIsolator(trace, c.List, reference.Weights(c.Checkpoint, hooks.BF16), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := i.Certify(context.Background(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	i, err := compare.NewIsolator(right, c.List, reference.Weights(c.Checkpoint, hooks.BF16), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := compare.Alone(t.Context(), right, compare.Options{Order: c.List, All: true, Certification: compare.Certification{Isolator: i}})
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Contradiction(); err != nil {
		t.Error(err)
	}
	if n := whole.Isolation.Sampled; n != 3 { // gate_proj, up_proj, down_proj
		t.Errorf("%d rows are sampled, want 3", n)
	}
	changed := func(by int) *capture.Trace {
		return testengine.Tampered(t, right, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
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
	if exact.Outcome != isolate.Exact || exact.Sampled == 0 || exact.Sampled > exact.Elements/7 || !(exact.Power > 0) || !(exact.Reach > 0 && exact.Reach < 1e-3) {
		t.Errorf("the walk's own: %+v", exact)
	}
	if wrong := certificate(changed(1)); wrong.Outcome != isolate.Bug || wrong.Outside != 1 || wrong.Sampled != exact.Sampled || wrong.Worst != 1 {
		t.Errorf("one element is the next number: %+v", wrong)
	}
}

// A sample decides nothing by itself: where its channels are all but zero its reach is far above that of all elements, which is then computed. Nor
// does an infinite weight take the bounds from the channels beside its own.
func TestSamplesThatDecideNothing(t *testing.T) {
	const name, n, rows = "layers.0.mlp.gate_proj", 1024, 1056
	c := ordertest.DrawWith(t, "gemma", 3, func(config map[string]any) {
		config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"] = n, rows, 1
	})
	passes := [][]int{{5}}
	in, err := walked(t, c.Checkpoint, c.List, passes).Value(0, "layers.0.post_attention_layernorm")
	if err != nil {
		t.Fatal(err)
	}
	certificate := func(weights []checkpointtest.Tensor, change func(data []float64)) *isolate.Certificate {
		t.Helper()
		ck, err := checkpoint.OpenFS("random", fstest.MapFS{"config.json": {Data: c.Config}, "model.safetensors": {Data: checkpointtest.File(weights)}})
		if err != nil {
			t.Fatal(err)
		}
		trace := testengine.Tampered(t, walked(t, ck, c.List, passes), func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
			if key != name || change == nil {
				return nil, 0
			}
			change(data)
			return data, hooks.BF16
		})
		i, err := compare.NewIsolator(trace, c.List, reference.Weights(ck, hooks.BF16), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := i.Certify(context.Background(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	with := func(set func(row, column int, w float64) float64) []checkpointtest.Tensor {
		weights := slices.Clone(c.Weights)
		for i, w := range weights {
			if w.Name != "model."+name+".weight" {
				continue
			}
			list := make([]float64, n*rows)
			if err := floats.Decode(list, w.DType, w.Data); err != nil {
				t.Fatal(err)
			}
			for at, v := range list {
				list[at] = set(at/n, at%n, v)
			}
			weights[i].Tensor = testengine.Fire("", hooks.BF16, w.Shape, list...).Tensor
		}
		return weights
	}
	const changed = 8 // the first channel that is not in the sample
	cancels := with(func(row, column int, w float64) float64 {
		block := row / 8
		switch {
		case row != changed && block%8 != block/8%8:
			return w
		case column == 0:
			return in.Data[1] / 32
		case column == 1:
			return -in.Data[0] / 32
		}
		return 0
	})
	near := certificate(cancels, func(data []float64) { data[changed] = 0x1p-40 })
	if near.Outcome != isolate.Rounding || near.Sampled != 0 || !(near.Reach > 0 && near.Reach < 1e-3) {
		t.Errorf("a sample of channels that are zero: %+v", near)
	}
	infinite := certificate(with(func(row, column int, w float64) float64 {
		if row == changed+1 && column == 0 {
			return math.Inf(1)
		}
		return w
	}), nil)
	if infinite.Outcome != isolate.Exact || infinite.Unbounded != 1 { // its own
		t.Errorf("beside a channel of infinities: %+v", infinite)
	}
}
