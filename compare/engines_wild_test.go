package compare_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
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
		paths, err := filepath.Glob("../fixtures/wild/" + name + "/*.bfloat16.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		if len(paths) == 0 {
			t.Skip("needs fixtures/wild: traces of mlx-lm and keras-hub")
		}
		for _, path := range paths {
			checkpoint, _, _ := strings.Cut(filepath.Base(path), ".")
			t.Run(name+" "+checkpoint, func(t *testing.T) {
				ck, list := openModel(t, checkpoint)
				g := engine{adder: adder{block: 1, lanes: 1}, dtype: hooks.BF16}
				rng := rand.New(rand.NewPCG(1, 1))
				e := &namedEngine{name: name, dtype: hooks.BF16, choose: always(style(name, g, rng))}
				if name == "keras" {
					e.choose = kerasOf(list, g, rng)
				}
				r := e.start(t, ordertest.Case{Checkpoint: ck, List: list}, e.choose, nil)
				if n := r.replay(open(t, path), wildMistakes[name+" "+checkpoint]); n < 1000 {
					t.Errorf("%d elements are no sample", n)
				}
			})
		}
	}
}

// replay computes a trace again from its own tensors, and returns how many elements were the same.
func (r *engineRun) replay(tr *capture.Trace, mistakes []string) (same int) {
	r.t.Helper()
	passes, err := tr.IDs()
	if err != nil {
		r.t.Fatal(err)
	}
	past := 0
	for pass, ids := range passes {
		r.old, r.now = r.now, map[string]dense{}
		for i := range r.c.List.Entries {
			e := &r.c.List.Entries[i]
			shape := e.Size(order.Pass{Past: past, Tokens: len(ids)}, r.c.List.Config.SlidingWindow)
			if y, given := arguments(e, shape, past, ids); given {
				r.now[e.Name] = y
				continue
			}
			y := r.compute(e, r.choose(e, len(ids)), shape, r.now, r.old, nil)
			if rec, ok := tr.Lookup(pass, e.Name); ok && rec.DType.Float() && slices.Equal(rec.Shape, shape) {
				same += r.hold(tr, rec, e, y, mistakes)
			}
			r.now[e.Name] = y
		}
		past += len(ids)
	}
	return same
}

// hold compares a tensor of the trace with what was computed in its place, which it takes.
func (r *engineRun) hold(tr *capture.Trace, rec capture.Record, e *order.Entry, y dense, mistakes []string) (same int) {
	r.t.Helper()
	stored, err := tr.Read(rec)
	if err != nil {
		r.t.Fatal(err)
	}
	values := valuesOf(stored)
	unequal := 0
	for i, v := range values {
		if v != y.data[i] && !(v < lowest(r.dtype)/2 && y.data[i] < lowest(r.dtype)/2) { // masked, either way
			unequal++
		}
	}
	copy(y.data, values)
	_, cache := e.Op.(op.Cache)
	if cache || rec.DType != r.dtype || slices.ContainsFunc(mistakes, func(end string) bool { return strings.HasSuffix(e.Name, end) }) {
		return 0
	}
	if unequal > 0 {
		r.t.Errorf("%s of pass %d: %d of %d elements are not the engine's", e.Name, rec.Pass, unequal, len(values))
	}
	return len(values) - unequal
}
