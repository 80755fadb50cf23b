package certify

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
)

// check holds an entry in which a layout cancels to what it has to be: right by itself, on an unbroken chain.
func (l *layouts) check(c *changed, link *Link) error {
	if !link.Cert.Good() {
		c.fail("%s is wrong by itself", c.key)
		return nil
	}
	if why := l.broken(link.Cert, c.key); why != "" {
		c.fail("%s: %s", c.key, why)
		return nil
	}
	return l.responding(c)
}

// responding holds an entry in which a layout cancels to its limit, and to that it depends on what is changed.
func (l *layouts) responding(c *changed) error {
	if !responds(c.own[0], c.own[2]) {
		c.fail("%s is nearly the same whatever it is computed from", c.key)
		return nil
	}
	return l.within(c, c.Node, map[order.Node]bool{})
}

// within asks whether both sides have an entry in which a layout cancels within its limit; where it was not compared, all that are
// computed from it next.
func (l *layouts) within(c *changed, n order.Node, seen map[order.Node]bool) error {
	key := capture.Key(n.Pass, l.i.list.Entries[n.Entry].Name, 0)
	compared, within, err := l.walk.Within(n.Pass, l.i.list.Entries[n.Entry].Name)
	switch {
	case err != nil:
		return err
	case compared && !within:
		c.fail("%s is not within its limit", key)
		return nil
	case compared:
		return nil
	}
	next := l.next(n)
	if len(next) == 0 {
		c.fail("%s was not compared", key)
	}
	for _, to := range next {
		if seen[to] {
			continue
		}
		seen[to] = true
		if err := l.within(c, to, seen); err != nil {
			return err
		}
	}
	return nil
}

// next are the nodes that read another.
func (l *layouts) next(n order.Node) []order.Node {
	var all []order.Node
	for _, r := range l.reader[n.Entry] {
		to := order.Node{Entry: l.i.list.Index(r.Name), Pass: n.Pass}
		if r.Prev {
			to.Pass++
		}
		if to.Pass < len(l.i.env.Passes) {
			all = append(all, to)
		}
	}
	return all
}

// edit is what gives an entry that is wrong by itself.
type edit struct {
	*diagnose.Finding
	made  *diagnose.Mistake
	a     *arithmetic
	left  []int
	turns bool // it turns the pairs of rotary tables: positions are others
}

// editOf is the edit that gives an entry that is a BUG, in the arithmetic of its form; nil where none is known.
func (i *Isolator) editOf(ctx context.Context, n order.Node) (*edit, error) {
	name := i.list.Entries[n.Entry].Name
	found, err := i.Name(ctx, name)
	if err != nil || !found.Named() {
		return nil, err
	}
	i.mu.Lock()
	made := i.named[diagnose.Role(name)].made
	i.mu.Unlock()
	e, err := i.evidence(ctx, n)
	if err != nil || e == nil || made == nil {
		return nil, err
	}
	tries, err := i.tries(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, a := range tries {
		if a == nil {
			continue
		}
		if j, err := givenWith(ctx, e.trial, a, made); err != nil {
			return nil, err
		} else if j != nil {
			return &edit{found, made, a, e.left, found.Positions()}, nil
		}
	}
	return nil, nil
}

// tries are the arithmetics in which an entry may have a mistake: those of its form, or a few if the form has none. Some may be nil.
func (i *Isolator) tries(ctx context.Context, e *evidence) ([]*arithmetic, error) {
	f, err := i.form(ctx, i.formOf(e.cut, e.node))
	if err != nil {
		return nil, err
	}
	if f.own == nil {
		return under([]*evidence{e}, []*evidence{e})
	}
	return []*arithmetic{f.own, f.second}, nil
}
