package propose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// ErrNoTokens is returned where it is not known how many tokens the first pass has.
var ErrNoTokens = errors.New("neither the dump nor the reference has the token ids of the first pass")

// Options say what a proposal may use beside the two traces. The zero value is nothing.
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
	fitted := d.fitted
	m := &model{list: list, passes: passesOf(fitted), past: d.past, sizes: mapping.SizesOf(list), layouts: map[string][]axes.Layout{}, whole: d.trace.Status() != ""}
	if len(m.passes) == 0 && d.ref != nil {
		m.passes = passesOf(d.ref)
	}
	for i := range m.passes {
		m.passes[i].Past += d.past
	}
	if len(m.passes) > 0 {
		m.tokens = m.passes[0].Tokens
	}
	e := &evidence{model: m, trace: d.trace, ref: d.ref, values: tensors.NewComparison(), inPasses: passes, looking: func(string) {}}
	p := &board{evidence: e, named: map[string]bool{}, valued: map[string]float64{}}
	known := func(i int) bool { return p.known(fitted.Records()[i]) }
	all, err := p.templatesOf(ctx, list.Config.NumLayers, known)
	if err != nil {
		return nil, err
	}
	p.of = make([]*template, len(fitted.Records()))
	for _, q := range all {
		for _, x := range q.All {
			p.of[x.At] = q
		}
		if q.NeedsNoLine {
			p.out.Known += len(q.Sources)
		} else {
			p.open = append(p.open, q)
		}
	}
	if n := len(p.open); n > mapping.MaxRules {
		return nil, hint.Add(fmt.Errorf("the names need %d lines, and a map has at most %d", n, mapping.MaxRules),
			"give the tensors of all layers one name with the number of the layer in it, such as h.0.attn, and leave out what is no tensor of the model")
	}
	if err := (integerSearch{p}).integers(fitted); err != nil {
		return nil, err
	}
	if p.tokens == 0 {
		return nil, ErrNoTokens
	}
	if err := (swaps{p}).swapped(ctx, fitted); err != nil {
		return nil, err
	}
	p.roles(fitted)
	p.first = slices.Clone(p.free)
	if err := (valueSearch{p}).note(fitted); err != nil {
		return nil, err
	}
	if o.Weights != nil && len(p.passes) > 0 && hasOperands(list) {
		p.computed, p.out.computed = newComputed(e, fitted, o.Weights), true
	}
	for _, q := range p.open {
		q.AddLastRows(p.tokens)
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

// The steps. Each has the board, and what it has to remember.
type (
	integerSearch struct{ *board }
	swaps         struct{ *board }
	valueSearch   struct{ *board }
	nameSearch    struct{ *board }
	fusedSearch   struct{ *board }
	copying       struct{ *board }
	closing       struct{ *board }
	recomputing   struct {
		*board
		tried    map[string]bool // suppositions that gave nothing
		supposed int             // the work for suppositions that gave nothing
	}
	operandSearch struct{ *recomputing }
	guessing      struct{ *recomputing }
	exchanges     struct{ *recomputing }
	consumers     struct{ *recomputing }
	singles       struct{ *recomputing }
)
