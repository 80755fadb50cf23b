package propose_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/order"
)

// nameless gives the tensors of a dump names that mean nothing: blocks.3.attn.q_rot becomes s3.t8z. It returns the pattern of the new name by that of the old one.
func nameless(t *testing.T, dump *capture.Trace) (*capture.Trace, map[string]string) {
	t.Helper()
	to := map[string]string{}
	sources := dump.Sources()
	for i := range sources {
		s := &sources[i]
		if s.Name == order.InputIDs {
			continue
		}
		front, base := "", s.Name
		if parts := strings.SplitN(s.Name, ".", 3); len(parts) == 3 {
			front, base = "s"+parts[1]+".", "blocks.{L}."+parts[2]
		}
		if to[base] == "" {
			to[base] = fmt.Sprintf("t%dz", len(to)+100) // no layer has such a number
			if front != "" {
				to[base] = "s{L}." + to[base]
			}
		}
		s.Name = front + strings.TrimPrefix(to[base], "s{L}.")
		s.Key = s.Name
	}
	return mappingtest.Assembled(t, sources...), to
}

// A port that reads another tensor than it should: rotated queries are told by the operation, though their name says nothing and their values are wrong.
func TestOtherOperandsTellWhatATensorIs(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	layer := 0
	named, weights := wrongPort(t, "gemma3-tiny", trace, list, "layers.{L}.self_attn.q_rope", func(x []float64, of func(string) []float64) {
		e, _ := list.Lookup(fmt.Sprintf("layers.%d.self_attn.q_rope", layer))
		layer++
		q, cos, sin := of("layers.{L}.self_attn.q_proj"), of(e.Inputs[1].Name), of(e.Inputs[2].Name) // not q_norm
		heads, size := int(e.Shape[1]), int(e.Shape[3])
		tokens := len(x) / heads / size
		for h := range heads {
			for token := range tokens {
				from := q[(token*heads+h)*size:][:size]
				for i := range size {
					turned := -from[(i+size/2)%size]
					if i >= size/2 {
						turned = from[i-size/2]
					}
					x[(h*tokens+token)*size+i] = from[i]*cos[token*size+i] + turned*sin[token*size+i]
				}
			}
		}
	})
	dump, to := nameless(t, named)
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]propose.Line{}
	for _, l := range p.Lines {
		got[l.From] = l
		t.Log(l.From, l.To, l.Why)
	}
	for _, names := range ownNames {
		if l := got[to[names[0]]]; strings.Join(l.To, " ") != names[1] {
			t.Errorf("%s is %v, want %s", names[0], l.To, names[1])
		}
	}
	const why = "a guess: recomputed from layers.{L}.self_attn.q_proj in place of layers.{L}.self_attn.q_norm: 3 of 3"
	if l := got[to["blocks.{L}.attn.q_rot"]]; l.By != "guess" || !strings.HasPrefix(l.Why, why) {
		t.Errorf("%s, by %q, want %s", l.Why, l.By, why)
	}
}
