package certify

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Walk is what a chain asks of the comparison that it is a part of. Keys are those of a trace.
type Walk interface {
	Matches(key string) bool  // an argument of the model is the reference's
	Compared(key string) bool // there is a row for an entry
}

// Chain knows which entries stand on an unbroken chain: right by themselves, and so are all captured entries that they were
// computed from, back to the token ids.
type Chain struct {
	i     *Isolator
	walk  Walk
	certs map[string]*Link  // by key
	ready map[string]result // certificates made ahead, on all cores
}

// result is a certificate and the captured entries that it stands on, or an error.
type result struct {
	cert *Certificate
	cut  *order.Plan
	err  error
}

func (i *Isolator) result(ctx context.Context, name string, pass int) result {
	cert, cut, err := i.certify(ctx, name, pass)
	if err != nil {
		return result{err: err}
	}
	return result{cert, cut, nil}
}

// Prepare certifies entries of one pass on all cores. Each is computed by itself, so the order in which they are ready
// changes nothing.
func (c *Chain) Prepare(ctx context.Context, names []string, pass int) {
	results := make([]result, len(names))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		wait.Go(func() {
			for n := int(next.Add(1)) - 1; n < len(names) && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				results[n] = c.i.result(ctx, names[n], pass)
			}
		})
	}
	wait.Wait()
	for n, r := range results {
		if r.cert != nil || r.err != nil {
			c.ready[capture.Key(pass, names[n], 0)] = r
		}
	}
}

// Link is the certificate of one entry, or why it has none.
type Link struct {
	Cert  *Certificate
	Why   string // it has none
	Whole bool   // the chain is unbroken
	// broken is the key of the first entry on the chain that is wrong by itself; empty where there is none.
	Broken string
	// wrong is the key of a captured entry that it was computed from and that is wrong by itself.
	Wrong string
	// misfit is the entry itself as no tensor that the order knows; nil where it is one.
	Misfit *misfit
}

func NewChain(i *Isolator, w Walk) *Chain {
	if i == nil {
		return nil
	}
	return &Chain{i: i, walk: w, certs: map[string]*Link{}, ready: map[string]result{}}
}

// At certifies an entry and all that it was computed from. An argument needs no certificate: the comparison has seen
// whether it is the reference's.
func (c *Chain) At(ctx context.Context, name string, pass int) (*Link, error) {
	key := capture.Key(pass, name, 0)
	if got, ok := c.certs[key]; ok {
		return got, nil
	}
	e, ok := c.i.list.Lookup(name)
	if !ok {
		return &Link{Why: "the order does not know it"}, nil
	}
	if _, argument := e.Op.(op.Given); argument {
		// Not remembered: the row that is being decided asks too, and has no verdict yet.
		got := &Link{Misfit: c.i.misfit(order.Node{Entry: c.i.list.Index(name), Pass: pass})}
		got.Whole = got.Misfit == nil && c.walk.Matches(key)
		return got, nil
	}
	got := &Link{}
	c.certs[key] = got
	if c.i.derived[name] {
		got.Why = "the capturing side recomputed it"
		return got, nil
	}
	var bare *order.BareError
	var bad *misfit
	ready, ok := c.ready[key]
	if delete(c.ready, key); !ok {
		ready = c.i.result(ctx, name, pass)
	}
	cert, cut, err := ready.cert, ready.cut, ready.err
	switch {
	case errors.As(err, &bare):
		got.Why = c.lacking(bare)
		return got, nil
	case errors.As(err, &bad) && bad.key == key:
		got.Misfit, got.Why = bad, "it "+bad.Is
		return got, nil
	case errors.As(err, &bad):
		got.Why = "computed from " + bad.key + ", which " + bad.Is
		return got, nil
	case err != nil:
		return nil, err
	}
	if cert.Unbounded > 0 && cert.Good() {
		got.Why = fmt.Sprintf("nothing bounds the rounding of %d of %d elements: too much of what they were computed from was not captured%s",
			cert.Unbounded, cert.Elements, c.takes(cut))
		return got, nil
	}
	got.Cert, got.Whole = cert, cert.Good() && c.tight(cert)
	if cert.Outcome == Bug {
		got.Broken = key
	}
	return got, c.leaves(ctx, got, cut)
}

// leaves takes in what an entry was computed from. What is wrong there is told on through entries that were not compared, as
// no row does.
func (c *Chain) leaves(ctx context.Context, got *Link, cut *order.Plan) error {
	for _, n := range cut.Leaves {
		parent, err := c.At(ctx, c.i.list.Entries[n.Entry].Name, n.Pass)
		if err != nil {
			return err
		}
		got.Whole = got.Whole && parent.Whole
		if parent.Broken != "" {
			got.Broken = parent.Broken
		}
		key := capture.Key(n.Pass, c.i.list.Entries[n.Entry].Name, 0)
		if !c.walk.Compared(key) && parent.Wrong != "" {
			got.Wrong = parent.Wrong
		}
		if parent.Cert != nil && parent.Cert.Outcome == Bug {
			got.Wrong = key
		}
	}
	return nil
}

// takes says what would have captured what a cut has to compute.
func (c *Chain) takes(cut *order.Plan) string {
	var n Needs
	for _, at := range cut.Steps[:len(cut.Steps)-1] {
		n.Of(&c.i.list.Entries[at.Entry], at.Pass, c.i.trace.Manifest().Scope)
	}
	if n.entries == 0 {
		return ""
	}
	return "; " + n.String()
}

// lacking says what an entry cannot do without, and what would have captured it.
func (c *Chain) lacking(bare *order.BareError) string {
	e, ok := c.i.list.Lookup(bare.Name)
	if !ok {
		return bare.Error()
	}
	var n Needs
	n.Of(e, bare.Pass, c.i.trace.Manifest().Scope)
	return bare.Error() + "; " + n.String()
}

// tight reports whether a certificate says more than the accumulated gate would: a chain of operations whose bounds reach
// further than its limit excuses nothing.
func (c *Chain) tight(cert *Certificate) bool {
	return float64(cert.Reach) <= gate.TableLimit(c.i.env.DType)
}

// Wider reports whether a dtype has more digits than the order gives an entry: as an engine has that keeps float32
// where transformers rounds.
func (c *Chain) Wider(name string, d hooks.DType) bool {
	e, known := c.i.list.Lookup(name)
	if !known || !d.Float() {
		return false
	}
	own := e.DTypeOf(c.i.env.DType)
	return own.Float() && floats.Precision(d) > floats.Precision(own)
}

// Bug is the certificate of an entry that was found to be a BUG; nil for any other.
func (c *Chain) Bug(key string) *Certificate {
	if got := c.certs[key]; got != nil && got.Cert != nil && got.Cert.Outcome == Bug {
		return got.Cert
	}
	return nil
}
