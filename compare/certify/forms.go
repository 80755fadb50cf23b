package certify

import (
	"context"

	"github.com/tracediff/tracediff/internal/memo"
	"github.com/tracediff/tracediff/order"
)

// forms knows the arithmetic of the engine of a trace, form by form. Several goroutines may ask. Each question is answered once; the order in which answers may
// ask for other answers is that of [stage].
type forms struct {
	i        *Isolator
	mistakes mistakeSearch // nil: no mistake is looked for

	wide    memo.Map[struct{}, bool]                  // see computedWider
	own     memo.Map[formKey, *form]                  // by its own entries, see alone
	joined  memo.Map[formKey, *form]                  // by the entries of passes of both kinds, see bothKinds
	proved  memo.Map[formKey, map[preset]*arithmetic] // see habits
	final   memo.Map[formKey, verdict]                // see verdictOf
	sampled memo.Map[formKey, verdict]                // see beyondSample
	kernels memo.Map[formKey, *arithmetic]            // see kernelOf
}

// stage is what is asked of a form. An answer asks for answers of earlier stages only, and an answer of stageAlone for those of smaller forms too: see place.
type stage int

const (
	// stageWider: whether the trace was computed in more digits than it was stored in. It asks for nothing.
	stageWider stage = iota
	// stageAlone: what the entries of a form show by themselves. It asks for the same of forms of fewer operations, and of passes of one token for the same of the
	// prompt's passes.
	stageAlone
	// stageBoth: what the entries of passes of both kinds show together.
	stageBoth
	// stageHabits: the presets that explain the entries of a form which proves an arithmetic.
	stageHabits
	// stageFinal: the verdict on a form, with what other passes and other forms show.
	stageFinal
	// stageSampled: the verdict with what is shown by entries that were not looked at.
	stageSampled
	// stageKernel: the fused kernel of a form.
	stageKernel
	// StageNames is the first stage of what others ask who use verdicts.
	stageNames
)

// place is that of a question in the order. Of forms at one stage, those of fewer operations come first, and the prompt's passes before those of one token.
func place(s stage, f formKey) memo.Place {
	one := 0
	if f.oneToken {
		one = 1
	}
	return memo.Place{int(s), len(f.operations()), one}
}

func questions[V any](s stage, what string) memo.Map[formKey, V] {
	return memo.Map[formKey, V]{
		Place: func(f formKey) memo.Place { return place(s, f) }, Name: func(f formKey) string { return what + " of " + f.String() },
	}
}

func newForms(i *Isolator, mistakes mistakeSearch) *forms {
	return &forms{
		i: i, mistakes: mistakes,
		wide:    memo.Map[struct{}, bool]{Place: func(struct{}) memo.Place { return memo.Place{int(stageWider)} }, Name: func(struct{}) string { return "the digits of the trace" }},
		own:     questions[*form](stageAlone, "the arithmetic"),
		joined:  questions[*form](stageBoth, "the arithmetic of all passes"),
		proved:  questions[map[preset]*arithmetic](stageHabits, "the habits"),
		final:   questions[verdict](stageFinal, "the verdict"),
		sampled: questions[verdict](stageSampled, "the verdict on all entries"),
		kernels: questions[*arithmetic](stageKernel, "the kernel"),
	}
}

// verdictOf is what the entries of a form have in common: by themselves, and where they show too little of an
// arithmetic, by that of the same form in the other passes. What is proven of an engine there needs no proof of its own here,
// if it gives all entries.
func (k *forms) verdictOf(ctx context.Context, name formKey) (verdict, error) {
	f, err := k.alone(ctx, name)
	if err != nil {
		return verdict{}, err
	}
	if f.own != nil && !f.suspects || f.wrong != nil || f.reread != nil {
		return f.verdict, nil
	}
	return k.final.Get(ctx, name, func(ctx context.Context) (verdict, error) {
		v, err := k.settle(ctx, f, name)
		if err == nil {
			f.entries = nil // tensors are not kept
		}
		return v, err
	})
}

// searched reports whether the arithmetic of a form has been found already.
func (k *forms) searched(name formKey) bool {
	f, known := k.own.Known(name)
	return known && f.own != nil && !f.suspects
}

// asked reports whether the arithmetic of a form was looked for.
func (k *forms) asked(name formKey) bool { return k.own.Asked(name) }

// alone is a form by its own entries.
func (k *forms) alone(ctx context.Context, name formKey) (*form, error) {
	return k.own.Get(ctx, name, func(ctx context.Context) (*form, error) {
		k.i.tellSearch("the arithmetic of", name.String())
		f := k.newForm(name)
		if name.oneToken {
			f.several = func(ctx context.Context) (*form, error) { return k.alone(ctx, name.severalTokens()) }
		}
		var err error
		if f.entries, f.others, err = k.entriesOf(ctx, name); err != nil {
			return nil, err
		}
		drawOn(&f.account, f.entries)
		if err := f.decide(ctx); err != nil {
			return nil, err
		}
		if f.wrong == nil && (f.own == nil || f.suspects) {
			if f.reread, err = reread(ctx, k.i, f.entries); err != nil {
				return nil, err
			} else if f.reread != nil {
				f.verdict = verdict{reread: f.reread}
			}
		}
		if f.reread != nil || f.own != nil && !f.suspects || f.wrong != nil { // tensors are not kept
			f.entries = nil
		}
		f.stopped = f.stopped || f.account.ended()
		return f, nil
	})
}

// newForm is a form before its entries are looked at.
func (k *forms) newForm(name formKey) *form {
	return &form{mistakes: k.mistakes, carry: func(ctx context.Context) ([]*arithmetic, error) { return k.carry(ctx, name) }}
}

// form is what the entries of one form have in common.
type form struct {
	// several returns the same form in the prompt's passes. It is nil in a form of the prompt's passes.
	several  func(context.Context) (*form, error)
	carry    carrier
	mistakes mistakeSearch
	account  account
	entries  []*evidence
	others   []order.Node // entries that were not looked at
	verdict
}

// left are the entries of which transformers' arithmetic leaves something.
func (f *form) left() []*evidence { return withRest(f.entries) }

// withRest are those of some entries of which transformers' arithmetic leaves something.
func withRest(entries []*evidence) []*evidence {
	var left []*evidence
	for _, e := range entries {
		if len(e.left) > 0 {
			left = append(left, e)
		}
	}
	return left
}
