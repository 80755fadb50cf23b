package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// An operation that is taken of what the order computes from its result has a name: two operations are in the other order.
func TestOperationsInTheOtherOrder(t *testing.T) {
	const later = "layers.*.attn_residual"
	m := model(t)
	m.Has = func(n order.Node) bool { return order.NameOf(m.List.Entries[n.Entry].Name).Role() == later }
	var entries []*diagnose.Entry
	for _, layer := range []string{"layers.0.", "layers.2."} {
		x, err := m.Read(order.Node{Entry: m.List.Index(layer + "attn_residual")})
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, planted(t, m, layer+"input_layernorm", 0, func(_, w [][]float64) []float64 { return normed(x.Data, w[0], 1e-6) }))
	}
	if f := named(t, m, entries...); f.What != "reads layers.*.attn_residual, not layers.*.in" {
		t.Errorf("%q", f.Text())
	}
}

// An operation that gives its own input again when it is taken twice gives any wrong result of what follows from it: that says nothing.
func TestOperationsThatUndoThemselvesSayNothing(t *testing.T) {
	i := 0
	m, e := computed(t, scaledBy{-1}, func(x float64) float64 { i++; return x * (1 + math.Sin(float64(i*i))/3) })
	read := m.Read
	at := m.List.Index("layers.0.attn_residual")
	m.Has = func(n order.Node) bool { return n.Entry == at }
	m.Read = func(n order.Node) (program.Value, error) {
		if n.Entry != at {
			return read(n)
		}
		v := program.Value{Shape: e.Program.Out.Shape}
		y, _ := e.Target()
		for _, x := range y {
			v.Data = append(v.Data, -x)
		}
		return v, nil
	}
	if f := named(t, m, e); f.Named() {
		t.Errorf("%q", f.Text())
	}
}

// What a layer reads of another one is the same input in all layers: that of the first layer has another name.
func TestTheFirstLayerReadsWhatTheOthersRead(t *testing.T) {
	m := model(t)
	m.Has = func(n order.Node) bool {
		return order.NameOf(m.List.Entries[n.Entry].Name).Role() == "layers.*.input_layernorm"
	}
	var entries []*diagnose.Entry
	for _, c := range [][2]string{{"layers.0.", "embed_tokens"}, {"layers.2.", "layers.1.out"}} {
		layer, from := c[0], c[1]
		normedIn, err := m.Read(order.Node{Entry: m.List.Index(layer + "input_layernorm")})
		if err != nil {
			t.Fatal(err)
		}
		e := planted(t, m, layer+"attn_residual", 0, func(in, _ [][]float64) []float64 {
			y := make([]float64, len(in[0]))
			for i := range y {
				y[i] = float64(float32(normedIn.Data[i] + in[1][i]))
			}
			return y
		})
		e.Inputs[0].Entry = m.List.Index(from)
		entries = append(entries, e)
	}
	if f := named(t, m, entries...); f.Text() != "reads layers.*.input_layernorm, not layers.*.in" {
		t.Errorf("%q", f.Text())
	}
}

// Rows of another layer are said to be those of that layer, and where each layer has those of the one before, how far before it is.
func TestRowsOfAnotherLayer(t *testing.T) {
	for _, c := range []struct {
		from map[string]string // the layer that rows are of
		want string
	}{
		{map[string]string{"layers.2": "layers.1"}, "3 of 3 rows are rows of layers.1.input_layernorm"},
		{map[string]string{"layers.2": "layers.0"}, "3 of 3 rows are rows of layers.0.input_layernorm"},
		{map[string]string{"layers.2": "layers.0", "layers.1": "layers.0"}, "6 of 6 rows are rows of layers.0.input_layernorm"},
		{map[string]string{"layers.2": "layers.1", "layers.1": "layers.0"}, "6 of 6 rows are rows of layers.*.input_layernorm, in layer L from layer L-1"},
	} {
		m := model(t)
		m.Has = func(n order.Node) bool {
			return order.NameOf(m.List.Entries[n.Entry].Name).Role() == "layers.*.input_layernorm"
		}
		var entries []*diagnose.Entry
		for layer, from := range c.from {
			entries = append(entries, planted(t, m, layer+".input_layernorm", 0, func(_, _ [][]float64) []float64 {
				x, err := m.Read(order.Node{Entry: m.List.Index(from + ".input_layernorm")})
				if err != nil {
					t.Fatal(err)
				}
				return x.Data
			}))
		}
		if f := named(t, m, entries...); f.What != c.want {
			t.Errorf("%q, want %q", f.Text(), c.want)
		}
	}
}
