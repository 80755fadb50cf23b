package weights_test

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/hint"
)

// spreadOver are n numbers from low to high, in no order.
func spreadOver(n int, low, high float64, d hooks.DType) *tensor {
	x := &tensor{shape: []int{n}, values: make([]float64, n)}
	state := uint64(11)
	for i := range x.values {
		state = state*6364136223846793005 + 1442695040888963407
		x.values[i] = low + (high-low)*float64(state>>40)/(1<<24)
	}
	x.cast(d)
	return x
}

// against compares one tensor with its original.
func against(t *testing.T, x *tensor, d hooks.DType, original []float64) weights.Row {
	t.Helper()
	side := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: x.shape, DType: d, Data: bytes.NewReader(encode(d, original))}}}
	return find(t, compare(t, checkpoint{"w": x}, side), "w")
}

// TestATensorThatWasNotLoadedIsNoCast: rounded to eight bits or to nothing, every tensor is ones or zeros.
func TestATensorThatWasNotLoadedIsNoCast(t *testing.T) {
	for _, from := range []hooks.DType{hooks.BF16, hooks.F32} {
		for _, to := range []hooks.DType{hooks.BF16, hooks.F16, hooks.F32} {
			for _, tt := range []struct{ low, high, value float64 }{{0.98, 1.05, 1}, {-9e-4, 9e-4, 0}, {0.9999, 1.0009, 1}, {-1e-9, 1e-9, 0}} {
				x := spreadOver(256, tt.low, tt.high, from)
				original := slices.Clone(x.values)
				x.dtype = to
				x.each(func(float64) float64 { return tt.value })
				honest := &tensor{values: slices.Clone(original)}
				if honest.cast(to); slices.Equal(honest.values, x.values) && tt.value != 0 || slices.Equal(original, x.values) {
					continue // the cast of the original is just that
				}
				if row := against(t, x, from, original); row.Class.Right() {
					t.Errorf("%s to %s, all %g: %s %s", from, to, tt.value, row.Class, row.Rounding)
				}
			}
		}
	}
}

// TestCodesThatNoWriterMakes has codes each of which may lie near its number, by the step that its group has.
func TestCodesThatNoWriterMakes(t *testing.T) {
	const up = "model.layers.3.mlp.up_proj.weight"
	codes := func(by func(r float64) float64) func(*tensor) { // the codes are those of by, of numbers in steps
		return func(x *tensor) {
			_, original := open(t, "gemma3n-tiny")
			values := original.Tensors[slices.IndexFunc(original.Tensors, func(o *weights.Tensor) bool { return o.Name == up })]
			raw := make([]byte, 2*len(x.values))
			if _, err := values.Data.ReadAt(raw, 0); err != nil || values.DType != hooks.BF16 {
				t.Fatal(err, values.DType)
			}
			if err := floats.Decode(x.values, hooks.BF16, raw); err != nil {
				t.Fatal(err)
			}
			for i, v := range x.values {
				x.values[i] = min(max(x.low[i]+by((v-x.low[i])/x.step[i])*x.step[i], x.low[i]), x.high[i])
			}
		}
	}
	block := func(step float64, at, n int) func(*tensor) { // codes of zero
		return func(x *tensor) {
			for i := at; i < at+n; i++ {
				x.step[i], x.low[i], x.high[i], x.values[i] = step, -127*step, 127*step, 0
			}
		}
	}
	whole := 64 * 32
	tests := []struct {
		name  string
		to    func(*tensor)
		moves bool
		plant func(*tensor)
		right bool
	}{
		{"Q8_0", (*tensor).q8, false, func(*tensor) {}, true},
		{"Q4_1", (*tensor).q4, false, func(*tensor) {}, true},
		{"Q8_0 of a format that moves", (*tensor).q8, true, func(*tensor) {}, true},
		{"Q4_1 of a format that moves", (*tensor).q4, true, func(*tensor) {}, true},
		{"an infinite scale", (*tensor).q8, false, func(x *tensor) {
			for i := range 32 {
				x.step[i], x.low[i], x.high[i], x.values[i] = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(int(math.Copysign(1, x.values[i])))
			}
		}, false},
		{"zeros and a large scale", (*tensor).q8, false, block(64, 0, whole), false},
		{"a block of zeros and a large scale", (*tensor).q8, false, block(64, 288, 32), false},
		{"a block of zeros, of a format that moves", (*tensor).q8, true, block(0, 288, 32), false},
		{"a block of zeros of four bits, of a format that moves", (*tensor).q4, true, func(x *tensor) { x.rescale(288, 32, 0) }, false},
		{"a block twice as large, of a format that moves", (*tensor).q4, true, func(x *tensor) { x.rescale(288, 32, 2) }, false},
		{"every code one more", (*tensor).q8, false, codes(func(r float64) float64 { return math.RoundToEven(r) + 1 }), false},
		{"every code of four bits one more", (*tensor).q4, false, codes(func(r float64) float64 { return math.RoundToEven(r) + 1 }), false},
		{"codes by floor", (*tensor).q8, false, codes(math.Floor), false},
		{"codes of four bits by floor", (*tensor).q4, false, codes(math.Floor), false},
		{"codes cut off toward zero", (*tensor).q8, false, codes(func(r float64) float64 { return math.Trunc(r-127) + 127 }), false},
		{"zero points one lower, of a format that moves", (*tensor).q4, true, codes(func(r float64) float64 { return math.RoundToEven(r) + 1 }), false},
		{"steps eight times as large", (*tensor).q8, false, func(x *tensor) {
			for at := 0; at < whole; at += 32 {
				x.block(at, 32, 8*x.step[at], -127)
			}
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port, original := open(t, "gemma3n-tiny")
			x := port[up]
			if tt.to(x); x.shape[0]*x.shape[1] != whole {
				t.Fatal(x.shape)
			}
			x.moves = tt.moves
			tt.plant(x)
			row := find(t, compare(t, port, original), up)
			if row.Class.Right() != tt.right {
				t.Errorf("%s %s, at a distance of %.2g: %s", row.Class, row.Kind, row.Relative, row.What)
			}
			if alone := strings.HasSuffix(row.Rounding, weights.SizeAlone); tt.right && alone != tt.moves {
				t.Errorf("judged as %q", row.Rounding)
			}
		})
	}
}

