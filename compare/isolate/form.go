package isolate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// FormKey names a form. The entries of a form have the same program except for numbers, and an engine has one
// arithmetic for all of them.
type FormKey struct {
	// made are the operations from captured entries to an entry, its own first, with madeOf between them.
	made string
	// OneToken: the entries are those of passes of a single token, for which engines have kernels of their own.
	OneToken bool
}

// NewFormKey is the form of some operations, that of the entries first.
func NewFormKey(operations []string, oneToken bool) FormKey {
	return FormKey{strings.Join(operations, madeOf), oneToken}
}

// madeOf stands between the operations of a form.
const madeOf = " < "

// String is the form in words.
func (f FormKey) String() string {
	if f.OneToken {
		return f.made + " (one token)"
	}
	return f.made
}

// Operations are those of the form.
func (f FormKey) Operations() []string { return strings.Split(f.made, madeOf) }

// Others is the same form in the passes of the other kind.
func (f FormKey) Others() FormKey { return FormKey{f.made, !f.OneToken} }

// SeveralTokens is the same form in the prompt's passes.
func (f FormKey) SeveralTokens() FormKey { return FormKey{f.made, false} }

// FormOf is the form of an entry: its operation, those that are computed on the way, and whether the pass is of a single token.
func (i *Isolator) FormOf(cut *order.Plan, n order.Node) FormKey {
	forms := []string{op.Form(i.list.At(n).Op)}
	for k := len(cut.Steps) - 1; k >= 0; k-- {
		if f := op.Form(i.list.At(cut.Steps[k]).Op); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	slices.Sort(forms[1:])
	return NewFormKey(forms, i.env.Passes[n.Pass].Tokens == 1 || i.lastRow(n))
}

// Preset names an arithmetic with one rule for all sites of a program, so forms can share a preset. The zero value
// is no preset.
type Preset struct {
	Kind PresetKind
	N    int // of PresetTables and PresetSplit the way; of PresetEvery and PresetStrict a set of habits, as bits; of PresetKernel the kernel
	Way  int // of PresetKernel that of its exponential
}

// PresetKind is the kind of a preset.
type PresetKind int

// The kinds of presets.
const (
	NoPreset             PresetKind = iota
	PresetTables                    // rotary tables are made another way
	PresetWide                      // float32 everywhere inside
	PresetWideConstants             // and no constant in the model's dtype either
	PresetEvery                     // every step is rounded, with some habits
	PresetStrict                    // transformers' own, with some habits
	PresetFunctions                 // what functions of a library return is rounded
	PresetReciprocals               // a division multiplies with the reciprocal
	PresetDouble                    // double precision inside
	PresetFused                     // a product that a sum takes is not rounded
	PresetBiasAfter                 // a bias is added to the product
	PresetBiasAfterRound            // a bias is added to the rounded product
	PresetTable                     // activations are looked up in a table of float16
	PresetHalf                      // activations are rounded to float16
	PresetSplit                     // sums are taken in parts
	PresetKernel                    // a fused kernel, with one of its exponentials
)

// presetNames are the kinds in words, with what follows.
var presetNames = map[PresetKind]string{
	PresetTables: "tables %d", PresetWide: "wide", PresetWideConstants: "wide, constants too", PresetEvery: "every %d", PresetStrict: "strict %d",
	PresetFunctions: "functions", PresetReciprocals: "reciprocals", PresetDouble: "double", PresetFused: "fused", PresetBiasAfter: "bias after",
	PresetBiasAfterRound: "rounded, then bias", PresetTable: "table", PresetHalf: "half", PresetSplit: "split %d", PresetKernel: "fused %d, %d",
}

// String is the preset in words: they order presets that explain as much.
func (p Preset) String() string {
	switch p.Kind {
	case PresetTables, PresetEvery, PresetStrict, PresetSplit:
		return fmt.Sprintf(presetNames[p.Kind], p.N)
	case PresetKernel:
		return fmt.Sprintf(presetNames[p.Kind], p.N, p.Way)
	}
	return presetNames[p.Kind]
}
