package detectable_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/detectable"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

var numbers = regexp.MustCompile(`^layers\.\d+`)

// Where hooks are missing, the tensors that would show a mistake are named, and they are right: with them captured, it is seen.
func TestSightNamesTensors(t *testing.T) {
	for _, c := range []struct {
		golden string
		has    []string
		given  bool // by hand: no level
		least  int  // how many mistakes need other tensors
	}{
		{"llama-tiny/decode.float32", []string{"embed_tokens", "layers.*.mlp.down_proj", "layers.*", "norm", "logits"}, true, 12},
		{"gemma3-tiny/decode.float32", []string{"embed_tokens", "layers.*.input_layernorm", "layers.*.self_attn.o_proj", "layers.*.mlp.down_proj", "layers.*", "norm", "logits"}, false, 6},
		{"gemma2-tiny/decode.bfloat16", []string{
			"embed_tokens", "layers.*.input_layernorm", "layers.*.self_attn.q_proj", "layers.*.self_attn.k_proj", "layers.*.self_attn.v_proj", "layers.*.self_attn.o_proj",
			"layers.*.post_attention_layernorm", "layers.*.pre_feedforward_layernorm", "layers.*.mlp.gate_proj", "layers.*.mlp.up_proj", "layers.*.mlp.down_proj",
			"layers.*.post_feedforward_layernorm", "layers.*", "norm", "logits",
		}, true, 16},
	} {
		t.Run(c.golden, func(t *testing.T) {
			whole := testengine.OpenGolden(t, "golden/"+c.golden+".safetensors")
			dir, _, _ := strings.Cut(c.golden, "/")
			ck, list := ordertest.Embedded(t, dir)
			sight := func(has []string) *detectable.Sight {
				some := testengine.Rewritten(t, whole, func(m *capture.Manifest) { m.Entries, m.Scope = nil, capture.Scope{} }, func(_ string, e hooks.Event) []hooks.Event {
					if strings.HasSuffix(e.Name, "_ids") || slices.Contains(has, numbers.ReplaceAllString(e.Name, "layers.*")) {
						return []hooks.Event{e}
					}
					return nil
				})
				i, err := compare.NewIsolator(some, list, reference.Weights(ck, some.Manifest().DType), isolate.Options{Given: c.given})
				if err != nil {
					t.Fatal(err)
				}
				s, err := detectable.Find(t.Context(), i.Forms, 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			few, all := sight(c.has), sightOf(t, c.golden, 0, nil)
			named := map[string][]string{} // mistakes by the tensors that show them
			n := 0
			for _, u := range few.Unseen {
				if len(u.Capture) == 0 {
					if slices.Contains(all.Seen, u.Name) && u.ShownBy == detectable.ByNumbers {
						t.Errorf("%s is seen where everything is captured, and is said to need %s", u.Name, u.ShownBy)
					}
					continue
				}
				n++
				if !strings.Contains(u.ShownBy, u.Capture[0]) {
					t.Errorf("%s: %q does not say %v", u.Name, u.ShownBy, u.Capture)
				}
				if strings.HasSuffix(u.ShownBy, " in float32") {
					continue
				}
				key := strings.Join(u.Capture, " ")
				named[key] = append(named[key], u.Name)
			}
			if n < c.least {
				t.Errorf("%d of %d unseen mistakes have the tensors that show them, want %d", n, len(few.Unseen), c.least)
			}
			keys := slices.Sorted(maps.Keys(named))
			if strings.HasSuffix(c.golden, "bfloat16") { // which takes longer
				keys = keys[:1]
			}
			for _, tensors := range keys {
				mistakes := named[tensors]
				more := sight(append(slices.Clone(c.has), strings.Fields(tensors)...))
				for _, name := range mistakes {
					if !slices.Contains(more.Seen, name) {
						t.Errorf("with %s %s is not seen", tensors, name)
					}
				}
			}
		})
	}
}
