package spelling

import "strings"

// meanings lists words of tensor names by their meanings, which say how alike two names are. Whole names stand in the table. "qn" is the norm of
// the queries. A letter that counts norms has no meaning.
var meanings = meaningsOf(map[string]string{
	"q": "q query queries wq qcur", "k": "k key keys wk kcur", "v": "v value values val wv vcur", "o": "o wo dense",
	"gate": "g gate gating gated w1", "up": "u up w3", "down": "down w2", "norm": "norm normed normalized normalised ln layernorm rms rmsnorm",
	"rope": "rope rot rotary rotated roped", "attn": "attn attention att at mha", "mlp": "mlp moe ffn ff ffw feed forward feedforward",
	"embed": "emb embd embed embeddings embedding embedder wte tok", "logits": "logits head unembed", "out": "out output outputs x h hidden resid residual",
	"context": "context ctx mix mixed z kqv", "act": "act activation gelu silu swiglu geglu", "post": "post after", "pre": "pre before", "in": "in input inp",
	"scores": "scores score kq qk", "probs": "probs prob softmax weights pattern", "final": "final last f",
	"q norm": "qn qnorm", "k norm": "kn knorm", "q k v": "qkv", "gate up": "gateup",
})

func meaningsOf(written map[string]string) map[string][]string {
	all := map[string][]string{}
	for meaning, words := range written {
		for _, w := range strings.Fields(words) {
			all[w] = append(all[w], strings.Fields(meaning)...)
		}
	}
	return all
}

// Meanings returns the meanings of a word in the name of a tensor; nil for a word without meaning.
func Meanings(word string) []string { return meanings[strings.ToLower(word)] }

// implied has further words for modules of transformers whose names say less than people do.
var implied = map[string]string{
	"input_layernorm": "pre attn norm", "post_attention_layernorm": "post attn norm", "pre_feedforward_layernorm": "pre mlp norm",
	"post_feedforward_layernorm": "post mlp norm", "o_proj": "attn o out", "context": "attn context", "down_proj": "mlp down out", "norm": "final norm",
}

// Implied returns the words that people use for a module of transformers with a shorter name; ok is false if the name says enough.
func Implied(module string) (words string, ok bool) {
	words, ok = implied[module]
	return words, ok
}
