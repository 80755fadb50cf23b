package compare

import (
	"context"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/naming"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Isolator isolates the entries of one trace, and infers the engine's arithmetic and its mistakes. It is safe for
// concurrent use.
type Isolator struct {
	*isolate.Isolator
	Forms *arithmetic.Forms // the arithmetic of its engine
	Names *naming.Names     // its mistakes
}

// NewIsolator prepares a trace of the model that list describes. weights are in the trace's dtype. The error says what a
// trace lacks: token ids, whole rows, a dtype.
func NewIsolator(t *capture.Trace, list *order.List, weights func(order.Weight) (program.Rows, error), o isolate.Options) (*Isolator, error) {
	i, err := isolate.New(t, list, weights, o)
	if err != nil {
		return nil, err
	}
	names := naming.New(i)
	forms := arithmetic.New(i, names)
	names.Forms = forms
	if i.Options().Arithmetic == isolate.Auto {
		i.SetEngine(engineOf{forms, names})
	}
	return &Isolator{i, forms, names}, nil
}

// engineOf is the engine of the arithmetics and of the mistakes of a trace.
type engineOf struct {
	*arithmetic.Forms
	names *naming.Names
}

// Follow follows a mistake through the parts of a large entry.
func (e engineOf) Follow(ctx context.Context, first *isolate.Trial, c *isolate.Certificate) (isolate.Follower, error) {
	return e.names.Follow(ctx, first, c)
}

// Name returns the mistake of an entry that is a BUG: see [naming.Names.Of].
func (i *Isolator) Name(ctx context.Context, name string) (*diagnose.Finding, error) {
	return i.Names.Of(ctx, name)
}

// NewChain returns the chain of an isolator's trace; nil without one.
func NewChain(i *Isolator, f chain.Facts) *chain.Chain {
	if i == nil {
		return nil
	}
	return chain.New(i.Forms, i.Names, f)
}

// Isolated is the certificate of a row, with the mistake that a search found.
type Isolated struct {
	*isolate.Certificate
	// Finding is the edit that explains all wrong entries of the row's role, or a record of the tries; nil without
	// a search.
	Finding *diagnose.Finding `json:"finding,omitempty"`
}

// isolatedBy is what a certificate says; nil without one.
func isolatedBy(c *isolate.Certificate) *Isolated {
	if c == nil {
		return nil
	}
	return &Isolated{c, naming.FindingOf(c)}
}

// mistakeKey is the key of the finding; empty for a finding without a name.
func (c *Isolated) mistakeKey() string {
	if !c.Finding.Named() {
		return ""
	}
	return c.Finding.Key()
}