// TestPartsThatMayNotBeMissingOrMore: a part of a tower, and rows of zeros.
func TestPartsThatMayNotBeMissingOrMore(t *testing.T) {
	without := func(words ...string) func(checkpoint) {
		return func(c checkpoint) {
			for name := range c {
				if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) }) {
					delete(c, name)
				}
			}
		}
	}
	zeros := func(names ...string) func(checkpoint) {
		return func(c checkpoint) {
			for _, name := range names {
				x := c[name]
				_, n := x.size()
				x.shape, x.values = []int{x.shape[0] + 4, n}, append(slices.Clone(x.values), make([]float64, 4*n)...)
			}
		}
	}
	tests := []struct {
		name, fixture string
		plant         func(checkpoint)
		wrong         int
		class         weights.Class
	}{
		{"no tower and no projector", "gemma3-multimodal", without("vision_tower", "multi_modal_projector"), 0, ""},
		{"a tower and no projector", "gemma3-multimodal", without("multi_modal_projector"), 2, weights.Missing},
		{"embedding and head padded", "llama-tiny", zeros("model.embed_tokens.weight", "lm_head.weight"), 0, ""},
		{"the embedding alone padded", "llama-tiny", zeros("model.embed_tokens.weight"), 1, weights.Mistake},
		{"the head alone padded", "llama-tiny", zeros("lm_head.weight"), 1, weights.Mistake},
		{"another matrix padded", "llama-tiny", zeros(layer1 + "mlp.down_proj.weight"), 1, weights.Mistake},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port, original := open(t, tt.fixture)
			tt.plant(port)
			r := compare(t, port, original)
			if r.Counts.Wrong != tt.wrong || r.Right() != (tt.wrong == 0) || tt.wrong > 0 && r.Findings[0].Class != tt.class {
				t.Errorf("%+v %+v", r.Counts, r.Findings)
			}
		})
	}
}

