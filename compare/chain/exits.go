package chain

import (
	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// check holds an entry in which a layout cancels to what it has to be: right by itself, on an unbroken chain.
func (l *reparametrisations) check(c *node, link *Link) error {
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

// responding checks an entry in which a reparametrisation cancels: it is within its limit, and it depends on the changed entries.
func (l *reparametrisations) responding(c *node) error {
	if !responds(c.own[0], c.own[2]) {
		c.fail("%s is nearly the same whatever it is computed from", c.key)
		return nil
	}
	return l.within(c, c.Node, map[order.Node]bool{})
}

// within asks whether both sides have an entry in which a layout cancels within its limit; where it was not compared, all that are
// computed from it next.
func (l *reparametrisations) within(c *node, n order.Node, seen map[order.Node]bool) error {
	key := capture.Key(n.Pass, l.i.List().Entries[n.Entry].Name, 0)
	compared, within, err := l.walk.Within(n.Pass, l.i.List().Entries[n.Entry].Name)
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
