package main

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// A factor of a unit or two, in all entries of a form, is no definite arithmetic. Roundings might give each element, so that
// nothing is accused, and nothing is right. In one row of one entry it is a mistake, since the others are right.
func TestCommonFactorIsNoArithmetic(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what, golden string
		level        int
		pattern      string
		row          int // −1: all of them
		by           float32
		first        string // the first entry that is not right
		wrong        bool   // it is accused
	}{
		{"all norms", "decode", 3, "*norm", -1, 1.004, "per_layer_projection_norm", false},
		{"the norm without a weight, of five layers", "decode", 3, "*.v_norm", -1, 1.004, "layers.0.self_attn.v_norm", false},
		{"all probabilities", "decode", 3, "*.probs_f32", -1, 1.001, "layers.0.self_attn.probs_f32", false},
		{"a norm that was not captured", "decode", 2, "*.altup.*.router_norm", -1, 1.03, "layers.0.altup.predict.modalities", false},
		{"one row of a norm", "window", 3, "layers.2.self_attn.v_norm", 1, 1.006, "layers.2.self_attn.v_norm", true},
		{"one row of probabilities", "window", 3, "layers.3.self_attn.probs_f32", 1, 1.012, "layers.3.self_attn.probs_f32", true},
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
				said := strings.Contains(report, " 0 BUG, ") && strings.Contains(report, string(isolate.Unidentified)+": ") && strings.Contains(report, "(the first is "+tt.first+")")
				if tt.wrong {
					said = len(rows) > 0 && strings.HasSuffix(rows[0], tt.first)
				}
				if code != exitMismatch || !said {
					t.Errorf("%v: exit %d, flagged %v, want %s first, accused %t\n%s", args, code, rows, tt.first, tt.wrong, tail(report))
				}
			}
		})
	}
}
