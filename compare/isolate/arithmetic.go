package isolate

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// Arithmetic is the definite arithmetic of an engine: for each site with a deviation from transformers, the
// engine's choice.
type Arithmetic struct {
	At map[program.Site]program.Choice
	// Rewrites are the formulas that it computes in another order.
	Rewrites program.Rewrite
	// Open: its result is not rounded to the entry's dtype where the trace has it wider.
	Open bool
	// Wide: what it computes from had more digits than were captured.
	Wide   bool
	Preset Preset
	// Others are ways of making rotary tables. Each explains all entries too, and is about as near to their elements.
	Others []uint8
	// Beside is the arithmetic proven by smaller forms and extended by this arithmetic; nil for none.
	Beside *Arithmetic
	// Flips maps each site that a descent changed to the choice before the descent.
	Flips map[program.Site]program.Choice
}

// Strict is transformers' own.
func (a *Arithmetic) Strict() bool { return len(a.At) == 0 && a.Rewrites == 0 && !a.Open && !a.Wide }

// With is the arithmetic with another choice at a site.
func (a *Arithmetic) With(s program.Site, c program.Choice) *Arithmetic {
	b := *a
	b.Preset = Preset{}
	if b.At = maps.Clone(a.At); b.At == nil {
		b.At = map[program.Site]program.Choice{}
	}
	b.At[s] = c
	return &b
}

// Flip is with, for a descent. The step's own choice is what the arithmetic has where it says nothing.
func (a *Arithmetic) Flip(s program.Site, c, own program.Choice) *Arithmetic {
	b := a.With(s, c)
	if b.Flips = maps.Clone(a.Flips); b.Flips == nil {
		b.Flips = map[program.Site]program.Choice{}
	}
	if _, again := b.Flips[s]; !again {
		before, ok := a.At[s]
		if !ok {
			before = own
		}
		b.Flips[s] = before
	}
	return b
}

// Without is the arithmetic with transformers' choice at some sites.
func (a *Arithmetic) Without(sites ...program.Site) *Arithmetic {
	b := *a
	b.Preset = Preset{}
	b.At = maps.Clone(a.At)
	for _, s := range sites {
		delete(b.At, s)
	}
	return &b
}

// Choices returns the choices at the sites of a program, ignoring sites of other programs. nil means the program's
// own choices.
func (a *Arithmetic) Choices(p *program.Program) []program.Choice {
	if len(a.At) == 0 {
		return nil
	}
	all := p.Own()
	for i := range p.Steps {
		s := &p.Steps[i]
		if c, ok := a.At[program.Site{Form: s.Form, Name: s.Site}]; ok && int(c.Way) < s.Ways() {
			all[i] = c
		}
	}
	return all
}

// maxSaid is how many sites are named; an arithmetic that differs in more is said by their number.
const maxSaid = 4

// Words describes the differences between an engine of this arithmetic and transformers, for a note such as
// "linear: rounds ...".
func (a *Arithmetic) Words(p *program.Program, d hooks.DType) string {
	if a.Strict() {
		return string(Strict)
	}
	var parts []string
	if a.Wide {
		parts = append(parts, "computes from more digits than were captured")
	}
	parts = append(parts, a.Rewrites.Words()...)
	parts = append(parts, p.Reordered...)
	if k := rewrite.KernelOf(p); k != nil {
		parts = append(parts, k.Words(d))
	}
	if a.keysOtherwise(p) {
		parts = append(parts, "rounds the common input of queries and keys for only one of them")
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
	if a.Open {
		parts = append(parts, "keeps its result wider than transformers")
	}
	return strings.Join(parts, "; ")
}

// differences yields the sites of a program with a deviation from transformers, each with a description of the
// deviation.
func (a *Arithmetic) differences(p *program.Program, d hooks.DType) iter.Seq2[program.Site, string] {
	return func(yield func(program.Site, string) bool) {
		sites, steps := p.Sites()
		for _, at := range sites {
			c, ok := a.At[at]
			if !ok {
				continue
			}
			s := &p.Steps[steps[at][0]]
			if s.Prim == program.Angle && c.Way != 0 { // one thing, whatever the steps are called
				if !yield(at, tableWords(c.Way, a.Others)+"%.0s") {
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

// Where names the place of the differences from transformers, if they lie on the way to the entry instead of in its
// own operation. The place is the operation, if there is only one, and the common module path without the layer, if
// there is one.
func (a *Arithmetic) Where(p *program.Program, t *Trial) string {
	kinds := a.kinds(p, t.Isolator.env.DType)
	var module []string
	first := true
	for site := range a.differences(p, t.Isolator.env.DType) {
		if site.Form == op.Form(t.Entry.Op) {
			return ""
		}
		for _, n := range t.Cut.Steps {
			if e := t.Isolator.list.At(n); op.Form(e.Op) == site.Form {
				path := strings.Split(RoleOf(e), ".")
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
func (a *Arithmetic) kinds(p *program.Program, d hooks.DType) []string {
	var all []string
	if rewrite.KernelOf(p) != nil {
		all = append(all, rewrite.FusedForm)
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

// tableWords says how an engine makes tables. The ways in others fit about as well.
func tableWords(way uint8, others []uint8) string {
	if len(others) == 0 {
		return "makes rotary tables " + program.TableWords(way)
	}
	var all []string
	for w := range program.WaysOfAngles {
		if w == way || slices.Contains(others, w) {
			all = append(all, program.TableWords(w))
		}
	}
	return "makes rotary tables another way: " + strings.Join(all, ", or ")
}

// keysOtherwise reports whether an arithmetic has another choice for keys than for queries, at a site that both have.
func (a *Arithmetic) keysOtherwise(p *program.Program) bool {
	sites, _ := p.Sites()
	for _, at := range sites {
		name, keys := strings.CutSuffix(at.Name, rewrite.OfKeys)
		if !keys {
			continue
		}
		own, some := a.At[at]
		if of, others := a.At[program.Site{Form: at.Form, Name: name}]; some != others || own != of {
			return true
		}
	}
	return false
}
