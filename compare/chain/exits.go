package chain

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// check checks an exit: the entry has to be right on its own inputs, and on an unbroken chain.
func (l *reparametrisations) check(ctx context.Context, c *node, link *Link) error {
	if !link.Cert.Good() {
		c.fail("%s is wrong on its own inputs", c.key)
		return nil
	}
	if why := l.broken(link); why != "" {
		c.fail("%s: %s", c.key, why)
		return nil
	}
	return l.responding(ctx, c)
}

// responding checks an entry in which a reparametrisation cancels: the entry depends on the changed entries, and is
// within its limit.
func (l *reparametrisations) responding(ctx context.Context, c *node) error {
	if !responds(c.own[0], c.own[2]) {
		c.fail("%s is nearly the same whatever it is computed from", c.key)
		return nil
	}
	return l.within(ctx, c, c.Node, map[order.Node]bool{})
}

// within checks that an exit is within its limit. If the exit was not compared, its next descendants have to be
// within theirs.
func (l *reparametrisations) within(ctx context.Context, c *node, n order.Node, seen map[order.Node]bool) error {
	key := capture.Key(n.Pass, l.i.List().Entries[n.Entry].Name, 0)
	fact, err := l.facts.Of(ctx, n.Pass, l.i.List().Entries[n.Entry].Name)
	switch {
	case err != nil || fact.Within:
		return err
	case fact.Compared:
		c.fail("%s is not within its limit", key)
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
		if err := l.within(ctx, c, to, seen); err != nil {
			return err
		}
	}
	return nil
}

// next are the nodes that read another.
func (l *reparametrisations) next(n order.Node) []order.Node {
	var all []order.Node
	for _, r := range l.reader[n.Entry] {
		to := order.Node{Entry: l.i.List().Index(r.Name), Pass: n.Pass}
		if r.Prev {
			to.Pass++
		}
		if to.Pass < len(l.i.Env().Passes) {
			all = append(all, to)
		}
	}
	return all
}
