package certify

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/compare/diagnose"
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

// form is what the entries of one form have in common.
type form struct {
	// several returns the same form in the prompt's passes. It is nil in a form of the prompt's passes.
	several func(context.Context) (*form, error)
	carry   carrier
	account account
	once    sync.Once
	known   atomic.Bool // it has an arithmetic by its own entries
	decided bool        // a form of passes of both kinds has entries of both
	err     error
	entries []*evidence
	verdict
	settled sync.Once
	// final is with what the other passes show.
	final    verdict
	finalErr error

	others     []order.Node // entries that were not looked at
	beyondOnce sync.Once
	beyond     verdict // with others
	beyondErr  error

	habitsOnce sync.Once
	habits     map[string]*arithmetic // presets that explain all entries, where these prove one
	habitsErr  error
}

// verdict is what is known of a form's arithmetic.
type verdict struct {
	// own is the arithmetic of the form, transformers' or another; nil where none holds for most entries. second is that of the
	// others, where there is one.
	own, second *arithmetic
	// unproven is a way of making tables that explains all entries, but the entries show too few elements to tell the way from a mistake. What the way explains
	// is neither right nor wrong.
	unproven *arithmetic
	// wrong is the change to the operation that explains all entries, where no arithmetic does.
	wrong *diagnose.Finding
	made  *diagnose.Mistake // the change under own; nil where the change may be under another arithmetic
	// reread is the operand that the engine reads before it is rounded, where no arithmetic on captured operands holds.
	reread *rereading
	// suspects: own leaves something of entries, and second does not explain it. thin: it is too little to accuse them of.
	suspects, thin bool
	stopped        bool // a search for the arithmetic stopped at its limit
}

