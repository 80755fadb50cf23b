package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// turned is a table of cosines for the positions 0 to 7, of these frequencies.
type turned [8]float64

func (turned) Kind() string { return "turned" }

func (f turned) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return b.Cos("table", b.Mul("angle", in[0], b.Vector("inv_freq", f[:])))
}

// inverse are base^(−j/n), but 0 from some number on.
func inverse(base float64, n, turns int) (f turned) {
	for j := range turns {
		f[j] = float64(float32(1 / float32(math.Pow(base, float64(j)/float64(n)))))
	}
	return f
}

// Frequencies of which the last are 0, or of which some are scaled, have their base all the same: a table that has the base right is
// not told that it has another.
func TestNamesOfFrequencies(t *testing.T) {
	scaled := inverse(1e6, 8, 8)
	for j := 4; j < len(scaled); j++ {
		scaled[j] /= 4
	}
	for _, c := range []struct {
		name         string
		right, wrong turned
		want         string
	}{
		{"whole head", inverse(1e6, 8, 2), inverse(1e6, 8, 8), "the whole head is rotated, not a part: none of the 8 rotary frequencies is 0, and the last 6 should be"},
		{"more of the head", inverse(1e6, 8, 2), inverse(1e6, 8, 4), "too large a part of the head is rotated: 4 of 8 rotary frequencies are not 0, instead of 2"},
		{"another base", inverse(1e6, 8, 3), inverse(1e4, 8, 3), "theta is 10000"},
		{"exponents of the part", inverse(1e6, 8, 3), inverse(1e6, 3, 3), "the exponents of the rotary frequencies are divided by the rotated part (3), not by the whole head (8)"},
		{"the base of a part for the whole head", inverse(1e6, 2, 2), inverse(1e6, 8, 8), "the whole head is rotated, not a part: none of the 8 rotary frequencies is 0, and the last 6 should be; theta is 1e+06 for the whole head"},
		{"no scaling", scaled, inverse(1e6, 8, 8), "RoPE scaling is missing: long wavelengths are not scaled"},
	} {
		m := &diagnose.Model{
			List: &order.List{Config: &order.Config{}, Entries: []order.Entry{{Name: "positions"}, {Name: "rotary.cos", Op: c.right}}},
			Has:  func(order.Node) bool { return false }, Passes: []order.Pass{{Tokens: 8}},
		}
		positions := program.Value{Shape: []int{8, 1}, Data: []float64{0, 1, 2, 3, 4, 5, 6, 7}}
		e := &diagnose.Entry{Node: order.Node{Entry: 1}, Inputs: []order.Node{{}}, Items: []*int{nil}}
		e.Call = program.Call{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, In: []program.Value{positions}, Shape: []int{8, 8}}
		var err error
		if e.Program, err = program.Of(c.right, func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, [][]int{{8, 1}}, nil); err != nil {
			t.Fatal(err)
		}
		h := &honest{e: e}
		for p := range 8 {
			for _, f := range c.wrong {
				h.y = append(h.y, float64(float32(math.Cos(float64(float32(float64(p)*f))))))
			}
		}
		e.Judge = h
		x, err := e.Program.Eval(e.Call)
		if err != nil {
			t.Fatal(err)
		}
		e.Left, _ = h.Leaves(x, len(h.y))
		f := named(t, m, e)
		if f == nil || !strings.HasPrefix(f.What, c.want) {
			t.Errorf("%s: %+v, want %q", c.name, f, c.want)
		}
	}
}
