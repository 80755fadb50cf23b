package certify

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// An engine has one arithmetic for all entries of a form: their cuts' programs are the same but for numbers. So what an
// entry is explained by, when transformers' own arithmetic does not, is asked of all of them.

const (
	// An arithmetic other than transformers' has to give proofElements elements in proofRows rows that transformers' does not.
	// Null hypothesis: a mistake, for which some of the arithmetics that are tried happens to give these elements too.
	// Elements that are off by a unit have two neighbours, so that one arithmetic that is not the engine's gives all eight
	// with a chance of about 2⁻⁸ for each that it changes, and changes no other: docs/arithmetic.md has the rate that was
	// measured. One row may be off by a factor that it shares.
	proofElements = 8
	proofRows     = 2
)

// A form's entries are looked at until there are maxEntries, or formElements elements of minEntries, spread over the trace:
// what a judgement costs does not grow with the trace. They say how much is looked at, not what is concluded.
const (
	maxEntries   = 256
	minEntries   = 4
	formElements = 1 << 20
)

// form is what the entries of one form have in common.
type form struct {
	once    sync.Once
	err     error
	entries []*evidence
	verdict
	settled sync.Once
	// final is with what the other passes show.
	final    verdict
	finalErr error

	habitsOnce sync.Once
	habits     map[string]*arithmetic // presets that explain all entries, where these prove one
	habitsErr  error
}

// verdict is what is known of a form's arithmetic.
type verdict struct {
	// own is the arithmetic of the form, transformers' or another; nil where none holds for most entries. second is that of the
	// others, where there is one.
	own, second *arithmetic
	// wrong is the change to the operation that explains all entries, where no arithmetic does.
	wrong string
	// thin: what own leaves of the others is too little to accuse them of.
	thin bool
	// hinted: some arithmetic gives all entries, but too little of it is to be seen.
	hinted bool
}

// formOf names the form of an entry: its operation, those that are computed on the way, and whether the pass is of a single
// token, for which engines have kernels of their own.
func (i *Isolator) formOf(cut *order.Plan, n order.Node) string {
	forms := []string{op.Form(i.list.Entries[n.Entry].Op)}
	for k := len(cut.Steps) - 1; k >= 0; k-- {
		if f := op.Form(i.list.Entries[cut.Steps[k].Entry].Op); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	slices.Sort(forms[1:])
	name := strings.Join(forms, " < ")
	if i.env.Passes[n.Pass].Tokens == 1 {
		name += oneToken
	}
	return name
}

// form is what the entries of a form have in common, worked out once: by themselves, and where they show too little of an
// arithmetic, by that of the same form in the other passes. What is proven of an engine there needs no proof of its own here,
// if it gives all entries.
func (i *Isolator) form(ctx context.Context, name string) (verdict, error) {
	f, err := i.alone(ctx, name)
	if err != nil || f.own != nil || f.wrong != "" {
		return f.verdict, err
	}
	f.settled.Do(func() { f.final, f.finalErr = i.settle(ctx, f, name) })
	return f.final, f.finalErr
}

// settle looks at the other passes for what a form's own entries only hint at.
func (i *Isolator) settle(ctx context.Context, f *form, name string) (verdict, error) {
	other, found := strings.CutSuffix(name, oneToken)
	if !found {
		other = name + oneToken
	}
	g, err := i.alone(ctx, other)
	if err != nil {
		return verdict{}, err
	}
	for _, a := range []*arithmetic{g.own, g.second} {
		if a == nil || a.strict() {
			continue
		}
		if all, err := f.explainedBy(a); all || err != nil {
			return verdict{own: a}, err
		}
	}
	// What each shows too little of may be enough together.
	entries, err := i.entriesOf(ctx, other)
	if err != nil || len(entries) == 0 {
		return f.verdict, err
	}
	together := &form{entries: append(entries, f.entries...)}
	if err := together.decide(); err != nil {
		return f.verdict, err
	}
	if together.own != nil {
		if all, err := f.explainedBy(together.own); all || err != nil {
			return verdict{own: together.own}, err
		}
	}
	if together.wrong != "" {
		return verdict{wrong: together.wrong}, nil
	}
	return i.habitual(ctx, f, name)
}

// habitual looks for a habit of the engine, which other forms prove and which explains all entries of this one.
func (i *Isolator) habitual(ctx context.Context, f *form, name string) (verdict, error) {
	own, err := newSearch(f.left(), f.entries).habits()
	if err != nil || len(own) == 0 {
		return f.verdict, err
	}
	seen := map[string]bool{name: true}
	for _, r := range i.trace.Records() {
		n := order.Node{Entry: i.list.Index(r.Name), Pass: r.Pass}
		if n.Entry < 0 || r.Firing != 0 || n.Pass >= len(i.env.Passes) || !i.has(n) {
			continue
		}
		cut, err := i.list.Cut(i.has, n)
		if err != nil {
			continue
		}
		other := i.formOf(cut, n)
		if seen[other] {
			continue
		}
		seen[other] = true
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
		if entries, f.habitsErr = i.entriesOf(ctx, name); f.habitsErr != nil {
			return
		}
		g := &form{entries: entries}
		if left := g.left(); proven(left) {
			f.habits, f.habitsErr = newSearch(left, entries).habits()
		}
	})
	return f.habits, f.habitsErr
}

// left are the entries of which transformers' arithmetic leaves something.
func (f *form) left() []*evidence {
	var left []*evidence
	for _, e := range f.entries {
		if len(e.left) > 0 {
			left = append(left, e)
		}
	}
	return left
}

