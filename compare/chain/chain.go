package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Facts are what a comparison knows of its entries before any entry is certified.
type Facts interface {
	// Given reports whether an argument of the model has the same values on both sides.
	Given(ctx context.Context, pass int, name string) (same bool, err error)
	// Of returns the facts of an entry. The entry may come later in the walk than the entry that is certified.
	Of(ctx context.Context, pass int, name string) (Fact, error)
}

// Fact is what the two tensors of an entry show.
type Fact struct {
	Compared bool    // the walk makes a row of the entry
	Within   bool    // the difference is within the entry's limit; always true for a single trace
	Same     bool    // no element differs; the position_ids of a single trace also match its token ids
	Limit    float64 // on the accumulated relative L2; 0 if the entry has no limit
}

// Edits knows the mistakes in entries that are wrong on their own inputs. Package naming implements it.
type Edits interface {
	// EditOf returns the edit that explains an entry with a BUG, in the arithmetic of its form; nil if unknown.
	EditOf(ctx context.Context, n order.Node) (Edit, error)
}

// Edit is a change to an operation that explains an entry with a BUG.
type Edit interface {
	// Text is the name of what is wrong.
	Text() string
	// Turns reports whether the edit rotates the pairs of rotary tables, as other positions do.
	Turns() bool
	// Program is that of the entry with the edit; ok is false where the edit does not go with it.
	Program(ctx context.Context, t *isolate.Trial) (p *program.Program, c program.Call, ok bool, err error)
}

// Chain finds the entries on an unbroken chain: the entry and all of its captured ancestors, back to the token ids,
// are right on their own inputs.
type Chain struct {
	i     *isolate.Isolator
	forms *arithmetic.Forms
	edits Edits
	facts Facts
	certs map[string]*Link          // by key
	ready map[string]isolate.Result // certificates made ahead, see [Chain.Prepare]
	asked bool                      // see askFirst

	// Accepted reports whether a row is a known divergence. The row's tensor then counts as given: neither a fault
	// in the tensor nor an earlier fault breaks a chain through the row. Accepted may be nil.
	Accepted func(key string) bool

	layouts *reparametrisations
}

// Link is the certificate of one entry, or why it has none.
type Link struct {
	Cert   *isolate.Certificate
	Why    string             // why Cert is nil
	Gap    *Gap               // where the chain breaks; nil where it is unbroken
	From   string             // key of the known divergence at the start of the entry's chain; empty for a chain from the token ids
	Wrong  string             // key of a captured ancestor with a BUG
	Misfit *isolate.Misfit    // why the tensor is unlike the order's entry; nil for a tensor like it
	Layout *Reparametrisation // the layout of the entry; nil outside of every layout

	made isolate.Result
	fact Fact // zero without a cut
}

// Gap is the entry at which a chain breaks, the first of them on the way from the token ids.
type Gap struct{ Key, Why string }

// String says where the chain breaks and why; empty where it does not. Why says how to mend it, where a capture or a hook does.
func (g *Gap) String() string {
	if g == nil {
		return ""
	}
	return g.Key + ": " + g.Why
}

// New returns the chain of a trace.
func New(k *arithmetic.Forms, edits Edits, f Facts) *Chain {
	return &Chain{i: k.I, forms: k, edits: edits, facts: f, certs: map[string]*Link{}, ready: map[string]isolate.Result{}}
}

// At certifies an entry and all of its ancestors. An argument of the model needs no certificate: the comparison
// checks it against the reference.
func (c *Chain) At(ctx context.Context, name string, pass int) (*Link, error) {
	key := capture.Key(pass, name, 0)
	if got, ok := c.certs[key]; ok {
		return got, nil
	}
	e, ok := c.i.List().Lookup(name)
	if !ok {
		const why = "the order does not know it"
		return &Link{Why: why, Gap: &Gap{key, why}}, nil
	}
	if _, argument := e.Op.(op.Given); argument {
		got := &Link{Misfit: c.i.Misfit(order.Node{Entry: c.i.List().Index(name), Pass: pass})}
		same, err := c.facts.Given(ctx, pass, name)
		switch {
		case err != nil:
			return nil, err
		case got.Misfit != nil:
			got.Gap = &Gap{key, "it " + got.Misfit.Is}
		case !same:
			got.Gap = &Gap{key, "the two sides did not have the same input"}
		}
		return got, nil
	}
	got, cut, err := c.link(ctx, name, key, pass)
	if err != nil {
		return nil, err
	}
	if got.Why != "" {
		got.Gap = &Gap{key, got.Why}
	}
	c.certs[key] = got
	if cut == nil {
		return got, nil
	}
	return got, c.leaves(ctx, got, key, cut)
}

