package diagnose_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// narrowJudge compares a result with a tensor of a narrower type.
type narrowJudge struct {
	*honest
	dtype hooks.DType
}

// Leaves lists the elements that are not within the bound of a result before it is rounded.
func (h *narrowJudge) Leaves(x program.Value, limit int) ([]int, error) {
	var left []int
	for i, v := range x.Data {
		if (h.y[i] < floats.Round(h.dtype, v-x.Bound[i]) || h.y[i] > floats.Round(h.dtype, v+x.Bound[i])) && len(left) < limit {
			left = append(left, i)
		}
	}
	return left, nil
}

// Explains reports whether a program gives all elements.
func (h *narrowJudge) Explains(p *program.Program, c program.Call) (all bool, shown, rows int, err error) {
	x, err := p.Eval(c)
	if err != nil {
		return false, 0, 0, err
	}
	left, err := h.Leaves(x, len(h.y))
	return len(left) == 0, len(h.e.Left), 3, err
}

// Angles that are computed in bfloat16, with rounded frequencies and products, are named in a float32 model and in one of bfloat16.
func TestAnglesInFewerBitsInPlainLoopsAreNamed(t *testing.T) {
	wide := func(x float64) float64 { return f32(x) }
	narrow := func(x float64) float64 { return floats.Round(hooks.BF16, x) }
	cut := func(x float64) float64 { // toward zero
		return math.Float64frombits(math.Float64bits(x) &^ (1<<45 - 1))
	}
	for _, c := range []struct {
		name                   string
		model                  hooks.DType
		frequency, angle, last func(x float64) float64
		key                    string
	}{
		{"all", hooks.F32, narrow, narrow, narrow, "precision.up-to(of=function:cos,dtype=bfloat16)"},
		{"frequency and angle", hooks.F32, narrow, narrow, wide, "precision.up-to(of=step:rotary.angle,dtype=bfloat16)"},
		{"angle", hooks.F32, wide, narrow, wide, "rope.angles-rounded(place=positions,dtype=bfloat16)"},
		{"frequency", hooks.F32, narrow, wide, wide, "rope.frequencies-rounded(place=inv_freq,dtype=bfloat16)"},
		{"cut", hooks.F32, cut, cut, narrow, ""},
		{"right", hooks.F32, wide, wide, wide, ""},
		{"frequency and angle", hooks.BF16, narrow, narrow, narrow, "precision.one-step(of=step:rotary.angle,dtype=bfloat16)"},
		{"angle", hooks.BF16, wide, narrow, narrow, "rope.angles-rounded(place=positions,dtype=bfloat16)"},
		{"frequency", hooks.BF16, narrow, wide, narrow, "rope.frequencies-rounded(place=inv_freq,dtype=bfloat16)"},
		{"cut", hooks.BF16, cut, cut, narrow, ""},
		{"right", hooks.BF16, wide, wide, narrow, ""},
	} {
		m, e := table(t, op.Rotary{Theta: 500, Dim: 16, Scaling: "default"}, 16)
		e.Call.DType = c.model
		h := &narrowJudge{e.Judge.(*honest), c.model}
		e.Judge = h
		for i := range h.y {
			angle := c.angle(c.frequency(f32(1/f32(math.Pow(500, float64(i%8)/8)))) * float64(5+i/16))
			h.y[i] = c.last(math.Cos(angle))
		}
		right, err := e.Program.Eval(e.Call)
		if err != nil {
			t.Fatal(err)
		}
		if e.Left, err = h.Leaves(right, len(h.y)); err != nil || len(e.Left) == 0 {
			if c.name != "right" || err != nil {
				t.Errorf("%s: %v, nothing is wrong", c.name, err)
			}
			continue
		}
		f := named(t, m, e)
		if key := f.Key(); key != c.key && (c.key != "" || strings.HasPrefix(key, "precision.")) {
			t.Errorf("%s in %s: %s, not %s: %q", c.name, c.model, key, c.key, f.What)
		}
	}
}
