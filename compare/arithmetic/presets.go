package arithmetic

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

func newPresetter(p *program.Program, rewrites program.Rewrite) *presetter {
	b := &presetter{p: p, rewrites: rewrites}
	b.sites, b.steps = p.Sites()
	return b
}

// plain returns transformers' arithmetic and the known arithmetics of engines, the simplest first. Each makes one
// choice for all sites of a program, and has a name. They are the starting points of a search.
func (b *presetter) plain(d hooks.DType) []*isolate.Arithmetic {
	tables := b.tables()
	all := append([]*isolate.Arithmetic{{Rewrites: b.rewrites}}, tables...)
	add := func(of isolate.Preset, choose func(s *program.Step) program.Choice) {
		a := b.preset(choose)
		a.Preset = of
		all = append(all, a)
	}
	if d != hooks.F32 {
		add(isolate.Preset{Kind: isolate.PresetWide}, b.wide)
		add(isolate.Preset{Kind: isolate.PresetWideConstants}, b.uncast)
		for mask := range allHabits + 1 {
			add(isolate.Preset{Kind: isolate.PresetEvery, N: mask}, func(s *program.Step) program.Choice { return b.habit(s, b.every(s), mask) })
		}
	}
	for mask := 1; mask <= allHabits; mask++ {
		add(isolate.Preset{Kind: isolate.PresetStrict, N: mask}, func(s *program.Step) program.Choice { return b.habit(s, program.Choice{Round: s.Round}, mask) })
	}
	if d != hooks.F32 {
		add(isolate.Preset{Kind: isolate.PresetFunctions}, b.functions)
	}
	add(isolate.Preset{Kind: isolate.PresetReciprocals}, b.reciprocals)
	add(isolate.Preset{Kind: isolate.PresetDouble}, b.double)
	add(isolate.Preset{Kind: isolate.PresetFused}, b.fused)
	add(isolate.Preset{Kind: isolate.PresetBiasAfter}, b.afterBias(program.WayBiasAfter))
	add(isolate.Preset{Kind: isolate.PresetBiasAfterRound}, b.afterBias(program.WayBiasAfterRounding))
	add(isolate.Preset{Kind: isolate.PresetTable}, b.table)
	add(isolate.Preset{Kind: isolate.PresetHalf}, b.half)
	if d != hooks.F32 {
		for way := uint8(1); int(way) < program.WaysOfSum; way++ {
			add(isolate.Preset{Kind: isolate.PresetSplit, N: int(way)}, b.split(way))
		}
	}
	return append(all, besideTables(tables, all[1+len(tables):])...)
}

// presets returns the plain presets, and only a few of them if the order of additions is not the usual order.
func (b *presetter) presets(d hooks.DType) []*isolate.Arithmetic {
	all := b.plain(d)
	if b.rewrites.Order() == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(a *isolate.Arithmetic) bool { return !slices.Contains(besideOrder, a.Preset) })
}

// keyOf is the same for arithmetics that make the same choices in a program.
func keyOf(a *isolate.Arithmetic, p *program.Program) string {
	k := []byte{0, byte(a.Rewrites.Steps()), byte(a.Rewrites.Order()), byte(a.Rewrites.Kernel())}
	if a.Open {
		k[0] = 1
	}
	if a.Wide {
		k[0] += 2
	}
	c := a.Choices(p)
	if c == nil {
		c = p.Own()
	}
	if a.Rewrites.Apart() {
		k[0] += 4
	}
	for _, c := range c {
		k = append(k, c.Way, byte(c.Round))
	}
	return string(k)
}

type presetter struct {
	p     *program.Program
	sites []program.Site
	steps map[program.Site][]int

	rewrites program.Rewrite
}

// preset chooses for each site by its step, and records only choices different from the step's own.
func (b *presetter) preset(choose func(s *program.Step) program.Choice) *isolate.Arithmetic {
	a := &isolate.Arithmetic{At: map[program.Site]program.Choice{}, Rewrites: b.rewrites}
	for _, at := range b.sites {
		s := &b.p.Steps[b.steps[at][0]]
		if c := choose(s); c != (program.Choice{Round: s.Round}) {
			a.At[at] = c
		}
	}
	return a
}

// between are an arithmetic that has float32 from some step on, to the end or to any step; constants that transformers has in the
// model's dtype too, or not.
func (b *presetter) between(from *isolate.Arithmetic, toAny bool) iter.Seq[*isolate.Arithmetic] {
	return func(yield func(*isolate.Arithmetic) bool) {
		for k := range b.sites {
			casts, none := from, from
			for n, at := range b.sites[k:] {
				switch s := &b.p.Steps[b.steps[at][0]]; {
				case s.Prim == program.Number && s.Round == program.Model:
					none = none.With(at, program.Choice{Round: program.None})
					continue
				case s.Prim == program.Number, s.Prim == program.Copy, s.Prim == program.Angle:
					continue
				}
				to := program.Choice{Round: program.Plain}
				same := len(none.At) == len(casts.At)
				if casts, none = casts.With(at, to), none.With(at, to); !toAny && k+n < len(b.sites)-1 {
					continue
				}
				if !yield(casts) || !same && !yield(none) {
					return
				}
			}
		}
	}
}

