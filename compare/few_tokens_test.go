package compare_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/certify"
	"github.com/tracediff/tracediff/hooks"
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
		c := engineCase{drawn, drawNamed("strict", hooks.BF16, drawn.List, rand.New(rand.NewPCG(uint64(seed), 51))), seed}.longOf(84, 3_000)
		c.drop = append(c.drop, "scores", "scores_masked", "scores_softcap", "probs", "probs_f32", "mask.full", "mask.sliding", "cos", "sin", "q_rope", "k_rope", "context")
		short := another(func(o op.Mask, _ *calc) op.Op { o.Window--; return o })
		r := c.start(t, c.Case, c.strict, &damage{mistake{"window too narrow", nil, short}, map[string]bool{"mask.sliding": true}})
		all := c.outcomes(t, r.run())
		changed := 0
		for _, a := range r.apart {
			if !strings.HasSuffix(a.name, "o_proj") || a.tokens == 1 {
				continue
			}
			changed++
			if z := all[a.name]; z.Outcome != certify.Bug || !strings.Contains(z.Mistake, "the window is 63") {
				t.Errorf("seed %d, %s: %s, %q: %s", seed, a.name, z.Outcome, z.Mistake, z.Arithmetic)
			}
		}
		if changed == 0 {
			t.Errorf("seed %d: the window shows nowhere", seed)
		}
	}
}
