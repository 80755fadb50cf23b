package spelling

import (
	"regexp"
	"strings"
)

// front is text that stands in front of names.
type front struct {
	of   Kind
	text string
}

// wrappers are what frameworks put in front of the names of a text model.
var wrappers = []front{
	{Weight | Activation, "model."},
	{Weight | Activation, "language_model."},
	{Weight | Activation, "text_model."},
	{Weight | Activation, "module."}, // of torch's DataParallel
	{Weight, "state_dict."},
	{Weight, "model_state_dict."},
	{Weight, "params."},
	{Weight, "_orig_mod."},        // of torch.compile
	{Weight, "base_model.model."}, // of peft
	{Activation, "transformer."},
	{Activation, "backbone."},
	{Activation, "decoder."},
}

// prefixes are the prefixes of whole text models in transformers. A longer prefix stands before every prefix
// contained in it.
var prefixes = []front{
	{Activation, "model.language_model.model."},
	{Weight | Activation, "model.language_model."},
	{Weight | Activation, "language_model.model."},
	{Activation, "model.text_model."},
	{Activation, "text_model.model."},
	{Activation, "language_model."},
	{Activation, "text_model."},
	{Activation, "model.model."},
	{Weight | Activation, "model."},
}

// InFront matches what frameworks put in front of a name: each wrapper once or several times, in any order.
func InFront(of Kind) *regexp.Regexp {
	return regexp.MustCompile("^(?:" + strings.ReplaceAll(strings.Join(fronts(wrappers, of), "|"), ".", `\.`) + ")+")
}

// Prefixes returns the common prefixes of a text model's names, in the order to try them.
func Prefixes(of Kind) []string { return fronts(prefixes, of) }

func fronts(list []front, of Kind) (all []string) {
	for _, f := range list {
		if f.of&of != 0 {
			all = append(all, f.text)
		}
	}
	return all
}

// The weights that a tied model has once.
const (
	Head      = "lm_head.weight"
	Embedding = "embed_tokens.weight"
)

// Heads returns the names of the head in checkpoints, in the order to try them. The head stands outside the text model and may lack the
// model's prefix.
func Heads(prefix string) []string { return []string{Head, "language_model." + Head, prefix + Head} }
