package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Reparametrisation is the same model in other numbers: permuted channels, a factor that is applied elsewhere, or shifted positions. Each of its entries
// is a BUG or is computed from one, and the differences cancel in a later entry.
type Reparametrisation struct {
	What    []string // the changes: the names of the mistakes in its entries
	Cancels []string // keys of the entries in which they cancel
}

// reparametrisations are the layouts of one trace.
//
// An entry is changed in two cases: a named edit permutes, scales or rotates its elements; or it is computed from a
// changed entry, and differs in exact arithmetic from its unedited value by a permutation, scale or rotation. A
// descendant without a difference is an exit, where the change cancels. Every captured descendant of a change has
// to lead to an exit. An exit has to be right on its own inputs, respond to other inputs, and be within its limit.
// If one condition fails, no part of the set is a layout.
type reparametrisations struct {
	*Chain
	nodes  map[order.Node]*node
	todo   []*node // whose readers were not looked at
	byKey  map[string]*node
	reader map[int][]order.Ref // by entry: what reads it, by name
}

// node is what is known of a node.
type node struct {
	order.Node
	key    string
	is     part
	what   string             // the name of its edit, where it has one
	own    [3]numbers         // without edits, with them, and with what was changed at random
	turned bool               // by different positions
	of     *node              // the set of the layout that it belongs to; nil for itself
	why    string             // of a set: why it is no layout
	done   *Reparametrisation // of a set that is one
	from   []*node            // changed entries that it was computed from
}

// part is what a node is in a layout.
type part int

const (
	outside part = iota // of all layouts
	inside
	exit // where a layout cancels
)

// numbers are a tensor in exact arithmetic.
type numbers = program.Value

// set is the first of the nodes that belong together.
func (n *node) set() *node {
	for n.of != nil {
		n = n.of
	}
	return n
}

// join makes one set of two.
func (n *node) join(o *node) {
	a, b := n.set(), o.set()
	if a == b {
		return
	}
	b.of = a
	if a.why == "" {
		a.why = b.why
	}
}

// fail says why the set of a node is no layout.
func (n *node) fail(format string, args ...any) {
	if s := n.set(); s.why == "" {
		s.why = fmt.Sprintf(format, args...)
	}
}

// Layout decides whether an entry that is wrong on its own inputs is part of a layout. If so, known is true, and
// from then on [Chain.At] returns changed links for the layout's entries. The error comes from reading the trace or
// the weights.
func (c *Chain) Layout(ctx context.Context, key string) (known bool, err error) {
	n, ok := c.node(key)
	if !ok || c.certs[key] == nil || c.certs[key].Cert == nil || c.certs[key].Cert.Outcome != isolate.Bug {
		return false, nil
	}
	if form, err := c.i.Uncertified(ctx); err != nil || form != "" {
		return false, err // nothing is excused by operations that have not reproduced transformers
	}
	if c.layouts == nil {
		c.layouts = &reparametrisations{Chain: c, nodes: map[order.Node]*node{}, byKey: map[string]*node{}, reader: readersOf(c.i)}
	}
	l := c.layouts
	if c.Accepted != nil { // the search looks ahead of the rows that are decided, and the row that is asked about may be accepted next
		defer c.forget(maps.Clone(c.certs))
	}
	first, err := l.look(ctx, n)
	if err != nil {
		return false, err
	}
	for len(l.todo) > 0 {
		next := l.todo[0]
		l.todo = l.todo[1:]
		if err := l.follow(ctx, next); err != nil {
			return false, err
		}
	}
	return l.settle(first), nil
}

// node is that of a key.
func (c *Chain) node(key string) (order.Node, bool) {
	for pass := range c.i.Env().Passes {
		for k := range c.i.List().Entries {
			if capture.Key(pass, c.i.List().Entries[k].Name, 0) == key {
				return order.Node{Entry: k, Pass: pass}, true
			}
		}
	}
	return order.Node{}, false
}

// readersOf are the entries that read each, by the number of its entry.
func readersOf(i *isolate.Isolator) map[int][]order.Ref {
	all := map[int][]order.Ref{}
	for k := range i.List().Entries {
		for _, in := range i.List().Entries[k].Inputs {
			at := i.List().Index(in.Name)
			r := order.Ref{Name: i.List().Entries[k].Name, Prev: in.Prev}
			if !slices.Contains(all[at], r) {
				all[at] = append(all[at], r)
			}
		}
	}
	return all
}

// settle makes layouts of the sets that are, and reports whether that of a node is.
func (l *reparametrisations) settle(first *node) bool {
	some := false
	for _, n := range l.inOrder() {
		s := n.set()
		n.own = [3]numbers{}
		if n.is == outside || s.why != "" {
			continue
		}
		if s.done == nil {
			s.done, some = &Reparametrisation{}, true
		}
		if n.what != "" && n.is == inside && !slices.Contains(s.done.What, n.what) {
			s.done.What = append(s.done.What, n.what)
		}
		if n.is == exit {
			s.done.Cancels = append(s.done.Cancels, n.key)
			continue
		}
		l.byKey[n.key] = n
	}
	if some {
		l.forget(nil)
	}
	return first.is == inside && first.set().done != nil
}

