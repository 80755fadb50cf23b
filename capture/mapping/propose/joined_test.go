package propose_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// Of fewer key heads than ranks, each is on several ranks: the map says on how many, and the report which of them do not agree.
func TestKeyHeadsOnSeveralRanks(t *testing.T) {
	const ranks, name = 4, "layers.%d.self_attn.k_rope"
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, torn := range []bool{false, true} {
		sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
		for l := range list.Config.NumLayers {
			r, data := mappingtest.Raw(t, trace, 0, fmt.Sprintf(name, l))
			part := len(data) / list.Config.NumKVHeads
			for rank := range ranks {
				own := bytes.Clone(data[rank*list.Config.NumKVHeads/ranks*part:][:part])
				if torn && l == 1 && rank == 3 {
					own[1] ^= 1
				}
				key := fmt.Sprintf("rank%d/h%d.k", rank, l)
				sources = append(sources, capture.Source{Key: key, Name: key, DType: r.DType, Shape: []int{1, 1, r.Shape[2], r.Shape[3]}, Data: bytes.NewReader(own)})
			}
		}
		dump := mappingtest.Assembled(t, sources...)
		p, text := proposed(t, dump, list, trace)
		want := `"rank{R}/h{L}.k" = { to = "layers.{L}.self_attn.k_rope", axes = "1 h t c -> 1 h t c", join = "h/2" } # values: 3 of 3`
		if !strings.Contains(text, want) || !strings.Contains(text, "; the ranks concatenated, 2 have each part\n") || p.Open() > 0 {
			t.Fatalf("it lacks %s\n%s", want, text)
		}
		a := remade(t, dump, list, text)
		for l := range list.Config.NumLayers {
			_, got := mappingtest.Raw(t, a.Trace, 0, fmt.Sprintf(name, l))
			if _, data := mappingtest.Raw(t, trace, 0, fmt.Sprintf(name, l)); !bytes.Equal(got, data) {
				t.Errorf("layer %d has other values", l)
			}
		}
		said := "layers.1.self_attn.k_rope is not the same on the 2 ranks that have a part: R 2 and R 3 differ in 1 of 60 elements"
		if torn != (len(a.Differ) == 1) || torn && !strings.HasPrefix(a.Differ[0], said) {
			t.Errorf("%q", a.Differ)
		}
	}
}

// How many ranks have a part is a number of ranks, with an axis.
func TestCopiesAreOfAnAxis(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump := mappingtest.Assembled(t, copied(t, trace, "rank0/n", "norm", 0), copied(t, trace, "rank1/n", "norm", 0), copied(t, trace, "rank2/n", "norm", 0))
	for join, want := range map[string]string{
		"c/1": "want an axis and how many ranks", "c/x": "want an axis and how many ranks", "sum/2": "want an axis and how many ranks",
		"z/2": "no axis is called z", "c/2": "3 parts, which is not a multiple of the 2 ranks",
	} {
		m, err := mapping.Parse("map.toml", []byte(`[tensors]
"rank{R}/n" = { to = "norm", axes = "b t c -> b t c", join = "`+join+`" }`))
		if err == nil {
			_, err = m.Apply(dump, list)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v, want %s", join, err, want)
		}
	}
}
