package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// An engine uses one kernel for an operation, whatever was captured around it. So an arithmetic proven by a form
// with few operations is also tried for forms with more operations, combined with presets for the additional
// operations.

// carrier lists the arithmetics proven by smaller forms for the operations of a form.
type carrier func(context.Context) ([]*isolate.Arithmetic, error)

// carry is the carrier of a form: first all proofs of smaller forms together, then each proof separately. Proofs
// from passes of the same kind, of a single token or of more, come first.
func (k *Forms) carry(ctx context.Context, name isolate.FormKey) ([]*isolate.Arithmetic, error) {
	parts := name.Operations()
	var same, other []*isolate.Arithmetic
	for _, from := range k.I.CapturedForms().Names {
		of := from.Operations()
		if len(of) >= len(parts) || !slices.ContainsFunc(of, func(p string) bool { return slices.Contains(parts, p) }) {
			continue
		}
		f, err := k.alone(ctx, from)
		if err != nil {
			return nil, err
		}
		for _, a := range []*isolate.Arithmetic{f.Own, f.Second} {
			switch {
			case a == nil || len(a.At) == 0 && a.Rewrites.Steps() == 0: // an order of additions is that of one form
			case from.OneToken == name.OneToken:
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
			together = overlaid(a, together)
		}
		all = append([]*isolate.Arithmetic{together}, all...)
	}
	return all, nil
}

// overlaid is an arithmetic with the choices of another where that makes one.
func overlaid(a *isolate.Arithmetic, by *isolate.Arithmetic) *isolate.Arithmetic {
	b := &isolate.Arithmetic{At: map[program.Site]program.Choice{}, Rewrites: (a.Rewrites | by.Rewrites.Steps()).InOrder(a.Rewrites.Order()), Open: a.Open}
	for _, at := range []map[program.Site]program.Choice{a.At, by.At} {
		for site, c := range at {
			b.At[site] = c
		}
	}
	return b
}

// carried tries the proofs of smaller forms: unchanged, combined with each preset, and with float32 between any two
// steps. Elements outside the hull rule all of these out.
func (s *search) carried(ctx context.Context, _ []*isolate.Arithmetic) (*isolate.Arithmetic, error) {
	if s.carry == nil || s.descents < descents {
		return nil, nil
	}
	proved, err := s.carry(ctx)
	if err != nil {
		return nil, err
	}
	for _, own := range proved {
		p, err := s.of(own.Rewrites.Steps())
		if err != nil {
			return nil, err
		}
		b := newPresetter(p, own.Rewrites.Steps())
		own = overlaid((&isolate.Arithmetic{Open: s.open}), b.known(own))
		all := []*isolate.Arithmetic{own}
		for _, preset := range b.plain(s.dtype) {
			a := overlaid(preset, own)
			a.Open, a.Beside = s.open, own
			all = append(all, a)
		}
		for k := range rewrite.Orders(p) {
			a := *own
			a.Rewrites, a.Beside = own.Rewrites.InOrder(k+1), own
			all = append(all, &a)
		}
		if found, err := s.all(ctx, all); found != nil || err != nil {
			return found, err
		}
		if s.dtype == hooks.F32 {
			continue
		}
		more := *own
		more.Beside = own
		if found, err := s.each(ctx, b.between(&more, true)); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// known restricts an arithmetic to the sites of the program.
func (b *presetter) known(a *isolate.Arithmetic) *isolate.Arithmetic {
	of := &isolate.Arithmetic{At: map[program.Site]program.Choice{}, Rewrites: a.Rewrites.Steps()}
	for _, at := range b.sites {
		if c, ok := a.At[at]; ok {
			of.At[at] = c
		}
	}
	return of
}
