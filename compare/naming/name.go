package naming

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/memo"
	"github.com/tracediff/tracediff/order"
)

// ModelOf returns the context of a search: the model, the passes and the trace.
func ModelOf(i *isolate.Isolator) *diagnose.Model {
	return &diagnose.Model{
		List: i.List(), Passes: i.Env().Passes, Weights: i.Env().Weights, Read: i.Env().Read, Room: cmp.Or(i.Options().Room, isolate.DefaultMemory), Work: diagnose.DefaultWork * i.Times(),
		Spare: i.Options().Spare,
		Has: func(n order.Node) bool {
			rec, ok := i.Trace().Lookup(n.Pass, i.List().Entries[n.Entry].Name)
			return ok && rec.Firing == 0 && i.Misfit(n) == nil
		},
	}
}

// Names knows what is wrong with the entries of a trace that are a BUG, role by role. It searches for changes to their operations, also for the arithmetic of a
// form. Several goroutines may ask.
type Names struct {
	i     *isolate.Isolator
	Forms *arithmetic.Forms
	Study diagnose.Study // for a measurement of the search

	quantised memo.Map[struct{}, *arithmetic.Quantised]
	few       memo.Map[string, *named]    // by role: by a few tokens of large entries
	whole     memo.Map[string, wholeName] // by role

	mu    sync.Mutex
	Parts map[order.Node]bool // whether the mistake of the role explains all tokens of a large entry, for entries checked during certification
}

// named is what is wrong with the entries of a role, by a few tokens of large entries.
type named struct {
	role    string
	finding *diagnose.Finding
	edit    *diagnose.Mistake // what its edits are made of; nil where it has no name
}

// wholeName is what is wrong with the entries of a role, by all of their tokens.
type wholeName struct {
	finding *diagnose.Finding
	edit    *diagnose.Mistake
}

// New has the names of the bugs in an isolator's traces. Nothing is looked for before an entry is asked for.
func New(i *isolate.Isolator) *Names {
	n := &Names{i: i, Parts: map[order.Node]bool{}}
	at := func(stage int) func(string) memo.Place {
		return func(string) memo.Place { return memo.Place{int(arithmetic.StageNames) + stage} }
	}
	n.quantised.Place = func(struct{}) memo.Place { return at(0)("") }
	n.quantised.Name = func(struct{}) string { return "the errors of the products" }
	n.few.Place, n.few.Name = at(1), func(role string) string { return "the mistake in a few tokens of " + role }
	n.whole.Place, n.whole.Name = at(2), func(role string) string { return "the mistake in " + role }
	return n
}

// Of returns the mistake of an entry that is a BUG: the edit that gives every element of every wrong entry of its role, in all passes. A finding
// without a name says what was tried. The finding is nil if the role has no wrong entry. The error is that of reading the trace or the weights.
func (k *Names) Of(ctx context.Context, name string) (*diagnose.Finding, error) {
	f, err := k.nameOf(ctx, order.NameOf(name).Role())
	return f.finding, err
}

// nameOf is what is wrong with the entries of a role, in all of their tokens.
func (k *Names) nameOf(ctx context.Context, role string) (wholeName, error) {
	f, err := k.nameInFew(ctx, role)
	if err != nil {
		return wholeName{}, err
	}
	return k.whole.Get(ctx, role, func(ctx context.Context) (wholeName, error) {
		w := wholeName{f.finding, f.edit}
		if f.edit != nil {
			if all, err := k.inAllParts(ctx, f); err != nil {
				return wholeName{}, err
			} else if !all {
				w = wholeName{f.finding.Unnamed(), nil}
			}
		}
		if w.finding == nil {
			return w, nil
		}
		readers, err := k.readersRight(ctx, role)
		w.finding = w.finding.InDumpOnly(readers)
		return w, err
	})
}

