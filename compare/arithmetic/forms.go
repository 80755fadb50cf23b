package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/memo"
	"github.com/tracediff/tracediff/order"
)

// Forms knows the arithmetic of the engine of a trace, form by form. Several goroutines may ask. Each question is answered once; the order in which answers may
// ask for other answers is that of [stage].
type Forms struct {
	I        *isolate.Isolator
	mistakes Mistakes // nil: no mistake is looked for

	wide    memo.Map[struct{}, bool]                                          // see ComputedWider
	own     memo.Map[isolate.FormKey, *Form]                                  // by its own entries, see [Forms.alone]
	joined  memo.Map[isolate.FormKey, *Form]                                  // by the entries of passes of both kinds, see bothKinds
	proved  memo.Map[isolate.FormKey, map[isolate.Preset]*isolate.Arithmetic] // see habits
	final   memo.Map[isolate.FormKey, Verdict]                                // see Verdict
	sampled memo.Map[isolate.FormKey, Verdict]                                // see beyondSample
	kernels memo.Map[isolate.FormKey, *isolate.Arithmetic]                    // see Kernel
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
	// stageFinal: the verdict on a form, including the evidence of other passes and other forms.
	stageFinal
	// stageSampled: the verdict, including the evidence of entries outside the sample.
	stageSampled
	// stageKernel: the fused kernel of a form.
	stageKernel
	// StageNames is the first stage for questions from users of the verdicts.
	StageNames
)

// place is the place of a question in the order. At one stage, forms with fewer operations come first, and the
// prompt's passes before passes of one token.
func place(s stage, f isolate.FormKey) memo.Place {
	one := 0
	if f.OneToken {
		one = 1
	}
	return memo.Place{int(s), len(f.Operations()), one}
}

func questions[V any](s stage, what string) memo.Map[isolate.FormKey, V] {
	return memo.Map[isolate.FormKey, V]{
		Place: func(f isolate.FormKey) memo.Place { return place(s, f) }, Name: func(f isolate.FormKey) string { return what + " of " + f.String() },
	}
}

// New has the forms of the traces of an isolator. Nothing is computed before a form is asked for. Mistakes are looked for where no arithmetic explains the entries of a form.
func New(i *isolate.Isolator, mistakes Mistakes) *Forms {
	return &Forms{
		I: i, mistakes: mistakes,
		wide:    memo.Map[struct{}, bool]{Place: func(struct{}) memo.Place { return memo.Place{int(stageWider)} }, Name: func(struct{}) string { return "the digits of the trace" }},
		own:     questions[*Form](stageAlone, "the arithmetic"),
		joined:  questions[*Form](stageBoth, "the arithmetic of all passes"),
		proved:  questions[map[isolate.Preset]*isolate.Arithmetic](stageHabits, "the habits"),
		final:   questions[Verdict](stageFinal, "the verdict"),
		sampled: questions[Verdict](stageSampled, "the verdict on all entries"),
		kernels: questions[*isolate.Arithmetic](stageKernel, "the kernel"),
	}
}

// Verdict returns the common verdict on the entries of a form. It is decided by these entries or, if they are too
// little evidence, by the same form in the passes of the other kind: an arithmetic proven there needs no second
// proof here, if it gives all entries.
func (k *Forms) Verdict(ctx context.Context, name isolate.FormKey) (Verdict, error) {
	f, err := k.alone(ctx, name)
	if err != nil {
		return Verdict{}, err
	}
	if f.decided() {
		return f.Verdict, nil
	}
	return k.final.Get(ctx, name, func(ctx context.Context) (Verdict, error) {
		v, err := k.settle(ctx, f, name)
		if err == nil {
			f.Entries = nil // tensors are not kept
		}
		return v, err
	})
}

// Searched reports whether the arithmetic of a form has been found already.
func (k *Forms) Searched(name isolate.FormKey) bool {
	f, known := k.own.Known(name)
	return known && f.Own != nil && !f.HasSuspects
}

// Asked reports whether the arithmetic of a form was looked for.
func (k *Forms) Asked(name isolate.FormKey) bool { return k.own.Asked(name) }

// alone decides a form by its own entries.
func (k *Forms) alone(ctx context.Context, name isolate.FormKey) (*Form, error) {
	return k.own.Get(ctx, name, func(ctx context.Context) (*Form, error) {
		isolate.SaysSearch(k.I, "the arithmetic of", name.String())
		f := k.NewForm(name)
		if name.OneToken {
			f.several = func(ctx context.Context) (*Form, error) { return k.alone(ctx, name.SeveralTokens()) }
		}
		var err error
		if f.Entries, f.others, err = k.entriesOf(ctx, name); err != nil {
			return nil, err
		}
		drawOn(&f.account, f.Entries)
		if err := f.Decide(ctx); err != nil {
			return nil, err
		}
		if f.Wrong == nil && (f.Own == nil || f.HasSuspects) {
			if f.Reread, err = reread(ctx, k.I, f.Entries, f.held); err != nil {
				return nil, err
			} else if f.Reread != nil {
				f.Verdict = Verdict{Reread: f.Reread}
			}
		}
		if f.decided() { // tensors are not kept
			f.Entries = nil
		}
		f.stopped = f.stopped || f.account.Ended()
		return f, nil
	})
}

// NewForm is a form before its entries are looked at.
func (k *Forms) NewForm(name isolate.FormKey) *Form {
	return &Form{mistakes: k.mistakes, carry: func(ctx context.Context) ([]*isolate.Arithmetic, error) { return k.carry(ctx, name) }}
}

// Form is what the entries of one form have in common.
type Form struct {
	// several returns the same form in the prompt's passes. It is nil in a form of the prompt's passes.
	several  func(context.Context) (*Form, error)
	carry    carrier
	mistakes Mistakes
	account  isolate.Account
	Entries  []*isolate.Evidence
	others   []order.Node // entries that were not looked at
	held     int          // how many entries Own and Second explain, if there are suspects
	Verdict
}

// decided reports whether the form needs no evidence of other passes.
func (f *Form) decided() bool {
	return f.Own != nil && !f.HasSuspects || f.Wrong != nil || f.Reread != nil
}

// Unexplained returns the entries with elements unexplained by transformers' arithmetic.
func (f *Form) Unexplained() []*isolate.Evidence { return withRest(f.Entries) }

// withRest returns the entries with elements unexplained by transformers' arithmetic.
func withRest(entries []*isolate.Evidence) []*isolate.Evidence {
	var left []*isolate.Evidence
	for _, e := range entries {
		if len(e.Left) > 0 {
			left = append(left, e)
		}
	}
	return left
}
