package propose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// In the first pass the cached values are those of v_proj, with heads in front of tokens. A tensor that is one of the two as it lies is that one.
func TestPlainLayoutDecides(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, of := range []string{"v_proj", "values"} {
		sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
		for l := range list.Config.NumLayers {
			sources = append(sources, copied(t, trace, fmt.Sprintf("h%d/vv", l), fmt.Sprintf("layers.%d.self_attn.%s", l, of), 1))
		}
		p, text := proposed(t, mappingtest.Assembled(t, sources...), list, trace)
		if want := `"h{L}/vv" = "layers.{L}.self_attn.` + of + `" # values: 3 of 3`; !strings.Contains(text, want) || len(p.Choices)+len(p.Left) > 0 {
			t.Errorf("it lacks %s\n%s", want, text)
		}
	}
}
