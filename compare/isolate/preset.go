package isolate

import (
	"fmt"
)

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
