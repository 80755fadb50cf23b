package debug

import (
	"cmp"
	"strings"

	"github.com/tracediff/tracediff/order"
)

// sections name the steps of a forward pass that are no layers, by what the names of their tensors begin with.
var sections = []struct{ prefix, section string }{
	{"input_ids", "input"},
	{"position_ids", "input"},
	{"mask", "mask"},
	{"attention_mask", "mask"},
	{"embed_tokens", "embedding"},
	{"inputs_embeds", "embedding"},
	{"per_layer_", "embedding"},
	{"altup.init", "embedding"},
	{"altup_projections", "embedding"},
	{"rotary", "rotary"},
	{"norm", "final"},
	{"altup.final", "final"},
	{"altup_unembed_projections", "final"},
	{"lm_head", "logits"},
	{"logits", "logits"},
	{"loss", "loss"},
	{"grad/", "gradients"},
}

// Section is the step of a forward pass that a tensor belongs to, by its name alone, so that every recorder can tell: a
// step of a series is "step.<n>", layers.<i> and what is under it "layer.<i>". Names that are in no table are their own
// section up to the first dot.
func Section(name string) string {
	if i := strings.LastIndex(name, stepMark); i > 0 && digits(name[i+len(stepMark):]) {
		return name[i+1:]
	}
	if layer := order.NameOf(name).Label(); digits(layer) {
		return "layer." + layer
	}
	for _, s := range sections {
		if strings.HasPrefix(name, s.prefix) {
			return s.section
		}
	}
	first, _, _ := strings.Cut(name, ".")
	return cmp.Or(first, "-")
}

// digits reports a number as a name has it, short enough for an int.
func digits(s string) bool {
	const most = 9
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
