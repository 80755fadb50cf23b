package propose

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/order"
)

// original is a pattern that is an entry, by a line or by its name.
type original struct {
	*template
	as string // the pattern of the entry, of several the first
}

func (p *board) originals() []original {
	var all []original
	for _, o := range p.pairs {
		all = append(all, original{o.t, o.r.text})
	}
	seen := map[*template]bool{}
	for _, t := range p.of {
		if t.NeedsNoLine && !seen[t] {
			seen[t], all = true, append(all, original{t, t.Text})
		}
	}
	return all
}

// copiedBy are the originals that a pattern is a copy of.
func (p *board) copiedBy(t *template, originals []original) (all []original, err error) {
	for _, o := range originals {
		same, err := p.isCopy(t, o.template)
		if err != nil {
			return nil, err
		}
		if same {
			all = append(all, o)
		}
	}
	return all, nil
}

// meansAnother reports whether a copy of some originals is no guess for an entry: its name is not more like the entry than like that of an original, or it is a module that returns
// what a part of it returns. A port that leaves an operation out has a copy, too, but its name is more like the entry of that operation, and it was written where the entry belongs.
func meansAnother(t *template, r *role, between bool, of []original) bool {
	return slices.ContainsFunc(of, func(o original) bool {
		return names.Alikeness(t.Text, o.as) >= names.Alikeness(t.Text, r.text) || t.Holds(o.Template) && !between
	})
}

// copies leaves out the open tensors that are copies. The tensors of one pattern may be copies of several: a count goes through the model.
func (p copying) copies(ctx context.Context) error {
	if !slices.ContainsFunc(p.open, func(t *template) bool { return !t.settled }) {
		return nil
	}
	there, err := p.starts(ctx)
	if err != nil {
		return err
	}
	for _, t := range p.open {
		if t.settled {
			continue
		}
		p.looking(t.Text)
		of, err := p.originalsOf(ctx, t, there)
		if err == nil && len(of) == 0 {
			of, err = p.parts(ctx, t)
		}
		if err != nil {
			return err
		}
		if len(of) > 0 {
			p.out.Copies, t.settled = append(p.out.Copies, Copy{t.Text, of}), true
		}
	}
	return nil
}

// inPass is what a tensor of a pass begins with.
type inPass struct {
	pass int
	tensors.Start
}

// begun is a tensor of an original.
type begun struct {
	of string
	x  *names.Occurrence
}

// starts lists the tensors of all originals by their first bytes. Of tensors with the same bytes it lists one.
func (p copying) starts(ctx context.Context) (map[inPass][]begun, error) {
	all := map[inPass][]begun{}
	for _, o := range p.originals() {
		for _, x := range o.All {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			start, _, err := p.digests.Start(x.Tensor())
			if err != nil {
				return nil, err
			}
			key := inPass{o.PassOf(x), start}
			if of, err := p.among(x, all[key]); err != nil {
				return nil, err
			} else if of == "" {
				all[key] = append(all[key], begun{o.Text, x})
			}
		}
	}
	return all, nil
}

// originalsOf are the originals that have all tensors of a pattern; nil where one tensor is no copy, or the elements of each are alike.
func (p copying) originalsOf(ctx context.Context, t *template, there map[inPass][]begun) (all []string, err error) {
	for _, x := range t.All {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start, varied, err := p.digests.Start(x.Tensor())
		if err != nil {
			return nil, err
		}
		of, err := p.among(x, there[inPass{t.PassOf(x), start}])
		if of == "" || err != nil {
			return nil, err
		}
		if varied && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all, nil
}

// parts are the originals that one tensor concatenates: a graph may split query, key and value out of one tensor. The list is empty for
// any other tensor.
func (p copying) parts(ctx context.Context, t *template) ([]string, error) {
	if p.computed == nil {
		return nil, nil
	}
	cuts, err := fusedSearch(p).allCuttings(ctx, t, true)
	if err != nil {
		return nil, err
	}
	dumped := func(e *order.Entry) (tensors.Tensor, bool, error) {
		x, ok := p.computed.have[e.Name]
		return x, ok, nil
	}
	for i := range cuts {
		if good, err := fusedSearch(p).proven(t, &cuts[i], dumped); err != nil {
			return nil, err
		} else if good < len(cuts[i].f.Layers) {
			continue
		}
		var of []string
		for _, r := range cuts[i].roles {
			if k := slices.IndexFunc(p.pairs, func(o pairing) bool { return o.r == r }); k >= 0 {
				of = append(of, p.pairs[k].t.Text)
			}
		}
		return of, nil
	}
	return nil, nil
}
