package certify

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/order"
)

// model is what a search knows beside the entries.
func (i *Isolator) model() *diagnose.Model {
	return &diagnose.Model{
		List: i.list, Passes: i.env.Passes, Weights: i.env.Weights, Read: i.env.Read, Study: i.o.Study, Room: cmp.Or(i.o.Room, DefaultMemory), Work: diagnose.DefaultWork * i.times(),
		Has: func(n order.Node) bool {
			rec, ok := i.trace.Lookup(n.Pass, i.list.Entries[n.Entry].Name)
			return ok && rec.Firing == 0 && i.misfit(n) == nil
		},
	}
}

// times is how often searches have the work that they have by themselves.
func (i *Isolator) times() int { return max(i.o.SearchWork, 1) }

// underMistakes are the arithmetics under which a mistake is looked for where that of the form is not known: a port that is wrong may
// round in its way, too.
var underMistakes = append([]string{"", "wide", "every 0", "every 1", "strict 4", "double"}, tableHabits()...)

// under are these arithmetics.
func under(left, entries []*evidence) ([]*arithmetic, error) {
	starts, err := newSearch(left, entries).starts()
	return slices.DeleteFunc(starts, func(a *arithmetic) bool {
		return a.rewrites != 0 || !slices.Contains(underMistakes, a.habit) || a.habit == "" && len(a.at) > 0
	}), err
}

// number returns the number or the activation that is another one in all of some entries of a form, for which no arithmetic is known, if
// one of a few arithmetics gives every element then; nil where there is none, and where the entries show too little. left are those of
// which transformers' arithmetic leaves something.
func number(ctx context.Context, left, of []*evidence) (*diagnose.Finding, error) {
	if !proven(left) {
		return nil, nil
	}
	all, err := under(left, of)
	if err != nil {
		return nil, err
	}
	return onAccount(left[0], diagnose.DefaultWork, func(model *diagnose.Model) (*diagnose.Finding, error) {
		for _, a := range all {
			entries, err := suspectsOf(ctx, of, a)
			if err != nil {
				return nil, err
			}
			if found, err := diagnose.FindNumber(ctx, model, entries); found.Explains() || err != nil {
				return found, err
			}
		}
		return nil, nil
	})
}

// named is what is wrong with the entries of a role, worked out once: in a few tokens of large entries, and then in all of them.
type named struct {
	once sync.Once
	few  *diagnose.Finding // of the search, which looks at a few tokens of a large entry
	edit *diagnose.Mistake // what its edits are made of; nil where it has no name
	err  error

	whole   sync.Once
	finding *diagnose.Finding
	made    *diagnose.Mistake // the same, whose edits give all tokens

	parts map[order.Node]bool // whether the edit gives all tokens of a large entry, where that was seen when the entry was certified
}

// Name returns what is wrong with an entry that is a BUG: the edit of its operation that gives every element of every entry that is
// left of its role, in all passes. Where there is none, the finding says what was tried; it is nil where nothing is left of the role.
// The error is that of reading the trace or the weights.
func (i *Isolator) Name(ctx context.Context, name string) (*diagnose.Finding, error) {
	role := diagnose.Role(name)
	f, err := i.nameInFew(ctx, role)
	if err != nil {
		return f.few, err
	}
	f.whole.Do(func() {
		if f.finding, f.made = f.few, f.edit; f.edit == nil {
			return
		}
		var all bool
		if all, f.err = i.inAllParts(ctx, role, f); !all {
			f.finding, f.made = f.few.Unnamed(), nil
		}
	})
	return f.finding, f.err
}

// nameInFew is what is wrong with the entries of a role, by a few tokens of those that are large.
func (i *Isolator) nameInFew(ctx context.Context, role string) (*named, error) {
	i.mu.Lock()
	f := i.named[role]
	if f == nil {
		f = &named{parts: map[order.Node]bool{}}
		i.named[role] = f
	}
	i.mu.Unlock()
	f.once.Do(func() {
		i.tellSearch("what is wrong with", role)
		var likely string
		if likely, f.err = i.likely(ctx, role); likely != "" || f.err != nil {
			f.few = &diagnose.Finding{Likely: likely, Page: diagnose.QuantisedPage}
			return
		}
		if f.few, f.edit, f.err = i.mistakeOfForms(ctx, role); f.few == nil && f.err == nil {
			f.few, f.err = i.name(ctx, role)
			f.edit = f.few.Edit()
		}
	})
	return f, f.err
}

