package redflag

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// role is what a name says that a tensor is. Several may hold, and of most names none.
type role struct {
	number    bool // of a float type; the others are ids and positions, or quantized
	mask      bool // of attention: no numbers of the model's
	masked    bool // scores, in which what is masked is very small or minus infinity
	table     bool // of cosines or sines
	probs     bool // of attention
	interior  bool // scores or probabilities, which engines keep in float32 while they fuse the steps of attention
	cached    bool // keys or values
	logits    bool
	embedding bool // the input's, a row for each token
	copied    bool // from weights, which have the dtype of the checkpoint
	scores    bool // of attention, [.., heads, queries, keys]
	parameter bool // a weight or a bias
	bias      bool
	gradient  bool
	loss      bool
	wide      bool // float32 by its name, whatever the model's dtype
	layer     int  // whose output it is, or −1
}

// The names, as patterns: those of TENSOR_ORDER, and what other recorders call the same.
var (
	probsName  = regexp.MustCompile(`(^|[._])(probs(_f32)?|attn_probs|attn_weights|attention_probs|attention_weights)$`)
	cachedName = regexp.MustCompile(`(^|\.)(keys|values|k_cache|v_cache|key_cache|value_cache)$`)
	tableName  = regexp.MustCompile(`(^|\.)(rotary|rope)[a-z_]*(\.[a-z_]+)*\.(cos|sin)$|(^|\.)(rotary|rope)[a-z_]*_(cos|sin)$`)
	maskName   = regexp.MustCompile(`(^|[._])mask(\.[a-z_]+)?$`)
	outName    = regexp.MustCompile(`(?:^|\.)(?:layers|h|blocks|blk)\.([0-9]{1,6})(?:\.out|\.output)?$|^hidden_states\.([0-9]{1,6})$`)
	copiedName = regexp.MustCompile(`(^|[._])(embed(s|ding|dings)?|embds?|emb|wte|wpe)(_[a-z_]+)?(\.(lookup|out|output|[0-9]))?$|(^|[._])[a-z_]+_(embed(s|ding|dings)?|embds?|emb)(\.(out|output))?$`)
	embedName  = regexp.MustCompile(`(^|\.)(embed_tokens|inputs_embeds|wte|embed_tokens_per_layer)(\.lookup)?$|(^|\.)layers\.0\.in$`)
)

// roleOf reads a name without the pass. Of a gradient nothing else is asked: it has the shape of what it belongs to, and none
// of its meaning.
func roleOf(name string, d hooks.DType) role {
	r := role{layer: -1, number: d.Float()}
	if strings.HasPrefix(name, capture.Gradient) {
		r.gradient = true
		return r
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	r.loss = name == "loss"
	r.mask = maskName.MatchString(name)
	r.masked = strings.HasSuffix(last, "scores_masked")
	r.table = tableName.MatchString(name)
	r.bias = last == "bias"
	r.parameter = last == "weight" || r.bias
	r.probs = probsName.MatchString(name)
	r.interior = r.probs || strings.HasPrefix(last, "scores")
	r.embedding = embedName.MatchString(name)
	r.copied = r.embedding || copiedName.MatchString(name)
	r.scores = strings.HasPrefix(last, "scores") || last == "attn_scores" || last == "attention_scores"
	r.cached = cachedName.MatchString(name)
	r.logits = last == "logits" || last == "lm_head"
	r.wide = strings.HasSuffix(last, "_f32")
	if m := outName.FindStringSubmatch(name); m != nil {
		r.layer, _ = strconv.Atoi(m[1] + m[2])
	}
	return r
}
