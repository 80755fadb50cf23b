package compare_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// Up to three tensors of a trace are of any shape and dtype: the comparison comes to its end, alone and with a reference,
// and accuses no other entry.
func TestTensorsOfAnyKindAreJudged(t *testing.T) {
	dtypes := []hooks.DType{hooks.F32, hooks.F64, hooks.BF16, hooks.F16, hooks.I32, hooks.I64, hooks.Bool, hooks.F8E4M3}
	accused := 0
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dir := []string{"gemma3n-tiny", "gemma3-tiny"}[rng.IntN(2)]
		golden := testengine.OpenGolden(t, "golden/"+dir+"/decode.float32.safetensors")
		var keys, said []string
		for range 1 + rng.IntN(3) {
			if r := golden.Records()[rng.IntN(len(golden.Records()))]; r.Name != "input_ids" {
				keys = append(keys, r.Key)
			}
		}
		local := testengine.Rewritten(t, golden, nil, func(key string, e hooks.Event) []hooks.Event {
			if !slices.Contains(keys, key) {
				return []hooks.Event{e}
			}
			shape, d := otherShape(rng, e.Tensor.Shape), dtypes[rng.IntN(len(dtypes))]
			values := elementsOf(e.Tensor)
			e.Tensor = fire(e.Name, d, shape, values...).Tensor
			said = append(said, fmt.Sprintf("%s %s %v", key, d, shape))
			if rng.IntN(8) == 0 {
				return []hooks.Event{e, e}
			}
			return []hooks.Event{e}
		})
		for _, root := range append(isolated(t, dir, local, nil).Roots, isolated(t, dir, local, golden).Roots...) {
			accused++
			if !slices.Contains(keys, root) && !slices.ContainsFunc(keys, func(key string) bool { return root == key+"#1" }) {
				t.Errorf("%q: %s is accused", said, root)
			}
		}
	}
	if accused < 10 {
		t.Errorf("%d tensors of the wrong kind are accused in 10 runs", accused)
	}
}

// otherShape draws a shape near another one, now and then the same.
func otherShape(rng *rand.Rand, shape []int) []int {
	shape = slices.Clone(shape)
	switch rng.IntN(6) {
	case 0:
		return shape[1:]
	case 1:
		return append(shape, 1)
	case 2:
		shape[rng.IntN(len(shape))] = rng.IntN(4)
	case 3:
		rng.Shuffle(len(shape), func(i, j int) { shape[i], shape[j] = shape[j], shape[i] })
	case 4:
		return nil
	}
	return shape
}
