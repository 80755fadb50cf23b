package diagnose_test

import (
	"testing"

	"github.com/tracediff/tracediff/order"
)

// A vector of the checkpoint that no entry reads is named where it multiplies what a product is taken of; another vector is not.
func TestVectorsThatNoEntryReads(t *testing.T) {
	m, e := uneven(t)
	spare := order.Weight{Name: "layers.1.self_attn.turned_off", Shape: []int{24}}
	v, w, bias := unevenGrid(spare)[0], unevenGrid(e.Weights[0]), unevenGrid(e.Weights[1])[0]
	times := func(v []float64) []float64 {
		x := make([]float64, len(e.Call.In[0].Data))
		for i, y := range e.Call.In[0].Data {
			x[i] = f32(y * v[i%24])
		}
		return linear(x, w, bias)
	}
	const key = "vector.inserted(place=layers.*.self_attn.turned_off,of=tensor:layers.*.input_layernorm,by=weight:layers.*.self_attn.turned_off)"
	want := times(v)
	if got := found(t, m, e, want).Key(); got == key {
		t.Errorf("a vector is named that the checkpoint does not have")
	}
	m, e = uneven(t)
	m.Spare = append(m.Spare, order.Weight{Name: "layers.0.self_attn.turned_off", Shape: []int{24}}, spare)
	if got := found(t, m, e, want).Key(); got != key {
		t.Errorf("%s is found as %q", key, got)
	}
	m, e = uneven(t)
	m.Spare = append(m.Spare, spare)
	v[3] *= 1.01
	if got := found(t, m, e, times(v)).Key(); got == key {
		t.Error("a vector is named where a number differs")
	}
}
