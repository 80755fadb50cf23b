package propose

import (
	"context"
	"errors"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// ErrNoTokens is returned where it is not known how many tokens the first pass has.
var ErrNoTokens = errors.New("neither the dump nor the reference has the token ids of the first pass")

// Options say what a proposal may use in addition to the two traces. The zero value adds nothing.
type Options struct {
	Weights Weights                            // of the checkpoint, to compute entries from what the dump has; nil: none
	Tell    func(step, steps int, name string) // is told how far a proposal is, and which tensor or entry is looked at; nil for nobody
}

// Map finds what the tensors of a dump are in the order of a model: by known names, by shapes and, where a reference is given, by
// values. A name stands for all layers that it has, so that layers that are wrong have the names of those that are right, and for all ranks or
// stages. fitted is the dump with what needs no map already read; its tensors stand in the same order. ref may be nil. The error is that of
// ctx or of reading, or [ErrNoTokens].
func Map(ctx context.Context, t, fitted *capture.Trace, list *order.List, ref *capture.Trace, o Options) (*Proposal, error) {
	d, err := fromFirst(traces{trace: t, fitted: fitted, ref: ref})
	if err != nil {
		return nil, err
	}
	p, err := proposed(ctx, d, list, o, false)
	if err != nil || !inList(d.trace) || p.provenLayers() {
		return p, err
	}
	other, err := proposed(ctx, d, list, o, true)
	if errors.Is(err, ErrNoTokens) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if len(other.Lines)+len(other.Choices) == 0 {
		return p, nil
	}
	if sure, err := other.provenPasses(d.trace, d.ref); sure || err != nil {
		return other, err
	}
	return p.orPasses(other), nil
}

// proposed is Map for one reading of a dump that is a list: its elements are passes, or not.
func proposed(ctx context.Context, d traces, list *order.List, o Options, passes bool) (*Proposal, error) {
	p, err := newBoard(ctx, d, list, passes)
	if err != nil {
		return nil, err
	}
	if err := p.begin(ctx, d.fitted); err != nil {
		return nil, err
	}
	if o.Weights != nil && len(p.passes) > 0 && hasOperands(list) {
		p.computed, p.out.computed = newComputed(p.evidence, d.fitted, o.Weights), true
	}
	c := &recomputing{board: p, tried: map[string]bool{}}
	byValues, byRest, byConsumers := valueSearch{p}.byValues, guessing{c}.byRest, consumers{c}.byConsumers
	steps := []func(context.Context) error{
		byValues, c.byComputing, exchanges{c}.exchange, nameSearch{p}.byNames, c.byComputing, byRest, byConsumers,
		singles{c}.alone, byValues, c.byComputing, byRest, byConsumers, singles{c}.together,
		copying{p}.copies, fusedSearch{p}.fusedChoices, nameSearch{p}.byShapes,
	}
	for k, step := range steps {
		p.looking = func(name string) {
			if o.Tell != nil {
				o.Tell(k, len(steps), name)
			}
		}
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	closing{p}.close()
	return &p.out, nil
}

// begin looks at integers and at tensors that have a name of the order, and finds the roles that are free.
func (p *board) begin(ctx context.Context, fitted *capture.Trace) error {
	if err := (integerSearch{p}).integers(fitted); err != nil {
		return err
	}
	if p.tokens == 0 {
		return ErrNoTokens
	}
	if err := (swaps{p}).swapped(ctx, fitted); err != nil {
		return err
	}
	p.roles(fitted)
	p.first = slices.Clone(p.free)
	for _, q := range p.open {
		q.AddLastRows(p.tokens)
	}
	return valueSearch{p}.note(fitted)
}

// The steps. Each has the board, and what it has to remember.
type (
	integerSearch struct{ *board } // token ids and positions
	swaps         struct{ *board } // tensors of the order with each other's names
	valueSearch   struct{ *board } // the numbers of the reference
	nameSearch    struct{ *board } // known names, and shapes
	fusedSearch   struct{ *board } // several entries in one tensor
	copying       struct{ *board } // tensors with the bytes of others
	closing       struct{ *board } // what depends on all lines
	recomputing   struct {
		*board
		tried    map[string]bool // suppositions that gave nothing
		supposed int             // the work for suppositions that gave nothing
	}
	operandSearch struct{ *recomputing } // other operands, and other weights
	guessing      struct{ *recomputing } // names, places and near values
	exchanges     struct{ *recomputing } // two tensors with each other's values
	consumers     struct{ *recomputing } // what is computed from an entry
	singles       struct{ *recomputing } // tensors and entries of single layers
)
