package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// withEpsilon is a port whose norms, or the one that is named, have another epsilon. They are computed here, in plain loops.
func withEpsilon(t *testing.T, dir, golden, only string, epsilon float64) string {
	t.Helper()
	_, passes, ck, list := goldenFile(t, dir, golden)
	p := &otherEngine{list: list, dtype: hooks.F32, model: true}
	norms := 0
	p.spoil = func(e *order.Entry, _ int, y []float32) {
		o, is := e.Op.(op.RMSNorm)
		if !is || only != "" && e.Name != only {
			return
		}
		norms++
		shape := e.Size(order.Pass{Past: p.past, Tokens: p.tokens}, list.Config.SlidingWindow)
		x, n := p.in(e, 0), shape[len(shape)-1]
		var gain []float32
		if o.Gain != op.NoScale {
			var err error
			if gain, err = p.weight(e, 0); err != nil {
				panic(err)
			}
		}
		for i := range x {
			square := 0.
			for _, v := range x[i/n*n:][:n] {
				square += float64(v) * float64(v)
			}
			y[i] = float32(float64(x[i]) / math.Sqrt(square/float64(n)+epsilon))
			switch {
			case o.Gain == op.OnePlus:
				y[i] *= 1 + gain[i%n]
			case gain != nil:
				y[i] *= gain[i%n]
			}
		}
	}
	path := p.run(t, ck, passes)
	if norms == 0 {
		t.Fatalf("%s has no norm %s", dir, only)
	}
	return path
}

// What a file does not say of its dtype, its tensors show: norms with an epsilon of 1e-5 in place of 1e-6 are found in it as
// they are where the dtype is declared, and the right epsilon matches either way.
func TestEpsilonInAFileWithoutDType(t *testing.T) {
	t.Parallel()
	claims := []struct {
		what   string
		change func(f *stFile)
	}{
		{"dtype declared", func(*stFile) {}},
		{"no dtype", func(f *stFile) { delete(f.meta, "tracediff.dtype") }},
		{"no metadata", func(f *stFile) { f.meta = nil }},
	}
	for _, tt := range []struct {
		dir, golden, only string
		noIsolate         int // what a wrong epsilon is where nothing is certified and the limits decide
		slow              bool
	}{
		{"gemma3-tiny", "prefill", "", exitMismatch, false},
		{"gemma3-multimodal", "prefill", "layers.1.self_attn.q_norm", exitMismatch, false},
		{"gemma-tiny", "prefill", "", exitMismatch, false},
		{"gemma2-tiny", "prefill", "layers.1.pre_feedforward_layernorm", exitMatch, false}, // six times the noise floor; eight is the limit
		{"gemma3n-tiny", "hello", "", exitMismatch, true},
		{"gemma3n-tiny", "window", "layers.2.laurel.post_laurel_norm", exitMatch, true}, // seven times
		{"gemma3n-odd", "prefill", "", exitMismatch, true},
	} {
		if tt.slow && !allCorruptions() {
			continue
		}
		for _, epsilon := range []float64{1e-5, 1e-6} {
			port, err := os.ReadFile(withEpsilon(t, tt.dir, tt.golden+".float32", tt.only, epsilon))
			must(t, err)
			golden, _, _, _ := goldenFile(t, tt.dir, tt.golden+".float32")
			path := filepath.Join(t.TempDir(), "port.safetensors")
			for _, claim := range claims {
				f := readST(t, port)
				claim.change(f)
				must(t, os.WriteFile(path, f.bytes(), 0o666))
				for _, use := range []struct {
					want int
					args []string
				}{
					{exitMismatch, []string{path, golden}},
					{exitMismatch, []string{"--isolate", path}},
					{tt.noIsolate, []string{"--no-isolate", path, golden}},
				} {
					if epsilon == 1e-6 {
						use.want = exitMatch
					}
					var out, errOut bytes.Buffer
					code := run(append([]string{"tracediff", "compare", "--model", "../../fixtures/" + tt.dir}, use.args...), nil, &out, &errOut)
					if code != use.want {
						t.Errorf("%s %s %s, epsilon %g, %s, %s: exit %d, want %d\n%s", tt.dir, tt.golden, tt.only, epsilon, claim.what, use.args[0], code, use.want, lastLines(out.String()+errOut.String()))
					}
				}
			}
		}
	}
}
