package propose_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// Every line that is proposed can be applied, also where an axis is as wide as several heads that are not the model's query heads behind it.
func TestProposedAxesApply(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, heads := range []int{2, 4} { // of key, and of query
		sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
		for l := range list.Config.NumLayers {
			r, data := mappingtest.Raw(t, trace, 0, fmt.Sprintf("layers.%d.self_attn.context", l))
			width := r.Shape[2] / heads
			var moved []byte
			for token := range r.Shape[1] {
				for d := range width {
					for h := range heads {
						moved = append(moved, data[(token*r.Shape[2]+h*width+d)*4:][:4]...)
					}
				}
			}
			name := fmt.Sprintf("h%d/ctx", l)
			sources = append(sources, capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape[1:], Data: bytes.NewReader(moved)})
		}
		dump := mappingtest.Assembled(t, sources...)
		p, text := proposed(t, dump, list, trace)
		if len(p.Choices)+len(p.Left) > 0 {
			t.Fatal(text)
		}
		m, err := mapping.Parse("map.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		a, err := m.Apply(dump, list)
		if err != nil {
			t.Fatalf("%d heads: %v\n%s", heads, err, text)
		}
		for l := range list.Config.NumLayers {
			name := fmt.Sprintf("layers.%d.self_attn.context", l)
			_, got := mappingtest.Raw(t, a.Trace, 0, name)
			if _, want := mappingtest.Raw(t, trace, 0, name); !bytes.Equal(got, want) {
				t.Errorf("%d heads: %s has other values\n%s", heads, name, text)
			}
		}
	}
}
