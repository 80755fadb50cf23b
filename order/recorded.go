package order

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
)

// maxPlaces bounds a recorded program's passes times its names: a list has a place for each name in each pass.
const maxPlaces = 1 << 22

// Recorded is the list of a recorded program: one entry per step and one per name, in the order of computation. A
// step without a name is an entry that nobody captures: a cut, the walk, a certificate and blame go through the entry
// as through any other. Each pass has its own operations, see [List.At]; Entries has, for each name, the entry of the
// first pass with this name, with symbols for the sizes on which all passes agree. The list holds only for the
// program's prompt: nothing is computed for a pass with other tokens. The error names what the program cannot have.
func Recorded(p *recorded.Program) (*List, error) {
	passes, err := p.Entries()
	if err != nil {
		return nil, err
	}
	l, err := listOf(p, passes, false)
	if errors.Is(err, errCrossed) { // unnamed steps in different orders get different names
		apart(passes)
		if l, err = listOf(p, passes, false); errors.Is(err, errCrossed) {
			l, err = listOf(p, passes, true)
		}
	}
	return l, err
}

// apart gives steps without names other names in passes that have not the same steps in the same order.
func apart(passes [][]recorded.Entry) {
	groups := map[string]string{}
	unnamed := make([]map[string]bool, len(passes))
	ends := make([]string, len(passes))
	for i, all := range passes {
		var text strings.Builder
		unnamed[i] = map[string]bool{}
		for _, e := range all {
			text.WriteString(e.Name + " ")
			unnamed[i][e.Name] = e.Level == recorded.Unnamed
		}
		if _, ok := groups[text.String()]; !ok {
			groups[text.String()] = fmt.Sprintf("@%d", len(groups))
		}
		ends[i] = groups[text.String()]
	}
	for i, all := range passes {
		for k := range all {
			e := &all[k]
			if e.Level == recorded.Unnamed {
				e.Name += ends[i]
			}
			for n, in := range e.Inputs {
				if from := i - in.Back; unnamed[from][in.Name] {
					e.Inputs[n].Name += ends[from]
				}
			}
		}
	}
}

// listOf returns the list of the entries of all passes. The error is errCrossed if the orders of the passes
// contradict each other. With sorted, each entry stands after the entries from which any pass computes it, if such an
// order exists.
func listOf(p *recorded.Program, passes [][]recorded.Entry, sorted bool) (*List, error) {
	m := merger{place: map[string]int{}}
	for _, all := range passes {
		m.pass(all)
		if len(m.names)*len(passes) > maxPlaces {
			return nil, fmt.Errorf("more than %d names in %d passes, and few passes share names", len(m.names), len(passes))
		}
	}
	if sorted {
		m.sort(passes)
	}
	l := newList(nil, make([]Entry, len(m.names)))
	for i, name := range m.names {
		l.index[name] = i
		l.Entries[i] = Entry{Name: name}
	}
	for i, all := range passes {
		pass := make([]*Entry, len(m.names))
		for k := range all {
			e := entryOf(&all[k], p.Passes[i])
			if err := checked(all[k].Op, e); err != nil {
				return nil, fmt.Errorf("pass %d: %w", i, err)
			}
			pass[l.index[e.Name]] = e
		}
		l.passes = append(l.passes, pass)
	}
	for i := range l.Entries {
		l.Entries[i] = inAll(l.passes, i, p.Passes)
	}
	if err := ordered(l); err != nil {
		return nil, err
	}
	if err := readable(l); err != nil {
		return nil, err
	}
	l.Config = configOf(p, l)
	return l, nil
}

// checked reports an argument of the model that is not a row of whole numbers.
func checked(o op.Op, e *Entry) error {
	if o == nil && (e.DType != "int64" || len(e.Shape) != 2) {
		return fmt.Errorf("%s has shape %v and dtype %s: want whole numbers, a row of them", e.Name, e.Shape, e.DType)
	}
	return nil
}

// merger merges the names of all passes into a common order. The order of each pass is kept as far as possible.
type merger struct {
	names []string
	place map[string]int
}

// pass inserts each new name after the names that precede it in the pass.
func (m *merger) pass(all []recorded.Entry) {
	var merged []string
	seen := make([]bool, len(m.names))
	at := 0
	for _, e := range all {
		if old, ok := m.place[e.Name]; ok {
			for ; at <= old; at++ {
				merged = append(merged, m.names[at])
				seen[at] = true
			}
			continue
		}
		merged = append(merged, e.Name)
	}
	merged = append(merged, m.names[at:]...)
	m.names = merged
	clear(m.place)
	for i, name := range merged {
		m.place[name] = i
	}
}

