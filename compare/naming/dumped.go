package naming

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// notAsDumped returns the finding for the wrong entries of a role that are right if they are computed from the right values of the tensors that the trace
// has wrong: the dump of such a tensor does not hold what the operation has read. It returns nil if an entry reads no wrong tensor, or is wrong with the
// right values too.
//
// Null hypothesis: the operation has a mistake, and the bounds of a longer computation hold the mistake. Statistic: elements that are definite from the right
// values, and to which the dumped values give no number in common with the right values. Rate: that of [arithmetic.ProofThresholds].Elements.
func (k *Names) notAsDumped(ctx context.Context, role string, left []*isolate.Evidence) (*diagnose.Finding, error) {
	wrong, of, err := k.wrongInputs(ctx, role, left)
	if len(wrong) == 0 || err != nil {
		return nil, err
	}
	opened, err := openedEntries(ctx, k.i, left, func(*isolate.Evidence) func(order.Node) bool {
		return func(n order.Node) bool { return k.i.Has(n) && !wrong[n] }
	})
	if opened == nil || err != nil {
		return nil, err
	}
	for n, e := range opened {
		if e.Trial == left[n].Trial {
			return nil, nil
		}
	}
	tries, err := arithmetic.Under(opened, opened)
	if err != nil {
		return nil, err
	}
	for _, a := range tries {
		p, err := rightIn(ctx, left, opened, a)
		if err != nil {
			return nil, err
		}
		if p != nil && arithmetic.Enough(p.shown, p.rows, false) {
			return diagnose.NotAsDumped(k.i.List(), nodesOf(left), of, p.elements, p.shown), nil
		}
	}
	return nil, nil
}

// proof counts the elements that right values give, and of these the elements that the dumped values do not allow, with their rows.
type proof struct{ elements, shown, rows int }

// rightIn judges entries whose programs are opened, in one arithmetic. The proof is nil if an element is not explained.
func rightIn(ctx context.Context, left, opened []*isolate.Evidence, a *isolate.Arithmetic) (*proof, error) {
	p := new(proof)
	for n, e := range opened {
		s, err := suspectIn(ctx, e, a)
		if err != nil {
			return nil, err
		}
		if s.own, err = left[n].Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{}}); err != nil {
			return nil, err
		}
		all, shown, rows, err := s.Explains(s.entry.Program, s.entry.Call)
		if !all || err != nil {
			return nil, err
		}
		p.elements, p.shown, p.rows = p.elements+len(e.Y.Data), p.shown+shown, p.rows+rows
	}
	return p, nil
}

// wrongInputs returns the tensors that some entries of a role read directly, and that are wrong on their own inputs; of is the name of the first of them.
func (k *Names) wrongInputs(ctx context.Context, role string, left []*isolate.Evidence) (wrong map[order.Node]bool, of string, err error) {
	wrong, looked := map[order.Node]bool{}, map[string]bool{role: true}
	for _, e := range left {
		for _, leaf := range e.Cut.Leaves {
			name := order.NameOf(k.i.List().At(leaf).Name)
			if looked[name.Role()] || k.i.Recomputed(name.String()) {
				continue
			}
			looked[name.Role()] = true
			of, _, _, err := k.leftOf(ctx, name.Role())
			if err != nil {
				return nil, "", err
			}
			for _, w := range of {
				wrong[w.Node] = true
			}
		}
	}
	for _, e := range left {
		at := slices.IndexFunc(e.Cut.Leaves, func(n order.Node) bool { return wrong[n] })
		if at < 0 {
			return nil, "", nil
		}
		if of == "" {
			of = k.i.List().At(e.Cut.Leaves[at]).Name
		}
	}
	return wrong, of, nil
}

