package main

import (
	"math"
	"slices"
	"strings"
)

// A corruptionKind is one way to make a trace wrong, or to rewrite it without making it wrong.
type corruptionKind struct {
	name string
	// at are the keys that it can be done to, of which a golden has some; none: the whole file.
	at []string
	do func(f *stFile, at string)

	decode bool // only a trace with decode passes has what it needs
	single bool // for a trace of a single token, in which much is constant as it should be
	// typed: two files that are wrong in the same way have to be refused also where nobody certifies them. What both sides
	// have in common and that varies is otherwise equal for all that a comparison can see.
	typed bool
}

// Where values are changed: early, middle and late, of level 1 to 3, masks, caches and decode passes.
var (
	early  = []string{"embed_tokens", "layers.0.input_layernorm", "layers.0.self_attn.q_proj", "layers.0.in", "inputs_embeds", "per_layer_inputs", "altup.init"}
	middle = []string{
		"layers.1.mlp.down_proj", "layers.1.self_attn.o_proj", "layers.1.out", "layers.1.self_attn.context", "layers.1.mlp.gated", "layers.1.altup.predict",
		"layers.1.altup.correct", "layers.1.laurel", "layers.1.self_attn.q_norm", "layers.1.mlp.up_proj",
	}
	late     = []string{"logits", "norm", "lm_head", "layers.2.out", "layers.2.mlp.down_proj", "altup.final.mean"}
	internal = []string{"layers.1.self_attn.scores", "layers.0.self_attn.probs_f32", "layers.2.self_attn.keys", "layers.1.self_attn.values", "layers.2.self_attn.probs", "layers.1.self_attn.scores_masked", "layers.1.altup.predict.router_norm"}
	masks    = []string{"mask.full", "mask.sliding"}
	rotaries = []string{"rotary.cos", "rotary.sin", "rotary.sliding.sin", "rotary.full.cos", "rotary.full.sin", "rotary.sliding.cos"}
	steps    = []string{"pass1/layers.1.self_attn.keys", "pass2/layers.1.mlp.down_proj", "pass1/layers.2.self_attn.values", "pass2/logits", "pass1/layers.0.self_attn.scores", "pass3/norm", "pass2/layers.1.self_attn.probs_f32"}
	anywhere = slices.Concat(middle[:3], early[:2], late[:2], internal[:3], middle[3:], late[2:], internal[3:], early[2:])
	hidden   = []string{"layers.1.out", "layers.1.mlp.down_proj", "layers.0.input_layernorm", "norm", "logits", "layers.2.self_attn.q_proj"}
)

