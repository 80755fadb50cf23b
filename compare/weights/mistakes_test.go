package weights_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
)

const layer1 = "model.layers.1."

// planted are mistakes of conversions: what is done to the port, and what has to be said of which tensor.
var planted = []struct {
	name   string
	tensor string // that is named
	plant  func(checkpoint)
	class  weights.Class
	kind   weights.Kind
	row    int    // of the first wrong element; -1: none is said
	says   string // in the sentence
	others int    // tensors that are wrong beside it
}{
	{"transposed square", layer1 + "self_attn.q_proj.weight", func(c checkpoint) { c[layer1+"self_attn.q_proj.weight"].transpose() }, weights.Mistake, weights.Transposed, 0, "[i, j] is the original's [j, i]", 0},
	{"transposed", layer1 + "mlp.up_proj.weight", func(c checkpoint) { c[layer1+"mlp.up_proj.weight"].transpose() }, weights.Mistake, weights.Transposed, -1, "transposed", 0},
	{"transposed and cast", layer1 + "self_attn.o_proj.weight", func(c checkpoint) { x := c[layer1+"self_attn.o_proj.weight"]; x.transpose(); x.cast(hooks.F16) }, weights.Mistake, weights.Transposed, 0, "transposed", 0},
	{"reshaped and not transposed", layer1 + "mlp.up_proj.weight", func(c checkpoint) { c[layer1+"mlp.up_proj.weight"].shape = []int{16, 40} }, weights.Mistake, weights.Shape, -1, "row by row", 0},
	{"query for interleaved pairs", layer1 + "self_attn.q_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.q_proj.weight"].reorder(func(i int) int { return i/8*8 + i%2*4 + i%8/2 })
	}, weights.Mistake, weights.Interleaved, 1, "each head of 8", 0},
	{"key for halves", layer1 + "self_attn.k_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.k_proj.weight"].reorder(func(i int) int { return i/8*8 + i%4*2 + i%8/4 })
	}, weights.Mistake, weights.Halves, 1, "RoPE in halves", 0},
	{"bias for interleaved pairs", layer1 + "self_attn.q_proj.bias", func(c checkpoint) {
		x := c[layer1+"self_attn.q_proj.bias"]
		old := slices.Clone(x.values)
		for i := range old {
			x.values[i] = old[i/8*8+i%2*4+i%8/2]
		}
	}, weights.Mistake, weights.Interleaved, 0, "elements 2i and 2i+1", 0},
	{"pairs of the whole tensor", layer1 + "self_attn.q_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.q_proj.weight"].reorder(func(i int) int { return i%2*8 + i/2 })
	}, weights.Mistake, weights.Interleaved, 1, "of the whole tensor", 0},
	{"heads in another order", layer1 + "self_attn.v_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.v_proj.weight"].reorder(func(i int) int { return (i + 8) % 16 })
	}, weights.Mistake, weights.RowOrder, 0, "halves have changed places", 0},
	{"heads behind elements", layer1 + "self_attn.v_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.v_proj.weight"].reorder(func(i int) int { return i%2*8 + i/2 })
	}, weights.Mistake, weights.Interleaved, 1, "i+8", 0},
	{"blocks of rows in another order", layer1 + "mlp.gate_proj.weight", func(c checkpoint) {
		c[layer1+"mlp.gate_proj.weight"].reorder(func(i int) int { return []int{2, 0, 1, 4, 3}[i/8]*8 + i%8 })
	}, weights.Mistake, weights.HeadOrder, 0, "block 0 is the original's 2", 0},
	{"output columns for other heads", layer1 + "self_attn.o_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.o_proj.weight"].reorderColumns(func(i int) int { return (i + 8) % 16 })
	}, weights.Mistake, weights.ColumnOrder, 0, "in its columns", 0},
	{"output columns for interleaved pairs", layer1 + "self_attn.o_proj.weight", func(c checkpoint) {
		c[layer1+"self_attn.o_proj.weight"].reorderColumns(func(i int) int { return i/8*8 + i%2*4 + i%8/2 })
	}, weights.Mistake, weights.Interleaved, 0, "in its columns", 0},
	{"reversed rows", layer1 + "mlp.down_proj.weight", func(c checkpoint) { c[layer1+"mlp.down_proj.weight"].reorder(func(i int) int { return 15 - i }) }, weights.Mistake, weights.RowOrder, 0, "reverse", 0},
	{"rows shifted in a ring", "model.embed_tokens.weight", func(c checkpoint) { c["model.embed_tokens.weight"].reorder(func(i int) int { return (i + 1) % 180 }) }, weights.Mistake, weights.ShiftedRows, 0, "i+1", 0},
	{"two rows swapped", "model.embed_tokens.weight", func(c checkpoint) {
		c["model.embed_tokens.weight"].reorder(func(i int) int { return map[int]int{17: 90, 90: 17}[i] + order(i != 17 && i != 90)*i })
	}, weights.Mistake, weights.RowOrder, 17, "rows 17 and 90 have changed places", 0},
	{"rows from 100 on shifted by one, the last is zero", "model.embed_tokens.weight", func(c checkpoint) {
		x := c["model.embed_tokens.weight"]
		copy(x.values[100*16:], slices.Clone(x.values[101*16:]))
		clear(x.row(179))
	}, weights.Mistake, weights.Several, 100, "rows 100 to 178 are the original's rows 101 to 179; row 179: zero", 0},
	{"one row is its neighbour", layer1 + "mlp.up_proj.weight", func(c checkpoint) { x := c[layer1+"mlp.up_proj.weight"]; copy(x.row(7), x.row(8)) }, weights.Mistake, weights.ShiftedRows, 7, "row 7 is the original's row 8", 0},
	{"one row shifted by one element", layer1 + "mlp.down_proj.weight", func(c checkpoint) { x := c[layer1+"mlp.down_proj.weight"].row(5); copy(x, slices.Clone(x[1:])) }, weights.Mistake, weights.Shifted, 5, "row 5 has the original's elements 1 places to the left", 0},
	{"read from an element too far on", layer1 + "mlp.gate_proj.weight", func(c checkpoint) { x := c[layer1+"mlp.gate_proj.weight"].values; copy(x, slices.Clone(x[3:])) }, weights.Mistake, weights.Shifted, 0, "3 elements too far on", 0},
	{"layers swapped", "model.layers.0.mlp.gate_proj.weight", swapLayers, weights.Mistake, weights.OtherLayer, 0, "layer 0 has the tensor of layer 2", 31},
	{"gate and up swapped", layer1 + "mlp.gate_proj.weight", func(c checkpoint) { swap(c, layer1+"mlp.gate_proj.weight", layer1+"mlp.up_proj.weight") }, weights.Mistake, weights.OtherTensor, 0, "it is the original's model.layers.1.mlp.up_proj.weight", 1},
	{"key and value swapped, in float32", layer1 + "self_attn.k_proj.weight", func(c checkpoint) {
		swap(c, layer1+"self_attn.k_proj.weight", layer1+"self_attn.v_proj.weight")
		c[layer1+"self_attn.k_proj.weight"].dtype = hooks.F32
	}, weights.Mistake, weights.OtherTensor, 0, "v_proj.weight", 1},
	{"two norms swapped", layer1 + "input_layernorm.weight", func(c checkpoint) { swap(c, layer1+"input_layernorm.weight", layer1+"post_attention_layernorm.weight") }, weights.Mistake, weights.OtherTensor, 0, "post_attention_layernorm", 1},
	{"one norm of another layer", "model.layers.2.input_layernorm.weight", func(c checkpoint) {
		c["model.layers.2.input_layernorm.weight"].values = slices.Clone(c["model.layers.0.input_layernorm.weight"].values)
	}, weights.Mistake, weights.OtherLayer, 0, "layer 2 has the tensor of layer 0", 0},
	{"folded", layer1 + "input_layernorm.weight", func(c checkpoint) { fold(c[layer1+"input_layernorm.weight"], 1) }, weights.Mistake, weights.Folded, 0, "1+w", 0},
	{"folded twice", layer1 + "input_layernorm.weight", func(c checkpoint) { fold(c[layer1+"input_layernorm.weight"], 2) }, weights.Mistake, weights.FoldedTwice, 0, "1 was added twice", 0},
	{"folded twice where once is meant", "model.norm.weight", func(c checkpoint) { fold(c["model.norm.weight"], 2); c["model.norm.weight"].add = 1 }, weights.Mistake, weights.FoldedTwice, 0, "1 was added twice", 0},
	{"not folded where it is meant", "model.norm.weight", func(c checkpoint) { c["model.norm.weight"].add = 1 }, weights.Mistake, weights.Unfolded, 0, "w, where", 0},
	{"1 taken off", "model.norm.weight", func(c checkpoint) { fold(c["model.norm.weight"], -1) }, weights.Mistake, weights.Unfolded, 0, "w-1", 0},
	{"head is the embedding", "lm_head.weight", func(c checkpoint) { c["lm_head.weight"].values = slices.Clone(c["model.embed_tokens.weight"].values) }, weights.Mistake, weights.Tied, 0, "tied", 0},
	{"head left out", "lm_head.weight", func(c checkpoint) { delete(c, "lm_head.weight") }, weights.Missing, weights.Tied, -1, "no head", 0},
	{"embedding scaled", "model.embed_tokens.weight", func(c checkpoint) { c["model.embed_tokens.weight"].each(func(x float64) float64 { return x * 4 }) }, weights.Mistake, weights.Scaled, 0, "4 = sqrt(hidden_size) times", 0},
	{"query scaled by 1/sqrt(head)", layer1 + "self_attn.q_proj.weight", func(c checkpoint) {
		x := c[layer1+"self_attn.q_proj.weight"]
		x.dtype = hooks.F32
		x.each(func(v float64) float64 { return float64(float32(v / math.Sqrt(8))) })
	}, weights.Mistake, weights.Scaled, 0, "0.353553 = 1/sqrt(head_dim) times", 0},
	{"scaled and rounded", layer1 + "mlp.up_proj.weight", func(c checkpoint) {
		x := c[layer1+"mlp.up_proj.weight"]
		x.each(func(v float64) float64 { return v * 1.37 })
		x.cast(hooks.BF16)
	}, weights.Mistake, weights.Scaled, 0, "1.36992 times", 0},
	{"negated", layer1 + "mlp.down_proj.weight", func(c checkpoint) { c[layer1+"mlp.down_proj.weight"].each(func(v float64) float64 { return -v }) }, weights.Mistake, weights.Negated, 0, "-w", 0},
	{"rows scaled", layer1 + "mlp.down_proj.weight", func(c checkpoint) {
		x := c[layer1+"mlp.down_proj.weight"]
		for r := range 16 {
			for i := range x.row(r) {
				x.row(r)[i] *= math.Ldexp(1, r%3+1)
			}
		}
	}, weights.Mistake, weights.ScaledRows, 0, "a factor of its own, 2 to 8", 0},
	{"columns scaled by a norm", layer1 + "self_attn.q_proj.weight", func(c checkpoint) {
		x := c[layer1+"self_attn.q_proj.weight"]
		x.dtype = hooks.F32
		for i := range x.values {
			x.values[i] = float64(float32(x.values[i] * (1 + 0.1*float64(i%16) + 0.05)))
		}
	}, weights.Mistake, weights.ScaledColumn, 0, "each column", 0},
	{"all zero", layer1 + "self_attn.v_proj.weight", func(c checkpoint) { clear(c[layer1+"self_attn.v_proj.weight"].values) }, weights.Mistake, weights.Zero, 0, "zero", 0},
	{"all ones", layer1 + "post_attention_layernorm.weight", func(c checkpoint) {
		c[layer1+"post_attention_layernorm.weight"].each(func(float64) float64 { return 1 })
	}, weights.Mistake, weights.Constant, 0, "every element is 1", 0},
	{"two rows zero", layer1 + "mlp.gate_proj.weight", func(c checkpoint) { x := c[layer1+"mlp.gate_proj.weight"]; clear(x.row(20)); clear(x.row(21)) }, weights.Mistake, weights.ZeroRows, 20, "rows 20 to 21: zero", 0},
	{"a block is zero", layer1 + "mlp.down_proj.weight", func(c checkpoint) {
		for r := 3; r < 6; r++ {
			clear(c[layer1+"mlp.down_proj.weight"].row(r)[8:16])
		}
	}, weights.Mistake, weights.ZeroBlock, 3, "rows 3 to 5, columns 8 to 15: zero", 0},
	{"a row is NaN", "lm_head.weight", func(c checkpoint) {
		for i := range 16 {
			c["lm_head.weight"].row(44)[i] = math.NaN()
		}
	}, weights.Mistake, weights.NotFinite, 44, "row 44: NaN", 0},
	{"a block is another's scale", layer1 + "mlp.down_proj.weight", func(c checkpoint) {
		for i := 16; i < 32; i++ {
			c[layer1+"mlp.down_proj.weight"].row(2)[i] *= 2
		}
	}, weights.Mistake, weights.ScaledBlock, 2, "row 2, columns 16 to 31: 2 times the original: an exponent is off by one", 0},
	{"a block is spoilt", layer1 + "mlp.down_proj.weight", func(c checkpoint) {
		for i := 16; i < 32; i++ {
			c[layer1+"mlp.down_proj.weight"].row(9)[i] = math.Ldexp(float64(i*7%11), -4)
		}
	}, weights.Different, weights.WrongBlock, 9, "row 9, columns 16 to 31", 0},
	{"one element", layer1 + "mlp.up_proj.weight", func(c checkpoint) { c[layer1+"mlp.up_proj.weight"].row(33)[4] += 0.5 }, weights.Different, weights.WrongBlock, 33, "row 33, column 4", 0},
	{"bfloat16 read as float16", layer1 + "mlp.up_proj.weight", func(c checkpoint) {
		x := c[layer1+"mlp.up_proj.weight"]
		bits := encode(hooks.BF16, x.values)
		for i := range x.values {
			x.values[i] = half(uint16(bits[2*i]) | uint16(bits[2*i+1])<<8)
		}
		x.dtype = hooks.F16
	}, weights.Mistake, weights.Misread, 0, "bits are bfloat16, read as float16", 0},
	{"bytes swapped", layer1 + "mlp.up_proj.weight", func(c checkpoint) {
		x := c[layer1+"mlp.up_proj.weight"]
		for i, v := range x.values {
			b := math.Float32bits(float32(v)) >> 16
			x.values[i] = float64(math.Float32frombits(b<<24 | b>>8<<16))
		}
	}, weights.Mistake, weights.Misread, 0, "other order", 0},
	{"overflow of float16", "model.norm.weight", func(c checkpoint) { c["model.norm.weight"].cast(hooks.F16) }, weights.Mistake, weights.Overflow, -1, "beyond", 0},
	{"vocabulary cut", "model.embed_tokens.weight", func(c checkpoint) {
		x := c["model.embed_tokens.weight"]
		x.shape, x.values = []int{170, 16}, x.values[:170*16]
	}, weights.Mistake, weights.Truncated, -1, "the first 170 of the original's 180 rows", 0},
	{"vocabulary padded with values", "model.embed_tokens.weight", func(c checkpoint) {
		x := c["model.embed_tokens.weight"]
		x.shape, x.values = []int{181, 16}, append(slices.Clone(x.values), x.values[:16]...)
	}, weights.Mistake, weights.Padded, -1, "1 row after them", 0},
	{"another shape", layer1 + "mlp.up_proj.weight", func(c checkpoint) {
		x := c[layer1+"mlp.up_proj.weight"]
		x.shape, x.values = []int{39, 15}, x.values[:39*15]
	}, weights.Different, weights.Shape, -1, "shape [39 15], and the original's is [40 16]", 0},
	{"missing", layer1 + "mlp.up_proj.weight", func(c checkpoint) { delete(c, layer1+"mlp.up_proj.weight") }, weights.Missing, weights.Absent, -1, "no such tensor", 0},
	{"extra", "model.layers.3.mlp.up_proj.weight", func(c checkpoint) {
		c["model.layers.3.mlp.up_proj.weight"] = &tensor{shape: []int{2, 2}, dtype: hooks.F32, values: make([]float64, 4)}
	}, weights.Extra, weights.Unknown, -1, "no such tensor", 0},
	{"not loaded", layer1 + "mlp.up_proj.weight", func(c checkpoint) {
		state := uint64(7)
		c[layer1+"mlp.up_proj.weight"].each(func(float64) float64 {
			state = state*6364136223846793005 + 1442695040888963407
			return math.Ldexp(float64(int64(state)>>56), -10)
		})
	}, weights.Different, weights.Unrelated, 0, "nothing to do", 0},
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