// nameInFew finds the mistake of a role in a few tokens of each large entry.
func (k *Names) nameInFew(ctx context.Context, role string) (*named, error) {
	return k.few.Get(ctx, role, func(ctx context.Context) (*named, error) {
		isolate.SaysSearch(k.i, "what is wrong with", role)
		f := &named{role: role}
		likely, err := k.likely(ctx, role)
		if likely != "" || err != nil {
			f.finding = &diagnose.Finding{Likely: likely, Page: diagnose.QuantisedPage}
			return f, err
		}
		if f.finding, f.edit, err = k.mistakeOfForms(ctx, role); f.finding == nil && err == nil {
			f.finding, err = k.name(ctx, role)
			f.edit = f.finding.Edit()
		}
		return f, err
	})
}

// name looks for the mistake of a role, in the arithmetic of each entry's form, or in a few arithmetics if the form has none. It searches the
// programs between captured entries first. Then it opens masks and rotary tables, which follow from positions, and caches of earlier passes. All
// searches share the budget of one finding.
func (k *Names) name(ctx context.Context, role string) (*diagnose.Finding, error) {
	left, own, right, err := k.leftOf(ctx, role)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	var others []func(e *isolate.Evidence) func(order.Node) bool
	for _, from := range []func(*isolate.Isolator, *isolate.Evidence) func(order.Node) bool{fromArguments, fromTokens, fromProducts} {
		has := func(e *isolate.Evidence) func(order.Node) bool { return from(k.i, e) }
		if opens, err := opensProgram(k.i, left, has); err != nil {
			return nil, err
		} else if opens {
			others = append(others, has)
		}
	}
	alone := roles{left, own, right}
	table, all, err := k.together(ctx, role, alone)
	if err != nil {
		return nil, err
	}
	kernels, err := kernelsOf(ctx, k, left, own)
	if err != nil {
		return nil, err
	}
	model, searches := ModelOf(k.i), 1+len(others)
	model.Study = k.Study
	for _, more := range []*roles{table, all} {
		if more != nil {
			searches++
		}
	}
	share := func() {
		model.Share(searches)
		searches--
	}
	read := func(n order.Node) (*isolate.Evidence, error) { return k.i.Evidence(ctx, n) }
	if kernels != nil {
		model.Share(searches + 1)
		entries, err := entriesUnder(ctx, model, left, kernels, read, right)
		if err != nil {
			return nil, err
		}
		if found, err := diagnose.Find(ctx, model, entries); found.Explains() || err != nil {
			return found, err
		}
	}
	found, err := k.nameTogether(ctx, model, share, alone, table, all)
	if found.Named() || err != nil {
		return found, err
	}
	for _, without := range others {
		share()
		more, err := k.nameOpened(ctx, model, left, own, right, without)
		if more.Named() || err != nil {
			return more, err
		}
		found = more.With(found)
	}
	if found.Explains() {
		return found, nil
	}
	dumped, err := k.notAsDumped(ctx, role, left)
	if dumped != nil || err != nil {
		return cmp.Or(dumped, found), err
	}
	model.Share(1)
	two, err := diagnose.FindTwo(model)
	if two.Named() || err != nil {
		return two, err
	}
	return found, nil
}

// nameOpened looks for the mistake between some entries and a smaller set of captured tensors. It returns nil if
// the programs do not change.
func (k *Names) nameOpened(ctx context.Context, model *diagnose.Model, left []*isolate.Evidence, own []*isolate.Arithmetic, right []order.Node, has func(e *isolate.Evidence) func(order.Node) bool) (*diagnose.Finding, error) {
	opened, err := openedEntries(ctx, k.i, left, has)
	if opened == nil || err != nil {
		return nil, err
	}
	return k.nameIn(ctx, model, opened, own, func(n order.Node) (*isolate.Evidence, error) {
		e, err := k.i.Evidence(ctx, n)
		if e == nil || err != nil {
			return nil, err
		}
		all, err := openedEntries(ctx, k.i, []*isolate.Evidence{e}, has)
		if all == nil || err != nil {
			return nil, err
		}
		return all[0], nil
	}, right)
}

