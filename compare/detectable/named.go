package detectable

import (
	"context"
	"errors"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/cores"
)

// nearly looks at the mistakes that move elements by no more than roundings may, several at once: each has its share of the work.
func (s *search) nearly(ctx context.Context) error {
	var near []*candidate
	for _, k := range s.all {
		if !k.seen && len(k.near) > 0 {
			near = append(near, k)
		}
	}
	errs := make([]error, len(near))
	cores.Each(len(near), func(n int) {
		own := *s
		own.work, own.most = 0, s.most/len(near)
		errs[n] = own.named(ctx, near[n])
	})
	return errors.Join(errs...)
}

// named examines a mistake with an effect within the bounds of rounding. The mistake is still a BUG if the form's
// entries together prove it instead of a rounding.
func (s *search) named(ctx context.Context, k *candidate) error {
	for _, name := range k.near {
		var together []*isolate.Evidence
		for _, of := range []isolate.FormKey{name, name.Others()} {
			entries, err := s.wrongOf(ctx, of, k)
			if err != nil {
				return err
			}
			if entries == nil {
				k.lacked(s)
				continue
			}
			together = append(together, entries...)
			f := s.forms.NewForm(name)
			f.Entries = together
			if found, err := f.Number(ctx, f.Unexplained(), f.Entries); err != nil {
				return err
			} else if found == nil {
				continue
			}
			if err := f.Decide(ctx); err != nil { // no arithmetic gives it, too
				return err
			}
			if k.seen = f.Wrong != nil; k.seen {
				return nil
			}
		}
	}
	return nil
}

const (
	// searches is about how many evaluations of its entries a search for the arithmetic of a form takes.
	searches = 64
	// nearEntries is the number of entries in a search. A sample proves as much as the whole form, at lower cost.
	nearEntries = 24
)

// wrongOf returns the entries of a form as computed by a port with a mistake. It returns nil if the remaining work
// budget is too small for a search among them.
func (s *search) wrongOf(ctx context.Context, name isolate.FormKey, k *candidate) ([]*isolate.Evidence, error) {
	nodes := s.i.CapturedForms().Nodes[name]
	var all []*isolate.Evidence
	elements := 0
	for _, n := range isolate.Permuted(nodes, isolate.Scattered(len(nodes))) {
		if len(all) >= nearEntries || len(all) >= arithmetic.MinEntries && elements >= arithmetic.FormElements {
			break
		}
		r, err := s.prepareHealthy(ctx, n, s.i.Has, false)
		if r == nil || err != nil {
			return nil, err
		}
		t := r.Trial
		if wrong, _, err := s.wrong(r, k); err != nil {
			return nil, err
		} else if wrong != nil {
			t = r.with(wrong)
		}
		steps := len(t.Cut.Steps) // the search covers the sites of each step, and evaluates every site for each
		if s.work += searches * steps * t.Formula.Time(); steps > 1 && s.work > s.most {
			s.short = true
			return nil, nil
		}
		_, left, _, err := t.Judge(ctx, &isolate.Arithmetic{})
		if err != nil {
			return nil, err
		}
		all = append(all, &isolate.Evidence{Trial: t, Left: left})
		elements += len(t.Y.Data)
	}
	return all, nil
}
