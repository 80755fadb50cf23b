package names

import (
	"math"
	"regexp"
	"strings"
	"unicode"
)

// meanings lists, by the words of tensor names, the words of this package: they say how alike two names are. Whole names that are known stand in
// [spelling]. "qn" is the norm of the queries. A letter that counts norms has no meaning.
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

// means adds words to names of entries that say less than people do.
var means = map[string]string{
	"input_layernorm": "pre attn norm", "post_attention_layernorm": "post attn norm", "pre_feedforward_layernorm": "pre mlp norm",
	"post_feedforward_layernorm": "post mlp norm", "o_proj": "attn o out", "context": "attn context", "down_proj": "mlp down out", "norm": "final norm",
}

var between = regexp.MustCompile(`[^\pL\pN]+`)

// layerItself is the end of a name that says no more than the layer: what the module of the layer returns.
var layerItself = regexp.MustCompile(`(?i)(?:layers?|blocks?|blk)[-_./]?(?:\{L\}|[0-9]+)$`)

// wordsOf are the meanings of the words in a name; what has none is left out.
func wordsOf(name string) map[string]bool {
	words := map[string]bool{}
	if layerItself.MatchString(name) {
		words["out"] = true
	}
	for _, part := range between.Split(name, -1) {
		for _, w := range camels(part) {
			of, ok := meanings[strings.ToLower(w)]
			if !ok { // a number that counts has no meaning: ln2
				of = meanings[strings.TrimRight(strings.ToLower(w), "0123456789")]
			}
			for _, meaning := range of {
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

// Alikeness is how alike the words of a tensor's name and of an entry's are, from 0 to 1.
func Alikeness(name, role string) float64 {
	last := LastPart(role)
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
		if b[w] {
			both++
		}
	}
	return float64(both) / math.Sqrt(float64(len(a)*len(b)))
}

// LastPart is what follows the last dot of a name.
func LastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
