package naming_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// plantedRow is a mistake of a kind that a port makes in plain loops, and what it is said to be.
type plantedRow struct {
	kind  diagnose.Kind
	model string
	at    string // the ends of the names of the entries that have it, by a comma
	wrong func(p *wrongPort) []float64
	key   string // of the name, without its kind
	// neighbour is a mistake that is nearly the same and does not get its name.
	neighbour func(p *wrongPort) []float64
}

const (
	tables  = "rotary.cos,rotary.sin"
	rotated = "q_rope,k_rope"
	norms   = "layernorm"
)

// plantedRows are the mistakes that ports make most, one of each kind.
var plantedRows = []plantedRow{
	{"mask.window", "window", "mask.sliding", sees(func(q, k float64) bool { return k <= q && q-k < 5 }), "(place=mask,x=5)", sees(func(q, k float64) bool { return k <= q && q-k < 6 })},
	{"mask.window-left-out", "window", "mask.sliding", sees(func(q, k float64) bool { return k <= q }), "(place=mask,x=0)", sees(func(q, k float64) bool { return k <= q && q-k < 3 })},
	{"mask.not-causal", "llama", "mask.full", sees(func(_, _ float64) bool { return true }), "(place=mask)", sees(func(q, k float64) bool { return k <= q+1 })},
	{"mask.own-key-masked", "llama", "mask.full", sees(func(q, k float64) bool { return k < q }), "(place=mask)", sees(func(q, k float64) bool { return k <= q && k != 2 })},
	{"mask.key-ahead", "llama", "mask.full", sees(func(q, k float64) bool { return k <= q+1 }), "(place=mask)", sees(func(q, k float64) bool { return k <= q+2 })},

	{"rope.interleaved", "llama", rotated, pairOf(neighbourOf, evenMinus, ofPair), "(place=input)", pairOf(neighbourOf, evenPlus, ofPair)},
	{"step.exchanged", "llama", rotated, pairOf(halfOf, firstPlus, itself), "(place=rope.sum,of=step:rope.sum,by=primitive:sub,for=primitive:add)", pairOf(halfOf, func(int, int) float64 { return 1 }, itself)},
	{"minus.left-out", "llama", rotated, pairOf(halfOf, func(int, int) float64 { return 1 }, itself), "(place=rope.neg,of=tensor:layers.*.self_attn.q_proj)", pairOf(halfOf, firstPlus, itself)},
	{"rope.theta-of-head", "llama", tables, byBase(math.Pow(1e4, 8./6), 1, 0), "(place=inv_freq,x=215443,n=6,m=8)", byBase(2e5, 1, 0)}, // and not NTK scaling for 10 times the length
	{"rope.theta", "llama", tables, byBase(5e3, 1, 0), "(place=inv_freq,x=5000)", byBase(6e3, 1, 0)},
	{"rope.factor-left-out", "linear", tables, byBase(1e4, 1, 0), "(place=inv_freq,by=number:4)", byBase(1e4, 1./3, 0)},
	{"position.first-at", "llama", tables, byBase(1e4, 1, 1), "(place=positions,n=1)", byBase(1e4, 1, 2)},
	{"rope.smaller-part", "llama", tables, firstPairs(2), "(place=inv_freq,n=4,k=2)", firstPairs(3)},

	{"number.value", "llama", norms, rmsOf(1e-3, 0, plainWeight), "(place=rms_norm.eps,of=epsilon,x=0.001)", rmsOf(1e-4, 0, plainWeight)},
	{"weight.plus-one", "llama", norms, rmsOf(1e-2, 0, onePlus), "(place=layers.*.input_layernorm.weight,of=weight:layers.*.input_layernorm.weight)", rmsOf(1e-2, 0, func(w float64) float64 { return w + 2 })},
	{"step.left-out", "gemma2", norms, rmsOf(1e-2, 0, plainWeight), "(place=rms_norm.1+w,of=addend:1)", rmsOf(1e-2, 0, func(w float64) float64 { return w + 2 })},
	{"norm.layernorm", "llama", norms, rmsOf(1e-2, 1, plainWeight), "(place=rms_norm.square)", rmsOf(1e-2, 0.5, plainWeight)},
	{"weight.left-out", "llama", norms, rmsOf(1e-2, 0, noWeight), "(place=rms_norm.weight,of=product-weight:input_layernorm.weight)", rmsOf(1e-2, 0, zeroWeight)},

	{"activation.other", "llama", "act_fn", ofEach(erfGELU), "(place=silu.quotient,by=function:gelu,for=function:silu)", ofEach(tanhGELU)},
	{"activation.other", "gelu", "act_fn", ofEach(erfGELU), "(place=gelu_tanh.product,by=function:gelu,for=function:gelu_tanh)", ofEach(quickGELU)},
	{"activation.other-with-number", "gelu", "act_fn", ofEach(sigmoidGELU(1.773)), "(place=quick_gelu,of=number:1.702,for=function:gelu_tanh,x=1.773)", ofEach(quickGELU)},
	{"activation.other-with-number", "gelu", "act_fn", ofEach(leakyBelow(0.2)), "(place=leaky_relu,of=number:0.01,for=function:gelu_tanh,x=0.2)", ofEach(sigmoidGELU(1.6))},
	{"activation.zero-below", "gelu", "act_fn", ofEach(cutGELU(-1.5, 1e9)), "(place=gelu_tanh,x=-1.5)", ofEach(cutGELU(-1, 1e9))},
	{"activation.input-above", "gelu", "act_fn", ofEach(cutGELU(-1e9, 1)), "(place=gelu_tanh,x=1)", ofEach(cutGELU(-1e9, 1.25))},
	{"activation.saturated", "gelu", "act_fn", ofEach(cutGELU(-1.5, 1.5)), "(place=gelu_tanh,x=1.5)", ofEach(cutGELU(-1.5, 1))},
	{"number.value", "gemma2", "scores_softcap", capped(5), "(place=softcap.cap,of=soft-cap,x=5)", capped(7)},
	{"step.left-out", "gemma2", "scores_softcap", multipliedBy(1), "(place=softcap.tanh,of=function:tanh)", multipliedBy(0.5)},

	{"weight.transposed", "llama", "o_proj", byMatrix(turnedWeight), "(place=layers.*.self_attn.o_proj.weight,of=weight:layers.*.self_attn.o_proj.weight)", byMatrix(reversedWeight)},
	{"weight.other", "llama", "gate_proj", byMatrix(ofWeight("layers.*.mlp.up_proj.weight")), "(place=layers.*.mlp.gate_proj.weight,by=weight:layers.*.mlp.up_proj.weight,for=weight:layers.*.mlp.gate_proj.weight)", byMatrix(func(p *wrongPort, row, column int) float64 {
		return -ofWeight("layers.*.mlp.up_proj.weight")(p, row, column)
	})},
	{"instance.of-another-layer", "llama", "1.mlp.gate_proj", byMatrix(ofWeight("layers.0.mlp.gate_proj.weight")), "(place=layers.*.mlp.gate_proj.weight,of=weight:layers.*.mlp.gate_proj.weight,by=others:layers.1.mlp.gate_proj=layers.0.mlp.gate_proj.weight)", byMatrix(ofWeight("layers.0.mlp.up_proj.weight"))},

	{"cache.order", "llama", "self_attn.keys", slots(func(s, n int) int { return (s + 1) % n }), "(place=cache,of=the-cache)", slots(func(s, n int) int { return max(s-1, 0) })},
	{"cache.slot-repeated", "llama", "self_attn.keys", slots(func(s, n int) int { return min(s, n-2) }), "(place=cache,of=the-cache,runs=9=8)", slots(func(s, n int) int { return min(s, n-3) })},
	{"cache.slot-unwritten", "llama", "self_attn.keys", slots(func(s, n int) int {
		if s == n-1 {
			return -1
		}
		return s
	}), "(place=cache,of=the-cache,runs=9=-)", slots(func(s, n int) int {
		if s == n-2 {
			return -1
		}
		return s
	})},

	{"cache.rows-read-apart", "llama", "self_attn.keys", grown(func(int) int { return 16 }), "(place=cache,of=cached:layers.*.self_attn.k_rope,n=16)", grown(func(c int) int { return 16 - c%2 })},
	{"slots.foreign", "llama", "self_attn.keys", foreign(3), "(of=the-cache,at=keys 0, 1, 2)", foreign(99)},
	{"slots.foreign", "llama", "self_attn.keys", foreign(2), "(of=the-cache,at=keys 0, 1)", scattered(2)},
	{"rows.operations-left-out", "llama", "self_attn.keys", keptOf("k_proj"), "(place=layers.*.self_attn.k_proj,of=operations:rope,by=rows-of:layers.*.self_attn.k_proj,n=44,m=168)", keptOf("v_proj")},

	{"heads.tiled-operand", "llama", "context", heldBy(func(h, _, keyHeads int) int { return h % keyHeads }), "(place=context.context,of=tensor:layers.*.self_attn.values)", heldBy(func(_, _, _ int) int { return 0 })},
	{"addend.left-out", "llama", "attn_residual", addedOf(0, 1), "(place=add.sum,of=tensor:layers.*.in)", addedOf(2, 1)},
	{"tensor.rounded", "gemma2", "embed_tokens", ofEach(func(x float64) float64 { return floats.Round(hooks.F8E4M3, x) }), "(first=step.left-out(place=scale.product,of=factor:5.65685),of=the-result,coding=float8-e4m3:-3)", ofEach(func(x float64) float64 { return floats.Round(hooks.F8E4M3, 1.1*x) })},
	{"step.left-out", "gemma2", "embed_tokens", multipliedBy(1), "(place=scale.product,of=factor:5.65685)", multipliedBy(math.Sqrt2)},
}

