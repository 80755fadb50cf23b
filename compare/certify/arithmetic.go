package certify

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// arithmetic is a definite arithmetic of an engine: what it does at the sites at which it does not do what transformers does.
type arithmetic struct {
	at map[program.Site]program.Choice
	// rewrites are the formulas that it computes in another order.
	rewrites program.Rewrite
	// open: its result is not rounded to the entry's dtype where the trace has it wider.
	open bool
	// wide: what it computes from had more digits than were captured.
	wide   bool
	preset preset
	// others are ways of making rotary tables. Each explains all entries too, and is about as near to their elements.
	others []uint8
	// beside is what other forms prove, which this has something beside; nil for nothing.
	beside *arithmetic
	// flips are the choices that a descent changed, one step after the other, as they were before.
	flips map[program.Site]program.Choice
}

// strict is transformers' own.
func (a *arithmetic) strict() bool { return len(a.at) == 0 && a.rewrites == 0 && !a.open && !a.wide }

// beyondHull reports whether an arithmetic rounds where the hull does not allow it: parts of a sum, or to float16.
func (a *arithmetic) beyondHull() bool {
	return a.preset.kind == presetSplit || a.preset.kind == presetTable || a.preset.kind == presetHalf
}

// with is the arithmetic with another choice at a site.
func (a *arithmetic) with(s program.Site, c program.Choice) *arithmetic {
	b := *a
	b.preset = preset{}
	if b.at = maps.Clone(a.at); b.at == nil {
		b.at = map[program.Site]program.Choice{}
	}
	b.at[s] = c
	return &b
}

// flip is with, for a descent. The step's own choice is what the arithmetic has where it says nothing.
func (a *arithmetic) flip(s program.Site, c, own program.Choice) *arithmetic {
	b := a.with(s, c)
	if b.flips = maps.Clone(a.flips); b.flips == nil {
		b.flips = map[program.Site]program.Choice{}
	}
	if _, again := b.flips[s]; !again {
		before, ok := a.at[s]
		if !ok {
			before = own
		}
		b.flips[s] = before
	}
	return b
}

// without is the arithmetic with transformers' choice at some sites.
func (a *arithmetic) without(sites ...program.Site) *arithmetic {
	b := *a
	b.preset = preset{}
	b.at = maps.Clone(a.at)
	for _, s := range sites {
		delete(b.at, s)
	}
	return &b
}

// choices are those of a program; sites that it has not do not count. nil are the program's own.
func (a *arithmetic) choices(p *program.Program) []program.Choice {
	if len(a.at) == 0 {
		return nil
	}
	all := p.Own()
	for i := range p.Steps {
		s := &p.Steps[i]
		if c, ok := a.at[program.Site{Form: s.Form, Name: s.Site}]; ok && int(c.Way) < s.Ways() {
			all[i] = c
		}
	}
	return all
}

// maxSaid is how many sites are named; an arithmetic that differs in more is said by their number.
const maxSaid = 4

// words say what an engine of this arithmetic does otherwise than transformers, for a note such as "linear: rounds ...".
func (a *arithmetic) words(p *program.Program, d hooks.DType) string {
	if a.strict() {
		return string(Strict)
	}
	var parts []string
	if a.wide {
		parts = append(parts, "computes from more digits than were captured")
	}
	parts = append(parts, a.rewrites.Words()...)
	parts = append(parts, p.Reordered()...)
	if k := p.Fused(); k != nil {
		parts = append(parts, k.Words(d))
	}
	if a.keysOtherwise(p) {
		parts = append(parts, "rounds what queries and keys are both computed from for one of them alone")
	}
	by := map[string][]string{} // what is done: where
	var said []string
	several := len(a.kinds(p, d)) > 1
	for site, what := range a.differences(p, d) {
		if by[what] == nil {
			said = append(said, what)
		}
		name := site.Name
		if several {
			name = kind(site) + "." + name
		}
		by[what] = append(by[what], name)
	}
	for _, what := range said {
		where := by[what]
		text := strings.Join(where, ", ")
		if len(where) > maxSaid {
			text = fmt.Sprintf("%s and %d more steps", strings.Join(where[:maxSaid-1], ", "), len(where)-maxSaid+1)
		}
		parts = append(parts, fmt.Sprintf(what, text))
	}
	if a.open {
		parts = append(parts, "keeps its result wider than transformers")
	}
	return strings.Join(parts, "; ")
}

