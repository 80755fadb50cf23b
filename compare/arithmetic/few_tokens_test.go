package arithmetic_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A window that is one key short changes little, of the tokens beyond it alone. From position 3,000 on the bounds of another way to make rotary tables hold
// that change. But the tables are those of transformers, to the bit in all other tokens: it is a mistake, and has its name.
func TestAWindowIsNoWayOfMakingTables(t *testing.T) {
	for _, seed := range []int{6, 7} {
		drawn := ordertest.DrawWith(t, []string{"gemma3_text", "gemma2"}[seed%2], seed, func(config map[string]any) {
			ordertest.Acceptable(config)
			config["sliding_window"] = 64
			config["max_position_embeddings"] = 1 << 20
		})
		c := testengine.Case{Case: drawn, Engine: testengine.Draw("strict", hooks.BF16, drawn.List, rand.New(rand.NewPCG(uint64(seed), 51))), Number: seed}.WithPrompt(84, 3_000)
		c.Drop = append(c.Drop, "scores", "scores_masked", "scores_softcap", "probs", "probs_f32", "mask.full", "mask.sliding", "cos", "sin", "q_rope", "k_rope", "context")
		short := testengine.Another(func(o op.Mask, _ *testengine.Call) op.Op { o.Window--; return o })
		r := c.Start(t, c.Case, c.Strict, &testengine.Damage{Mistake: testengine.Mistake{Name: "window too narrow", Compute: short}, At: map[string]bool{"mask.sliding": true}})
		all := certificatesOfAll(t, c, r.Trace())
		changed := 0
		for _, a := range r.Differences {
			if !strings.HasSuffix(a.Name, "o_proj") {
				continue
			}
			z := all[capture.Key(a.Pass, a.Name, 0)]
			if a.Tokens == 1 && z.Good() { // one row may be within its bounds
				continue
			}
			changed++
			if z.Outcome != isolate.Bug || !strings.Contains(z.Mistake, "the window is 63") {
				t.Errorf("seed %d, pass %d, %s: %s, %q: %s", seed, a.Pass, a.Name, z.Outcome, z.Mistake, z.Arithmetic)
			}
		}
		if changed == 0 {
			t.Errorf("seed %d: the window shows nowhere", seed)
		}
	}
}

// Layers 1 and 2 have a mask with blocks of 30 tokens. Of the first layer the bounds of float32 hold both masks, since it hardly looks beyond a block. Its
// bits tell which of the two it has.
func TestBitsTellAMistakeWithinTheBounds(t *testing.T) {
	for _, spared := range []bool{false, true} {
		ck, list := ordertest.Embedded(t, "qwen3-tiny")
		trace := attention{result: 1, alike: true, rounded: true, f32: true, block: 30, tokens: 48, faint: 16, spared: spared}.trace(t, "qwen3-tiny")
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.F32), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := compare.NewChain(i, sameInputs{})
		for _, name := range []string{"layers.2.self_attn.o_proj", "layers.0.self_attn.o_proj"} {
			l, err := c.At(t.Context(), name, 0)
			if err != nil || l.Cert == nil {
				t.Fatalf("%s: %v", name, err)
			}
			z, first := l.Cert, name[7] == '0'
			switch named := strings.Contains(z.Mistake, "within their block of 30 tokens"); {
			case first && spared:
				if z.Outcome != isolate.Rounding || z.Outside > 0 {
					t.Errorf("%s has all keys: %s, %d outside: %s", name, z.Outcome, z.Outside, z.Detail())
				}
			case z.Outcome != isolate.Bug || !named:
				t.Errorf("%s: %s, %q", name, z.Outcome, z.Mistake)
			case first && (z.Outside > 0 || z.Nearer == nil || z.FirstToken != 30 || !strings.Contains(z.Detail(), "more elements to the bit in 18 rows, and fewer in 0")):
				t.Errorf("%s: %d outside, first token %d: %s", name, z.Outside, z.FirstToken, z.Detail())
			}
		}
	}
}

// sameInputs are the facts of a trace that was given what the reference was given.
type sameInputs struct{}

func (sameInputs) Given(context.Context, int, string) (bool, error) { return true, nil }
func (sameInputs) Of(context.Context, int, string) (chain.Fact, error) {
	return chain.Fact{Compared: true, Within: true}, nil
}
