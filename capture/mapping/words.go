package mapping

import (
	"math"
	"regexp"
	"strings"
	"unicode"
)

// meanings are the words that names of tensors are made of, as people write them, and what each is called here. A letter that some port counts its norms by has
// none.
var meanings = map[string][]string{}

func init() {
	for word, written := range map[string]string{
		"q": "q query queries wq qcur", "k": "k key keys wk kcur", "v": "v value values val wv vcur", "o": "o wo dense",
		"gate": "g gate gating gated w1", "up": "u up w3", "down": "down w2", "norm": "norm normed normalized normalised ln layernorm rms rmsnorm",
		"rope": "rope rot rotary rotated roped", "attn": "attn attention att at mha", "mlp": "mlp moe ffn ff ffw feed forward feedforward",
		"embed": "emb embd embed embeddings embedding embedder wte tok", "logits": "logits head unembed", "out": "out output outputs x h hidden resid residual",
		"context": "context ctx mix mixed z kqv", "act": "act activation gelu silu swiglu geglu", "post": "post after", "pre": "pre before", "in": "in input inp",
		"scores": "scores score kq qk", "probs": "probs prob softmax weights pattern", "final": "final last f",
	} {
		for _, w := range strings.Fields(written) {
			meanings[w] = append(meanings[w], word)
		}
	}
	for _, w := range []string{"q", "k"} { // qn and q_n are the norm of queries
		meanings[w+"n"], meanings[w+"norm"] = []string{w, "norm"}, []string{w, "norm"}
	}
	meanings["qkv"], meanings["gateup"] = []string{"q", "k", "v"}, []string{"gate", "up"}
}

// means is what an entry is called in words that its name has not.
var means = map[string]string{
	"input_layernorm": "pre attn norm", "post_attention_layernorm": "post attn norm", "pre_feedforward_layernorm": "pre mlp norm",
	"post_feedforward_layernorm": "post mlp norm", "o_proj": "attn o out", "context": "attn context", "down_proj": "mlp down out", "norm": "final norm",
}

var between = regexp.MustCompile(`[^\pL\pN]+`)

// wordsOf are the meanings of the words in a name; what has none is left out.
func wordsOf(name string) map[string]bool {
	words := map[string]bool{}
	for _, part := range between.Split(name, -1) {
		for _, w := range camels(part) {
			for _, meaning := range meanings[strings.ToLower(w)] {
				words[meaning] = true
			}
		}
	}
	return words
}

// camels are the words of a name such as qProj.
func camels(name string) (words []string) {
	from := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			words, from = append(words, name[from:i]), i
		}
	}
	return append(words, name[from:])
}

// alikeness is how alike the words of a tensor's name and of an entry's are, from 0 to 1.
func alikeness(name, role string) float64 {
	last := lastPart(role)
	other := role
	if more, ok := means[last]; ok {
		other = strings.TrimSuffix(role, last) + more
	}
	a, b := wordsOf(name), wordsOf(strings.ReplaceAll(other, "self_attn", "attn"))
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	both := 0
	for w := range a {
		both += btoi(b[w])
	}
	return float64(both) / math.Sqrt(float64(len(a)*len(b)))
}
