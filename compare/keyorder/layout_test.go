package keyorder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// rolled moves the slots of an axis of a tensor by one: the oldest comes last, as in a ring buffer that has just written its first slot again.
func rolled(x hooks.Tensor, axis int) hooks.Tensor {
	inner := len(x.Data)
	for _, n := range x.Shape[:axis+1] {
		inner /= n
	}
	data, n := make([]byte, 0, len(x.Data)), x.Shape[axis]
	for block := 0; block < len(x.Data); block += n * inner {
		data = append(data, x.Data[block+inner:block+n*inner]...)
		data = append(data, x.Data[block:block+inner]...)
	}
	return hooks.Tensor{DType: x.DType, Shape: x.Shape, Data: data}
}

// A cache whose slots lie in another order is read from the oldest key to the newest, and so is all that has its key axis; a note says so.
// A cache as transformers has it is read as it lies.
func TestRingsAreReadInOrder(t *testing.T) {
	const layer = "layers.0.self_attn."
	right := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	ring := testengine.Rewritten(t, right, nil, func(_ string, e hooks.Event) []hooks.Event {
		entry, known := list.Lookup(e.Name)
		if known && e.Pass == 1 && strings.HasPrefix(e.Name, layer) && keyorder.KeyAxis(entry) >= 0 {
			e.Tensor = rolled(e.Tensor, keyorder.KeyAxis(entry))
		}
		return []hooks.Event{e}
	})
	usual, other := keyorder.New(right, list), keyorder.New(ring, list)
	for _, name := range []string{"keys", "values", "scores", "probs"} {
		n := order.Node{Entry: list.Index(layer + name), Pass: 1}
		want, err := right.Value(1, layer+name)
		if err != nil {
			t.Fatal(err)
		}
		for what, l := range map[string]*keyorder.Layout{"as transformers has it": usual, "a ring": other} {
			if got, err := l.Value(n); err != nil || !slices.Equal(got.Data, want.Data) {
				t.Errorf("%s, %s: not from the oldest to the newest: %v", name, what, err)
			}
		}
		if slots, err := usual.Slots(n); err != nil || slots != nil {
			t.Errorf("%s: the usual order is %v, %v", name, slots, err)
		}
		if slots, err := other.Slots(n); err != nil || len(slots) < 2 || slots[0] != len(slots)-1 || slots[1] != 0 {
			t.Errorf("%s: the order of the ring is %v, %v", name, slots, err)
		}
	}
	if notes := usual.Notes(); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	if notes := other.Notes(); len(notes) == 0 {
		t.Error("no note on the ring")
	}
}

// Keys in the wrong order are no layout where the values do not share it: one of both is wrong, and is not put right.
func TestOneOrderForKeysAndValues(t *testing.T) {
	const layer = "layers.0.self_attn."
	right := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	wrong := testengine.Rewritten(t, right, nil, func(_ string, e hooks.Event) []hooks.Event {
		if e.Pass == 1 && e.Name == layer+"keys" {
			entry, _ := list.Lookup(e.Name)
			e.Tensor = rolled(e.Tensor, keyorder.KeyAxis(entry))
		}
		return []hooks.Event{e}
	})
	if slots, err := keyorder.New(wrong, list).Slots(order.Node{Entry: list.Index(layer + "keys"), Pass: 1}); err != nil || slots != nil {
		t.Errorf("%v, %v", slots, err)
	}
}

// The order of keys without a tensor is found by the probabilities of attention. A cache that has only grown has moved no key: two wrong keys, each like the
// other by chance, are no order.
func TestOrderOfKeysByProbabilities(t *testing.T) {
	right := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	for what, c := range map[string]struct {
		layer string
		slots []int // that the keys lie in in the first decode step
		found bool
	}{
		"a window that has dropped keys, as a ring":        {"layers.0", []int{2, 3, 0, 1}, true},
		"a window that has dropped keys, in another order": {"layers.0", []int{1, 2, 0, 3}, true},
		"a cache that has grown, with the new key first":   {"layers.1", []int{1, 2, 3, 4, 5, 0}, true},
		"a cache that has grown, with two keys exchanged":  {"layers.1", []int{0, 2, 1, 3, 4, 5}, false},
		"a cache that has grown, with the oldest key last": {"layers.1", []int{5, 0, 1, 2, 3, 4}, false},
	} {
		name := c.layer + ".self_attn.probs"
		moved := testengine.Rewritten(t, right, func(m *capture.Manifest) { m.Entries = []string{name} }, func(_ string, e hooks.Event) []hooks.Event {
			if e.Name != name {
				return nil
			}
			if e.Pass == 1 {
				values, keys := testengine.ValuesOf(e.Tensor), len(c.slots)
				for i, p := range slices.Clone(values) {
					values[i/keys*keys+c.slots[i%keys]] = p
				}
				e.Tensor = testengine.Fire(name, e.Tensor.DType, e.Tensor.Shape, values...).Tensor
			}
			return []hooks.Event{e}
		})
		l := keyorder.New(moved, list)
		l.Expect = func(at order.Node) (program.Value, error) { return right.Value(at.Pass, name) }
		slots, err := l.Slots(order.Node{Entry: list.Index(name), Pass: 1})
		if err != nil || c.found && !slices.Equal(slots, c.slots) || !c.found && slots != nil {
			t.Errorf("%s: %v, %v", what, slots, err)
		}
	}
}
