package main

import (
	"bytes"
	"slices"
	"strings"
)

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
	}},

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
