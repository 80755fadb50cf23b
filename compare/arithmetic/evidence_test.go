package arithmetic_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// An arithmetic that explains everything is not believed before it gives eight elements in two rows that transformers' does not:
// a mistake in fewer elements would find one that fits. An engine that rounds each step of its activation and is transformers
// otherwise shows how much it takes, in prompts of one token to eight.
func TestTooLittleEvidenceProvesNothing(t *testing.T) {
	const enoughElements, enoughRows = 8, 2
	little, enough := 0, 0
	for seed := range 60 {
		c := ordertest.DrawWith(t, "gemma2", seed, func(config map[string]any) {
			ordertest.Acceptable(config)
			config["num_hidden_layers"] = 1
			config["layer_types"] = []string{"full_attention"}
			config["hidden_activation"] = "gelu_pytorch_tanh"
		})
		rng := rand.New(rand.NewPCG(uint64(seed), 77))
		prompt := make([]int, 1+seed%8)
		for i := range prompt {
			prompt[i] = rng.IntN(c.List.Config.VocabSize)
		}
		c.Passes = [][]int{prompt}
		strict := testengine.Style("strict", testengine.DrawKernels(rng, hooks.BF16), rng)
		strict.Reciprocal = false
		own := strict.With("gelu_tanh.*")
		g := &testengine.Engine{Name: "activation", DType: hooks.BF16, Choose: func(*order.Entry, int) testengine.Arithmetic { return own }}
		engine := g.Start(t, c, func(*order.Entry, int) testengine.Arithmetic { return strict }, nil)
		local := engine.Trace()
		elements, rows := 0, 0
		for _, a := range engine.Differences {
			elements, rows = elements+a.Elements, rows+a.Rows
		}
		i, err := compare.NewIsolator(local, c.List, reference.Weights(c.Checkpoint, hooks.BF16), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := isolate.Rounding
		switch {
		case elements == 0:
			continue
		case elements < enoughElements || rows < enoughRows:
			want = isolate.Unidentified
			little++
		default:
			enough++
		}
		res, err := compare.Alone(t.Context(), local, compare.Options{Order: c.List, All: true, Certification: compare.Certification{Isolator: i}})
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Contradiction(); err != nil {
			t.Error(err)
		}
		for _, row := range res.Rows {
			e, _ := c.List.Lookup(row.Name)
			if _, ok := e.Op.(op.GELUTanh); ok && row.Isolated.Outcome != want {
				t.Errorf("seed %d: %d elements in %d rows: %s is %s, not %s", seed, elements, rows, row.Key(), row.Isolated.Outcome, want)
			}
		}
	}
	t.Logf("%d engines show too little, %d enough", little, enough)
	if little < 5 || enough < 5 {
		t.Errorf("%d engines that show too little and %d that show enough are no sample", little, enough)
	}
}