// formOf names the form of an entry: its operation, those that are computed on the way, and whether the pass is of a single
// token, for which engines have kernels of their own.
func (i *Isolator) formOf(cut *order.Plan, n order.Node) string {
	forms := []string{op.Form(i.list.At(n).Op)}
	for k := len(cut.Steps) - 1; k >= 0; k-- {
		if f := op.Form(i.list.At(cut.Steps[k]).Op); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	slices.Sort(forms[1:])
	name := strings.Join(forms, madeOf)
	if i.env.Passes[n.Pass].Tokens == 1 || i.lastRow(n) {
		name += oneToken
	}
	return name
}

// form is what the entries of a form have in common, worked out once: by themselves, and where they show too little of an
// arithmetic, by that of the same form in the other passes. What is proven of an engine there needs no proof of its own here,
// if it gives all entries.
func (i *Isolator) form(ctx context.Context, name string) (verdict, error) {
	f, err := i.alone(ctx, name)
	if err != nil || f.own != nil && !f.suspects || f.wrong != nil || f.reread != nil {
		return f.verdict, err
	}
	f.settled.Do(func() {
		f.final, f.finalErr = i.settle(ctx, f, name)
		f.entries = nil // tensors are not kept
	})
	return f.final, f.finalErr
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

// explainedBy reports whether one of some arithmetics explains each entry; nil is none.
func (f *form) explainedBy(ctx context.Context, some ...*arithmetic) (bool, error) {
	for _, e := range f.entries {
		explained := false
		for _, a := range some {
			if a == nil || explained {
				continue
			}
			var err error
			if explained, err = e.givenBy(ctx, a); err != nil {
				return false, err
			}
		}
		if !explained {
			return false, nil
		}
	}
	return true, nil
}

// A form's name has its operations between madeOf; oneToken marks those of passes of a single token.
const (
	madeOf   = " < "
	oneToken = " (one token)"
)

// searched reports whether the arithmetic of a form has been found already.
func (i *Isolator) searched(name string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.forms[name] != nil && i.forms[name].known.Load()
}

// alone is a form by its own entries.
func (i *Isolator) alone(ctx context.Context, name string) (*form, error) {
	i.mu.Lock()
	f := i.forms[name]
	if f == nil {
		f = &form{carry: func(ctx context.Context) ([]*arithmetic, error) { return i.carry(ctx, name) }}
		if several, found := strings.CutSuffix(name, oneToken); found {
			f.several = func(ctx context.Context) (*form, error) { return i.alone(ctx, several) }
		}
		i.forms[name] = f
	}
	i.mu.Unlock()
	f.once.Do(func() {
		i.tellSearch("the arithmetic of", name)
		if f.entries, f.others, f.err = i.entriesOf(ctx, name); f.err == nil {
			drawOn(&f.account, f.entries)
			f.err = f.decide(ctx)
		}
		if f.err == nil && f.wrong == nil && (f.own == nil || f.suspects) {
			if f.reread, f.err = reread(ctx, i, f.entries); f.reread != nil {
				f.verdict = verdict{reread: f.reread}
			}
		}
		if f.reread != nil || f.own != nil && !f.suspects || f.wrong != nil { // tensors are not kept
			f.entries = nil
		}
		f.stopped = f.stopped || f.account.ended()
		f.known.Store(f.err == nil && f.own != nil && !f.suspects)
	})
	return f, f.err
}

// otherwise judges an entry that transformers' arithmetic does not explain in the arithmetic of its form. Identified is
// false for one that no arithmetic is known to explain, and that some choice of roundings may: nothing is left of it then.
func (t *trial) otherwise(ctx context.Context, c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error) {
	name := t.i.formOf(t.cut, t.node)
	f, err := t.i.form(ctx, name)
	if err != nil {
		return nil, nil, false, err
	}
	try := func(a *arithmetic) (bool, error) {
		k, rest, order, err := strictRead(ctx, t, a)
		if err != nil {
			return false, err
		}
		if j == nil || len(rest) < len(left) {
			j, left = k, rest
			p, err := t.rewritten(a.rewrites)
			if err != nil {
				return false, err
			}
			if a.rewrites.Kernel() > 0 { // what it reaches is its own
				own := look(k).ofAll()
				own.Form = c.Form
				*c = *own
			}
			c.Arithmetic, c.Where, c.Summation = a.words(p, t.i.env.DType), a.where(p, t), order
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
	if f.reread != nil {
		reread, err := f.reread.of(ctx, t)
		if err != nil {
			return nil, nil, false, err
		}
		_, k, rest, order, err := reread.judge(ctx, t)
		if err != nil {
			return nil, nil, false, err
		}
		if reread.alike && len(rest) > 0 {
			k = nil
		}
		if k != nil && (len(rest) == 0 || !reread.thin) {
			c.Arithmetic, c.Summation = reread.words(), order
			return k, rest, true, nil
		}
		if k == nil { // the entry has no such operand
			if done, err := try(f.reread.own); done || err != nil {
				return j, left, true, err
			}
		}
	}
	if has, err := f.hasMistake(ctx, t); err != nil {
		return nil, nil, false, err
	} else if has {
		if c.Finding = f.wrong; f.wrong.Named() {
			c.Mistake = f.wrong.Text()
		}
		if f.made == nil {
			j, left = strict, off
		}
		return j, left, true, nil
	}
	if wide, err := t.i.computedWider(ctx); err != nil {
		return nil, nil, false, err
	} else if wide {
		if done, err := try(&arithmetic{wide: true}); done || err != nil {
			return j, left, true, err
		}
	}
	if beyond, err := t.i.beyondSample(ctx, f, name); err != nil {
		return nil, nil, false, err
	} else if beyond.second != nil && beyond.second != f.second {
		if done, err := try(beyond.second); done || err != nil {
			return j, left, true, err
		}
	}
	if f.own != nil && !f.thin {
		return j, left, true, nil
	}
	if f.unproven != nil {
		if k, rest, _, err := t.strict(ctx, f.unproven); len(rest) == 0 || err != nil {
			c.Arithmetic = "not known"
			return k, nil, false, err
		}
	}
	return t.within(ctx, f, c, strict, off)
}

// hasMistake reports whether an entry has the change that explains the entries of its form which were looked at.
func (f *verdict) hasMistake(ctx context.Context, t *trial) (bool, error) {
	if f.wrong == nil || f.made == nil {
		return f.wrong != nil, nil
	}
	j, err := givenWith(ctx, t, f.own, f.made)
	return j != nil, err
}

// within reports whether some choice of roundings gives each element. Of a large entry few elements are asked first: what no choice gives needs no more.
func (t *trial) within(ctx context.Context, f verdict, c *Certificate, strict *judged, off []int) (j *judged, left []int, identified bool, err error) {
	if few := (&evidence{t, off}).few(); few != nil {
		if _, left, err = few.hull(ctx, few.left); err != nil || len(left) > 0 {
			return strict, off, true, err
		}
	}
	j, left, err = t.hull(ctx, off)
	if err != nil || len(left) > 0 {
		return strict, off, true, err
	}
	c.Arithmetic = "not known"
	if f.stopped {
		c.Stopped = diagnose.GoesOn(t.i.times())
	}
	return j, nil, false, nil
}