// wide keeps float32 everywhere inside.
func (b *presetter) wide(s *program.Step) program.Choice {
	switch s.Round {
	case program.Model, program.Half, program.Single:
		if s.Prim != program.Number {
			return program.Choice{Round: program.Plain}
		}
	}
	return program.Choice{Round: s.Round}
}

// uncast is wide, and has no constant in the model's dtype either.
func (b *presetter) uncast(s *program.Step) program.Choice {
	if s.Prim == program.Number && s.Round == program.Model {
		return program.Choice{Round: program.None}
	}
	return b.wide(s)
}

// every rounds after every step, as an engine with one kernel per step does. The sum in a mean is not a separate
// step of such an engine.
func (b *presetter) every(s *program.Step) program.Choice {
	switch s.Prim {
	case program.Number, program.Copy, program.Sum, program.Angle:
		return program.Choice{Round: s.Round}
	}
	return program.Choice{Round: program.Model}
}

// habit is a choice with some habits.
func (b *presetter) habit(s *program.Step, c program.Choice, set int) program.Choice {
	has := func(habit int) bool { return set&habit != 0 }
	if has(castConstants) && s.Prim == program.Number && s.Round != program.Model {
		c.Round = program.Model
	}
	if has(roundedSums) && s.Prim == program.Sum {
		c.Round = program.Model
	}
	if has(reciprocals) && s.Prim == program.Div && b.p.Steps[s.Args[1].Step].Prim == program.Number {
		c.Way = program.WayRoundedReciprocal
	}
	if has(rootInTwoSteps) && s.Prim == program.Rsqrt {
		c.Way = program.WayRoundedRoot
	}
	if has(quotients) && s.Prim == program.Mul && s.Ways() > 1 {
		c.Way = program.WayQuotientByRounded
	}
	if has(powers) && b.p.Squares(s) {
		c.Round = program.None
	}
	return c
}

// functions rounds what a library's functions return, and keeps the rest.
func (b *presetter) functions(s *program.Step) program.Choice {
	switch s.Prim {
	case program.Exp, program.Tanh, program.Erf, program.Log, program.Log1p, program.Expm1, program.Pow:
		return program.Choice{Round: program.Model}
	}
	return program.Choice{Round: s.Round}
}

// reciprocals divides by multiplying, in float32.
func (b *presetter) reciprocals(s *program.Step) program.Choice {
	if s.Prim == program.Div || s.Prim == program.Rsqrt {
		return program.Choice{Way: program.WayReciprocal, Round: s.Round}
	}
	return program.Choice{Round: s.Round}
}

// double computes in double precision inside.
func (b *presetter) double(s *program.Step) program.Choice {
	if s.Prim == program.Copy || s.Prim == program.Angle {
		return program.Choice{Round: s.Round}
	}
	return program.Choice{Round: program.None}
}

// fused does not round a product that a sum takes.
func (b *presetter) fused(s *program.Step) program.Choice {
	if s.Prim == program.Mul && edit.Added(b.p, s) {
		return program.Choice{Round: program.None}
	}
	return program.Choice{Round: s.Round}
}

func (b *presetter) afterBias(way uint8) func(s *program.Step) program.Choice {
	return func(s *program.Step) program.Choice {
		if s.Prim == program.Affine && len(s.Args) == 3 {
			return program.Choice{Way: way, Round: s.Round}
		}
		return program.Choice{Round: s.Round}
	}
}

// table looks activations up in a table of float16; half rounds the same to float16 everywhere.
func (b *presetter) table(s *program.Step) program.Choice { return b.looked(s, program.Table) }

func (b *presetter) half(s *program.Step) program.Choice { return b.looked(s, program.Half) }

func (b *presetter) looked(s *program.Step, r program.Rounding) program.Choice {
	if s.Prim == program.Copy || edit.Activates(b.p, s) {
		return program.Choice{Round: r}
	}
	return program.Choice{Round: s.Round}
}

// split takes sums of products, and others, in parts.
func (b *presetter) split(sum uint8) func(s *program.Step) program.Choice {
	return func(s *program.Step) program.Choice {
		way, _ := s.Split(sum)
		return program.Choice{Way: way, Round: s.Round}
	}
}

// Under are the arithmetics under which a mistake is looked for where that of the form is not known.
func Under(left, entries []*isolate.Evidence) ([]*isolate.Arithmetic, error) {
	starts, err := newSearch(left, entries).starts()
	return slices.DeleteFunc(starts, func(a *isolate.Arithmetic) bool {
		return a.Rewrites != 0 || !underMistakes(a.Preset) || a.Preset == (isolate.Preset{}) && len(a.At) > 0
	}), err
}

// Tries are the arithmetics in which an entry may have a mistake: those of its form, or a few if the form has none. Some may be nil.
func (k *Forms) Tries(ctx context.Context, e *isolate.Evidence) ([]*isolate.Arithmetic, error) {
	f, err := k.Verdict(ctx, k.I.FormOf(e.Cut, e.Node))
	if err != nil {
		return nil, err
	}
	if f.Own == nil {
		return Under([]*isolate.Evidence{e}, []*isolate.Evidence{e})
	}
	return []*isolate.Arithmetic{f.Own, f.Second}, nil
}

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
