package main

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// A factor that is too small to leave what some engine's roundings allow, one by one, is found by what rows have in common:
// in all entries of a form, and in one row of one entry.
func TestCommonFactorIsNoArithmetic(t *testing.T) {
	for _, tt := range []struct {
		what, golden string
		level        int
		pattern      string
		row          int // −1: all of them
		by           float32
		wrong        string // the first entry that is flagged
	}{
		{"all norms", "decode", 3, "*norm", -1, 1.004, "per_layer_projection_norm"},
		{"the norm without a weight, of five layers", "decode", 3, "*.v_norm", -1, 1.004, "layers.0.self_attn.v_norm"},
		{"all probabilities", "decode", 3, "*.probs_f32", -1, 1.001, "layers.0.self_attn.probs_f32"},
		{"a norm that was not captured", "decode", 2, "*.altup.*.router_norm", -1, 1.03, "layers.0.altup.predict.modalities"},
		{"one row of a norm", "window", 3, "layers.2.self_attn.v_norm", 1, 1.006, "layers.2.self_attn.v_norm"},
		{"one row of probabilities", "window", 3, "layers.3.self_attn.probs_f32", 1, 1.012, "layers.3.self_attn.probs_f32"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			golden, passes, ck, list := goldenFile(t, "gemma3n-tiny", tt.golden+".bfloat16")
			width := func(e *order.Entry) int {
				size := e.Size(order.Pass{Tokens: len(passes[0])}, list.Config.SlidingWindow)
				return size[len(size)-1]
			}
			spoil := func(e *order.Entry, pass int, y []float32) {
				if !hooks.Match(tt.pattern, e.Name) {
					return
				}
				if tt.row >= 0 {
					y = y[tt.row*width(e):][:width(e)]
				}
				for i := range y {
					y[i] *= tt.by
				}
			}
			local := (&otherEngine{list: list, dtype: hooks.BF16, model: true, level: tt.level, spoil: spoil}).run(t, ck, passes)
			for _, args := range [][]string{{local, golden}, {"--isolate", local}} {
				code, report, rows := compareOther(t, args...)
				if code != exitMismatch || len(rows) == 0 || !strings.HasSuffix(rows[0], tt.wrong) {
					t.Errorf("%v: exit %d, flagged %v, want %s first\n%s", args, code, rows, tt.wrong, tail(report))
				}
			}
		})
	}
}
