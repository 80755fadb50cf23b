package isolate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// Preset names an arithmetic that says one thing for all sites of a program: another form may have the same one. The zero value is none.
type Preset struct {
	Kind presetKind
	N    int // of presetTables and presetSplit the way; of presetEvery and presetStrict a set of habits, as bits; of presetKernel the kernel
	Way  int // of presetKernel that of its exponential
}

// presetKind is the kind of a preset.
type presetKind int

const (
	NoPreset             presetKind = iota
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
var presetNames = map[presetKind]string{
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

// SortedPresets are the presets of a map in one order.
func SortedPresets[V any](of map[Preset]V) []Preset {
	return slices.SortedFunc(maps.Keys(of), func(a, b Preset) int { return cmp.Compare(a.String(), b.String()) })
}

// A port may have these habits beside its presets, each or not; a set of them is a number, with a bit for each.
const (
	CastConstants  = 1 << iota // constants are tensors of the dtype
	RoundedSums                // sums are steps of their own
	Reciprocals                // a number that divides is a reciprocal that multiplies
	RootInTwoSteps             // a reciprocal root is two steps
	Quotients                  // what is multiplied by the reciprocal of a number is divided by it
	Powers                     // a cube is a power: its square is no step
	AllHabits      = 1<<iota - 1
)

// TablePreset is the preset of a way of making rotary tables.
func TablePreset(way uint8) Preset { return Preset{Kind: PresetTables, N: int(way)} }

// BesideOrder are the presets that are tried with additions in another order: what an engine does to every sum.
var BesideOrder = []Preset{{}, {Kind: PresetWide}, {Kind: PresetWideConstants}, {Kind: PresetEvery}, {Kind: PresetDouble}}

// UnderMistakes are the presets under which a mistake is looked for where the arithmetic of the form is not known: a port that is wrong may
// round in its way, too.
func UnderMistakes(p Preset) bool {
	return slices.Contains([]Preset{{}, {Kind: PresetWide}, {Kind: PresetEvery}, {Kind: PresetEvery, N: CastConstants}, {Kind: PresetStrict, N: Reciprocals}, {Kind: PresetDouble}}, p) ||
		p.Kind == PresetTables && p.N > int(program.WayInverse) && p.N < int(program.WaysOfAngles)
}
