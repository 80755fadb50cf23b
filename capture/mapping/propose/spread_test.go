package propose_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// remade is what a map makes of a dump.
func remade(t *testing.T, dump *capture.Trace, list *order.List, text string) *mapping.Applied {
	t.Helper()
	m, err := mapping.Parse("map.toml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	a, err := m.Apply(dump, list)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return a
}

// Query, key and value, or gate and up, may have an axis of their own, in any place; so may the queries of a key head beside its key and value.
func TestFusedTensorsWithAnAxisOfTheirOwn(t *testing.T) {
	qkv := []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}
	for _, c := range []struct {
		model string
		parts []string
		// shape is of the parts side by side, with tokens in front; to is the order of its axes in the dump.
		shape func(c *order.Config, tokens int) []int
		to    []int
		heads bool // the parts lie side by side within each key head
		want  string
	}{
		{"llama-tiny", qkv, func(c *order.Config, t int) []int { return []int{t, 3, c.NumHeads, c.HeadDim} }, []int{0, 1, 2, 3}, false, `axes = "t s `},
		{"llama-tiny", qkv, func(c *order.Config, t int) []int { return []int{t, 3, c.NumHeads, c.HeadDim} }, []int{1, 0, 2, 3}, false, `axes = "s t `},
		{"llama-tiny", qkv, func(c *order.Config, t int) []int { return []int{t, 3, c.NumHeads, c.HeadDim} }, []int{1, 2, 0, 3}, false, `axes = "s h t d -> 1 t (s h d)", split = "s: 1 | 1 | 1"`},
		{"llama-tiny", qkv, func(c *order.Config, t int) []int { return []int{t, 3, c.NumHeads * c.HeadDim} }, []int{0, 1, 2}, false, `axes = "t s c -> 1 t (s c)", split = "s: 1 | 1 | 1"`},
		{"gemma3-tiny", qkv[1:], func(c *order.Config, t int) []int { return []int{t, 2, c.NumKVHeads, c.HeadDim} }, []int{1, 0, 2, 3}, false, `axes = "s t `},
		{"gemma3-tiny", []string{"mlp.gate_proj", "mlp.up_proj"}, func(c *order.Config, t int) []int { return []int{t, 2, c.IntermediateSize[0]} }, []int{1, 0, 2}, false, `axes = "s t c -> 1 t (s c)", split = "s: 1 | 1"`},
		{"gemma3-tiny", qkv, func(c *order.Config, t int) []int {
			return []int{t, c.NumKVHeads, c.NumHeads/c.NumKVHeads + 2, c.HeadDim}
		}, []int{0, 1, 2, 3}, true, `axes = "t k s d -> 1 t (k s d)", split = "s: 2 | 1 | 1"`},
	} {
		t.Run(fmt.Sprint(c.model, len(c.parts), c.to, c.heads), func(t *testing.T) {
			trace, list := mappingtest.Golden(t, c.model+"/prefill.float32")
			sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
			for l := range list.Config.NumLayers {
				r, _ := mappingtest.Raw(t, trace, 0, fmt.Sprintf("layers.%d.%s", l, c.parts[0]))
				data := sideBySide(t, trace, l, c.parts, c.heads, list.Config.NumKVHeads)
				shape := c.shape(list.Config, r.Shape[1])
				turned, data := turned(shape, c.to, data, r.DType.Size())
				sources = append(sources, capture.Source{Name: fmt.Sprintf("h%d.mixed", l), Key: fmt.Sprintf("h%d.mixed", l), DType: hooks.F32, Shape: turned, Data: bytes.NewReader(data)})
			}
			dump := mappingtest.Assembled(t, sources...)
			p, text := proposed(t, dump, list, trace)
			if !strings.Contains(text, c.want) || !strings.Contains(text, "# values: 3 of 3") || len(p.Choices)+len(p.Left) > 0 {
				t.Fatalf("it lacks %s\n%s", c.want, text)
			}
			made := remade(t, dump, list, text).Trace
			for l := range list.Config.NumLayers {
				for _, of := range c.parts {
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

// sideBySide are the rows of some tensors of a layer, of each token behind each other: whole, or the parts of each key head.
func sideBySide(t *testing.T, trace *capture.Trace, layer int, parts []string, heads bool, keyHeads int) (data []byte) {
	t.Helper()
	of, pieces, tokens := make([][]byte, len(parts)), 1, 0
	for i, part := range parts {
		r, b := mappingtest.Raw(t, trace, 0, fmt.Sprintf("layers.%d.%s", layer, part))
		of[i], tokens = b, r.Shape[1]
	}
	if heads {
		pieces = keyHeads
	}
	for at := range tokens * pieces {
		for _, b := range of {
			n := len(b) / (tokens * pieces)
			data = append(data, b[at*n:][:n]...)
		}
	}
	return data
}

// turned puts the axes of a tensor into another order; to has the old places.
func turned(shape, to []int, data []byte, size int) (now []int, out []byte) {
	strides, n := make([]int, len(shape)), size
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i], n = n, n*shape[i]
	}
	for _, a := range to {
		now = append(now, shape[a])
	}
	index := make([]int, len(shape))
	for len(out) < len(data) {
		at := 0
		for i, a := range to {
			at += index[i] * strides[a]
		}
		out = append(out, data[at:at+size]...)
		for i := len(now) - 1; i >= 0; i-- {
			if index[i]++; index[i] < now[i] {
				break
			}
			index[i] = 0
		}
	}
	return now, out
}
