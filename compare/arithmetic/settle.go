package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
)

// settle looks at the other passes for what a form's own entries only hint at.
func (k *Forms) settle(ctx context.Context, f *Form, name isolate.FormKey) (Verdict, error) {
	g, err := k.alone(ctx, name.Others())
	if err != nil {
		return Verdict{}, err
	}
	if all, err := f.explainedBy(ctx, g.Own, g.Second); all || err != nil {
		return Verdict{Own: g.Own, Second: g.Second}, err
	}
	// What each shows too little of may be enough together.
	together, err := k.bothKinds(ctx, name.SeveralTokens())
	if err != nil {
		return Verdict{}, err
	}
	if together != nil {
		if all, err := f.explainedBy(ctx, together.Own, together.Second); all || err != nil {
			return Verdict{Own: together.Own, Second: together.Second}, err
		}
		if together.Wrong != nil && f.Own == nil {
			return Verdict{Own: together.Own, Second: together.Second, Wrong: together.Wrong, Definite: together.Definite}, nil
		}
		// A kernel that most of them prove is the engine's. A mistake in some entries of the prompt does not make the others wrong.
		if f.Own == nil && together.Own != nil && together.Own.Rewrites.Kernel() > 0 {
			return Verdict{Own: together.Own, Second: together.Second, HasSuspects: together.HasSuspects, thin: together.thin}, nil
		}
	}
	if f.Own != nil {
		return f.Verdict, nil
	}
	return k.habitual(ctx, f, name)
}

// bothKinds decides a form by its entries in both kinds of passes, of several tokens and of one. It returns nil if
// one kind has no entries.
func (k *Forms) bothKinds(ctx context.Context, several isolate.FormKey) (*Form, error) {
	return k.joined.Get(ctx, several, func(ctx context.Context) (*Form, error) {
		f := k.NewForm(several)
		for _, name := range []isolate.FormKey{several, several.Others()} {
			of, _, err := k.entriesOf(ctx, name)
			if len(of) == 0 || err != nil {
				return nil, err
			}
			f.Entries = append(f.Entries, of...)
		}
		drawOn(&f.account, f.Entries)
		err := f.Decide(ctx)
		f.Entries = nil // tensors are not kept
		return f, err
	})
}

// habitual looks for a preset that explains every entry of the form and is proven by a different form.
func (k *Forms) habitual(ctx context.Context, f *Form, name isolate.FormKey) (Verdict, error) {
	own, err := newSearch(f.Unexplained(), f.Entries).habits(ctx)
	if err != nil || len(own) == 0 {
		return f.Verdict, err
	}
	for _, other := range k.I.CapturedForms().Names {
		if other == name {
			continue
		}
		proved, err := k.habits(ctx, other)
		if err != nil {
			return Verdict{}, err
		}
		for _, habit := range sortedPresets(own) {
			if proved[habit] != nil {
				return Verdict{Own: own[habit]}, nil
			}
		}
	}
	return f.Verdict, nil
}

// habits returns the presets that explain all entries of a form with a proven arithmetic.
func (k *Forms) habits(ctx context.Context, name isolate.FormKey) (map[isolate.Preset]*isolate.Arithmetic, error) {
	f, err := k.alone(ctx, name)
	if err != nil || f.Own == nil || f.Own.Strict() || f.Second != nil {
		return nil, err
	}
	return k.proved.Get(ctx, name, func(ctx context.Context) (map[isolate.Preset]*isolate.Arithmetic, error) {
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
