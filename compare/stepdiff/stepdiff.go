// Package stepdiff compares two recorded programs of one model step by step, without running either.
//
// What is compared is how each named tensor comes from the nearest named tensors before it: the operations between, with their
// operands, settings, numbers, dtypes and shapes. Two such slices are the same exactly where every step of one has the same step in
// the other, over the same elements of the same tensors; no rewrite is taken for the same, even one that changes no result. Axes of
// one element say nothing, and neither does where in memory a tensor lies. A weight is the tensor of the checkpoint that it is, under
// whatever name the model has it. Numbers of the checkpoint are not looked at, and neither are steps that lead to no named tensor.
package stepdiff

import (
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order/recorded"
)

// Programs are two programs that are compared: A and B, or the reference's and the local one.
type Programs struct{ a, b *side }

// New prepares the comparison of two programs.
func New(a, b *recorded.Program) *Programs { return &Programs{index(a), index(b)} }

// Renamed is a program with other names for its tensors: a port's names, by its map. A name that would collide within the pass stays.
func Renamed(p *recorded.Program, called func(name string) string) *recorded.Program {
	out := *p
	out.Passes = slices.Clone(p.Passes)
	for i := range out.Passes {
		pass := &out.Passes[i]
		pass.Lines = slices.Clone(pass.Lines)
		taken := map[string]bool{}
		for _, l := range pass.Lines {
			if l.Name != nil && called(l.Name.Name) == l.Name.Name {
				taken[l.Name.Name] = true
			}
		}
		for k := range pass.Lines {
			l := &pass.Lines[k]
			if l.Name == nil {
				continue
			}
			if to := called(l.Name.Name); !taken[to] {
				taken[to] = true
				own := *l.Name
				own.Name = to
				l.Name = &own
			}
		}
	}
	return &out
}

// Has reports whether both programs have a tensor of a pass.
func (p *Programs) Has(name string, pass int) bool {
	_, a := p.a.place(name, pass)
	_, b := p.b.place(name, pass)
	return a && b
}

// Difference is how a named tensor is computed otherwise in B than in A.
type Difference struct {
	Name string `json:"name"`
	Pass int    `json:"pass"`
	// Steps has the steps of both slices as a diff: "- " before a step of A only, "+ " before a step of B only, "  " before a step of both, and
	// "..." for steps of both far from any difference.
	Steps []string  `json:"steps"`
	Lines [2]string `json:"lines"` // the lines of source that computed the tensor, of A and of B; empty where not known
}

// Entry compares how both programs compute a tensor of a pass from the tensors that have says are captured; nil where they do it
// alike, or where either does not have it. Only names that both programs have are ends of a slice.
func (p *Programs) Entry(name string, pass int, have func(name string, pass int) bool) *Difference {
	x, ok := p.a.place(name, pass)
	y, also := p.b.place(name, pass)
	if !ok || !also {
		return nil
	}
	end := func(name string, pass int) bool { return p.Has(name, pass) && have(name, pass) }
	a, b := p.a.slice(x, pass, end), p.b.slice(y, pass, end)
	if a.key() == b.key() {
		return nil
	}
	return &Difference{Name: name, Pass: pass, Steps: diff(a, b), Lines: [2]string{p.a.source(x), p.b.source(y)}}
}

// Source is the line of source that computes a tensor of a pass of a program; empty where that is not known.
func Source(p *recorded.Program, name string, pass int) string {
	s := index(p)
	if at, ok := s.place(name, pass); ok {
		return s.source(at)
	}
	return ""
}

// Group are the tensors that differ in the same way: one name in several layers and passes.
type Group struct {
	Name   string   `json:"name"`   // the first of them, with "*" for a layer's number where there are several
	Where  []string `json:"where"`  // each of them as a key of a trace
	Steps  []string `json:"steps"`  // of the first, see [Difference]
	Source []string `json:"source"` // the lines of source of A and of B
}

// Report is what two programs have and do otherwise.
type Report struct {
	Compared int      `json:"compared"` // tensors with names that both have, over all passes
	Differ   int      `json:"differ"`
	Groups   []Group  `json:"groups"`
	OnlyA    []string `json:"only_a"` // keys of tensors, without token ids and positions
	OnlyB    []string `json:"only_b"`
	Passes   [2]int   `json:"passes"` // forward calls of A and of B
}

// Same reports whether at least one tensor was compared, all compared tensors agree, and both programs have the same tensors and passes.
func (r *Report) Same() bool {
	return r.Compared > 0 && r.Differ == 0 && len(r.OnlyA)+len(r.OnlyB) == 0 && r.Passes[0] == r.Passes[1]
}

// All compares all named tensors of both programs, pass by pass in the order of A.
func (p *Programs) All() *Report {
	r := &Report{Groups: []Group{}, OnlyA: []string{}, OnlyB: []string{}, Passes: [2]int{len(p.a.names), len(p.b.names)}}
	all := func(string, int) bool { return true }
	groups := map[string]int{}
	for pass := range max(len(p.a.names), len(p.b.names)) {
		for _, name := range p.a.sequence(pass) {
			if _, ok := p.b.place(name, pass); !ok {
				if !p.a.input(name, pass) {
					r.OnlyA = append(r.OnlyA, key(name, pass))
				}
				continue
			}
			r.Compared++
			d := p.Entry(name, pass, all)
			if d == nil {
				continue
			}
			r.Differ++
			r.group(groups, d)
		}
		for _, name := range p.b.sequence(pass) {
			if _, ok := p.a.place(name, pass); !ok && !p.b.input(name, pass) {
				r.OnlyB = append(r.OnlyB, key(name, pass))
			}
		}
	}
	return r
}

// aLayer is the layer in a name, by the lists of layers that modules of PyTorch have.
var aLayer = regexp.MustCompile(`\b(` + spelling.ModuleLists + `)\.\d+\b`)

// group adds a difference to those that are alike but for the layer and the pass.
func (r *Report) group(groups map[string]int, d *Difference) {
	general := func(s string) string { return aLayer.ReplaceAllString(s, "$1.*") }
	text := general(d.Name) + "\n" + general(changed(d.Steps))
	at, ok := groups[text]
	if !ok {
		at = len(r.Groups)
		groups[text] = at
		r.Groups = append(r.Groups, Group{Name: d.Name, Steps: d.Steps, Source: d.Lines[:]})
	}
	g := &r.Groups[at]
	if g.Where = append(g.Where, key(d.Name, d.Pass)); d.Name != g.Name {
		g.Name = general(g.Name)
	}
}

// changed are the lines of a diff with steps of one side only.
func changed(steps []string) string {
	only := slices.DeleteFunc(slices.Clone(steps), func(s string) bool { return s[0] != '-' && s[0] != '+' })
	return strings.Join(only, "\n")
}

// key is a tensor of a pass as a trace has it.
func key(name string, pass int) string { return capture.Key(pass, name, 0) }
