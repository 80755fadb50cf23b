package gemma_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// byPosition cuts a tensor into what belongs to each position of the sequence. Of a key axis only the keys that the
// position may see are kept: a pass shows as many others as its cache holds.
func byPosition(e *order.Entry, x hooks.Tensor, past, window int, into map[int][]float64) {
	v := values(x)
	token, key := strings.IndexRune(e.Axes, order.AxisToken), strings.IndexRune(e.Axes, order.AxisKey)
	strides := make([]int, len(x.Shape))
	n := 1
	for i := len(x.Shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= x.Shape[i]
	}
	tokens := x.Shape[token]
	for i, value := range v {
		position := past + i/strides[token]%tokens
		if key >= 0 {
			keys := x.Shape[key]
			k := past + tokens - keys + i/strides[key]%keys
			if k > position || e.Shape[key] == order.SSliding && k <= position-window {
				continue
			}
		}
		into[position] = append(into[position], value)
	}
}

// decodeError runs the same tokens in one pass and in several, and returns the entry with a token axis whose values
// differ most between them. offset is added to the positions of the later passes.
func decodeError(t *testing.T, m model, tokens []int, prefill, offset int) (worst, int) {
	t.Helper()
	collect := func(passes [][]int) map[string]map[int][]float64 {
		rows := map[string]map[int][]float64{}
		starts := []int{0}
		for _, p := range passes {
			starts = append(starts, starts[len(starts)-1]+len(p))
		}
		var reg hooks.Registry
		must(t, reg.Replace("position_ids", func(e hooks.Event) (hooks.Tensor, error) {
			if e.Pass == 0 {
				return hooks.Tensor{}, nil
			}
			moved := hooks.Tensor{DType: e.Tensor.DType, Shape: e.Tensor.Shape, Data: make([]byte, len(e.Tensor.Data))}
			for i := 0; i < len(moved.Data); i += 8 {
				binary.LittleEndian.PutUint64(moved.Data[i:], binary.LittleEndian.Uint64(e.Tensor.Data[i:])+uint64(offset))
			}
			return moved, nil
		}))
		must(t, reg.Observe("*", func(e hooks.Event) error {
			entry, _ := m.list.Lookup(e.Name)
			if !strings.ContainsRune(entry.Axes, order.AxisToken) {
				return nil
			}
			if rows[e.Name] == nil {
				rows[e.Name] = map[int][]float64{}
			}
			byPosition(entry, e.Tensor, starts[e.Pass], m.list.Config.SlidingWindow, rows[e.Name])
			return nil
		}))
		m.run(t, hooks.F32, &reg, passes)
		return rows
	}
	steps := [][]int{tokens[:prefill]}
	for _, id := range tokens[prefill:] {
		steps = append(steps, []int{id})
	}
	whole, stepped := collect([][]int{tokens}), collect(steps)
	w := worst{}
	for name, rows := range whole {
		var a, b []float64
		for p := range tokens {
			a, b = append(a, stepped[name][p]...), append(b, rows[p]...)
		}
		if len(a) != len(b) || len(b) == 0 {
			t.Fatalf("%s: %d values in steps, %d in one pass", name, len(a), len(b))
		}
		err := relL2(a, b)
		if math.IsNaN(err) {
			t.Errorf("%s is not a number", name)
		}
		if err > w.err {
			w = worst{name, err}
		}
	}
	return w, len(whole)
}

// Decode equals prefill at the same positions, for a prompt that leaves the window behind where there is one, with shared
// layers, in every entry with a token axis.
func TestDecodeEqualsPrefill(t *testing.T) {
	for _, name := range checkpoints {
		m := openModel(t, name)
		window := max(m.list.Config.SlidingWindow, 2)
		tokens := ids(2*window+6, m.list.Config.VocabSize)
		for _, prefill := range []int{1, window - 1, window + 3, window + 4} {
			w, entries := decodeError(t, m, tokens, prefill, 0)
			t.Logf("%s, %d tokens then %d steps: %d entries, worst %.1e (%s)", name, prefill, len(tokens)-prefill, entries, w.err, w.name)
			if entries == 0 || w.err > 1e-6 {
				t.Errorf("%s, %d tokens then steps: %s differs by %.1e", name, prefill, w.name, w.err)
			}
		}
		if w, _ := decodeError(t, m, tokens, window+3, 1); w.err < 1e-3 {
			t.Errorf("%s: positions of decode steps were moved by one, and the worst entry (%s) differs by %.1e only", name, w.name, w.err)
		}
	}
}