// sort moves a name only if another name is computed from it in any pass: the moved name then stands before the other
// name. Names that are computed from each other keep their order.
func (m *merger) sort(passes [][]recorded.Entry) {
	from := map[string][]string{}
	for _, all := range passes {
		for _, e := range all {
			for _, in := range e.Inputs {
				if in.Back == 0 {
					from[e.Name] = append(from[e.Name], in.Name)
				}
			}
		}
	}
	type open struct {
		name string
		next int // of what it is computed from
	}
	var sorted []string
	seen := map[string]bool{}
	for _, name := range m.names {
		for stack := []open{{name: name}}; len(stack) > 0; {
			top := &stack[len(stack)-1]
			if top.next == 0 && seen[top.name] {
				stack = stack[:len(stack)-1]
				continue
			}
			if seen[top.name] = true; top.next < len(from[top.name]) {
				top.next++
				stack = append(stack, open{name: from[top.name][top.next-1]})
				continue
			}
			sorted = append(sorted, top.name)
			stack = stack[:len(stack)-1]
		}
	}
	m.names = sorted
}

// entryOf is an entry of a pass.
func entryOf(r *recorded.Entry, p recorded.Pass) *Entry {
	e := &Entry{Name: r.Name, Layer: r.Layer, Level: r.Level, Op: r.Op, DType: r.DType, Line: r.Source.Line, Expression: r.Source.Expression}
	for _, n := range r.Shape {
		e.Shape = append(e.Shape, Dim(n))
	}
	for _, in := range r.Inputs {
		ref := Ref{Name: in.Name, Prev: in.Back > 0}
		if in.Back > 1 {
			ref.Back = in.Back - 1
		}
		e.Inputs = append(e.Inputs, ref)
	}
	for _, t := range r.Weights {
		e.Weights = append(e.Weights, Weight{Name: t.Name, Shape: t.Shape, DType: t.DType})
	}
	if r.Op == nil {
		e.Op = op.Argument{}
	}
	last := r.Name[strings.LastIndexByte(r.Name, '.')+1:]
	switch {
	case strings.HasPrefix(r.Name, "mask."):
		e.Compare = Pattern
	case last == "scores_masked":
		e.Compare = Allowed
	}
	e.Axes = axesOf(r, last, p)
	e.HF = Source{Kind: Out, Module: r.Name}
	if r.Level == recorded.Unnamed {
		e.HF = Source{Kind: Derived}
	}
	return e
}

// attentionAxes are the axes of what attention has, by the last part of its name.
var attentionAxes = map[string]string{
	"scores": "bhts", "scores_softcap": "bhts", "scores_masked": "bhts", "probs_f32": "bhts", "probs": "bhts",
	"keys": "bhsc", "values": "bhsc", "q_rope": "bhtc", "k_rope": "bhtc",
}

// axesOf are the roles of the axes of a tensor, as far as its name and sizes tell: the first of two and more is the batch where it
// is 1, the next one of the pass's tokens is theirs, and others are channels.
func axesOf(r *recorded.Entry, last string, p recorded.Pass) string {
	if axes := attentionAxes[last]; len(axes) == len(r.Shape) && axes != "" {
		return axes
	}
	axes := []byte(strings.Repeat(string(AxisChannel), len(r.Shape)))
	at := 0
	if len(axes) > 1 && r.Shape[0] == 1 {
		axes[0], at = AxisBatch, 1
	}
	for ; at < len(axes); at++ {
		if r.Shape[at] == p.Tokens && (at < len(axes)-1 || r.Op == nil) {
			axes[at] = AxisToken
			break
		}
	}
	if last == "logits" || last == "lm_head" {
		axes[len(axes)-1] = AxisVocab
	}
	return string(axes)
}

// inAll returns entry i with the sizes on which all passes agree. A size that equals each pass's number of tokens, or
// of keys, becomes the symbol T or SFull.
func inAll(entries [][]*Entry, i int, passes []recorded.Pass) Entry {
	var e Entry
	have := 0
	for k := range entries {
		own := entries[k][i]
		if own == nil {
			continue
		}
		if have++; have == 1 {
			e = *own
			e.Shape = slices.Clone(own.Shape)
		}
	}
	for a, d := range e.Shape {
		tokens, keys, same := true, true, true
		for k := range entries {
			if own := entries[k][i]; own != nil && a < len(own.Shape) {
				n, p := own.Shape[a], passes[k]
				tokens, keys, same = tokens && int(n) == p.Tokens, keys && int(n) == p.Past+p.Tokens, same && n == d
			}
		}
		switch {
		case same:
		case tokens:
			e.Shape[a] = T
		case keys:
			e.Shape[a] = SFull
		default: // its size is known in each pass, see At
			e.Axes = ""
		}
	}
	return e
}