// nameIn looks for the mistake in some entries, each in its own arithmetic or, if unknown, in each of a few
// arithmetics. right are right entries of the role, read only to check a name.
func (k *Names) nameIn(ctx context.Context, model *diagnose.Model, left []*isolate.Evidence, own []*isolate.Arithmetic, read func(order.Node) (*isolate.Evidence, error), right []order.Node) (*diagnose.Finding, error) {
	var none *diagnose.Finding
	model.Peers = nil
	tries, err := arithmetic.Under(left, left)
	if err != nil {
		return nil, err
	}
	known := !slices.Contains(own, nil)
	if known { // what is wrong may round otherwise than what is right
		tries = append([]*isolate.Arithmetic{nil}, tries...)
	}
	for n, try := range tries {
		find := diagnose.Find
		if n > 0 && model.Spent() { // nothing is left to try anything with
			break
		}
		if known && n > 0 {
			find, own = diagnose.FindSteps, make([]*isolate.Arithmetic, len(left))
		}
		under := slices.Clone(own)
		for at, a := range own {
			if a == nil {
				under[at] = try
			}
		}
		entries, err := entriesUnder(ctx, model, left, under, read, right)
		if err != nil {
			return nil, err
		}
		model.Peers = func() ([]*diagnose.Entry, error) { return peersOf(ctx, k, entries, left, under) }
		found, err := find(ctx, model, entries)
		if found.Explains() || err != nil { // what is undecided in one arithmetic has no name in another
			return found, err
		}
		none = found.With(none)
	}
	return none, nil
}

// leftOf returns the entries of a role with elements unexplained by the arithmetics of their forms, each with the
// arithmetic that leaves the fewest; nil for an unknown arithmetic. right are the entries explained by
// transformers' arithmetic.
func (k *Names) leftOf(ctx context.Context, role string) (left []*isolate.Evidence, own []*isolate.Arithmetic, right []order.Node, err error) {
	c := k.i.CapturedForms()
	for _, form := range c.Names {
		for _, n := range c.Nodes[form] {
			if order.NameOf(k.i.List().Entries[n.Entry].Name).Role() != role || len(left) >= arithmetic.MaxEntries {
				continue
			}
			e, err := k.i.Evidence(ctx, n)
			if err != nil {
				return nil, nil, nil, err
			}
			if e == nil {
				continue
			} else if len(e.Left) == 0 {
				right = append(right, n)
				continue
			}
			f, err := k.Forms.Verdict(ctx, form)
			if err != nil {
				return nil, nil, nil, err
			}
			a := f.Own
			if f.Reread != nil {
				again, _, rest, _, err := f.Reread.Judge(ctx, e.Trial)
				if err != nil {
					return nil, nil, nil, err
				}
				if again != nil && len(rest) == 0 {
					continue
				} else if again != nil {
					e, a = &isolate.Evidence{Trial: again, Left: e.Left}, f.Reread.Own
				}
			}
			if a != nil && f.Second != nil {
				if _, rest, _, err := e.Judge(ctx, f.Second); err != nil {
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

// mistakeOfForms is the mistake that the forms of a role have, with its edit. Forms whose arithmetic was not looked for are left out. It is nil if two forms have
// different mistakes, and if a form without a mistake has entries that its arithmetics do not explain.
func (k *Names) mistakeOfForms(ctx context.Context, role string) (found *diagnose.Finding, made *diagnose.Mistake, err error) {
	c := k.i.CapturedForms()
	for _, name := range c.Names {
		of := func(n order.Node) bool { return order.NameOf(k.i.List().Entries[n.Entry].Name).Role() == role }
		if !slices.ContainsFunc(c.Nodes[name], of) || !k.Forms.Asked(name) {
			continue
		}
		f, err := k.Forms.Verdict(ctx, name)
		switch {
		case err != nil:
			return nil, nil, err
		case f.Wrong != nil && f.Definite && (found == nil || found.Same(f.Wrong.(*searched).Finding)):
			found = f.Wrong.(*searched).Finding
			made = found.Edit()
		case f.Wrong != nil || f.Own == nil || f.HasSuspects:
			return nil, nil, nil
		}
	}
	return found, made, nil
}