// kindsOfValues leave shapes and manifest as they are.
var kindsOfValues = []corruptionKind{
	{name: "constant 0, early", at: early, do: filling(0), typed: true},
	{name: "constant 0, middle", at: middle, do: filling(0), typed: true},
	{name: "constant 0, late", at: late, do: filling(0), typed: true},
	{name: "constant 0, internal", at: internal, do: filling(0), typed: true},
	{name: "constant 0, rotary", at: rotaries, do: filling(0), typed: true},
	{name: "constant 0, decode", at: steps, do: filling(0), typed: true, decode: true},
	{name: "constant 0, mask", at: masks, do: filling(0), typed: true},
	{name: "constant 0, positions", at: []string{"position_ids"}, do: filling(0), typed: true},
	{name: "constant 0, ids", at: []string{"input_ids"}, do: filling(0)},
	{name: "constant 1, middle", at: anywhere, do: filling(1), typed: true},
	{name: "constant 1, late", at: late, do: filling(1), typed: true},
	{name: "constant 1, rotary", at: rotaries, do: filling(1), typed: true},
	{name: "constant 1, positions", at: []string{"position_ids"}, do: filling(1), typed: true},
	{name: "constant 1, decode", at: steps, do: filling(1), typed: true, decode: true},
	{name: "constant -inf, middle", at: anywhere, do: filling(math.Inf(-1)), typed: true},
	{name: "constant -inf, scores", at: []string{"layers.1.self_attn.scores_masked", "layers.0.self_attn.scores", "layers.2.self_attn.scores_masked"}, do: filling(math.Inf(-1)), typed: true},
	{name: "constant -inf, mask", at: masks, do: filling(math.Inf(-1)), typed: true},
	{name: "constant 3.5, anywhere", at: anywhere, do: filling(3.5), typed: true},
	{name: "constant nan, middle", at: anywhere, do: filling(math.NaN()), typed: true},
	{name: "constant nan, late", at: late, do: filling(math.NaN()), typed: true},
	{name: "constant nan, mask", at: masks, do: filling(math.NaN()), typed: true},
	{name: "constant nan, decode", at: steps, do: filling(math.NaN()), typed: true, decode: true},
	{name: "all tensors of a layer 0", do: func(f *stFile, _ string) {
		for _, t := range f.tensors {
			if inLayer("1")(t.Key) {
				filling(0)(f, t.Key)
			}
		}
	}, typed: true},
	{name: "all tensors but the ids 0", do: func(f *stFile, _ string) {
		for _, t := range f.tensors {
			if t.DType != "I64" {
				filling(0)(f, t.Key)
			}
		}
	}, typed: true},

	{name: "one element", at: anywhere, do: changingValues(func(i int, x float64) float64 {
		if i == 1 {
			return x + 1000
		}
		return x
	})},
	{name: "one nan", at: anywhere, do: changingValues(func(i int, x float64) float64 {
		if i == 2 {
			return math.NaN()
		}
		return x
	}), typed: true},
	{name: "twice as large", at: anywhere, do: changingValues(func(_ int, x float64) float64 { return 2 * x })},
	{name: "negated", at: hidden, do: changingValues(func(_ int, x float64) float64 { return -x })},
	{name: "rows moved by a token", at: hidden, do: permuting(1, rotated)},

	{name: "swapped, gate and up", at: []string{"layers.1.mlp.gate_proj", "layers.0.mlp.gate_proj", "layers.2.mlp.gate_proj"}, do: swapping(instead("gate", "up"))},
	{name: "swapped, keys and values", at: []string{"layers.1.self_attn.keys", "layers.2.self_attn.keys"}, do: swapping(instead("keys", "values"))},
	{name: "swapped, two layers", at: []string{"layers.1.out", "layers.1.mlp.down_proj", "layers.1.self_attn.q_proj"}, do: swapping(instead("layers.1", "layers.2"))},
	{name: "swapped, cos and sin", at: []string{"rotary.cos", "rotary.full.cos", "rotary.sliding.cos"}, do: swapping(instead("cos", "sin"))},
	{name: "swapped, decode passes", at: []string{"pass1/logits", "pass1/layers.1.mlp.down_proj", "pass1/embed_tokens", "pass1/layers.2.out"}, do: swapping(instead("pass1", "pass2")), decode: true},
	{name: "swapped, prefill and decode", at: []string{"layers.1.out", "logits"}, do: swapping(func(at string) string { return "pass1/" + at }), decode: true, typed: true},
	{name: "swapped, masks of two kinds", at: []string{"mask.sliding"}, do: swapping(instead("sliding", "full"))},
	{name: "swapped names", at: []string{"layers.1.mlp.gate_proj", "layers.0.self_attn.q_proj"}, do: func(f *stFile, at string) {
		a, b := f.at(at), f.at(strings.NewReplacer("layers.1.mlp.gate_proj", "layers.1.mlp.down_proj", "q_proj", "o_proj").Replace(at))
		a.Key, b.Key = b.Key, a.Key
	}, typed: true},

	{name: "heads permuted, one tensor", at: []string{"layers.1.self_attn.q_rope", "layers.0.self_attn.q_rope", "layers.1.self_attn.scores", "layers.2.self_attn.probs"}, do: permuting(1, reversed)},
	{name: "heads permuted, probabilities", at: []string{"layers.1.self_attn.probs_f32", "layers.0.self_attn.scores_masked"}, do: permuting(1, rotated)},
	{name: "keys permuted, keys alone", at: []string{"layers.1.self_attn.keys", "pass1/layers.2.self_attn.keys", "pass2/layers.0.self_attn.keys"}, do: permuting(2, rotated), decode: true},
	{name: "keys permuted, values alone", at: []string{"layers.1.self_attn.values", "pass1/layers.2.self_attn.values", "pass2/layers.0.self_attn.values"}, do: permuting(2, rotated), decode: true},
	{name: "keys permuted, scores alone", at: []string{"pass1/layers.1.self_attn.scores", "pass2/layers.0.self_attn.scores"}, do: permuting(3, rotated), decode: true},
	{name: "keys permuted, not the scores", at: []string{"pass1/layers.1.self_attn.", "pass3/layers.0.self_attn."}, do: func(f *stFile, at string) {
		f.at(at+"keys").permute(2, rotated)
		f.at(at+"values").permute(2, rotated)
	}, decode: true},
	{name: "keys permuted, the values otherwise", at: []string{"pass2/layers.1.self_attn.", "pass1/layers.2.self_attn."}, do: func(f *stFile, at string) {
		f.at(at+"keys").permute(2, rotated)
		f.at(at+"values").permute(2, reversed)
		for _, name := range []string{"scores", "scores_masked", "probs_f32", "probs"} {
			f.at(at+name).permute(3, rotated)
		}
	}, decode: true},
	{name: "channels permuted", at: []string{"layers.1.self_attn.q_proj", "layers.1.mlp.gated", "layers.0.mlp.act_fn"}, do: permuting(2, reversed)},
	{name: "ring buffer", do: ringBuffer, decode: true},

	{name: "ids, one other", at: []string{"input_ids"}, do: changingValues(func(i int, x float64) float64 {
		if i == 1 {
			return x + 1
		}
		return x
	})},
	{name: "ids reversed", at: []string{"input_ids"}, do: permuting(1, reversed)},
	{name: "ids of a step", at: []string{"pass1/input_ids", "pass3/input_ids"}, do: changingValues(func(_ int, x float64) float64 { return x + 3 }), decode: true},
	{name: "ids negative", at: []string{"input_ids"}, do: changingValues(func(_ int, x float64) float64 { return -x - 1 }), typed: true},
	{name: "ids beyond the vocabulary", at: []string{"input_ids"}, do: changingValues(func(_ int, x float64) float64 { return x + 1e6 }), typed: true},
	{name: "positions from 1", at: []string{"position_ids"}, do: changingValues(func(_ int, x float64) float64 { return x + 1 })},
	{name: "positions reversed", at: []string{"position_ids"}, do: permuting(1, reversed)},
	{name: "positions, one twice", at: []string{"position_ids"}, do: changingValues(func(i int, x float64) float64 {
		if i == 2 {
			return x - 1
		}
		return x
	})},
	{name: "positions of a step", at: []string{"pass1/position_ids", "pass2/position_ids"}, do: filling(0), decode: true},
}