// differences are the sites of a program at which the arithmetic does not do what transformers does, each with what it does there.
func (a *arithmetic) differences(p *program.Program, d hooks.DType) iter.Seq2[program.Site, string] {
	return func(yield func(program.Site, string) bool) {
		sites, steps := p.Sites()
		for _, at := range sites {
			c, ok := a.at[at]
			if !ok {
				continue
			}
			s := &p.Steps[steps[at][0]]
			if s.Prim == program.Angle && c.Way != 0 { // one thing, whatever the steps are called
				if !yield(at, tableWords(c.Way, a.others)+"%.0s") {
					return
				}
				continue
			}
			for _, what := range difference(s, c, d) {
				if !yield(at, what) {
					return
				}
			}
		}
	}
}

// where says where an arithmetic differs from transformers', if that is not in the operation of the entry itself but on the way to it: the
// operation, if it is one, and the path of the module that has all of it, without the layer, if there is one.
func (a *arithmetic) where(p *program.Program, t *trial) string {
	kinds := a.kinds(p, t.i.env.DType)
	var module []string
	first := true
	for site := range a.differences(p, t.i.env.DType) {
		if site.Form == op.Form(t.entry.Op) {
			return ""
		}
		for _, n := range t.cut.Steps {
			if e := t.i.list.At(n); op.Form(e.Op) == site.Form {
				path := strings.Split(strings.TrimPrefix(e.Name, fmt.Sprintf("layers.%d.", e.Layer)), ".")
				if path = path[:len(path)-1]; first {
					module, first = path, false
				}
				for len(module) > len(path) || !slices.Equal(module, path[:len(module)]) {
					module = module[:len(module)-1]
				}
			}
		}
	}
	in := strings.Join(module, ".")
	switch {
	case len(kinds) != 1:
		return in
	case in == "":
		return kinds[0]
	case in == kinds[0] || strings.HasPrefix(in, kinds[0]+"."): // the tables of a model
		return in
	}
	return kinds[0] + " in " + in
}

// kinds are the operations in which an arithmetic differs from transformers', without their constants.
func (a *arithmetic) kinds(p *program.Program, d hooks.DType) []string {
	var all []string
	if p.Fused() != nil {
		all = append(all, program.FusedForm)
	}
	for site := range a.differences(p, d) {
		if k := kind(site); !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return all
}

// kind is the operation of a site without its constants.
func kind(at program.Site) string {
	kind, _, _ := strings.Cut(at.Form, "(")
	return kind
}

// difference says what a choice does that the step's own does not; %s is where.
func difference(s *program.Step, c program.Choice, d hooks.DType) []string {
	var all []string
	if c.Way != 0 {
		all = append(all, "at %s "+s.WayWords(c.Way, d))
	}
	if c.Round == s.Round {
		return all
	}
	switch c.Round {
	case program.Model:
		all = append(all, fmt.Sprintf("rounds %%s to %s, transformers does not", d))
	case program.Plain:
		all = append(all, "keeps %s in float32, which transformers rounds")
	case program.None:
		all = append(all, "does not round %s at all, transformers does")
	case program.Half:
		all = append(all, "rounds %s to float16, transformers does not")
	case program.Table:
		all = append(all, "rounds %s to float16 below 10, as a table does")
	default:
		all = append(all, "rounds %s differently from transformers")
	}
	return all
}
