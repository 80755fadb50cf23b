package redflag

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
)

// role is a set of bits: the roles that the name gives a tensor, 0 for most names.
type role uint16

const (
	roleMask      role = 1 << iota // of attention: its numbers are not the model's
	roleMasked                     // scores with a very small number or minus infinity where the mask hides a key
	roleTable                      // of cosines or sines
	roleProbs                      // of attention
	roleInterior                   // scores or probabilities: engines keep these in float32 while they fuse the steps of attention
	roleCached                     // keys or values
	roleLogits                     // before or after a soft cap
	roleEmbedding                  // of the input: one row per token
	roleCopied                     // from weights, with the dtype of the checkpoint
	roleScores                     // of attention, [.., heads, queries, keys]
	roleParameter                  // a weight or a bias
	roleBias                       // a bias is a parameter too
	roleGradient                   // of a parameter or of an activation
	roleLoss                       // of a training step
	roleWide                       // float32 by its name, in a model of any dtype
)

// with adds another role, if it holds.
func (r role) with(other role, holds bool) role {
	if holds {
		return r | other
	}
	return r
}

// Patterns of names: the names in TENSOR_ORDER, and the names of other recorders for the same tensors. Tables, masks and copies of an
// embedding have no single role: the patterns follow the usual form of the names.
var (
	scoreNames = spelling.Endings(spelling.Activation, spelling.Words, "layers.{L}.self_attn.scores")
	probsName  = regexp.MustCompile(`(^|[._])(` + called("layers.{L}.self_attn.probs", "layers.{L}.self_attn.probs_f32") + `)$`)
	cachedName = regexp.MustCompile(`(^|\.)(` + called("layers.{L}.self_attn.keys", "layers.{L}.self_attn.values") + `)$`)
	tableName  = regexp.MustCompile(`(^|\.)(rotary|rope)[a-z_]*(\.[a-z_]+)*\.(cos|sin)$|(^|\.)(rotary|rope)[a-z_]*_(cos|sin)$`)
	maskName   = regexp.MustCompile(`(^|[._])mask(\.[a-z_]+)?$`)
	outName    = regexp.MustCompile(`(?:^|\.)(?:` + spelling.LayerLists + `)\.([0-9]{1,6})(?:\.out|\.output)?$|^` + spelling.HiddenStates + `\.([0-9]{1,6})$`)
	copiedName = regexp.MustCompile(`(^|[._])(` + spelling.EmbeddingTables + `)(_[a-z_]+)?(\.(lookup|out|output|[0-9]))?$|(^|[._])[a-z_]+_(` + spelling.EmbeddingWords + `)(\.(out|output))?$`)
	embedName  = regexp.MustCompile(`(^|\.)(` + called("embed_tokens", "inputs_embeds", "embed_tokens_per_layer") + `)(\.lookup)?$|(^|\.)` + regexp.QuoteMeta(order.InLayer(0, "in").String()) + `$`)
)

// called lists, as alternatives, the last words of names with the given roles.
func called(roles ...string) string {
	return strings.Join(spelling.Endings(spelling.Activation, spelling.Words, roles...), "|")
}

// roleOf reads the role from a name without the pass. A gradient is only a gradient: it has the shape of its parameter or activation, but
// another meaning.
func roleOf(name string) role {
	if strings.HasPrefix(name, capture.Gradient) {
		return roleGradient
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	probs, scores, embedding := probsName.MatchString(name), strings.HasPrefix(last, "scores"), embedName.MatchString(name)
	return role(0).
		with(roleLoss, name == "loss").
		with(roleMask, maskName.MatchString(name)).
		with(roleMasked, strings.HasSuffix(last, "scores_masked")).
		with(roleTable, tableName.MatchString(name)).
		with(roleBias, last == "bias").
		with(roleParameter, last == "weight" || last == "bias").
		with(roleProbs, probs).
		with(roleInterior, probs || scores).
		with(roleEmbedding, embedding).
		with(roleCopied, embedding || copiedName.MatchString(name)).
		with(roleScores, scores || slices.Contains(scoreNames, last)).
		with(roleCached, cachedName.MatchString(name)).
		with(roleLogits, last == "logits" || last == "lm_head").
		with(roleWide, strings.HasSuffix(last, "_f32"))
}

// layerOut is the number of the layer whose output has the name; −1 for other names.
func layerOut(name string) int {
	if m := outName.FindStringSubmatch(name); m != nil && !strings.HasPrefix(name, capture.Gradient) {
		layer, _ := strconv.Atoi(m[1] + m[2])
		return layer
	}
	return -1
}
