package certify

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// An engine has one kernel for an operation, whatever it is captured with. So what the entries of an operation prove is tried on
// the cuts that have the operation among others, beside what is said of these others.

// carrier lists the arithmetics that smaller forms prove of the operations of a form.
type carrier func(context.Context) ([]*arithmetic, error)

// carry is the carrier of a form: first what all smaller forms prove together, then each by itself; those of the form's own passes,
// of a single token or of more, come first.
func (k *forms) carry(ctx context.Context, name formKey) ([]*arithmetic, error) {
	parts := name.operations()
	var same, other []*arithmetic
	for _, from := range k.i.capturedForms().names {
		of := from.operations()
		if len(of) >= len(parts) || !slices.ContainsFunc(of, func(p string) bool { return slices.Contains(parts, p) }) {
			continue
		}
		f, err := k.alone(ctx, from)
		if err != nil {
			return nil, err
		}
		for _, a := range []*arithmetic{f.own, f.second} {
			switch {
			case a == nil || len(a.at) == 0 && a.rewrites.Steps() == 0: // an order of additions is that of one form
			case from.oneToken == name.oneToken:
				same = append(same, a)
			default:
				other = append(other, a)
			}
		}
	}
	all := append(same, other...)
	if len(all) > 1 {
		together := all[0]
		for _, a := range all[1:] {
			together = a.overlaid(together)
		}
		all = append([]*arithmetic{together}, all...)
	}
	return all, nil
}

// overlaid is an arithmetic with the choices of another where that makes one.
func (a *arithmetic) overlaid(by *arithmetic) *arithmetic {
	b := &arithmetic{at: map[program.Site]program.Choice{}, rewrites: (a.rewrites | by.rewrites.Steps()).InOrder(a.rewrites.Order()), open: a.open}
	for _, at := range []map[program.Site]program.Choice{a.at, by.at} {
		for site, c := range at {
			b.at[site] = c
		}
	}
	return b
}

// carried tries what smaller forms prove, by itself, beside each preset, and with float32 between any two steps. What no choice of
// roundings gives, they do not give either.
func (s *search) carried(ctx context.Context, _ []*arithmetic) (*arithmetic, error) {
	if s.carry == nil || s.descents < descents {
		return nil, nil
	}
	proved, err := s.carry(ctx)
	if err != nil {
		return nil, err
	}
	for _, own := range proved {
		p, err := s.of(own.rewrites.Steps())
		if err != nil {
			return nil, err
		}
		b := newPresetter(p, own.rewrites.Steps())
		own = (&arithmetic{open: s.open}).overlaid(b.known(own))
		all := []*arithmetic{own}
		for _, preset := range b.plain(s.dtype) {
			a := preset.overlaid(own)
			a.open, a.beside = s.open, own
			all = append(all, a)
		}
		for k := range p.Orders() {
			a := *own
			a.rewrites, a.beside = own.rewrites.InOrder(k+1), own
			all = append(all, &a)
		}
		if found, err := s.all(ctx, all); found != nil || err != nil {
			return found, err
		}
		if s.dtype == hooks.F32 {
			continue
		}
		more := *own
		more.beside = own
		if found, err := s.each(ctx, b.between(&more, true)); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// known is an arithmetic at the sites of the program alone.
func (b *presetter) known(a *arithmetic) *arithmetic {
	of := &arithmetic{at: map[program.Site]program.Choice{}, rewrites: a.rewrites.Steps()}
	for _, at := range b.sites {
		if c, ok := a.at[at]; ok {
			of.at[at] = c
		}
	}
	return of
}
