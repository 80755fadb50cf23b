package diagnose_test

import (
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Keys of which a norm is taken once more when they are read, those of the passes before alone, are told from keys with a norm by another epsilon.
func TestANormThatIsTakenAgainIsNamed(t *testing.T) {
	const width, eps = 12, 1e-6
	cached := operation{"layers.0.self_attn.keys", op.Cache{}, "bhsc", []int{1, 1, 6, width}, []program.Value{{Shape: []int{1, 1, 3, width}, Data: wave(3*width, 1)}, {Shape: []int{1, 1, 3, width}, Data: wave(3*width, 9)}}, nil, nil}
	search := func(eps float64) (kind, what string) {
		m := model(t)
		norm := m.List.Index("layers.0.self_attn.k_norm")
		rows, err := m.Weights(m.List.Entries[norm].Weights[0])
		if err != nil {
			t.Fatal(err)
		}
		e := cached.made(t, m, func(in [][]float64, y []float64) { copy(y, normed(in[1], rows.(vector), eps)) })
		e.Node.Pass, e.Inputs[0], e.Inputs[1] = 1, order.Node{Entry: norm, Pass: 1}, order.Node{Entry: norm}
		f := named(t, m, e)
		return string(f.Mistake.Kind), f.What
	}
	const says = "rms_norm is applied to the cached layers.*.self_attn.k_norm a second time, on reading, but only to earlier passes"
	if kind, what := search(eps); kind != "cache.operation-taken-again-before" || what != says {
		t.Errorf("%s: %q", kind, what)
	}
	if kind, what := search(0.25); kind == "cache.operation-taken-again-before" {
		t.Errorf("another epsilon is %q", what)
	}
}
