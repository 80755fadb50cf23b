package arithmetic_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
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

// Each step of every norm is rounded. Three elements of one norm have the bits of transformers, which no arithmetic of the search gives together with the others. That norm is
// UNIDENTIFIED, whether another norm is wrong or not.
func TestAWrongEntryIsNoEvidenceAgainstAnother(t *testing.T) {
	const mixed, wrong = 1, 4
	for _, wrongToo := range []bool{false, true} {
		changed := 0
		_, z := normsOf(t, 7, 32, 16, func(int) string { return "norms" }, func(layer int, y []float64, by func(string) []float64) {
			for i, v := range by("strict") {
				if layer == mixed && v != y[i] && changed < 3 {
					y[i] = v
					changed++
				}
				if layer == wrong && wrongToo && i < 64 {
					y[i] *= 2
				}
			}
		})
		if changed < 3 {
			t.Fatalf("%d elements differ between the two arithmetics", changed)
		}
		for k, c := range z {
			want := isolate.Rounding
			switch {
			case strings.HasPrefix(k, fmt.Sprintf("layers.%d.", mixed)):
				want = isolate.Unidentified
			case wrongToo && strings.HasPrefix(k, fmt.Sprintf("layers.%d.", wrong)):
				want = isolate.Bug
			}
			if c.Outcome != want {
				t.Errorf("another norm is wrong: %t: %s is %s, not %s: %d of %d elements, arithmetic %q", wrongToo, k, c.Outcome, want, c.Outside, c.Elements, c.Arithmetic)
			}
		}
	}
}
