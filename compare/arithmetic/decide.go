package arithmetic

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
)

// Decide finds the [Verdict] of the form: an arithmetic for every entry; or an arithmetic for most entries, and a second
// arithmetic, a mistake or suspects for the rest; or a mistake in all entries; or nothing.
func (f *Form) Decide(ctx context.Context) error {
	left := f.Unexplained()
	if len(left) == 0 {
		f.Own = &isolate.Arithmetic{}
		return nil
	}
	if has, err := f.mistaken(ctx); has || err != nil {
		return err
	}
	if err := f.maskedFirst(ctx); f.Wrong != nil || err != nil {
		return err
	}
	if done, err := f.inKernels(ctx, left); done || err != nil {
		return err
	}
	s := newSearch(left, f.Entries)
	s.carry = f.carry
	all, err := s.find(ctx)
	f.stopped = s.stopped
	if err != nil {
		return err
	}
	if all != nil {
		shown, err := provenBy(ctx, all, showIn(all, f.Entries, left))
		if shown {
			f.Own = all
		}
		if err != nil || shown {
			return err
		}
		if maybe, err := maybeTables(ctx, all, left); err != nil {
			return err
		} else if maybe {
			f.unproven = all
		}
		// In float32 a site has only the choices of double precision and of a fused product, and an engine makes
		// these at more than one site.
		if s.dtype != hooks.F32 || all.Preset != (isolate.Preset{}) {
			f.Wrong, err = f.changedAttention(ctx, left)
			return err
		}
	}
	if err := f.majority(ctx, left, s.given); err != nil || f.Own != nil {
		return err
	}
	// Elements outside the hull are wrong in every arithmetic. The other elements may be right in an unknown
	// arithmetic. So a mistake is looked for here only if all elements of some entry are inside.
	for _, e := range left {
		inside, err := e.InHull(ctx)
		if err != nil {
			return err
		}
		if inside {
			if f.Wrong, err = f.Number(ctx, left, f.Entries); f.Wrong == nil && err == nil {
				f.Wrong, err = f.changedAttention(ctx, left)
			}
			return err
		}
	}
	return nil
}

// majority finds the arithmetic of most entries, if no arithmetic explains all. The arithmetic belongs to the
// form if it explains more than half of the entries, and at least two. If it explains exactly half, the other half
// also needs an arithmetic or a mistake. The parameter given has the arithmetics tried before.
func (f *Form) majority(ctx context.Context, left []*isolate.Evidence, given []ranked) error {
	inside, err := inHull(ctx, f.Entries)
	if err != nil {
		return err
	}
	more, maybe, err := f.givenInHull(ctx, inside)
	if err != nil {
		return err
	}
	given = append(given, more...)
	for _, e := range samples(left) {
		if len(f.Entries) == 1 { // the search before has tried the only entry
			break
		}
		one := searchOf(e, left, f.Entries)
		one.carry = f.carry
		if _, err := one.find(ctx); err != nil {
			return err
		}
		f.stopped = f.stopped || one.stopped
		given = append(given, one.given...)
	}
	own, others, err := most(ctx, f.Entries, left, given)
	if err != nil {
		return err
	}
	held := len(f.Entries) - len(others)
	// An entry that transformers' arithmetic explains is right, even if the other entries have a different arithmetic.
	suspects := slices.DeleteFunc(slices.Clone(others), func(e *isolate.Evidence) bool { return len(e.Left) == 0 })
	switch {
	case !decides(held, len(f.Entries)) && (held < thresholds.Majority.Held || !halfOf(held, len(f.Entries))):
		return nil
	case len(suspects) == 0:
		f.Own = own
		return nil
	}
	// Two proven arithmetics explain the form even if each has only half of the entries.
	explained, err := f.second(ctx, own, suspects, inside)
	if f.Second != nil || err != nil {
		f.Own, f.HasSuspects, f.held = own, explained < len(suspects), held+explained
		return err
	}
	if halfOf(held, len(f.Entries)) {
		// Exactly half is not a majority, but a single change that explains the other half is the mistake of the
		// other half.
		if f.Wrong, err = f.Number(ctx, suspects, suspects); f.Wrong != nil {
			f.Own = own
		}
		return err
	}
	f.Own, f.HasSuspects, f.held, f.unproven = own, true, held, maybe
	if held < thresholds.Proof.Elements*len(suspects) { // else own explains too many entries to be doubted
		f.thin, err = thinUnder(ctx, own, suspects)
	}
	return err
}