// explainedBy reports whether an arithmetic explains all entries.
func (f *form) explainedBy(a *arithmetic) (bool, error) {
	for _, e := range f.entries {
		if _, rest, _, err := e.strict(a); len(rest) > 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// oneToken marks the forms of passes of a single token.
const oneToken = " (one token)"

// alone is a form by its own entries.
func (i *Isolator) alone(ctx context.Context, name string) (*form, error) {
	i.mu.Lock()
	f := i.forms[name]
	if f == nil {
		f = &form{}
		i.forms[name] = f
	}
	i.mu.Unlock()
	f.once.Do(func() {
		if f.entries, f.err = i.entriesOf(ctx, name); f.err == nil {
			f.err = f.decide()
		}
		if f.own != nil || f.wrong != "" { // tensors are not kept
			f.entries = nil
		}
	})
	return f, f.err
}

// decide finds the arithmetic of the form.
func (f *form) decide() error {
	left := f.left()
	if len(left) == 0 {
		f.own = &arithmetic{}
		return nil
	}
	s := newSearch(left, f.entries)
	all, err := s.find()
	if err != nil {
		return err
	}
	if all != nil {
		shown, err := all.proven(left)
		if shown {
			f.own = all
		}
		// In float32 there is one choice at a site, double precision or a fused product, and it is no choice of a site alone.
		if f.hinted = !shown && (s.dtype != hooks.F32 || all.habit != ""); shown || f.hinted || err != nil {
			return err
		}
	}
	// The arithmetic that explains most of the entries is the form's, if they are more than half of them and two at least.
	given := s.given
	for _, e := range samples(left) {
		if len(f.entries) == 1 { // it was what was looked at
			break
		}
		one := searchOf(e, left, f.entries)
		if _, err := one.find(); err != nil {
			return err
		}
		given = append(given, one.given...)
	}
	own, suspects, err := most(f.entries, left, given)
	if err != nil {
		return err
	}
	if len(suspects) == 0 {
		f.own = own
		return nil
	}
	if held := len(f.entries) - len(suspects); held >= 2 {
		if !own.strict() { // what explains most may be one of several that do, and another of these all of it
			all, err := newSearch(suspects, f.entries).near(own)
			if err != nil {
				return err
			}
			if all != nil {
				f.own = all
				return nil
			}
		}
		other, err := newSearch(suspects, suspects).find()
		if err != nil {
			return err
		}
		// Two arithmetics that are both shown explain all of it, however many each has.
		if other != nil && 2*held >= len(f.entries) {
			shown, err := other.proven(suspects)
			if err != nil {
				return err
			}
			if shown {
				f.own, f.second = own, other
				return nil
			}
		}
		if 2*held > len(f.entries) {
			f.own = own
			if held < proofElements*len(suspects) { // else it is too well shown to doubt it
				f.thin, err = own.thin(suspects)
			}
			return err
		}
	}
	// What lies outside of the hull is wrong, whatever it is called.
	inside := slices.DeleteFunc(slices.Clone(left), func(e *evidence) bool {
		out, failed := e.beyond()
		if failed != nil {
			err = failed
		}
		return out
	})
	if err != nil || len(inside) == 0 {
		return err
	}
	f.wrong, err = f.mistake(left)
	return err
}

// otherwise judges an entry that transformers' arithmetic does not explain in the arithmetic of its form. Identified is
// false for one that no arithmetic is known to explain, and that some choice of roundings may: nothing is left of it then.
func (t *trial) otherwise(c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error) {
	f, err := t.i.form(t.ctx, t.i.formOf(t.cut, t.node))
	if err != nil {
		return nil, nil, false, err
	}
	try := func(a *arithmetic) (bool, error) {
		k, rest, order, err := t.strict(a)
		if err != nil {
			return false, err
		}
		if j == nil || len(rest) < len(left) {
			j, left = k, rest
			p, err := t.rewritten(a.rewrites)
			if err != nil {
				return false, err
			}
			c.Arithmetic, c.Summation = a.words(p, t.i.env.DType), order
		}
		return len(rest) == 0, nil
	}
	for _, a := range []*arithmetic{f.own, f.second} {
		if a == nil {
			continue
		}
		if done, err := try(a); done || err != nil {
			return j, left, true, err
		}
	}
	if f.wrong != "" {
		c.Mistake = f.wrong
		return strict, off, true, nil
	}
	if wide, err := t.i.computedWider(t.ctx); err != nil {
		return nil, nil, false, err
	} else if wide {
		if done, err := try(&arithmetic{wide: true}); done || err != nil {
			return j, left, true, err
		}
	}
	if f.own != nil && !f.thin {
		return j, left, true, nil
	}
	return t.within(c, strict, off)
}

// within reports whether some choice of roundings gives each element, in one of the orders of steps.
func (t *trial) within(c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error) {
	all, err := t.rewrites()
	if err != nil {
		return nil, nil, false, err
	}
	left = off
	for _, r := range all {
		if j, err = t.in(evaluated{arithmetic: &arithmetic{rewrites: r}, hull: true}); err != nil {
			return nil, nil, false, err
		}
		left = slices.DeleteFunc(slices.Clone(left), func(i int) bool { return j.consistent(i) })
	}
	if len(left) > 0 {
		return strict, off, true, nil
	}
	c.Arithmetic = "not known"
	return j, nil, false, nil
}
