package arithmetic

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order/program"
)

// sortedPresets are the presets of a map in one order.
func sortedPresets[V any](of map[isolate.Preset]V) []isolate.Preset {
	return slices.SortedFunc(maps.Keys(of), func(a, b isolate.Preset) int { return cmp.Compare(a.String(), b.String()) })
}

// Habits of a port, on top of a preset. A set of habits is a bit mask.
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
func tablePreset(way uint8) isolate.Preset {
	return isolate.Preset{Kind: isolate.PresetTables, N: int(way)}
}

// besideOrder are the presets to combine with other orders of addition, which an engine applies to every sum.
var besideOrder = []isolate.Preset{{}, {Kind: isolate.PresetWide}, {Kind: isolate.PresetWideConstants}, {Kind: isolate.PresetEvery}, {Kind: isolate.PresetDouble}}

// underMistakes are the presets for a search for a mistake in a form of unknown arithmetic, since a wrong port may
// also round differently.
func underMistakes(p isolate.Preset) bool {
	return slices.Contains([]isolate.Preset{{}, {Kind: isolate.PresetWide}, {Kind: isolate.PresetEvery}, {Kind: isolate.PresetEvery, N: castConstants}, {Kind: isolate.PresetStrict, N: reciprocals}, {Kind: isolate.PresetDouble}}, p) ||
		p.Kind == isolate.PresetTables && p.N > int(program.WayInverse) && p.N < int(program.WaysOfAngles)
}

// beyondHull reports whether an arithmetic rounds where the hull does not allow it: parts of a sum, or to float16.
func beyondHull(a *isolate.Arithmetic) bool {
	return a.Preset.Kind == isolate.PresetSplit || a.Preset.Kind == isolate.PresetTable || a.Preset.Kind == isolate.PresetHalf
}
