package certify

import (
	"context"
	"errors"
)

// nearly looks at the mistakes that move elements by no more than roundings may, several at once: each has its share of the work.
func (s *sight) nearly(ctx context.Context) error {
	var near []*sighted
	for _, k := range s.all {
		if !k.seen && len(k.near) > 0 {
			near = append(near, k)
		}
	}
	errs := make([]error, len(near))
	onAllCores(len(near), func(n int) {
		own := *s
		own.work, own.most = 0, s.most/len(near)
		errs[n] = own.named(ctx, near[n])
	})
	return errors.Join(errs...)
}

// named looks at a mistake that moves elements by no more than roundings may. It is a BUG all the same where the form's entries together
// show that it is that and no rounding, see [diagnose.FindNumber].
func (s *sight) named(ctx context.Context, k *sighted) error {
	for _, name := range k.near {
		var together []*evidence
		for _, of := range []formKey{name, name.others()} {
			entries, err := s.wrongOf(ctx, of, k)
			if err != nil {
				return err
			}
			if entries == nil {
				k.lacked(s)
				continue
			}
			together = append(together, entries...)
			f := s.i.forms.newForm(name)
			f.entries = together
			if found, err := f.number(ctx, f.left(), f.entries); err != nil {
				return err
			} else if found == nil {
				continue
			}
			if err := f.decide(ctx); err != nil { // no arithmetic gives it, too
				return err
			}
			if k.seen = f.wrong != nil; k.seen {
				return nil
			}
		}
	}
	return nil
}

const (
	// searches is about how many evaluations of its entries a search for the arithmetic of a form takes.
	searches = 64
	// nearEntries are as many entries as a search is made among: they show as much as all, and cost less.
	nearEntries = 24
)

// wrongOf are the entries of a form as a port with a mistake would have them; nil where there is no work left for a search among them.
func (s *sight) wrongOf(ctx context.Context, name formKey, k *sighted) ([]*evidence, error) {
	nodes := s.i.capturedForms().nodes[name]
	var all []*evidence
	elements := 0
	for _, n := range permuted(nodes, scattered(len(nodes))) {
		if len(all) >= nearEntries || len(all) >= minEntries && elements >= formElements {
			break
		}
		r, err := s.right(ctx, n, s.i.has, false)
		if r == nil || err != nil {
			return nil, err
		}
		t := r.trial
		if wrong, _, err := s.wrong(r, k); err != nil {
			return nil, err
		} else if wrong != nil {
			t = r.with(wrong)
		}
		steps := len(t.cut.Steps) // the search is over the sites of each, at each of which every site is computed
		if s.work += searches * steps * t.formula.Time(); steps > 1 && s.work > s.most {
			s.short = true
			return nil, nil
		}
		_, left, _, err := t.strict(ctx, &arithmetic{})
		if err != nil {
			return nil, err
		}
		all = append(all, &evidence{t, left})
		elements += len(t.y.Data)
	}
	return all, nil
}
