package main

import (
	"bytes"
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

func filling(y float64) func(*stFile, string) {
	return func(f *stFile, at string) {
		f.at(at).change(func(x []float64) {
			for i := range x {
				x[i] = y
			}
		})
	}
}

// changingValues changes the values of a tensor, one by one.
func changingValues(do func(i int, x float64) float64) func(*stFile, string) {
	return func(f *stFile, at string) {
		f.at(at).change(func(x []float64) {
			for i, v := range x {
				x[i] = do(i, v)
			}
		})
	}
}

// swapping swaps the data of two tensors; the name of the second is made of the first's.
func swapping(other func(at string) string) func(*stFile, string) {
	return func(f *stFile, at string) {
		a, b := f.at(at), f.at(other(at))
		a.Data, b.Data, a.Shape, b.Shape, a.DType, b.DType = b.Data, a.Data, b.Shape, a.Shape, b.DType, a.DType
	}
}

func instead(from, to string) func(string) string {
	return func(at string) string { return strings.Replace(at, from, to, 1) }
}

// shaping changes a shape, of the same data.
func shaping(do func(shape []int) []int) func(*stFile, string) {
	return func(f *stFile, at string) { t := f.at(at); t.Shape = do(slices.Clone(t.Shape)) }
}

func permuting(axis int, p func(i, n int) int) func(*stFile, string) {
	return func(f *stFile, at string) { f.at(at).permute(axis, p) }
}

func reversed(i, n int) int { return n - 1 - i }
func rotated(i, n int) int  { return (i + 1) % n }

// both does two things.
func both(a, b func(*stFile, string)) func(*stFile, string) {
	return func(f *stFile, at string) { a(f, at); b(f, at) }
}

func meta(key, value string) func(*stFile, string) {
	return func(f *stFile, _ string) { f.meta[key] = value }
}

func unmeta(keys ...string) func(*stFile, string) {
	return func(f *stFile, _ string) {
		for _, k := range keys {
			delete(f.meta, k)
		}
	}
}

// named changes one of the manifest's lists of names.
func named(key string, do func(names []string) []string) func(*stFile, string) {
	return func(f *stFile, _ string) { f.meta[key] = jsonText(do(f.list(key))) }
}

func appending(names ...string) func([]string) []string {
	return func(l []string) []string { return append(l, names...) }
}

func dropping(gone func(key string) bool) func(*stFile, string) {
	return func(f *stFile, _ string) { f.drop(gone) }
}

func inLayer(layer string) func(string) bool {
	return func(key string) bool { return strings.Contains("/"+key, "/layers."+layer+".") }
}

func inPass(pass string) func(string) bool {
	return func(key string) bool { return strings.HasPrefix(key, pass+"/") }
}

// reordering puts the tensors in another order; their data follow.
func reordering(do func(keys []*stTensor) []*stTensor) func(*stFile, string) {
	return func(f *stFile, _ string) { f.tensors = do(f.tensors) }
}

// moving puts the tensors of a kind before the first of another kind.
func moving(what, before func(key string) bool) func(*stFile, string) {
	return reordering(func(all []*stTensor) []*stTensor {
		var moved, rest []*stTensor
		for _, t := range all {
			if what(t.Key) {
				moved = append(moved, t)
			} else {
				rest = append(rest, t)
			}
		}
		at := slices.IndexFunc(rest, func(t *stTensor) bool { return before(t.Key) })
		return slices.Insert(rest, at, moved...)
	})
}

func is(key string) func(string) bool { return func(k string) bool { return k == key } }

// shorter takes the last layer from the configuration.
func shorter(f *stFile, _ string) {
	f.config(func(c map[string]any) {
		n := int(c["num_hidden_layers"].(float64)) - 1
		c["num_hidden_layers"] = n
		for _, key := range []string{"layer_types", "intermediate_size"} {
			if list, ok := c[key].([]any); ok {
				c[key] = list[:n]
			}
		}
		if g, ok := c["gemma3n"].(map[string]any); ok {
			if list, ok := g["activation_sparsity_pattern"].([]any); ok {
				g["activation_sparsity_pattern"] = list[:n]
			}
		}
	})
}

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
			return x*1.5 + 1
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
	{name: "one token, mask 1", at: masks, do: filling(1), single: true, typed: true},
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

// kindsOfManifests take tensors away, put them in another order, or contradict them in the metadata.
var kindsOfManifests = []corruptionKind{
	{name: "missing layer", do: dropping(inLayer("1")), typed: true},
	{name: "missing last layer", do: func(f *stFile, at string) {
		var c struct {
			N int `json:"num_hidden_layers"`
		}
		f.config(func(m map[string]any) { c.N = int(m["num_hidden_layers"].(float64)) })
		f.drop(inLayer(string(rune('0' + c.N - 1))))
	}, typed: true},
	{name: "missing pass, last", do: dropping(inPass("pass3")), decode: true, typed: true},
	{name: "missing pass, middle", do: dropping(inPass("pass2")), decode: true, typed: true},
	{name: "missing prefill", do: dropping(func(key string) bool { return !strings.HasPrefix(key, "pass") }), decode: true, typed: true},
	{name: "missing entry", at: anywhere, do: func(f *stFile, at string) { f.drop(is(at)) }, typed: true},
	{name: "missing entry of a step", at: steps, do: func(f *stFile, at string) { f.drop(is(at)) }, typed: true, decode: true},
	{name: "missing ids", do: dropping(is("input_ids")), typed: true},
	{name: "missing positions", do: dropping(is("position_ids")), typed: true},
	{name: "missing mask", at: masks, do: func(f *stFile, at string) { f.drop(is(at)) }, typed: true},
	{name: "missing logits", do: dropping(func(key string) bool { return strings.HasSuffix(key, "logits") }), typed: true},
	{name: "missing and undeclared logits", do: both(dropping(func(key string) bool { return strings.HasSuffix(key, "logits") }),
		named("tracediff.entries", func(l []string) []string {
			return slices.DeleteFunc(l, func(n string) bool { return n == "logits" })
		})), typed: true},
	{name: "missing and undeclared layer", do: both(dropping(inLayer("1")),
		named("tracediff.entries", func(l []string) []string { return slices.DeleteFunc(l, inLayer("1")) })), typed: true},
	{name: "no tensors", do: dropping(func(string) bool { return true }), typed: true},
	{name: "nothing but the ids", do: dropping(func(key string) bool { return !strings.HasSuffix(key, "_ids") }), typed: true},

	{name: "unknown name in place of one", at: anywhere, do: func(f *stFile, at string) { f.at(at).Key = at + "_x" }, typed: true},
	{name: "unknown name declared", do: named("tracediff.entries", appending("layers.1.mlp.phantom")), typed: true},
	{name: "unknown layer declared", do: named("tracediff.entries", appending("layers.99.out")), typed: true},
	{name: "unknown name declared derived", do: both(named("tracediff.entries", appending("phantom")), named("tracediff.derived", appending("phantom"))), typed: true},
	{name: "no entries declared", do: meta("tracediff.entries", "[]"), typed: true},
	{name: "unknown tensor beside the others", do: func(f *stFile, _ string) {
		f.tensors = append(f.tensors, &stTensor{"layers.1.mlp.phantom", "F32", []int{1}, []byte{0, 0, 128, 63}})
		if last := f.tensors[len(f.tensors)-2].Key; strings.HasPrefix(last, "pass") {
			f.tensors[len(f.tensors)-1].Key = last[:strings.Index(last, "/")+1] + "layers.1.mlp.phantom"
		}
	}, typed: true},

	{name: "logits wrong and declared derived", do: both(func(f *stFile, _ string) { filling(0)(f, "logits") }, named("tracediff.derived", appending("logits"))), typed: true},
	{name: "all declared derived, all wrong", do: func(f *stFile, _ string) {
		f.meta["tracediff.derived"] = f.meta["tracediff.entries"]
		for _, t := range f.tensors {
			if t.DType != "I64" {
				changingValues(func(i int, x float64) float64 { return x + float64(i) })(f, t.Key)
			}
		}
	}, typed: true},

	{name: "status removed", do: unmeta("tracediff.status"), typed: true},
	{name: "status empty", do: meta("tracediff.status", ""), typed: true},
	{name: "status failed", do: meta("tracediff.status", "failed: out of memory"), typed: true},
	{name: "status open", do: meta("tracediff.status", "open"), typed: true},
	{name: "status unknown", do: meta("tracediff.status", "finished"), typed: true},
	{name: "version removed", do: unmeta("tracediff.version"), typed: true},
	{name: "version removed, status failed", do: both(unmeta("tracediff.version"), meta("tracediff.status", "failed: out of memory")), typed: true},
	{name: "version of the future", do: meta("tracediff.version", "99"), typed: true},

	{name: "sequence reversed", do: reordering(func(l []*stTensor) []*stTensor { slices.Reverse(l); return l }), typed: true},
	{name: "sequence alphabetical", do: reordering(func(l []*stTensor) []*stTensor {
		slices.SortFunc(l, func(a, b *stTensor) int { return strings.Compare(a.Key, b.Key) })
		return l
	}), typed: true},
	{name: "sequence by dtype and name", do: reordering(func(l []*stTensor) []*stTensor {
		slices.SortFunc(l, func(a, b *stTensor) int { return strings.Compare(a.DType+a.Key, b.DType+b.Key) })
		return l
	}), typed: true},
	{name: "sequence, a layer first", do: moving(inLayer("2"), is("layers.1.in")), typed: true},
	{name: "sequence, logits first", do: moving(is("logits"), is("layers.0.in")), typed: true},
	{name: "sequence, a product before its factor", do: moving(is("layers.1.mlp.down_proj"), is("layers.1.mlp.gated")), typed: true},
	{name: "sequence, reversed in a pass", do: reordering(func(l []*stTensor) []*stTensor {
		n := slices.IndexFunc(l, func(t *stTensor) bool { return strings.HasPrefix(t.Key, "pass") })
		if n < 0 {
			n = len(l)
		}
		slices.Reverse(l[:n])
		return l
	}), typed: true},
	{name: "sequence, passes interleaved", do: reordering(func(l []*stTensor) []*stTensor {
		n := slices.IndexFunc(l, func(t *stTensor) bool { return strings.HasPrefix(t.Key, "pass1/") })
		var mixed []*stTensor
		for i := range n {
			mixed = append(mixed, l[i], l[n+i])
		}
		return append(mixed, l[2*n:]...)
	}), decode: true, typed: true},
	{name: "sequence, last pass first", do: moving(inPass("pass3"), is("input_ids")), decode: true, typed: true},
	{name: "sequence of another word", do: meta("tracediff.sequence", "alphabetical"), typed: true},

	{name: "config one layer short", do: shorter, typed: true},
	{name: "config one layer long", do: func(f *stFile, _ string) {
		f.config(func(c map[string]any) {
			c["num_hidden_layers"] = c["num_hidden_layers"].(float64) + 1
			for _, key := range []string{"layer_types", "intermediate_size"} {
				if list, ok := c[key].([]any); ok {
					c[key] = append(list, list[len(list)-1])
				}
			}
			if g, ok := c["gemma3n"].(map[string]any); ok {
				list := g["activation_sparsity_pattern"].([]any)
				g["activation_sparsity_pattern"] = append(list, list[len(list)-1])
			}
		})
	}, typed: true},
	{name: "config with fewer heads", do: func(f *stFile, _ string) {
		f.config(func(c map[string]any) { c["num_attention_heads"] = 1; c["num_key_value_heads"] = 1 })
	}, typed: true},
	{name: "config of another family", do: func(f *stFile, _ string) {
		f.config(func(c map[string]any) {
			c["model_type"] = map[bool]string{true: "qwen2", false: "llama"}[c["model_type"] == "llama"]
		})
	}, typed: true},
	{name: "config of another epsilon", do: func(f *stFile, _ string) {
		f.config(func(c map[string]any) { c["rms_norm_eps"] = 1e-3 })
	}},
	{name: "config that is no JSON", do: meta("tracediff.config", "{"), typed: true},
	{name: "passes, more declared", do: meta("tracediff.passes", "9"), typed: true},
	{name: "passes, fewer declared", do: meta("tracediff.passes", "2"), decode: true, typed: true},
	{name: "axes of another layout", do: meta("tracediff.axes", `{"layers.1.mlp.down_proj":"t b c"}`), typed: true},
	{name: "axes, fewer than the shape has", do: meta("tracediff.axes", `{"layers.1.mlp.down_proj":"b c"}`), typed: true},

	{name: "file cut off", do: func(f *stFile, _ string) { f.spoil = func(data []byte) []byte { return data[:len(data)-3] } }, typed: true},
	{name: "file with bytes behind it", do: func(f *stFile, _ string) { f.spoil = func(data []byte) []byte { return append(data, 0, 0, 0, 0) } }, typed: true},
	{name: "file with a longer header", do: func(f *stFile, _ string) { f.spoil = func(data []byte) []byte { data[1]++; return data } }, typed: true},
	{name: "file with one key twice", do: func(f *stFile, _ string) { f.tensors = append(f.tensors, f.tensors[len(f.tensors)-1]) }, typed: true},
	{name: "file with a dtype of its own", do: func(f *stFile, _ string) { f.tensors[len(f.tensors)-1].DType = "F31" }, typed: true},
	{name: "file with a shape for fewer bytes", do: func(f *stFile, _ string) {
		f.spoil = func(data []byte) []byte {
			return bytes.Replace(data, []byte(`"shape":[1,`), []byte(`"shape":[2,`), 1)
		}
	}, typed: true},
}

// kindsWithoutHarm rewrite a trace and leave what it says as it was. They are on the list of what is equal by logic.
var kindsWithoutHarm = []corruptionKind{
	{name: "a comment in the metadata", do: meta("comment", "hello"), typed: true},
	{name: "another device, model name and prompt", do: both(both(meta("tracediff.device", "cuda:7"), meta("tracediff.model", "elsewhere")), meta("tracediff.prompt", "Something else")), typed: true},
	{name: "no sequence declared, alphabetical", do: both(unmeta("tracediff.sequence"), reordering(func(l []*stTensor) []*stTensor {
		slices.SortFunc(l, func(a, b *stTensor) int { return strings.Compare(a.Key, b.Key) })
		return l
	})), typed: true},
	{name: "a derived tensor wrong", at: []string{"embed_tokens.lookup", "layers.1.attn_gated", "altup.final.stream.1"}, do: func(f *stFile, at string) {
		changingValues(func(i int, x float64) float64 { return x + float64(i) })(f, at)
		if !slices.Contains(f.list("tracediff.derived"), at) {
			panic(notHere)
		}
	}, typed: true},
	{name: "up before gate", do: moving(is("layers.1.mlp.up_proj"), is("layers.1.mlp.gate_proj")), typed: true},
	{name: "the last pass is not there, nor declared", do: func(f *stFile, _ string) {
		last := f.tensors[len(f.tensors)-1].Key
		pass := last[:strings.Index(last, "/")]
		f.drop(inPass(pass))
		f.meta["tracediff.passes"] = strings.TrimPrefix(pass, "pass")
	}, decode: true, typed: true},
	{name: "no metadata at all", do: func(f *stFile, _ string) {
		if f.has("pass1/input_ids") {
			panic(notHere) // a foreign file has one pass
		}
		f.meta = nil
	}, typed: true},
}

// notHere is the panic of a kind that this golden has nothing for.
const notHere = "nothing here to corrupt"
