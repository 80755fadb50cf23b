package certify

import (
	"context"
)

// settle looks at the other passes for what a form's own entries only hint at.
func (k *forms) settle(ctx context.Context, f *form, name formKey) (verdict, error) {
	g, err := k.alone(ctx, name.others())
	if err != nil {
		return verdict{}, err
	}
	if all, err := f.explainedBy(ctx, g.own, g.second); all || err != nil {
		return verdict{own: g.own, second: g.second}, err
	}
	// What each shows too little of may be enough together.
	together, err := k.bothKinds(ctx, name.severalTokens())
	if err != nil {
		return verdict{}, err
	}
	if together != nil {
		if all, err := f.explainedBy(ctx, together.own, together.second); all || err != nil {
			return verdict{own: together.own, second: together.second}, err
		}
		if together.wrong != nil && f.own == nil {
			return verdict{own: together.own, second: together.second, wrong: together.wrong, definite: together.definite}, nil
		}
		// A kernel that most of them prove is the engine's. A mistake in some entries of the prompt does not make the others wrong.
		if f.own == nil && together.own != nil && together.own.rewrites.Kernel() > 0 {
			return verdict{own: together.own, second: together.second, suspects: together.suspects, thin: together.thin}, nil
		}
	}
	if f.own != nil {
		return f.verdict, nil
	}
	return k.habitual(ctx, f, name)
}

// bothKinds decides a form by its entries in passes of several tokens and of one token together. It is nil if passes of one kind have no entries.
func (k *forms) bothKinds(ctx context.Context, several formKey) (*form, error) {
	return k.joined.Get(ctx, several, func(ctx context.Context) (*form, error) {
		f := k.newForm(several)
		for _, name := range []formKey{several, several.others()} {
			of, _, err := k.entriesOf(ctx, name)
			if len(of) == 0 || err != nil {
				return nil, err
			}
			f.entries = append(f.entries, of...)
		}
		drawOn(&f.account, f.entries)
		err := f.decide(ctx)
		f.entries = nil // tensors are not kept
		return f, err
	})
}

// habitual looks for a habit of the engine, which other forms prove and which explains all entries of this one.
func (k *forms) habitual(ctx context.Context, f *form, name formKey) (verdict, error) {
	own, err := newSearch(f.left(), f.entries).habits(ctx)
	if err != nil || len(own) == 0 {
		return f.verdict, err
	}
	for _, other := range k.i.capturedForms().names {
		if other == name {
			continue
		}
		proved, err := k.habits(ctx, other)
		if err != nil {
			return verdict{}, err
		}
		for _, habit := range sortedPresets(own) {
			if proved[habit] != nil {
				return verdict{own: own[habit]}, nil
			}
		}
	}
	return f.verdict, nil
}

// habits are the presets that explain all entries of a form which proves an arithmetic.
func (k *forms) habits(ctx context.Context, name formKey) (map[preset]*arithmetic, error) {
	f, err := k.alone(ctx, name)
	if err != nil || f.own == nil || f.own.strict() || f.second != nil {
		return nil, err
	}
	return k.proved.Get(ctx, name, func(ctx context.Context) (map[preset]*arithmetic, error) {
		entries, _, err := k.entriesOf(ctx, name)
		if err != nil {
			return nil, err
		}
		left := withRest(entries)
		if !proven(left) {
			return nil, nil
		}
		return newSearch(left, entries).habits(ctx)
	})
}