var errCrossed = errors.New("another pass has these in the opposite order")

// ordered reports an entry that is computed from a later entry of the list.
func ordered(l *List) error {
	for pass := range l.passes {
		for i, e := range l.passes[pass] {
			if e == nil {
				continue
			}
			for _, ref := range e.Inputs {
				at, ok := l.parent(Node{i, pass}, ref)
				switch {
				case !ok || at.Entry < 0 || l.passes[at.Pass][at.Entry] == nil:
					return fmt.Errorf("pass %d: %s is computed from %s, which is missing", pass, e.Name, ref.Name)
				case at.Pass == pass && at.Entry >= i:
					return fmt.Errorf("pass %d: %s is computed from %s, and %w", pass, e.Name, ref.Name, errCrossed)
				}
			}
		}
	}
	return nil
}

// maxBetween bounds the steps without names from which all names together are computed, each counted once for each name.
const maxBetween = 1 << 21

// readable reports a program with more than maxBetween unnamed steps between its names: too many to examine for each
// name.
func readable(l *List) error {
	seen := make([]int32, len(l.passes)*len(l.Entries)) // by node, the name that has seen it last
	total, name := 0, int32(0)
	var open []Node
	for pass := range l.passes {
		for i, e := range l.passes[pass] {
			if e == nil || l.Entries[i].unnamed() {
				continue
			}
			name++
			open = append(open[:0], Node{i, pass})
			for len(open) > 0 {
				n := open[len(open)-1]
				open = open[:len(open)-1]
				for _, at := range l.parents(n) {
					if place := at.Pass*len(l.Entries) + at.Entry; l.Entries[at.Entry].unnamed() && seen[place] != name {
						seen[place] = name
						open = append(open, at)
						total++
					}
				}
			}
			if total > maxBetween {
				return fmt.Errorf("pass %d: %s and the names before it are computed from more than %d steps without a name", pass, e.Name, maxBetween)
			}
		}
	}
	return nil
}

// configOf returns the known part of the model's configuration: its type, dtype, number of layers and vocabulary
// size.
func configOf(p *recorded.Program, l *List) *Config {
	c := &Config{ModelType: p.ModelType, Tokens: TokenIDs{BOS: -1, PAD: -1}, DType: p.DType.String()}
	for i := range l.Entries {
		e := &l.Entries[i]
		c.NumLayers = max(c.NumLayers, e.Layer+1)
		if e.Name == "logits" && len(e.Shape) > 0 {
			c.VocabSize = int(e.Shape[len(e.Shape)-1])
		}
	}
	return c
}

// IsRecorded reports whether the list is of a recorded program: its entries are those of the passes that were recorded.
func (l *List) IsRecorded() bool { return l.passes != nil }

// Named is the list of the entries with names: what a capture may have, and a comparison shows. Inputs of its Entries are the nearest
// entries with names from which one is computed in any pass, so that blame and what follows from an entry go through the steps between;
// the operations are those of the steps, and are evaluated by l.
func (l *List) Named() *List {
	var kept []*Entry
	for i := range l.Entries {
		if !l.Entries[i].unnamed() {
			kept = append(kept, &l.Entries[i])
		}
	}
	n := l.Keep(kept)
	for i := range n.Entries {
		e := &n.Entries[i]
		e.Inputs = nil
		for pass := range l.passes {
			e.Inputs = l.namedInputs(e.Inputs, pass, Node{l.Index(e.Name), pass}, map[Node]bool{})
		}
	}
	return n
}

func (e *Entry) unnamed() bool { return e.Level == recorded.Unnamed }

// namedInputs adds to some refs of a pass the nearest entries with names from which a node is computed.
func (l *List) namedInputs(refs []Ref, pass int, n Node, seen map[Node]bool) []Ref {
	for _, at := range l.parents(n) {
		switch back := pass - at.Pass; {
		case seen[at]:
		case l.Entries[at.Entry].unnamed():
			seen[at] = true
			refs = l.namedInputs(refs, pass, at, seen)
		default:
			seen[at] = true
			ref := Ref{Name: l.Entries[at.Entry].Name, Prev: back > 0, Back: max(back-1, 0)}
			if !slices.ContainsFunc(refs, func(r Ref) bool { return r.Name == ref.Name && r.Prev == ref.Prev && r.Back == ref.Back }) {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}