// ringBuffer moves the slots of every cache of a decode pass in all that has them.
func ringBuffer(f *stFile, _ string) {
	for _, t := range f.tensors {
		if !strings.HasPrefix(t.Key, "pass") {
			continue
		}
		switch _, part, _ := strings.Cut(t.Key, ".self_attn."); part {
		case "keys", "values":
			t.permute(2, rotated)
		case "scores", "scores_softcap", "scores_masked", "probs_f32", "probs":
			t.permute(3, rotated)
		}
	}
}

// kindsOfOneToken make other constants of what is constant in a trace of one token.
var kindsOfOneToken = []corruptionKind{
	{name: "one token, probabilities 0", at: []string{"layers.1.self_attn.probs_f32", "layers.4.self_attn.probs"}, do: filling(0), single: true, typed: true},
	{name: "one token, probabilities 2", at: []string{"layers.2.self_attn.probs"}, do: filling(2), single: true, typed: true},
	{name: "one token, mask -inf", at: masks, do: filling(math.Inf(-1)), single: true, typed: true},
	{name: "one token, cos 0", at: []string{"rotary.full.cos", "rotary.sliding.cos"}, do: filling(0), single: true, typed: true},
	{name: "one token, sin 1", at: []string{"rotary.full.sin", "rotary.sliding.sin"}, do: filling(1), single: true, typed: true},
	{name: "one token, position 5", at: []string{"position_ids"}, do: filling(5), single: true},
	{name: "one token, embedding 0", at: []string{"embed_tokens", "altup.init"}, do: filling(0), single: true, typed: true},
	{name: "one token, scores 0", at: []string{"layers.0.self_attn.scores_masked", "layers.3.self_attn.scores"}, do: filling(0), single: true, typed: true},
}

