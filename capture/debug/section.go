package debug

import (
	"cmp"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// sections are the steps of a forward pass outside the layers, by the first part of the names of their tensors.
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
	{capture.Gradient, "gradients"},
}

// Section is the step of a forward pass to which a tensor belongs. Section depends only on the name, so that every
// recorder can tell: a step of a series is "step.<n>", and layers.<i> with everything under it is "layer.<i>". A name
// in no table is a section of its own, up to the first dot.
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

// digits reports whether s is a decimal number that fits an int.
func digits(s string) bool {
	const most = 9
	return s != "" && len(s) <= most && strings.Trim(s, "0123456789") == ""
}