// name looks for what is wrong with the entries of a role, in the arithmetic of the form of each; where that is not known, in a few.
// Where nothing is found between an entry and what it was computed from, masks and rotary tables, which follow from the positions
// alone, are computed too: a layer may have another one. So are caches: what a pass shows of one may not be what the next finds. All of
// these searches share the budget of one finding.
func (i *Isolator) name(ctx context.Context, role string) (*diagnose.Finding, error) {
	left, own, right, err := i.leftOf(ctx, role)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	var others []func(e *evidence) func(order.Node) bool
	for _, has := range []func(e *evidence) func(order.Node) bool{i.fromArguments, i.fromTokens, i.fromProducts} {
		if opens, err := i.opens(left, has); err != nil {
			return nil, err
		} else if opens {
			others = append(others, has)
		}
	}
	together, err := i.together(ctx, role, left, own, right)
	if err != nil {
		return nil, err
	}
	model, searches := i.model(), 1+len(others)
	if together != nil {
		searches++
	}
	model.Share(searches)
	read := func(n order.Node) (*evidence, error) { return i.evidence(ctx, n) }
	found, err := i.nameIn(ctx, model, left, own, read, right)
	if found.Named() || err != nil {
		return found, err
	}
	if together != nil {
		searches--
		model.Share(searches)
		if more, err := i.nameIn(ctx, model, together.left, together.own, read, together.right); more.Named() || err != nil {
			return more, err
		}
	}
	for _, without := range others {
		searches--
		model.Share(searches)
		more, err := i.nameOpened(ctx, model, left, own, right, without)
		if more.Named() || err != nil {
			return more, err
		}
		found = more.With(found)
	}
	return found, nil
}

// nameOpened looks for what is wrong with some entries between them and less than was captured; nil where that is no other program.
func (i *Isolator) nameOpened(ctx context.Context, model *diagnose.Model, left []*evidence, own []*arithmetic, right []order.Node, has func(e *evidence) func(order.Node) bool) (*diagnose.Finding, error) {
	opened, err := i.opened(ctx, left, has)
	if opened == nil || err != nil {
		return nil, err
	}
	return i.nameIn(ctx, model, opened, own, func(n order.Node) (*evidence, error) {
		e, err := i.evidence(ctx, n)
		if e == nil || err != nil {
			return nil, err
		}
		all, err := i.opened(ctx, []*evidence{e}, has)
		if all == nil || err != nil {
			return nil, err
		}
		return all[0], nil
	}, right)
}

// roles are the entries that are left of several roles, each with its arithmetic.
type roles struct {
	left  []*evidence
	own   []*arithmetic
	right []order.Node // of these roles
}

// together are the entries of several roles that may have one mistake: those of one kind of operation that read the same, such as cosines
// and sines; nil where there is one role alone.
func (i *Isolator) together(ctx context.Context, role string, left []*evidence, own []*arithmetic, right []order.Node) (*roles, error) {
	e := i.list.At(left[0].node)
	if e.Op == nil || len(e.Weights) > 0 {
		return nil, nil
	}
	seen := map[string]bool{role: true}
	left, own, right = slices.Clone(left), slices.Clone(own), slices.Clone(right)
	for k := range i.list.Entries {
		o := &i.list.Entries[k]
		other := diagnose.Role(o.Name)
		if seen[other] || o.Op == nil || o.Op.Kind() != e.Op.Kind() || len(o.Weights) > 0 || !i.fixed(k) || o.Level != e.Level || o.Layer != e.Layer ||
			!slices.EqualFunc(o.Inputs, e.Inputs, func(a, b order.Ref) bool { return a.Name == b.Name }) {
			continue
		}
		seen[other] = true
		more, arithmetics, healthy, err := i.leftOf(ctx, other)
		if err != nil {
			return nil, err
		}
		left, own, right = append(left, more...), append(own, arithmetics...), append(right, healthy...)
	}
	if len(seen) == 1 {
		return nil, nil
	}
	return &roles{left, own, right}, nil
}