// inOrder are the nodes that were looked at, in execution order.
func (l *reparametrisations) inOrder() []*node {
	var all []*node
	for _, n := range l.nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *node) int {
		if a.Pass != b.Pass {
			return a.Pass - b.Pass
		}
		return a.Entry - b.Entry
	})
	return all
}

// of returns the layout of an entry, or nil. An exit is right on its own inputs, and belongs to no layout.
func (l *reparametrisations) of(key string) *Reparametrisation {
	if l == nil || l.byKey[key] == nil {
		return nil
	}
	return l.byKey[key].set().done
}

// look classifies a node, after the nodes it is computed from.
func (l *reparametrisations) look(ctx context.Context, n order.Node) (*node, error) {
	if got := l.nodes[n]; got != nil {
		return got, nil
	}
	name := l.i.List().Entries[n.Entry].Name
	c := &node{Node: n, key: capture.Key(n.Pass, name, 0)}
	l.nodes[n] = c
	link, err := l.At(ctx, name, n.Pass)
	if err != nil || link.made.Cut == nil {
		return c, err
	}
	for _, leaf := range link.made.Cut.Leaves {
		from, err := l.look(ctx, leaf)
		if err != nil {
			return nil, err
		}
		if from.is == inside {
			c.from = append(c.from, from)
		}
	}
	return c, l.compute(ctx, c, link)
}

// compute decides what a node is by its values in exact arithmetic.
func (l *reparametrisations) compute(ctx context.Context, c *node, link *Link) error {
	cert := link.Cert
	if len(c.from) == 0 && (cert == nil || cert.Outcome != isolate.Bug || len(l.next(c.Node)) == 0) { // what nothing reads cancels nowhere
		return nil
	}
	for _, f := range c.from {
		c.join(f)
		c.turned = c.turned || f.turned
	}
	if len(c.from) > 0 && c.set().why != "" { // nothing is computed in vain
		c.is = inside
		return nil
	}
	if cert == nil {
		c.fail("%s is not certified: %s", c.key, link.Why)
		return nil
	}
	edit, failed, err := l.editOf(ctx, c, cert)
	if err != nil || failed {
		return err
	}
	ok, err := l.values(ctx, c, edit)
	switch {
	case err != nil:
		return err
	case !ok:
		c.fail("%s cannot be computed in exact arithmetic", c.key)
		return nil
	case len(c.from) > 0 && l.same(c):
		c.is = exit
		return l.check(ctx, c, link)
	case len(c.from) == 0 && near(c.own[0].Data, c.own[1].Data, 1):
		return nil // what is otherwise is a rounding, and a rounding is no other layout
	case len(c.from) == 0:
		c.turned = edit.Turns()
		c.own[2] = stirred(c.own[0])
	}
	if edit != nil {
		c.what = edit.Text()
	}
	switch moves := l.moved(c); {
	case moves:
		c.is = inside
		l.todo = append(l.todo, c)
	case len(c.from) > 0:
		c.is = inside
		c.fail("%s differs from what it would be without the changes before it", c.key)
	}
	return nil
}

// editOf returns the edit of a wrong node, or nil for a right node. failed is true for every other node.
func (l *reparametrisations) editOf(ctx context.Context, c *node, cert *isolate.Certificate) (edit Edit, failed bool, err error) {
	if cert.Outcome != isolate.Bug {
		if !cert.Good() {
			c.fail("%s is %s", c.key, cert.Outcome)
		}
		return nil, !cert.Good(), nil
	}
	if edit, err = l.edits.EditOf(ctx, c.Node); err != nil || edit != nil {
		return edit, false, err
	}
	if len(c.from) > 0 {
		c.fail("%s is wrong on its own inputs", c.key)
	}
	return nil, true, nil
}

// follow looks at all captured entries that read a changed one.
func (l *reparametrisations) follow(ctx context.Context, c *node) error {
	if c.set().why != "" {
		return nil
	}
	some := false
	seen := map[order.Node]bool{}
	var down func(n order.Node) error
	down = func(n order.Node) error {
		next := l.next(n)
		for _, to := range next {
			if seen[to] {
				continue
			}
			seen[to] = true
			if !l.i.Has(to) {
				if err := down(to); err != nil {
					return err
				}
				continue
			}
			some = true
			read, err := l.look(ctx, to)
			if err != nil {
				return err
			}
			if read.is == outside {
				c.fail("%s, which is computed from it, is not certified", read.key)
			}
		}
		if len(next) == 0 && n != c.Node {
			c.fail("what follows from %s was not captured", c.key)
		}
		return nil
	}
	if err := down(c.Node); err != nil {
		return err
	}
	if !some {
		c.fail("nothing that was captured is computed from %s", c.key)
	}
	return nil
}
