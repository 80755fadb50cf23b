package testengine_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// wildMistakes are where an engine computes something else than transformers, and not only in another arithmetic: by engine and
// checkpoint, the ends of names.
var wildMistakes = map[string][]string{
	"mlx gemma-tiny":  {"mlp.act_fn"},                     // the GELU of erf
	"mlx gemma3n-odd": {"altup.init", "altup.final.mean"}, // no floor below magnitudes
}

// The arithmetics called mlx and keras are those of mlx-lm and keras-hub: from the inputs that their own traces hold, each bfloat16
// tensor is theirs to the last bit. What has float32 is left out, since libraries differ there, and so are caches, whose slots
// may lie in another order.
func TestNamedEnginesAreTheRealOnes(t *testing.T) {
	for _, name := range []string{"mlx", "keras"} {
		paths, err := filepath.Glob("../../fixtures/wild/" + name + "/*.bfloat16.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) == 0 {
			t.Skip("needs fixtures/wild: traces of mlx-lm and keras-hub")
		}
		for _, path := range paths {
			checkpoint, _, _ := strings.Cut(filepath.Base(path), ".")
			t.Run(name+" "+checkpoint, func(t *testing.T) {
				ck, list := ordertest.Embedded(t, checkpoint)
				g := testengine.Kernels{Adder: testengine.Adder{Block: 1, Lanes: 1}, DType: hooks.BF16}
				rng := rand.New(rand.NewPCG(1, 1))
				e := &testengine.Engine{Name: name, DType: hooks.BF16, Choose: testengine.Always(testengine.Style(name, g, rng))}
				if name == "keras" {
					e.Choose = testengine.KerasOf(list, g, rng)
				}
				r := e.Start(t, ordertest.Case{Checkpoint: ck, List: list}, e.Choose, nil)
				if n := replayed(t, r, testengine.Open(t, path), wildMistakes[name+" "+checkpoint]); n < 1000 {
					t.Errorf("%d elements are no sample", n)
				}
			})
		}
	}
}

// replayed computes a trace again from its own tensors, and returns how many elements were the same.
func replayed(t *testing.T, r *testengine.Run, tr *capture.Trace, mistakes []string) (same int) {
	t.Helper()
	r.Replay(tr, func(rec capture.Record, e *order.Entry, y testengine.Tensor) {
		same += held(t, tr, rec, e, y, mistakes)
	})
	return same
}

// held compares a tensor of the trace with what was computed in its place, which it takes.
func held(t *testing.T, tr *capture.Trace, rec capture.Record, e *order.Entry, y testengine.Tensor, mistakes []string) (same int) {
	t.Helper()
	const d = hooks.BF16 // of the engines
	stored, err := tr.Read(rec)
	if err != nil {
		t.Fatal(err)
	}
	values := testengine.ValuesOf(stored)
	unequal := 0
	for i, v := range values {
		if v != y.Data[i] && !(v < testengine.Lowest(d)/2 && y.Data[i] < testengine.Lowest(d)/2) { // masked, either way
			unequal++
		}
	}
	copy(y.Data, values)
	_, cache := e.Op.(op.Cache)
	if cache || rec.DType != d || slices.ContainsFunc(mistakes, func(end string) bool { return strings.HasSuffix(e.Name, end) }) {
		return 0
	}
	if unequal > 0 {
		t.Errorf("%s of pass %d: %d of %d elements are not the engine's", e.Name, rec.Pass, unequal, len(values))
	}
	return len(values) - unequal
}