// givenInHull searches the arithmetic of the entries inside the hull, if most entries are. An entry outside of the hull is wrong in any arithmetic, and hides the
// arithmetic of the others. given are the arithmetics that explain the panel of this search. all explains all entries in the hull; nil if none does.
func (f *Form) givenInHull(ctx context.Context, inside []*isolate.Evidence) (given []ranked, all *isolate.Arithmetic, err error) {
	left := withRest(inside)
	if len(left) == 0 || len(inside) == len(f.Entries) || !decides(len(inside), len(f.Entries)) {
		return nil, nil, nil
	}
	s := newSearch(left, inside)
	s.carry = f.carry
	all, err = s.find(ctx)
	f.stopped = f.stopped || s.stopped
	return s.given, all, err
}

// inHull lists the entries that some choice of roundings gives.
func inHull(ctx context.Context, all []*isolate.Evidence) (inside []*isolate.Evidence, err error) {
	for _, e := range all {
		in := len(e.Left) == 0
		if !in {
			if in, err = e.InHull(ctx); err != nil {
				return nil, err
			}
		}
		if in {
			inside = append(inside, e)
		}
	}
	return inside, nil
}

// second finds the second arithmetic of a form: of all suspects, or else of the suspects inside the hull. The others are wrong in any arithmetic. It returns how
// many suspects the second arithmetic explains.
func (f *Form) second(ctx context.Context, own *isolate.Arithmetic, suspects, inside []*isolate.Evidence) (explained int, err error) {
	if f.Second, err = f.secondOf(ctx, own, suspects); f.Second != nil || err != nil {
		return len(suspects), err
	}
	some := slices.DeleteFunc(slices.Clone(suspects), func(e *isolate.Evidence) bool { return !slices.Contains(inside, e) })
	if len(some) == 0 || len(some) == len(suspects) {
		return 0, nil
	}
	f.Second, err = f.secondOf(ctx, own, some)
	return len(some), err
}

// secondOf finds the arithmetic of the entries not given by the form's own, or nil. The proof needs as much
// evidence against the form's own arithmetic as against transformers': so many arithmetics are tried that one of them
// explains a single wrong row by chance.
func (f *Form) secondOf(ctx context.Context, own *isolate.Arithmetic, suspects []*isolate.Evidence) (*isolate.Arithmetic, error) {
	if apart, err := apartFrom(ctx, own, suspects); apart != nil || err != nil {
		return apart, err
	}
	s := newSearch(suspects, suspects)
	s.carry = f.carry
	other, err := s.find(ctx)
	if other == nil || err != nil {
		return nil, err
	}
	if shown, err := provenBy(ctx, other, suspects); !shown || err != nil {
		return nil, err
	}
	if little, err := leavesLittle(ctx, own, suspects, other); little || err != nil {
		return nil, err
	}
	return other, nil
}

// most returns the proven arithmetic, or transformers', that explains the largest number of entries, and the
// unexplained entries.
func most(ctx context.Context, entries, left []*isolate.Evidence, given []ranked) (*isolate.Arithmetic, []*isolate.Evidence, error) {
	own, suspects := &isolate.Arithmetic{}, left
	slices.SortStableFunc(given, func(a, b ranked) int { return len(b.holds) - len(a.holds) })
	for _, g := range given {
		if len(entries)-len(g.holds) >= len(suspects) {
			break
		}
		shown, err := provenBy(ctx, g.Arithmetic, g.holds)
		if err != nil {
			return nil, nil, err
		}
		if !shown {
			continue
		}
		if own, err = newSearch(g.holds, g.holds).plainest(ctx, g.Arithmetic); err != nil {
			return nil, nil, err
		}
		suspects = nil
		for _, e := range entries {
			if !slices.Contains(g.holds, e) {
				suspects = append(suspects, e)
			}
		}
		break
	}
	return own, suspects, nil
}

// samples returns up to three entries; the arithmetic of the majority is searched in each of them. The entries are at the
// median and the quartiles of the share of elements unexplained by transformers' arithmetic, since wrong entries are
// usually at the ends.
func samples(left []*isolate.Evidence) []*isolate.Evidence {
	of := slices.Clone(left)
	share := func(e *isolate.Evidence) float64 { return float64(len(e.Left)) / float64(len(e.Y.Data)) }
	slices.SortStableFunc(of, func(a, b *isolate.Evidence) int { return cmp.Compare(share(a), share(b)) })
	var some []*isolate.Evidence
	for _, at := range []int{len(of) / 2, len(of) / 4, len(of) * 3 / 4} {
		if !slices.Contains(some, of[at]) {
			some = append(some, of[at])
		}
	}
	return some
}
