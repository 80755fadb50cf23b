package names

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
)

// Template is a pattern of names, in the syntax of a map: the tensors of the layers, passes and ranks. The names of the tensors differ
// only in the numbers of layer, pass and rank.
type Template struct {
	Text        string
	Steps       bool // {S} is in it, the number of a pass
	First       int  // the least S
	From        int  // the number of the first layer: 0, or 1
	Forms       []*Form
	NeedsNoLine bool // it needs no line
	plain       []string
	Sources     []capture.Source // of the first pass, of all layers and ranks
	All         []*Occurrence    // of all passes
	passes      map[int]bool
}

// InPass reports whether the pattern has a tensor in a pass.
func (t *Template) InPass(pass int) bool {
	if t.passes == nil {
		t.passes = map[int]bool{} // once: there are many roles
		for _, x := range t.All {
			t.passes[t.PassOf(x)] = true
		}
	}
	return t.passes[pass]
}

func keysOf[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }

// has reports whether the pattern is the name of a role, with or without a prefix.
func (t *Template) has(role string) bool {
	if t.plain == nil {
		t.plain = plainNames(t.Text) // once: there are many roles
	}
	return slices.Contains(t.plain, role)
}

// Called reports whether the pattern is a known name of a role.
func (t *Template) Called(role string) bool { return t.Rank(role) >= 0 }

// Rank is the position of the pattern in the list of known names of a role: 0 for the role's own name, −1 if the list lacks it.
func (t *Template) Rank(role string) int {
	if t.has(role) {
		return 0
	}
	for i, alias := range aliases[role] {
		if slices.Contains(t.plain, alias) {
			return i + 1
		}
	}
	return -1
}

// Templates groups the tensors of a dump by what their names have in common. known says which of them need no line.
func Templates(ctx context.Context, t *capture.Trace, layers int, known func(int) bool, passes bool) ([]*Template, error) {
	twice := map[string]bool{}
	for _, r := range t.Records() {
		twice[r.Name] = twice[r.Name] || r.Firing > 0
	}
	found := map[string]*group{}
	var order []*group
	all := namesOf(t, layers, known, passes)
	for _, x := range all {
		text := x.text()
		if twice[x.Record.Name] {
			text += fmt.Sprintf("#%d", x.Record.Firing)
		}
		g := found[text]
		if g == nil {
			g = &group{Template: Template{Text: text, Steps: x.step >= 0, First: x.step, From: x.Best.from, NeedsNoLine: x.known}, at: map[cell]*Occurrence{}}
			found[text] = g
			order = append(order, g)
		}
		g.add(x)
	}
	numbering := numberings(all, layers)
	var list []*Template
	for _, g := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		made, err := g.forms(numbering)
		if err != nil {
			return nil, err
		}
		list = append(list, made...)
	}
	return list, nil
}

// AddLastRows adds forms for tensors that are smaller than all tokens and may be the row of the last token.
func (t *Template) AddLastRows(tokens int) {
	for _, f := range t.Forms {
		for _, x := range f.Layers {
			if shape := tensors.WithoutOnes(x.Shape); tokens < 2 || len(shape) != 1 {
				return
			}
		}
	}
	for _, f := range slices.Clone(t.Forms) {
		t.Forms = append(t.Forms, f.lastRow())
	}
}

// Holds reports whether the name of t is the name of a module, and part the name of a tensor in it: attn and attn.wo.
func (t *Template) Holds(part *Template) bool {
	rest, ok := strings.CutPrefix(part.Text, t.Text)
	next, _ := utf8.DecodeRuneInString(rest)
	return ok && rest != "" && !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

// PassOf is the pass of a tensor of the template.
func (t *Template) PassOf(x *Occurrence) int {
	if x.step >= 0 {
		return x.step - t.First
	}
	return x.Record.Pass
}
