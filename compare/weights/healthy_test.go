package weights_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
)

func TestHealthyPortsAreSilent(t *testing.T) {
	tests := []struct {
		name            string
		fixture         string
		port            func(checkpoint)
		equal           int // tensors; -1: whatever is not cast
		notes, ofTensor string
	}{
		{name: "the same", fixture: "llama-tiny", equal: 51},
		{name: "in float32", fixture: "llama-tiny", port: func(c checkpoint) {
			for _, x := range c {
				x.dtype = hooks.F32
			}
		}, equal: 51},
		{name: "cast to float16", fixture: "gemma3n-tiny", port: func(c checkpoint) {
			for _, x := range c {
				x.cast(hooks.F16)
			}
		}, equal: -1},
		{name: "without prefix", fixture: "gemma3-tiny", port: func(c checkpoint) {
			for name, x := range c {
				delete(c, name)
				c[strings.TrimPrefix(name, "model.")] = x
			}
		}, equal: -1},
		{name: "with two prefixes", fixture: "gemma3-tiny", port: func(c checkpoint) {
			for name, x := range c {
				delete(c, name)
				c["module.language_model."+name] = x
			}
		}, equal: -1},
		{name: "names of GGUF", fixture: "llama-tiny", port: ggufNames, equal: 51},
		{name: "folded, as the map says", fixture: "gemma3-tiny", port: func(c checkpoint) {
			for name, x := range c {
				if strings.HasSuffix(name, "norm.weight") {
					fold(x, 1)
					x.add = 1
				}
			}
		}, equal: -1, notes: "the file has 1+w", ofTensor: "model.norm.weight"},
		{name: "query, key and value as one", fixture: "llama-tiny", port: func(c checkpoint) {
			for _, l := range []string{"0", "1", "2"} {
				for _, tail := range []string{"weight", "bias"} {
					p := "model.layers." + l + ".self_attn."
					q, k, v := c[p+"q_proj."+tail], c[p+"k_proj."+tail], c[p+"v_proj."+tail]
					shape := slices.Clone(q.shape)
					shape[0] *= 3
					c[p+"qkv_proj."+tail] = &tensor{shape: shape, dtype: q.dtype, values: slices.Concat(q.values, k.values, v.values)}
					for _, n := range []string{"q", "k", "v"} {
						delete(c, p+n+"_proj."+tail)
					}
				}
			}
		}, equal: 51},
		{name: "gate and up as one", fixture: "gemma3-tiny", port: func(c checkpoint) {
			p := "model.layers.1.mlp."
			g, u := c[p+"gate_proj.weight"], c[p+"up_proj.weight"]
			c[p+"gate_up_proj.weight"] = &tensor{shape: []int{80, 16}, dtype: g.dtype, values: slices.Concat(g.values, u.values)}
			delete(c, p+"gate_proj.weight")
			delete(c, p+"up_proj.weight")
		}, equal: -1},
		{name: "a head that is a copy of the embedding", fixture: "gemma3-tiny", port: func(c checkpoint) { c["lm_head.weight"] = c["model.embed_tokens.weight"] }, equal: -1, notes: "copy of the embedding", ofTensor: "lm_head.weight"},
		{name: "a vocabulary padded with zeros", fixture: "gemma3-tiny", port: func(c checkpoint) {
			x := c["model.embed_tokens.weight"]
			x.shape, x.values = []int{192, 16}, append(slices.Clone(x.values), make([]float64, 32*16)...)
		}, equal: -1, notes: "32 rows of zeros", ofTensor: "model.embed_tokens.weight"},
		{name: "an axis of 1 more", fixture: "gemma3-tiny", port: func(c checkpoint) { c["model.norm.weight"].shape = []int{1, 16} }, equal: -1, notes: "shape", ofTensor: "model.norm.weight"},
		{name: "gate and up in ffn_up", fixture: "llama-tiny", port: func(c checkpoint) {
			for _, l := range []string{"0", "1", "2"} {
				p := "model.layers." + l + ".mlp."
				g, u := c[p+"gate_proj.weight"], c[p+"up_proj.weight"]
				c["blk."+l+".ffn_up.weight"] = &tensor{shape: []int{2 * g.shape[0], g.shape[1]}, dtype: g.dtype, values: slices.Concat(g.values, u.values)}
				delete(c, p+"gate_proj.weight")
				delete(c, p+"up_proj.weight")
			}
		}, equal: 51},
		{name: "an optimizer beside the weights", fixture: "llama-tiny", port: func(c checkpoint) {
			for name, x := range c {
				delete(c, name)
				c["model_state_dict."+name] = x
			}
			c["optimizer.state.0.exp_avg"] = &tensor{shape: []int{2}, dtype: hooks.F32, values: []float64{1, 2}}
		}, equal: 51},
		{name: "frequencies beside the weights", fixture: "llama-tiny", port: func(c checkpoint) {
			c["model.layers.0.self_attn.rotary_emb.inv_freq"] = &tensor{shape: []int{4}, dtype: hooks.F32, values: []float64{1, 0.1, 0.01, 0.001}}
		}, equal: 51},
		{name: "a mask and positions beside the weights", fixture: "llama-tiny", port: func(c checkpoint) {
			c["model.layers.0.attn.bias"] = &tensor{shape: []int{1, 1, 3, 3}, dtype: hooks.F32, values: []float64{1, 0, 0, 1, 1, 0, 1, 1, 1}}
			c["model.layers.0.attn.masked_bias"] = &tensor{shape: []int{}, dtype: hooks.F32, values: []float64{-1e9}}
			c["model.position_ids"] = &tensor{shape: []int{1, 4}, dtype: hooks.F32, values: []float64{0, 1, 2, 3}}
		}, equal: 51},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port, original := open(t, tt.fixture)
			if tt.port != nil {
				tt.port(port)
			}
			r := compare(t, port, original)
			for _, x := range r.Tensors {
				if !x.Class.Right() {
					t.Errorf("%s: %s %s: %s", x.Name, x.Class, x.Kind, x.What)
				}
			}
			if !r.Right() || len(r.Findings) > 0 {
				t.Errorf("not right: %+v", r.Findings)
			}
			if tt.equal > 0 && r.Counts.Equal != tt.equal {
				t.Errorf("%d tensors are equal, want %d", r.Counts.Equal, tt.equal)
			}
			if tt.notes != "" && !strings.Contains(strings.Join(find(t, r, tt.ofTensor).Notes, "\n"), tt.notes) {
				t.Errorf("notes %q, want %q", find(t, r, tt.ofTensor).Notes, tt.notes)
			}
		})
	}
}