// link certifies an entry, and returns the certificate with the entry's cut; the cut is nil without a certificate.
func (c *Chain) link(ctx context.Context, name, key string, pass int) (*Link, *order.Plan, error) {
	if c.i.Recomputed(name) {
		return &Link{Why: "the capturing side recomputed it; add a hook that fires it"}, nil, nil
	}
	var bare *order.BareError
	var bad *isolate.Misfit
	ready, ok := c.ready[key]
	if delete(c.ready, key); !ok {
		ready = isolate.ResultOf(ctx, c.i, name, pass, false)
	}
	cert, cut, err := ready.Cert, ready.Cut, ready.Err
	switch {
	case errors.As(err, &bare):
		return &Link{Why: c.lacking(bare)}, nil, nil
	case errors.As(err, &bad) && bad.Key == key:
		return &Link{Misfit: bad, Why: "it " + bad.Is}, nil, nil
	case errors.As(err, &bad):
		return &Link{Why: "computed from " + bad.Key + ", which " + bad.Is}, nil, nil
	case err != nil:
		return nil, nil, err
	}
	if cert.Unbounded > 0 && cert.Good() {
		why := "too much of what they were computed from was not captured" + c.takes(cut)
		if key, err := notFinite(c.i, cut); err != nil {
			return nil, nil, err
		} else if key != "" {
			why = "they were computed from " + key + ", which has NaN or infinity"
		}
		return &Link{Why: fmt.Sprintf("nothing bounds the rounding of %d of %d elements: %s", cert.Unbounded, cert.Elements, why)}, nil, nil
	}
	fact, err := c.facts.Of(ctx, pass, name)
	if err != nil {
		return nil, nil, err
	}
	if why := c.untested(cert, fact); why != "" {
		return &Link{Why: why + c.takes(cut), fact: fact}, cut, nil
	}
	if cert, err = c.forms.WithMistake(ctx, order.Node{Entry: c.i.List().Index(name), Pass: pass}, cut, cert); err != nil {
		return nil, nil, err
	}
	got := &Link{Cert: cert, Layout: c.layouts.of(key), made: ready, fact: fact}
	if got.Layout != nil && cert.Outcome == isolate.Bug {
		cert.Outcome = isolate.OtherLayout
	}
	return got, cut, nil
}

// untested says why a rounding certifies nothing, and is empty where it does certify. A certificate says that the error of an
// operation on its own inputs, as relative L2, is within a limit: the accumulated limit of the entry, or what the table of limits
// allows the dtype, whichever is larger. The bounds show that where they reach no further than the limit. Else the error that was
// measured shows it, since the value is known whatever its bounds are. What is EXACT has no error.
func (c *Chain) untested(cert *isolate.Certificate, f Fact) string {
	if cert.Outcome != isolate.Rounding || !c.beyondLimits(cert, f) {
		return ""
	}
	own, table := f.Limit, gate.TableLimit(c.i.Env().DType)
	most := fmt.Sprintf("its limit of %.3g", own)
	if own < table {
		most = fmt.Sprintf("the %.3g that the built-in limits allow %s", table, c.i.Env().DType)
	}
	return fmt.Sprintf("rounding may add an error of up to %.3g here, more than %s", float64(cert.Reach), most)
}

// beyondLimits reports whether both the bounds and the measured error of an entry are beyond the entry's limits. The certificate shows nothing then.
// NaN is beyond any limit.
func (c *Chain) beyondLimits(cert *isolate.Certificate, f Fact) bool {
	limit := max(f.Limit, gate.TableLimit(c.i.Env().DType))
	return !(float64(cert.Reach) <= limit) && !(float64(cert.RelL2) <= limit)
}