func swap(c checkpoint, a, b string) { c[a], c[b] = c[b], c[a] }

func swapLayers(c checkpoint) {
	for name := range c {
		if rest, ok := strings.CutPrefix(name, "model.layers.0."); ok {
			swap(c, name, "model.layers.2."+rest)
		}
	}
}

// fold adds to a norm, as a conversion to float32 does.
func fold(x *tensor, by float32) {
	x.dtype = hooks.F32
	x.each(func(v float64) float64 { return float64(float32(v) + by) })
}

// half is the value of float16 bits, by its definition.
func half(b uint16) float64 {
	sign, e, f := 1.0, int(b>>10&31), float64(b&1023)
	if b>>15 != 0 {
		sign = -1
	}
	switch e {
	case 0:
		return sign * math.Ldexp(f, -24)
	case 31:
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+f, e-25)
}

func TestPlantedMistakesAreNamed(t *testing.T) {
	if len(planted) < 40 {
		t.Fatalf("%d mistakes", len(planted))
	}
	for _, m := range planted {
		t.Run(m.name, func(t *testing.T) {
			port, original := open(t, "llama-tiny")
			if m.kind == weights.Overflow { // the original has one number beyond float16
				port["model.norm.weight"].values[3] = 1e6
				port["model.norm.weight"].cast(hooks.BF16)
				_, original = port.original()
			}
			m.plant(port)
			r := compare(t, port, original)
			row := find(t, r, m.tensor)
			if row.Class != m.class || row.Kind != m.kind || !strings.Contains(row.What, m.says) {
				t.Errorf("got %s %s: %s\nwant %s %s: ... %s", row.Class, row.Kind, row.What, m.class, m.kind, m.says)
			}
			switch {
			case row.At == nil && m.row >= 0, row.At != nil && row.At.Row != m.row:
				t.Errorf("the first wrong element is at %+v, want row %d", row.At, m.row)
			}
			if r.Counts.Wrong != 1+m.others || r.Right() {
				for _, x := range r.Tensors {
					if !x.Class.Right() && x.Name != m.tensor {
						t.Logf("%s: %s %s: %s", x.Name, x.Class, x.Kind, x.What)
					}
				}
				t.Errorf("%d tensors are wrong, want %d", r.Counts.Wrong, 1+m.others)
			}
			if len(r.Findings) == 0 || r.Findings[0].Try == "" || r.Findings[0].What == "" {
				t.Errorf("no finding with a next step: %+v", r.Findings)
			}
		})
	}
}

// original is the port as it is now, as an original that has other names for nothing.
func (c checkpoint) original() (checkpoint, weights.Side) {
	s := c.side()
	return c, s
}