// readersRight returns the roles that read the wrong entries of a role, if every captured operation that reads a wrong entry is right with the right values.
// The port has then computed the right values, and the dump has others. It returns nil if an operation has read what was dumped.
func (k *Names) readersRight(ctx context.Context, role string) ([]string, error) {
	if may, err := k.mayBeInDump(ctx, role); !may || err != nil {
		return nil, err
	}
	left, _, _, err := k.leftOf(ctx, role)
	if err != nil {
		return nil, err
	}
	var readers []order.Node
	for _, e := range left {
		some, err := wrongReaders(ctx, k.i, e)
		if len(some) == 0 || err != nil {
			return nil, err
		}
		readers = append(readers, nodesOf(some)...)
	}
	var roles []string
	for _, n := range readers {
		if r := order.NameOf(k.i.List().At(n).Name).Role(); !slices.Contains(roles, r) {
			roles = append(roles, r)
		}
	}
	for _, r := range roles {
		of, _, _, err := k.leftOf(ctx, r)
		if err != nil {
			return nil, err
		}
		all := nodesOf(of)
		if slices.ContainsFunc(readers, func(n order.Node) bool {
			return order.NameOf(k.i.List().At(n).Name).Role() == r && !slices.Contains(all, n)
		}) {
			return nil, nil
		}
		if f, err := k.notAsDumped(ctx, r, of); f == nil || err != nil {
			return nil, err
		}
		if n, err := k.nameInFew(ctx, r); err != nil || !n.finding.NotAsDumped() { // a mistake that cancels the other has a name
			return nil, err
		}
	}
	return roles, nil
}

// mayBeInDump looks at the first wrong entry of a role only, and at its readers in transformers' arithmetic: it reports whether each reader is wrong, and has
// fewer wrong elements with the right values. It spares the search for the arithmetic of the readers of an entry that the port has computed wrong.
func (k *Names) mayBeInDump(ctx context.Context, role string) (bool, error) {
	c := k.i.CapturedForms()
	for _, form := range c.Names {
		for _, n := range c.Nodes[form] {
			if order.NameOf(k.i.List().At(n).Name).Role() != role {
				continue
			}
			e, err := k.i.Evidence(ctx, n)
			if err != nil {
				return false, err
			}
			if e == nil || len(e.Left) == 0 {
				continue
			}
			readers, err := wrongReaders(ctx, k.i, e)
			if len(readers) == 0 || err != nil {
				return false, err
			}
			for _, r := range readers {
				if nearer, err := nearerOpened(ctx, k.i, r); !nearer || err != nil {
					return false, err
				}
			}
			return true, nil
		}
	}
	return false, nil
}

// nearerOpened reports whether an entry has fewer wrong elements if its wrong inputs are computed.
func nearerOpened(ctx context.Context, i *isolate.Isolator, r *isolate.Evidence) (bool, error) {
	wrong := map[order.Node]bool{}
	for _, n := range r.Cut.Leaves {
		e, err := i.Evidence(ctx, n)
		if err != nil {
			return false, err
		}
		wrong[n] = e != nil && len(e.Left) > 0
	}
	opened, err := openedEntries(ctx, i, []*isolate.Evidence{r}, func(*isolate.Evidence) func(order.Node) bool {
		return func(n order.Node) bool { return i.Has(n) && !wrong[n] }
	})
	if opened == nil || err != nil {
		return false, err
	}
	_, rest, _, err := opened[0].Judge(ctx, &isolate.Arithmetic{})
	return len(rest) < len(r.Left), err
}

// wrongReaders returns the captured entries that read e directly. It returns nil if a reader is right with the dumped values of e.
func wrongReaders(ctx context.Context, i *isolate.Isolator, e *isolate.Evidence) ([]*isolate.Evidence, error) {
	var all []*isolate.Evidence
	for at := range i.List().Entries {
		for _, in := range i.List().Entries[at].Inputs {
			n := order.Node{Entry: at, Pass: e.Node.Pass}
			if in.Prev {
				n.Pass += 1 + in.Back
			}
			if i.List().Index(in.Name) != e.Node.Entry || n.Pass >= len(i.Env().Passes) || !i.Has(n) || i.Recomputed(i.List().Entries[at].Name) || slices.Contains(nodesOf(all), n) {
				continue
			}
			r, err := i.Evidence(ctx, n)
			if err != nil {
				return nil, err
			}
			if r == nil || !slices.Contains(r.Cut.Leaves, e.Node) {
				continue
			}
			if len(r.Left) == 0 {
				return nil, nil
			}
			all = append(all, r)
		}
	}
	return all, nil
}

func nodesOf(all []*isolate.Evidence) []order.Node {
	nodes := make([]order.Node, len(all))
	for n, e := range all {
		nodes[n] = e.Node
	}
	return nodes
}
