package propose_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/order"
)

// Layers may be counted from 1, and their numbers may begin with zeros.
func TestNumbersOfLayers(t *testing.T) {
	trace, list := mappingtest.Golden(t, "qwen3-tiny/prefill.float32")
	entries := map[string]string{"lna": "input_layernorm", "kk": "self_attn.k_proj", "res": "out"}
	for _, c := range []struct {
		name string
		from int
		to   string // the layer in a target
		want bool
	}{
		{"layer%d/", 1, "{L-1}", true},
		{"h.%02d.", 0, "{L}", true},
		{"h.%02d.", 1, "{L-1}", true},
		{"h%d_", 1, "{L-1}", true},
		{"h%d_", 2, "", false}, // the model has no such layers
	} {
		t.Run(fmt.Sprint(c.name, c.from), func(t *testing.T) {
			sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
			for l := range list.Config.NumLayers {
				for mine, of := range entries {
					s := copied(t, trace, fmt.Sprintf(c.name, l+c.from)+mine, fmt.Sprintf("layers.%d.%s", l, of), 1)
					if mine == "lna" { // of layer 1 it has axes that those of the others do not fit
						s.Shape = []int{s.Shape[0], 2, s.Shape[1] / 2}
						if l == 1 {
							s.Shape = []int{s.Shape[0] * 2, s.Shape[2]}
						}
					}
					sources = append(sources, s)
				}
			}
			dump := mappingtest.Assembled(t, sources...)
			p, text := proposed(t, dump, list, trace)
			if !c.want {
				if slices.ContainsFunc(p.Lines, func(l propose.Line) bool { return strings.Contains(l.From, "{L}") }) {
					t.Error(text)
				}
				return
			}
			at := strings.NewReplacer("%d", "{L}", "%02d", "{L}").Replace(c.name)
			for mine, of := range entries {
				if want := fmt.Sprintf("%q = %q # values: 3 of 3, ", at+mine, "layers."+c.to+"."+of); mine != "lna" && !strings.Contains(text, want) {
					t.Errorf("it lacks %s", want)
				}
			}
			if len(p.Choices)+len(p.Left) > 0 || t.Failed() {
				t.Fatal(text)
			}
			made := remade(t, dump, list, text).Trace
			for l := range list.Config.NumLayers {
				for _, of := range entries {
					name := fmt.Sprintf("layers.%d.%s", l, of)
					_, got := mappingtest.Raw(t, made, 0, name)
					if _, want := mappingtest.Raw(t, trace, 0, name); !bytes.Equal(got, want) {
						t.Errorf("%s has other values\n%s", name, text)
					}
				}
			}
		})
	}
}

// A number in two spellings tells no layer: both tensors would get one name. Nor does one of names that are the order's own.
func TestNumbersOfNoLayers(t *testing.T) {
	trace, list := mappingtest.Golden(t, "qwen3-tiny/prefill.float32")
	inputs := copied(t, trace, order.InputIDs, order.InputIDs, 0)
	_, text := proposed(t, mappingtest.Assembled(t, inputs, copied(t, trace, "h.1.res", "layers.1.out", 1), copied(t, trace, "h.01.res", "layers.1.out", 1)), list, trace)
	if strings.Contains(text, `"h.{L}.res" =`) {
		t.Error(text)
	}
	sources := []capture.Source{inputs}
	for l := range list.Config.NumLayers {
		sources = append(sources, copied(t, trace, fmt.Sprintf("layers.%d.out", l+1), fmt.Sprintf("layers.%d.out", l), 0), copied(t, trace, fmt.Sprintf("layers.%d.x", l+1), fmt.Sprintf("layers.%d.input_layernorm", l), 0))
	}
	if _, text := proposed(t, mappingtest.Assembled(t, sources...), list, trace); strings.Contains(text, "{L-1}") {
		t.Error(text)
	}
}
