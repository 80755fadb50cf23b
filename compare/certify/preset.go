package certify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// preset names an arithmetic that says one thing for all sites of a program: another form may have the same one. The zero value is none.
type preset struct {
	kind presetKind
	n    int // of presetTables and presetSplit the way; of presetEvery and presetStrict a set of habits, as bits; of presetKernel the kernel
	way  int // of presetKernel that of its exponential
}

// presetKind is the kind of a preset.
type presetKind int

const (
	noPreset             presetKind = iota
	presetTables                    // rotary tables are made another way
	presetWide                      // float32 everywhere inside
	presetWideConstants             // and no constant in the model's dtype either
	presetEvery                     // every step is rounded, with some habits
	presetStrict                    // transformers' own, with some habits
	presetFunctions                 // what functions of a library return is rounded
	presetReciprocals               // a division multiplies with the reciprocal
	presetDouble                    // double precision inside
	presetFused                     // a product that a sum takes is not rounded
	presetBiasAfter                 // a bias is added to the product
	presetBiasAfterRound            // a bias is added to the rounded product
	presetTable                     // activations are looked up in a table of float16
	presetHalf                      // activations are rounded to float16
	presetSplit                     // sums are taken in parts
	presetKernel                    // a fused kernel, with one of its exponentials
)

// presetNames are the kinds in words, with what follows.
var presetNames = map[presetKind]string{
	presetTables: "tables %d", presetWide: "wide", presetWideConstants: "wide, constants too", presetEvery: "every %d", presetStrict: "strict %d",
	presetFunctions: "functions", presetReciprocals: "reciprocals", presetDouble: "double", presetFused: "fused", presetBiasAfter: "bias after",
	presetBiasAfterRound: "rounded, then bias", presetTable: "table", presetHalf: "half", presetSplit: "split %d", presetKernel: "fused %d, %d",
}

// String is the preset in words: they order presets that explain as much.
func (p preset) String() string {
	switch p.kind {
	case presetTables, presetEvery, presetStrict, presetSplit:
		return fmt.Sprintf(presetNames[p.kind], p.n)
	case presetKernel:
		return fmt.Sprintf(presetNames[p.kind], p.n, p.way)
	}
	return presetNames[p.kind]
}

// sortedPresets are the presets of a map in one order.
func sortedPresets[V any](of map[preset]V) []preset {
	return slices.SortedFunc(maps.Keys(of), func(a, b preset) int { return cmp.Compare(a.String(), b.String()) })
}

// A port may have these habits beside its presets, each or not; a set of them is a number, with a bit for each.
const (
	castConstants  = 1 << iota // constants are tensors of the dtype
	roundedSums                // sums are steps of their own
	reciprocals                // a number that divides is a reciprocal that multiplies
	rootInTwoSteps             // a reciprocal root is two steps
	quotients                  // what is multiplied by the reciprocal of a number is divided by it
	powers                     // a cube is a power: its square is no step
	allHabits      = 1<<iota - 1
)

// tablePreset is the preset of a way of making rotary tables.
func tablePreset(way uint8) preset { return preset{kind: presetTables, n: int(way)} }

// besideOrder are the presets that are tried with additions in another order: what an engine does to every sum.
var besideOrder = []preset{{}, {kind: presetWide}, {kind: presetWideConstants}, {kind: presetEvery}, {kind: presetDouble}}

// underMistakes are the presets under which a mistake is looked for where the arithmetic of the form is not known: a port that is wrong may
// round in its way, too.
func underMistakes(p preset) bool {
	return slices.Contains([]preset{{}, {kind: presetWide}, {kind: presetEvery}, {kind: presetEvery, n: castConstants}, {kind: presetStrict, n: reciprocals}, {kind: presetDouble}}, p) ||
		p.kind == presetTables && p.n > int(program.WayInverse) && p.n < int(program.WaysOfAngles)
}
