package certify

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// settle looks at the other passes for what a form's own entries only hint at.
func (i *Isolator) settle(ctx context.Context, f *form, name string) (verdict, error) {
	several, found := strings.CutSuffix(name, oneToken)
	other := several
	if !found {
		other += oneToken
	}
	g, err := i.alone(ctx, other)
	if err != nil {
		return verdict{}, err
	}
	if all, err := f.explainedBy(ctx, g.own, g.second); all || err != nil {
		return verdict{own: g.own, second: g.second}, err
	}
	// What each shows too little of may be enough together.
	together, err := bothKinds(ctx, i, several)
	if err != nil {
		return verdict{}, err
	}
	if together != nil {
		if all, err := f.explainedBy(ctx, together.own, together.second); all || err != nil {
			return verdict{own: together.own, second: together.second}, err
		}
		if together.wrong != nil && f.own == nil {
			return verdict{own: together.own, second: together.second, wrong: together.wrong, made: together.made}, nil
		}
		// A kernel that most of them prove is the engine's. A mistake in some entries of the prompt does not make the others wrong.
		if f.own == nil && together.own != nil && together.own.rewrites.Kernel() > 0 {
			return verdict{own: together.own, second: together.second, suspects: together.suspects, thin: together.thin}, nil
		}
	}
	if f.own != nil {
		return f.verdict, nil
	}
	return i.habitual(ctx, f, name)
}

// bothKinds decides a form by its entries in passes of several tokens and of one token together. It is nil if passes of one kind have no entries.
func bothKinds(ctx context.Context, i *Isolator, several string) (*form, error) {
	i.mu.Lock()
	f := i.bothForms[several]
	if f == nil {
		f = &form{carry: func(ctx context.Context) ([]*arithmetic, error) { return i.carry(ctx, several) }}
		i.bothForms[several] = f
	}
	i.mu.Unlock()
	f.once.Do(func() {
		for _, name := range []string{several, several + oneToken} {
			var of []*evidence
			if of, _, f.err = i.entriesOf(ctx, name); len(of) == 0 || f.err != nil {
				f.entries = nil
				return
			}
			f.entries = append(f.entries, of...)
		}
		drawOn(&f.account, f.entries)
		f.decided, f.err = true, f.decide(ctx)
		f.entries = nil // tensors are not kept
	})
	if !f.decided {
		return nil, f.err
	}
	return f, f.err
}

// habitual looks for a habit of the engine, which other forms prove and which explains all entries of this one.
func (i *Isolator) habitual(ctx context.Context, f *form, name string) (verdict, error) {
	own, err := newSearch(f.left(), f.entries).habits(ctx)
	if err != nil || len(own) == 0 {
		return f.verdict, err
	}
	for _, other := range i.capturedForms().names {
		if other == name {
			continue
		}
		proved, err := i.habits(ctx, other)
		if err != nil {
			return verdict{}, err
		}
		for _, habit := range slices.Sorted(maps.Keys(own)) {
			if proved[habit] != nil {
				return verdict{own: own[habit]}, nil
			}
		}
	}
	return f.verdict, nil
}

// habits are the presets that explain all entries of a form which proves an arithmetic.
func (i *Isolator) habits(ctx context.Context, name string) (map[string]*arithmetic, error) {
	f, err := i.alone(ctx, name)
	if err != nil || f.own == nil || f.own.strict() || f.second != nil {
		return nil, err
	}
	f.habitsOnce.Do(func() {
		var entries []*evidence
		if entries, _, f.habitsErr = i.entriesOf(ctx, name); f.habitsErr != nil {
			return
		}
		g := &form{entries: entries}
		if left := g.left(); proven(left) {
			f.habits, f.habitsErr = newSearch(left, entries).habits(ctx)
		}
	})
	return f.habits, f.habitsErr
}
