package order

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
)

// Node is an entry in a pass: a vertex of the graph over all passes. The inputs of entries are the edges.
type Node struct {
	Entry int // its place in the list
	Pass  int
}

// Plan is what has to be computed to have some entries, and from what: a piece of the graph.
type Plan struct {
	Leaves []Node // read, not computed; in order of first use
	Steps  []Node // computed, in execution order
	list   *List
}

// Cut is the smallest piece of the graph between one entry and what is there: the entry, and every ancestor that is not
// there, back to those that are, earlier passes included. The entry itself is always computed. have tells what is
// there. The error is a [*BareError] when an ancestor can neither be read nor computed.
func (l *List) Cut(have func(Node) bool, target Node) (*Plan, error) {
	return l.Plan(have, []Node{target})
}

// Plan returns the smallest part of the graph with all targets as steps; see [List.Cut].
func (l *List) Plan(have func(Node) bool, targets []Node) (*Plan, error) {
	p := &Plan{list: l}
	seen := map[Node]bool{}
	open := slices.Clone(targets)
	for _, t := range targets {
		seen[t] = true
	}
	for len(open) > 0 {
		n := open[len(open)-1]
		open = open[:len(open)-1]
		p.Steps = append(p.Steps, n)
		e := l.At(n)
		if o, unknown := e.Op.(recorded.Unknown); unknown {
			return nil, &BareError{Name: e.Name, Pass: n.Pass, Why: o.Name + ": " + o.Why}
		}
		if !computable(e, l.IsRecorded()) {
			return nil, &BareError{Name: e.Name, Pass: n.Pass}
		}
		for _, in := range l.parents(n) {
			switch {
			case seen[in]:
				continue
			case have(in):
				p.Leaves = append(p.Leaves, in)
			default:
				open = append(open, in)
			}
			seen[in] = true
		}
	}
	slices.SortFunc(p.Steps, inOrder)
	slices.SortFunc(p.Leaves, inOrder)
	return p, nil
}

// inOrder compares by execution order: the list is a topological order of one pass.
func inOrder(a, b Node) int {
	if a.Pass != b.Pass {
		return a.Pass - b.Pass
	}
	return a.Entry - b.Entry
}

// computable reports whether an entry has an operation that computes it. Only in a recorded program may the operation
// have no input.
func computable(e *Entry, ofRecorded bool) bool {
	_, argument := e.Op.(op.Given)
	return e.Op != nil && !argument && (len(e.Inputs) > 0 || ofRecorded)
}

// parents are the inputs of a node: those of the pass before are absent in pass 0.
func (l *List) parents(n Node) []Node {
	var in []Node
	for _, ref := range l.At(n).Inputs {
		if at, ok := l.parent(n, ref); ok {
			in = append(in, at)
		}
	}
	return in
}

func (l *List) parent(n Node, ref Ref) (Node, bool) {
	at := Node{l.Index(ref.Name), n.Pass}
	if ref.Prev {
		at.Pass -= 1 + ref.Back
	}
	return at, at.Pass >= 0
}

// BareError is an entry that is needed and is neither there nor computed from anything: an argument of the model, a name of a
// user's list, or what an operation without a formula makes.
type BareError struct {
	Name string
	Pass int
	Why  string // the operation without a formula, and the reason; else empty
}

// Error names the entry.
func (e *BareError) Error() string {
	if e.Why != "" {
		return fmt.Sprintf("the operation of %s in pass %d cannot be computed (%s)", e.Name, e.Pass, e.Why)
	}
	return fmt.Sprintf("%s of pass %d was not captured, and nothing computes it", e.Name, e.Pass)
}

// With returns the plan with another description of an entry, for an entry that is a step of the plan.
func (p *Plan) With(n Node, e *Entry) *Plan {
	l := *p.list
	if l.passes == nil {
		l.Entries = slices.Clone(l.Entries)
		l.Entries[n.Entry] = *e
	} else {
		l.passes = slices.Clone(l.passes)
		l.passes[n.Pass] = slices.Clone(l.passes[n.Pass])
		l.passes[n.Pass][n.Entry] = e
	}
	return &Plan{Leaves: p.Leaves, Steps: p.Steps, list: &l}
}
