package diagnose_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Numbers that differ between layers are named, also if layers have each other's number, and one is 0. They have no name if one is near to the right number: several
// mistakes change a number by little.
func TestNumbersOfLayersAreNamed(t *testing.T) {
	for _, c := range []struct {
		right, port [2]float64
		key         string // empty for no such name
	}{
		{[2]float64{0.5, 0}, [2]float64{0, 0.5}, "number.of-layers(place=rms_norm.eps,of=epsilon,axis=layers,numbers=0,0.5,NaN)"},
		{[2]float64{0.5, 0.25}, [2]float64{0.75, 0.3125}, "number.of-layers(place=rms_norm.eps,of=epsilon,axis=layers,numbers=0.75,0.312,NaN)"},
		{[2]float64{0.5, 0.25}, [2]float64{0.5039, 0.3125}, ""},
		{[2]float64{0.5, 0.25}, [2]float64{0.5039, 0.2509}, ""},
	} {
		m := model(t)
		var f []*operation
		for layer := range c.right {
			shape := []int{1, 16, 8}
			x := program.Value{Shape: shape, Data: wave(16*8, layer+1)}
			name := fmt.Sprintf("layers.%d.input_layernorm", layer)
			f = append(f, &operation{name, op.RMSNorm{Eps: c.right[layer], Gain: op.NoScale}, "btc", shape, []program.Value{x}, nil, nil})
		}
		by := func(layer int) func(in [][]float64, y []float64) {
			return func(in [][]float64, y []float64) {
				for at := 0; at < len(y); at += 8 {
					sum := 0.0
					for _, v := range in[0][at:][:8] {
						sum += v * v
					}
					for i, v := range in[0][at:][:8] {
						y[at+i] = v / math.Sqrt(sum/8+c.port[layer])
					}
				}
			}
		}
		found := named(t, m, f[0].made(t, m, by(0)), f[1].made(t, m, by(1)))
		if key := found.Key(); key != c.key && (c.key != "" || strings.HasPrefix(key, "number.of-layers")) {
			t.Errorf("%v: %s, not %s: %q", c.port, key, c.key, found.What)
		}
	}
}