// forget drops the links that are not among some, and keeps the certificates that the links were made of. A link depends on the rows that
// were accepted and on the layouts that were known when the link was made.
func (c *Chain) forget(but map[string]*Link) {
	for key, got := range c.certs {
		if but[key] != nil {
			continue
		}
		if got.made.Cert != nil {
			c.ready[key] = got.made
		}
		delete(c.certs, key)
	}
}

// notFinite returns the first tensor with NaN or infinity among the inputs of a cut, other than masks, or "".
func notFinite(i *isolate.Isolator, cut *order.Plan) (string, error) {
	for _, n := range cut.Leaves {
		e := i.List().At(n)
		if e.Compare == order.Pattern {
			continue
		}
		v, _, err := i.Value(n)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(v.Data, func(x float64) bool { return x != x || math.IsInf(x, 1) }) {
			return capture.Key(n.Pass, e.Name, 0), nil
		}
	}
	return "", nil
}

// leaves adds the results of an entry's captured inputs. A BUG in an uncompared entry is passed on to its
// descendants, because no row shows it.
func (c *Chain) leaves(ctx context.Context, got *Link, key string, cut *order.Plan) error {
	for _, n := range cut.Leaves {
		parent, err := c.At(ctx, c.i.List().At(n).Name, n.Pass)
		if err != nil {
			return err
		}
		from := capture.Key(n.Pass, c.i.List().At(n).Name, 0)
		if c.Accepted != nil && c.Accepted(from) {
			got.From = cmp.Or(got.From, from)
			continue
		}
		got.From = cmp.Or(got.From, parent.From)
		if got.Gap == nil {
			got.Gap = parent.Gap
		}
		if !parent.fact.Compared && parent.Wrong != "" {
			got.Wrong = parent.Wrong
		}
		if parent.Cert != nil && parent.Cert.Outcome == isolate.Bug {
			got.Wrong = from
		}
	}
	if got.Gap == nil {
		if why := c.broken(got); why != "" {
			got.Gap = &Gap{key, why}
		}
	}
	return nil
}

// broken says why no chain goes through the entry of a link with a certificate; empty if a chain does.
func (c *Chain) broken(l *Link) string {
	switch cert := l.Cert; {
	case cert.Outcome == isolate.Bug:
		return "it is wrong on its own inputs"
	case cert.Outcome == isolate.Unidentified && c.beyondLimits(cert, l.fact):
		return fmt.Sprintf("no known arithmetic reproduces it, and its bounds are too wide to tell rounding from a mistake: they reach %.3g", float64(cert.Reach))
	case cert.Outcome == isolate.Unidentified:
		return "it is not certified: " + cert.Unidentified()
	case cert.Outcome == isolate.NotCertified:
		return "the walk's " + cert.Unverified + " has not reproduced transformers; compare with a trace of transformers"
	}
	return ""
}

// takes says what would have captured what a cut has to compute.
func (c *Chain) takes(cut *order.Plan) string {
	n := isolate.Needs{Given: c.i.Options().Given}
	for _, at := range cut.Steps[:len(cut.Steps)-1] {
		n.Of(c.i.List().At(at), at.Pass, c.i.Trace().Manifest().Scope)
	}
	if n.Entries == 0 {
		return ""
	}
	return "; " + n.String()
}

// lacking names the missing input of an entry, and how to capture it.
func (c *Chain) lacking(bare *order.BareError) string {
	e, ok := c.i.List().Lookup(bare.Name)
	if !ok || bare.Why != "" {
		return bare.Error()
	}
	n := isolate.Needs{Given: c.i.Options().Given}
	n.Of(e, bare.Pass, c.i.Trace().Manifest().Scope)
	return bare.Error() + "; " + n.String()
}

// Bug is the certificate of an entry that was found to be a BUG; nil for any other.
func (c *Chain) Bug(key string) *isolate.Certificate {
	if got := c.certs[key]; got != nil && got.Cert != nil && got.Cert.Outcome == isolate.Bug {
		return got.Cert
	}
	return nil
}