// nameIn looks for what is wrong with some entries, each in its own arithmetic, or where that is not known in each of a few. Right are
// others of the role, which are read when there is a name.
func (i *Isolator) nameIn(ctx context.Context, model *diagnose.Model, left []*evidence, own []*arithmetic, read func(order.Node) (*evidence, error), right []order.Node) (*diagnose.Finding, error) {
	var none *diagnose.Finding
	tries, err := under(left, left)
	if err != nil {
		return nil, err
	}
	known := !slices.Contains(own, nil)
	if known { // what is wrong may round otherwise than what is right
		tries = append([]*arithmetic{nil}, tries...)
	}
	for n, try := range tries {
		find := diagnose.Find
		if n > 0 && model.Spent() { // nothing is left to try anything with
			break
		}
		if known && n > 0 {
			find, own = diagnose.FindSteps, make([]*arithmetic, len(left))
		}
		var entries, given []*diagnose.Entry
		model.Unread = max(len(right)-mostRight, 0)
		model.Rest = func() ([]*diagnose.Entry, error) { return restOf(ctx, given, read, right) }
		for k, e := range left {
			a := own[k]
			if a == nil {
				a = try
			}
			rest := e.left
			if !a.strict() || e.read != nil { // e.left says nothing of another arithmetic, nor of other leaves
				if _, rest, _, err = e.strict(ctx, a); err != nil {
					return nil, err
				}
			}
			s, err := suspectOf(ctx, &evidence{e.trial, rest}, a)
			if err != nil {
				return nil, err
			}
			if len(rest) == 0 {
				given = append(given, s)
			} else {
				entries = append(entries, s)
			}
		}
		found, err := find(ctx, model, entries)
		if found.Explains() || err != nil { // what is undecided in one arithmetic has no name in another
			return found, err
		}
		none = found.With(none)
	}
	return none, nil
}

// mostRight is how many right entries a name is held to, to say where it is.
const mostRight = 64

// restOf adds to some right entries those of nodes of which transformers' arithmetic leaves nothing.
func restOf(ctx context.Context, all []*diagnose.Entry, read func(order.Node) (*evidence, error), right []order.Node) ([]*diagnose.Entry, error) {
	for _, n := range right[:min(len(right), mostRight)] {
		e, err := read(n)
		if err != nil {
			return nil, err
		} else if e == nil {
			continue
		}
		s, err := suspectOf(ctx, e, &arithmetic{})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// leftOf are the entries of a role that the arithmetics of their forms leave something of, with the arithmetic that leaves least; nil
// where none is known. Right are those of which nothing is left by transformers' arithmetic.
func (i *Isolator) leftOf(ctx context.Context, role string) (left []*evidence, own []*arithmetic, right []order.Node, err error) {
	c := i.capturedForms()
	for _, form := range c.names {
		for _, n := range c.nodes[form] {
			if diagnose.Role(i.list.Entries[n.Entry].Name) != role || len(left) >= maxEntries {
				continue
			}
			e, err := i.evidence(ctx, n)
			if err != nil {
				return nil, nil, nil, err
			}
			if e == nil {
				continue
			} else if len(e.left) == 0 {
				right = append(right, n)
				continue
			}
			f, err := i.form(ctx, form)
			if err != nil {
				return nil, nil, nil, err
			}
			a := f.own
			if f.reread != nil {
				again, _, rest, _, err := f.reread.judge(ctx, e.trial)
				if err != nil {
					return nil, nil, nil, err
				}
				if again != nil && len(rest) == 0 {
					continue
				} else if again != nil {
					e, a = &evidence{again, e.left}, f.reread.own
				}
			}
			if a != nil && f.second != nil {
				if _, rest, _, err := e.strict(ctx, f.second); err != nil {
					return nil, nil, nil, err
				} else if len(rest) == 0 {
					continue
				}
			}
			left, own = append(left, e), append(own, a)
		}
	}
	return left, own, right, nil
}