// kindsOfShapes give tensors another shape or dtype.
var kindsOfShapes = []corruptionKind{
	{name: "shape, transposed", at: hidden, do: shaping(func(s []int) []int { s[1], s[2] = s[2], s[1]; return s }), typed: true},
	{name: "shape, flat", at: anywhere, do: shaping(func(s []int) []int {
		n := 1
		for _, size := range s {
			n *= size
		}
		return []int{n}
	}), typed: true},
	{name: "shape, without the batch", at: anywhere, do: shaping(func(s []int) []int { return s[1:] }), typed: true},
	{name: "shape, tokens as the batch", at: hidden, do: shaping(func(s []int) []int { s[0], s[1] = s[1], s[0]; return s }), typed: true},
	{name: "a token fewer", at: hidden, do: func(f *stFile, at string) { f.at(at).resize(1, f.at(at).Shape[1]-1) }, typed: true},
	{name: "a token more", at: hidden, do: func(f *stFile, at string) { f.at(at).resize(1, f.at(at).Shape[1]+1) }, typed: true},
	{name: "a channel fewer", at: hidden, do: func(f *stFile, at string) { f.at(at).resize(2, f.at(at).Shape[2]-1) }, typed: true},
	{name: "a key fewer", at: []string{"layers.1.self_attn.keys", "pass1/layers.1.self_attn.values", "pass1/layers.2.self_attn.keys"}, do: func(f *stFile, at string) { f.at(at).resize(2, f.at(at).Shape[2]-1) }, typed: true, decode: true},
	{name: "a mask with a key fewer", at: masks, do: func(f *stFile, at string) { f.at(at).resize(3, f.at(at).Shape[3]-1) }, typed: true},
	{name: "positions, one fewer", at: []string{"position_ids"}, do: func(f *stFile, at string) { f.at(at).resize(1, f.at(at).Shape[1]-1) }, typed: true},
	{name: "ids, one more", at: []string{"input_ids"}, do: func(f *stFile, at string) { f.at(at).resize(1, f.at(at).Shape[1]+1) }, typed: true},
	{name: "size 0, a tensor", at: anywhere, do: func(f *stFile, at string) { f.at(at).resize(1, 0) }, typed: true},
	{name: "size 0, logits", at: []string{"logits"}, do: func(f *stFile, at string) { f.at(at).resize(2, 0) }, typed: true},
	{name: "size 0, mask", at: masks, do: func(f *stFile, at string) { f.at(at).resize(3, 0) }, typed: true},
	{name: "size 0, positions", at: []string{"position_ids"}, do: func(f *stFile, at string) { f.at(at).resize(1, 0) }, typed: true},
	{name: "size 0, a layer", do: func(f *stFile, _ string) {
		for _, t := range f.tensors {
			if inLayer("1")(t.Key) {
				t.Shape, t.Data = []int{0}, nil
			}
		}
	}, typed: true},
	{name: "size 0, all", do: func(f *stFile, _ string) {
		for _, t := range f.tensors {
			t.Shape, t.Data = append([]int{0}, t.Shape[1:]...), nil
		}
	}, typed: true},
	{name: "size 0, all but the ids", do: func(f *stFile, _ string) {
		for _, t := range f.tensors {
			if t.DType != "I64" {
				t.Shape, t.Data = append([]int{0}, t.Shape[1:]...), nil
			}
		}
	}, typed: true},

	{name: "dtype, rounded to bfloat16", at: middle, do: func(f *stFile, at string) { t := f.at(at); t.set("BF16", t.values()) }},
	{name: "dtype, rounded to float16", at: late, do: func(f *stFile, at string) { t := f.at(at); t.set("F16", t.values()) }},
	{name: "dtype, bits taken for integers", at: anywhere, do: func(f *stFile, at string) {
		t := f.at(at)
		t.DType = map[string]string{"F32": "I32", "BF16": "F16", "F16": "BF16"}[t.DType]
	}, typed: true},
	{name: "dtype, truncated to integers", at: middle, do: func(f *stFile, at string) { t := f.at(at); t.set("I32", t.values()) }, typed: true},
	{name: "dtype, ids as floats", at: []string{"input_ids"}, do: func(f *stFile, at string) { t := f.at(at); t.set("F32", t.values()) }, typed: true},
	{name: "dtype, another declared", do: func(f *stFile, _ string) {
		f.meta["tracediff.dtype"] = map[string]string{"float32": "bfloat16", "bfloat16": "float32", "float16": "bfloat16"}[f.meta["tracediff.dtype"]]
	}, typed: true},
	{name: "dtype, an unknown one declared", do: meta("tracediff.dtype", "float42"), typed: true},
	{name: "dtype, ids as int32", at: []string{"input_ids"}, do: func(f *stFile, at string) { t := f.at(at); t.set("I32", t.values()) }},
	{name: "dtype, one tensor as float64", at: middle, do: func(f *stFile, at string) { t := f.at(at); t.set("F64", t.values()) }},
}
