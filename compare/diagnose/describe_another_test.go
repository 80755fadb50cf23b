package diagnose_test

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// squareAnd is the sum of the square of one input and another input.
type squareAnd struct{}

func (squareAnd) Kind() string { return "square-and" }

func (squareAnd) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Add("sum", b.Mul("square", in[0], in[0]), in[1])
}

// A value within the operation that would have to be a captured tensor is described so, and one that would have to be something else is not.
func TestDescriptionsByACapturedTensor(t *testing.T) {
	const want = "layers.*.input_layernorm takes the place of step square-and.square"
	for name, off := range map[string]float64{want: 0, "": 0.25} {
		m := model(t)
		m.Has = func(n order.Node) bool {
			return order.NameOf(m.List.Entries[n.Entry].Name).Role() == "layers.*.input_layernorm"
		}
		var entries []*diagnose.Entry
		for _, layer := range []string{"layers.0.", "layers.2."} {
			m.List.Entries[m.List.Index(layer+"attn_residual")].Op = squareAnd{}
			other, err := m.Read(order.Node{Entry: m.List.Index(layer + "input_layernorm")})
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, planted(t, m, layer+"attn_residual", 0, func(in, _ [][]float64) []float64 {
				y := make([]float64, len(in[0]))
				for i := range y {
					y[i] = float64(float32(other.Data[i]*(1+off*math.Sin(float64(i*i))) + in[1][i]))
				}
				return y
			}))
		}
		f := named(t, m, entries...)
		if f.What != name || name != "" && f.Mistake.Kind != "value.other" {
			t.Errorf("%q, %v, want %q", f.What, f.Description, name)
		}
	}
}