// Each mistake of a port in plain loops is found with its kind, its place and its numbers. Its neighbour is none or another.
func TestMistakesInPlainLoopsAreNamed(t *testing.T) {
	for _, c := range plantedRows {
		t.Run(strings.Join([]string{string(c.kind), c.model}, " "), func(t *testing.T) {
			find := func(wrong func(p *wrongPort) []float64) *diagnose.Finding {
				return plantedName{model: c.model, at: c.at, wrong: wrong}.named(t)
			}
			f := find(c.wrong)
			key := ""
			if f != nil {
				key = f.Name.Key()
			}
			if key != string(c.kind)+c.key {
				t.Errorf("it is %s, %v; not %s", key, f, string(c.kind)+c.key)
			}
			if other := find(c.neighbour); other != nil && other.Name.Key() == key {
				t.Errorf("its neighbour has its name, %s", key)
			}
		})
	}
}

// The cosines of small angles are near 1 and show the first frequencies only: in bfloat16 several scalings fit these. The name is that of the whole table,
// which the sines decide.
func TestCosinesAndSinesHaveOneName(t *testing.T) {
	firstUnscaled := turns(func(position float64, pair, pairs int) float64 {
		f := in32(math.Pow(1e4, -float64(pair)/float64(pairs)))
		if pair > 0 {
			f /= 4
		}
		return f * position
	})
	var keys []string
	for _, at := range []string{"rotary.cos,rotary.sin", "rotary.sin,rotary.cos"} {
		f := plantedName{model: "linear", dtype: hooks.BF16, at: at, wrong: firstUnscaled}.named(t)
		if f == nil || !f.Named() {
			t.Fatalf("%s: %v", at, f)
		}
		keys = append(keys, f.Name.Key())
	}
	if want := "rope.factor-left-out(place=inv_freq,by=number:4,only=tokens=1-11;channels=0,4)"; keys[0] != want || keys[1] != want {
		t.Errorf("cosines are %s, sines %s; want %s", keys[0], keys[1], want)
	}
}
