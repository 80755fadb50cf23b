package order

import (
	"iter"
	"strconv"
	"strings"
)

// Names of what a layer has begin with the list of layers and the label of one: "layers.3.". A label is a number, or the "*" of all layers.
const (
	layersPrefix = "layers."
	// AnyLayer begins the names of what every layer has.
	AnyLayer = layersPrefix + "*."
)

// Name is the name of an entry or of a weight, such as "layers.3.self_attn.q_proj". Its parts stand between dots. Names are equal where
// their texts are. The key of a tensor in a trace also has the pass and the firing, which package internal/tracekey reads.
type Name struct {
	text string
	end  int // where the label of the layer ends, 0 where the name has none
}

// NameOf reads a name. Every text is one: what does not begin with "layers." is in no layer, be there layers further on in it, as in the
// "model.layers.3.mlp" of a recorded model.
func NameOf(text string) Name {
	rest, ok := strings.CutPrefix(text, layersPrefix)
	if !ok {
		return Name{text: text}
	}
	label, _, _ := strings.Cut(rest, ".")
	return Name{text, len(layersPrefix) + len(label)}
}

// NameIn is the name of what a layer has: NameIn("3", "mlp") is "layers.3.mlp".
func NameIn(label, module string) Name { return NameOf(layersPrefix + label + "." + module) }

// InLayer is the name of what a layer has by the layer's number.
func InLayer(layer int, module string) Name { return NameIn(strconv.Itoa(layer), module) }

// LayerPath is the path of a layer itself: "layers.3".
func LayerPath(layer int) string { return layersPrefix + strconv.Itoa(layer) }

// String is the text of the name.
func (n Name) String() string { return n.text }

// Label is what the name calls its layer: "3" of "layers.3.mlp" and of "layers.3"; empty where it has no layer.
func (n Name) Label() string {
	if n.end == 0 {
		return ""
	}
	return n.text[len(layersPrefix):n.end]
}

// Layer is the number of the layer, that of the layer itself too, −1 where the name has none.
func (n Name) Layer() int { return number(n.Label()) }

// Within reports whether the name is of what a layer has, and not of the layer itself or of what is in none.
func (n Name) Within() bool { return n.end > 0 && n.end < len(n.text) }

// Path is the path of the name's layer: "layers.3"; empty for a name outside of the layers.
func (n Name) Path() string {
	if !n.Within() {
		return ""
	}
	return n.text[:n.end]
}

// SameLayer reports whether one layer has what two names name.
func (n Name) SameLayer(other Name) bool {
	return n.Within() && other.Within() && n.Label() == other.Label()
}

// Module is the place of what is named in its layer: "self_attn.q_proj"; the whole name where no layer has it.
func (n Name) Module() string {
	if !n.Within() {
		return n.text
	}
	return n.text[n.end+1:]
}

// Here is the name of a module in the layer of n, or outside of the layers if n has no layer.
func (n Name) Here(module string) Name {
	if n.end == 0 {
		return NameOf(module)
	}
	return NameIn(n.Label(), module)
}

// Beside is the name of n's module in the layer of own; n itself unless both names are in a layer.
func (n Name) Beside(own Name) Name {
	if !n.Within() || !own.Within() {
		return n
	}
	return own.Here(n.Module())
}

// Role is what an entry or weight is in its layer, or in its stack of streams: the name with "*" for numbers,
// "layers.*.self_attn.q_proj". A number that follows a number stays.
func (n Name) Role() string { return n.starred(false) }

// Kind is the role with "*" for every number, also for a number that follows a number.
func (n Name) Kind() string { return n.starred(true) }

// starred is the name with "*" for numbers. Unless all is set, a number that follows a number stays.
func (n Name) starred(all bool) string {
	var b strings.Builder
	from, starred := 0, false
	for at, part := range n.parts() {
		if starred = (all || !starred) && digits(part); starred {
			b.WriteString(n.text[from:at])
			b.WriteByte('*')
			from = at + len(part)
		}
	}
	if from == 0 {
		return n.text
	}
	return b.String() + n.text[from:]
}

// Number is the first number in the name: of a layer, or of a stream as in "altup_projections.0"; −1 where the name has none.
func (n Name) Number() int {
	for _, part := range n.parts() {
		if digits(part) {
			return number(part)
		}
	}
	return -1
}

// Next is the name with the [Name.Number] some further on. ok is false where the name has none, or that would be below zero.
func (n Name) Next(by int) (next Name, ok bool) {
	for at, part := range n.parts() {
		if !digits(part) {
			continue
		}
		if i := number(part); i >= 0 && i+by >= 0 {
			return NameOf(n.text[:at] + strconv.Itoa(i+by) + n.text[at+len(part):]), true
		}
		break
	}
	return Name{}, false
}

// parts yields the parts between dots, each with its place in the text.
func (n Name) parts() iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		at := 0
		for part := range strings.SplitSeq(n.text, ".") {
			if !yield(at, part) {
				return
			}
			at += len(part) + 1
		}
	}
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// number reads digits; −1 where the text is something else, or too large.
func number(s string) int {
	if !digits(s) {
		return -1
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}