// TestWhatIsNotComputedIsNotLeftOut: a name is no reason to look away.
func TestWhatIsNotComputedIsNotLeftOut(t *testing.T) {
	for name, x := range map[string]*tensor{
		"model.layers.0.attn.bias":                         {shape: []int{3}, values: []float64{0.1, 0.2, 0.3}},
		"model.layers.1.attn.bias":                         {shape: []int{2, 2}, values: []float64{1, 1, 1, 1}},
		"model.layers.0.attn.masked_bias":                  {shape: []int{}, values: []float64{0}},
		"model.layers.0.self_attn.rotary_emb.inv_freq":     {shape: []int{4}, values: make([]float64, 4)},
		"model.layers.1.self_attn.rotary_emb.inv_freq":     {shape: []int{4}, values: []float64{1, math.NaN(), 0.1, 0.01}},
		"model.layers.2.self_attn.rotary_emb.inv_freq":     {shape: []int{2}, values: []float64{0.1, 1}},
		"model.layers.0.self_attn.rotary_emb.cos_cached":   {shape: []int{4}, values: make([]float64, 4)},
		"model.layers.0.self_attn.rotary_emb.position_ids": {shape: []int{2}, values: []float64{1, 2}},
		"rope_freqs.weight":                                {shape: []int{2}, values: []float64{0, 0}},
	} {
		x.dtype = hooks.F32
		port, original := open(t, "llama-tiny")
		port[name] = x
		if row := find(t, compare(t, port, original), name); row.Class != weights.Extra {
			t.Errorf("%s: %s %s", name, row.Class, row.What)
		}
	}
}

// TestTwoTensorsForOneSayWhatToDo: nothing is wrong with the disk.
func TestTwoTensorsForOneSayWhatToDo(t *testing.T) {
	port, original := open(t, "llama-tiny")
	port["module.model.norm.weight"] = port["model.norm.weight"]
	_, err := weights.Compare(context.Background(), port.side(), original, weights.Options{})
	next, _ := hint.Of(err)
	if err == nil || !strings.Contains(err.Error(), "are both the original's model.norm.weight") || !strings.Contains(next, "map") {
		t.Errorf("%v, hint %q", err, next)
	}
}

// TestSmallDifferencesAreNamedAsTheyAre has one wrong last place, a factor next to 1, and one wrong row.
func TestSmallDifferencesAreNamedAsTheyAre(t *testing.T) {
	for _, tt := range []struct {
		plant func(x *tensor)
		says  string
	}{
		{func(x *tensor) { x.values[77] = float64(math.Nextafter32(float32(x.values[77]), 9)) }, "a bit was changed"},
		{func(x *tensor) { x.each(func(v float64) float64 { return float64(float32(v * (1 + 0x1p-20))) }) }, "1.00000095"},
		{func(x *tensor) {
			for i := range x.row(3) {
				x.row(3)[i] = float64(float32(math.Sin(float64(i))))
			}
		}, "1 row differs, the first is row 3"},
	} {
		x := spreadOver(64*64, 0.5, 1.5, hooks.F32)
		x.shape = []int{64, 64}
		original := slices.Clone(x.values)
		tt.plant(x)
		if row := against(t, x, hooks.F32, original); row.Class.Right() || !strings.Contains(row.What, tt.says) {
			t.Errorf("%s: %s, want %q", row.Class, row.What, tt.says)
		}
	}
}

// A number where the original has none is another one, whatever it is; so is none where the original has one.
func TestWhatIsNoNumberIsComparedToo(t *testing.T) {
	for _, to := range []hooks.DType{hooks.F32, hooks.BF16} {
		for name, tt := range map[string]struct {
			original, local float64
			right           bool
		}{
			"NaN in both":         {math.NaN(), math.NaN(), true},
			"NaN became a number": {math.NaN(), 0.5, false},
			"a number became NaN": {0.5, math.NaN(), false},
			"infinity in both":    {math.Inf(1), math.Inf(1), true},
			"the other infinity":  {math.Inf(1), math.Inf(-1), false},
		} {
			x := spreadOver(1<<16, -1, 1, hooks.F32) // more than a sample has
			original := slices.Clone(x.values)
			original[12345] = tt.original
			x.values[12345] = tt.local
			x.cast(to)
			if row := against(t, x, hooks.F32, original); row.Class.Right() != tt.right {
				t.Errorf("%s, as %s: %s %s", name, to, row.Class, row.What)
			}
		}
	}
}
