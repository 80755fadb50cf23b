package compare_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A side that declares every entry, and whose attention is one kernel in some modules, misses nothing that the kernel keeps to itself.
// It misses what other modules do not show, and whatever stands outside of attention.
func TestFusedAttentionDeclaresNothingInside(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	for _, c := range []struct {
		what    string
		fused   []string
		typed   []string // by a flag
		dropped string   // beside what is inside attention
		missing int      // entries, counted by hand: one of each layer, or all of one
		exit    int
	}{
		{"in all modules", []string{"*.self_attn"}, nil, "", 0, 0},
		{"in all modules, by their paths", []string{"layers.0.self_attn", "layers.1.self_attn", "layers.2.self_attn"}, nil, "", 0, 0},
		{"in all modules, as typed", nil, []string{"*"}, "", 0, 0},
		{"not said", nil, nil, "", 3*8 + 2, 1},
		{"in one module of three", []string{"layers.1.self_attn"}, nil, "", 2*8 + 1, 1}, // which alone reads mask.full
		{"what stands outside", []string{"*"}, nil, "layers.1.mlp.act_fn", 1, 1},
	} {
		local := testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Fused = c.fused }, func(_ string, e hooks.Event) []hooks.Event {
			_, inside, _ := strings.Cut(e.Name, ".self_attn.")
			kept := slices.Contains([]string{"q_proj", "k_proj", "v_proj", "q_norm", "k_norm", "context", "o_proj"}, inside)
			if inside != "" && !kept || strings.HasPrefix(e.Name, "mask.") || e.Name == c.dropped {
				return nil
			}
			return []hooks.Event{e}
		})
		_, list := ordertest.Embedded(t, "gemma3-tiny")
		res := run(t, local, golden, compare.Options{Order: list, Sides: compare.Sides{Fused: c.typed}})
		if len(res.Missing) != c.missing || res.ExitCode() != c.exit {
			t.Errorf("%s: exit %d, %d missing, want %d and %d: %v", c.what, res.ExitCode(), len(res.Missing), c.exit, c.missing, res.Missing)
		}
	}
}
