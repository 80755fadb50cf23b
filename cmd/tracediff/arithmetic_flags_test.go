package main

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// flagPort is a port that --arithmetic or --bound tells from others.
type flagPort struct {
	what  string
	dtype hooks.DType
	// change is what the port has in place of an entry.
	change func(e *order.Entry, p *otherEngine, y []float32)
	right  []string // flags by which the port is right
	wrong  []string // and by which it has a bug
}

const (
	auto, strict            = "--arithmetic auto", "--arithmetic strict"
	probabilistic, rigorous = "--bound probabilistic", "--bound rigorous"
)

// activations computes every GELU with its tanh rounded to a dtype.
func activations(d hooks.DType) func(e *order.Entry, p *otherEngine, y []float32) {
	return func(e *order.Entry, p *otherEngine, y []float32) {
		if _, is := e.Op.(op.GELUTanh); !is {
			return
		}
		for i, v := range p.in(e, 0) {
			x := float64(v)
			tanh := floats.Round(d, math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
			y[i] = p.round(float32(0.5 * x * (1 + tanh)))
		}
	}
}

// table computes every GELU as an engine does that looks it up by the input in float16, and finds it in float16.
func table(e *order.Entry, p *otherEngine, y []float32) {
	if _, is := e.Op.(op.GELUTanh); !is {
		return
	}
	for i, v := range p.in(e, 0) {
		x := floats.Round(hooks.F16, float64(v))
		y[i] = float32(floats.Round(hooks.F16, 0.5*x*(1+math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))))
	}
}

// moved changes an entry by so much of itself, up and down in turn: no factor, and no order of a sum.
func moved(entry string, by float32) func(*order.Entry, *otherEngine, []float32) {
	return func(e *order.Entry, p *otherEngine, y []float32) {
		for i := range y {
			if e.Name == entry {
				y[i] = p.round(y[i] * (1 + by*float32(1-2*(i%2))))
			}
		}
	}
}

// Flags decide which engines are right: one that rounds elsewhere, in all entries of a form, is by all but strict arithmetic, a
// sum that is further off than nearly every order makes it by the rigorous bound, a mistake by none.
func TestFlagsOfIsolation(t *testing.T) {
	t.Parallel()
	for _, port := range []flagPort{
		{"tanh is rounded to bfloat16", hooks.BF16, activations(hooks.BF16), []string{auto}, []string{strict}},
		{"GELU is looked up in a table of float16", hooks.F32, table, []string{auto}, []string{strict}},
		{"tanh is rounded to float16", hooks.F32, activations(hooks.F16), nil, []string{auto, strict}},
		{"a sum is off by more than a random walk", hooks.F32, moved("layers.2.mlp.down_proj", 3.5e-6), []string{rigorous}, []string{probabilistic, strict}},
		{"a mistake", hooks.BF16, moved("layers.2.mlp.down_proj", 3e-2), nil, []string{auto, strict, rigorous}},
	} {
		t.Run(port.what+"/"+port.dtype.String(), func(t *testing.T) {
			_, passes, ck, list := goldenFile(t, "gemma3n-tiny", "hello."+port.dtype.String())
			p := &otherEngine{list: list, dtype: port.dtype, model: true}
			p.spoil = func(e *order.Entry, _ int, y []float32) { port.change(e, p, y) }
			local := p.run(t, ck, passes)
			for want, flags := range map[int][]string{exitMatch: port.right, exitMismatch: port.wrong} {
				for _, flag := range flags {
					code, report, rows := compareOther(t, append([]string{"--isolate", local}, strings.Fields(flag)...)...)
					if code != want || strings.Contains(report, " 0 BUG") != (want == exitMatch) {
						t.Errorf("%s: exit %d, want %d; flagged %v\n%s", flag, code, want, rows, tail(report))
					}
				}
			}
		})
	}
}