// ggufNames gives the names of GGUF files.
func ggufNames(c checkpoint) {
	names := strings.NewReplacer("model.layers.", "blk.", "self_attn.q_proj", "attn_q", "self_attn.k_proj", "attn_k", "self_attn.v_proj", "attn_v", "self_attn.o_proj", "attn_output",
		"input_layernorm", "attn_norm", "post_attention_layernorm", "ffn_norm", "mlp.gate_proj", "ffn_gate", "mlp.up_proj", "ffn_up", "mlp.down_proj", "ffn_down",
		"model.embed_tokens", "token_embd", "model.norm", "output_norm", "lm_head", "output")
	for name, x := range c {
		delete(c, name)
		c[names.Replace(name)] = x
	}
}

// TestRoundings has one tensor of float32 that the port has in other formats.
func TestRoundings(t *testing.T) {
	values := make([]float64, 64*64)
	state := uint64(3)
	for i := range values {
		state = state*6364136223846793005 + 1442695040888963407
		values[i] = float64(float32(float64(int64(state)>>11) / (1 << 50)))
	}
	cut := func(bits uint32) func(float64) float64 {
		return func(x float64) float64 { return float64(math.Float32frombits(math.Float32bits(float32(x)) &^ bits)) }
	}
	tests := []struct {
		name  string
		make  func(*tensor)
		class weights.Class
		kind  weights.Kind
		round string
	}{
		{"bfloat16", func(x *tensor) { x.cast(hooks.BF16) }, weights.Cast, "", "bfloat16, to nearest even"},
		{"float16", func(x *tensor) { x.cast(hooks.F16) }, weights.Cast, "", "float16, to nearest even"},
		{"bfloat16 in float32", func(x *tensor) { x.cast(hooks.BF16); x.dtype = hooks.F32 }, weights.Cast, "", "bfloat16, to nearest even"},
		{"float32 in float64", func(x *tensor) { x.dtype = hooks.F64 }, weights.Equal, "", ""},
		{"bfloat16, cut off", func(x *tensor) { x.each(cut(0xffff)); x.dtype = hooks.BF16 }, weights.Mistake, weights.CutOff, "bfloat16, low bits cut off"},
		{"bfloat16 by way of float16", func(x *tensor) { x.cast(hooks.F16); x.cast(hooks.BF16) }, weights.Mistake, weights.Rounded, "bfloat16 by way of float16"},
		{"float16 by way of bfloat16", func(x *tensor) { x.cast(hooks.BF16); x.cast(hooks.F16) }, weights.Mistake, weights.Rounded, "float16 by way of bfloat16"},
		{"one element cut off", func(x *tensor) {
			odd := slices.IndexFunc(x.values, func(v float64) bool {
				return math.Float32bits(float32(v))&0x8000 != 0 && math.Float32bits(float32(v))&0xffff != 0x8000
			})
			wrong := cut(0xffff)(x.values[odd])
			x.cast(hooks.BF16)
			x.values[odd] = wrong
		}, weights.Mistake, weights.Rounded, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			original := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: []int{64, 64}, DType: hooks.F32, Data: bytes.NewReader(encode(hooks.F32, values))}}}
			x := &tensor{shape: []int{64, 64}, dtype: hooks.F32, values: slices.Clone(values)}
			tt.make(x)
			row := find(t, compare(t, checkpoint{"w": x}, original), "w")
			if row.Class != tt.class || row.Kind != tt.kind || row.Rounding != tt.round {
				t.Errorf("got %s %s %q: %s", row.Class, row.Kind, row.Rounding, row.What)
			}
		})
	}
}

// TestNothingComparedIsNotRight: silence is no pass.
func TestNothingComparedIsNotRight(t *testing.T) {
	r, err := weights.Compare(context.Background(), weights.Side{}, weights.Side{}, weights.Options{})
	if err != nil || r.Right() {
		t.Errorf("two empty checkpoints: right %v, error %v", r.Right(), err)
	}
}

// TestAFileThatShrinksIsAnError: what cannot be read is never equal.
func TestAFileThatShrinksIsAnError(t *testing.T) {
	port, original := open(t, "llama-tiny")
	side := port.side()
	side.Tensors[3].Data = bytes.NewReader(make([]byte, 8))
	if r, err := weights.Compare(context.Background(), side, original, weights.Options{}); err == nil {
		t.Errorf("no error: %+v", r.Counts)
	}
}

// TestAnInterruptedComparisonIsAnError: what was not read is not wrong, and not right either.
func TestAnInterruptedComparisonIsAnError(t *testing.T) {
	port, original := open(t, "llama-tiny")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// The context ends after the first pair, while none is being read.
	_, err := weights.Compare(ctx, port.side(), original, weights.Options{Workers: 1, Progress: func(done, all int64) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
