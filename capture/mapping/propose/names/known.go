package names

import (
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
)

// aliases are names of entries in other engines, by entry, as patterns; {L} is the layer. Names that every family has come first, and of
// several firings the one that is meant. SGLang is missing: capture/foreign already gives its dumps the names of the order.
var aliases = spelling.ByRole(spelling.Activation, spelling.LlamaCpp, spelling.GGUF, spelling.Meta, spelling.TransformerLens, spelling.Flax,
	spelling.KerasHub, spelling.TensorRTLLM, spelling.GPT2, spelling.Several)

// isAlias has those names, without the firing.
var isAlias = func() map[string]bool {
	all := map[string]bool{}
	for _, list := range aliases {
		for _, name := range list {
			name, _, _ = strings.Cut(name, "#")
			all[name] = true
		}
	}
	return all
}()

// Fused lists groups of entries, each in memory order, for engines with one tensor per group.
var Fused = [][]string{
	inEachLayer("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
	inEachLayer("self_attn.k_proj", "self_attn.v_proj"),
	inEachLayer("mlp.gate_proj", "mlp.up_proj"),
	inEachLayer("mlp.up_proj", "mlp.gate_proj"),
}

// inEachLayer are the patterns of entries of all layers.
func inEachLayer(modules ...string) []string {
	var all []string
	for _, m := range modules {
		all = append(all, order.NameIn("{L}", m).String())
	}
	return all
}

var (
	rankPart   = regexp.MustCompile(`(?i)(^|[-_./])(?:` + spelling.RankWords + `)[-_=.]?(?:\{[RP]\}|[0-9]{1,4})(?:[-_./]|$)`)
	prefixText = spelling.InFront(spelling.Activation)
)

// plainNames are the possible readings of a pattern as a known name: the pattern, and the pattern without the parts that frameworks add.
func plainNames(text string) []string {
	firing := ""
	if base, n, ok := strings.Cut(text, "#"); ok {
		text, firing = base, "#"+n
	}
	if at := strings.Index(text, "{S}"); at >= 0 { // the pass
		text = strings.TrimLeft(text[at+len("{S}"):], "-_./")
	}
	text = rankPart.ReplaceAllString(text, "$1")
	list := []string{text + firing, text}
	text = spelling.ModuleOf(text)
	list = append(list, text)
	text = prefixText.ReplaceAllString(text, "")
	list = append(list, text, text+firing)
	if module, ok := strings.CutPrefix(text, "{L}."); ok { // a list of layers
		list = append(list, order.NameIn("{L}", module).String())
	}
	text = spelling.WithoutCall(text)
	return append(list, text, prefixText.ReplaceAllString(text, ""))
}
