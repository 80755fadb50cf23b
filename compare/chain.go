package compare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// chain knows which entries stand on an unbroken chain: right by themselves, and so are all captured entries that they were
// computed from, back to the token ids.
type chain struct {
	i     *Isolator
	certs map[string]*certified // by key
	ready map[string]result     // certificates made ahead, on all cores
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

// prepare certifies entries of one pass on all cores. Each is computed by itself, so the order in which they are ready
// changes nothing.
func (c *chain) prepare(ctx context.Context, names []string, pass int) {
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

// certified is the certificate of one entry, or why it has none.
type certified struct {
	cert  *Certificate
	why   string
	whole bool // the chain is unbroken
	// broken is the key of the first entry on the chain that is wrong by itself; empty where there is none.
	broken string
	// wrong is the key of a captured entry that it was computed from and that is wrong by itself.
	wrong string
	// misfit is the entry itself as no tensor that the order knows; nil where it is one.
	misfit *misfit
}

func newChain(i *Isolator) *chain {
	if i == nil {
		return nil
	}
	return &chain{i: i, certs: map[string]*certified{}, ready: map[string]result{}}
}

// at certifies an entry and all that it was computed from. An argument needs no certificate: the comparison has seen
// whether it is the reference's.
func (c *chain) at(w *walker, name string, pass int) (*certified, error) {
	key := capture.Key(pass, name, 0)
	if got, ok := c.certs[key]; ok {
		return got, nil
	}
	e, ok := c.i.list.Lookup(name)
	if !ok {
		return &certified{why: "the order does not know it"}, nil
	}
	if _, argument := e.Op.(op.Argument); argument {
		// Not remembered: the row that is being decided asks too, and has no verdict yet.
		got := &certified{misfit: c.i.misfit(order.Node{Entry: c.i.list.Index(name), Pass: pass})}
		got.whole = got.misfit == nil && w.verdicts[key] == Match
		return got, nil
	}
	got := &certified{}
	c.certs[key] = got
	if c.i.derived[name] {
		got.why = "the capturing side recomputed it"
		return got, nil
	}
	var bare *order.BareError
	var bad *misfit
	ready, ok := c.ready[key]
	if delete(c.ready, key); !ok {
		ready = c.i.result(w.ctx, name, pass)
	}
	cert, cut, err := ready.cert, ready.cut, ready.err
	switch {
	case errors.As(err, &bare):
		got.why = c.lacking(w, bare)
		return got, nil
	case errors.As(err, &bad) && bad.key == key:
		got.misfit, got.why = bad, "it "+bad.is
		return got, nil
	case errors.As(err, &bad):
		got.why = "computed from " + bad.key + ", which " + bad.is
		return got, nil
	case err != nil:
		return nil, err
	}
	if cert.Unbounded > 0 && cert.Good() {
		got.why = fmt.Sprintf("nothing bounds the rounding of %d of %d elements: too much of what they were computed from was not captured%s",
			cert.Unbounded, cert.Elements, c.takes(w, cut))
		return got, nil
	}
	got.cert, got.whole = cert, cert.Good() && c.tight(cert)
	if cert.Outcome == Bug {
		got.broken = key
	}
	return got, c.leaves(w, got, cut)
}

// leaves takes in what an entry was computed from. What is wrong there is told on through entries that were not compared, as
// no row does.
func (c *chain) leaves(w *walker, got *certified, cut *order.Plan) error {
	for _, n := range cut.Leaves {
		parent, err := c.at(w, c.i.list.Entries[n.Entry].Name, n.Pass)
		if err != nil {
			return err
		}
		got.whole = got.whole && parent.whole
		if parent.broken != "" {
			got.broken = parent.broken
		}
		key := capture.Key(n.Pass, c.i.list.Entries[n.Entry].Name, 0)
		if _, compared := w.verdicts[key]; !compared && parent.wrong != "" {
			got.wrong = parent.wrong
		}
		if parent.cert != nil && parent.cert.Outcome == Bug {
			got.wrong = key
		}
	}
	return nil
}

// takes says what would have captured what a cut has to compute.
func (c *chain) takes(w *walker, cut *order.Plan) string {
	var n needs
	for _, at := range cut.Steps[:len(cut.Steps)-1] {
		n.of(&c.i.list.Entries[at.Entry], at.Pass, w.sides[local].m.Scope)
	}
	if n.entries == 0 {
		return ""
	}
	return "; " + n.String()
}

// lacking says what an entry cannot do without, and what would have captured it.
func (c *chain) lacking(w *walker, bare *order.BareError) string {
	e, ok := c.i.list.Lookup(bare.Name)
	if !ok {
		return bare.Error()
	}
	var n needs
	n.of(e, bare.Pass, w.sides[local].m.Scope)
	return bare.Error() + "; " + n.String()
}

// tight reports whether a certificate says more than the accumulated gate would: a chain of operations whose bounds reach
// further than its limit excuses nothing.
func (c *chain) tight(cert *Certificate) bool {
	return float64(cert.Reach) <= table[c.i.env.DType].through
}

// certify isolates a row's entry and lets both verdicts decide: an operation that is wrong by itself is a mismatch however
// little it shows, and an error that only accumulated is none.
//
// An entry that the order has the capturing side recompute, and that the local engine fired all the same, is the engine's
// own: the next one may be right given it, so that its fault would be seen nowhere else.
func (w *walker) certify(r *Row) error {
	if w.chain == nil || r.Class == Shape || r.Derived && w.chain.i.derived[r.Name] {
		return nil
	}
	if r.Firing > 0 {
		w.notIsolated(r, "the order computes it once a pass: of what was fired again, nothing is known")
		return nil
	}
	got, err := w.chain.at(w, r.Name, r.Pass)
	if err != nil {
		return err
	}
	if r.Derived && (got.cert == nil || got.cert.Outcome != Bug) && !(w.o.Alone && got.misfit != nil) {
		return nil // the reference's is no tensor of an engine, so that there is nothing else to hold it to
	}
	r.Derived = false
	r.Isolated = got.cert
	if w.notIsolated(r, got.why); w.o.Alone && got.misfit != nil { // there is no other side to differ from
		r.mismatch(got.misfit.class, "it "+got.misfit.is)
		return nil
	}
	if err := w.given(r); err != nil {
		return err
	}
	if c := got.cert; c != nil && c.Outcome == NotCertified {
		why := "op unverified: the walk's " + c.unverified + " has not reproduced transformers, so it certifies nothing"
		r.Notes = append(r.Notes, Note{OpUnverified, why})
		w.notIsolated(r, why)
	}
	if why := w.wrong(got); why != "" {
		if r.Verdict == Mismatch {
			why = r.Detail + "; " + why
		}
		class := Value
		if w.o.Alone && r.has(BothNaN) {
			class, why = NonFinite, "NaN or infinite where it should not be; "+why
		}
		if r.Class == NonFinite { // an allow-list tells it from a wrong number
			class = NonFinite
		}
		r.mismatch(class, why)
		r.Decided = ByIsolation
		return nil
	}
	if c := got.cert; c != nil && c.Good() && r.Class == DType && !w.o.StrictDType && w.chain.wider(r) {
		r.Verdict, r.Class, r.Detail = Match, "", "" // a finding says how the engine's arithmetic differs
	}
	if r.Verdict == Mismatch && r.Class == Value && r.Gate.tolerant() && !r.otherKeys() && got.whole {
		return w.excuse(r)
	}
	return nil
}

// notIsolated says why a row has no certificate, if there is a reason. A trace alone is not judged otherwise.
func (w *walker) notIsolated(r *Row, why string) {
	if r.NotIsolated = why; why != "" && w.o.Alone {
		r.Verdict, r.Detail = Unverified, why
	}
}

// wrong says what isolation accuses, empty if nothing: the operation itself, or one before it that no row stands for.
func (w *walker) wrong(got *certified) string {
	if c := got.cert; c != nil && c.Outcome == Bug {
		return c.detail()
	}
	if _, compared := w.verdicts[got.wrong]; got.wrong != "" && !compared {
		return got.wrong + ", which it was computed from and which was not compared, is " + w.chain.certs[got.wrong].cert.detail()
	}
	return ""
}

// excuse turns a mismatch by what accumulated into a drift, if the reference is as right by itself as the local side: then
// both computed the same model from the same tokens, and only rounding is between them. A reference that is not has other
// weights or settings, is damaged, or is of a transformers that this order does not describe.
func (w *walker) excuse(r *Row) error {
	if may, err := w.chain.i.mayExcuse(); err != nil || !may {
		return err
	}
	const right = "every operation from the token ids to here is right on the local side's own inputs"
	if w.refChain == nil {
		r.Detail += "; " + right + ", but the reference cannot be held to the same"
		return nil
	}
	ref, err := w.refChain.at(w, r.Name, r.Pass)
	switch {
	case err != nil:
		return err
	case ref.whole:
		r.Notes = append(r.Notes, Note{Drift, right + ", and on the reference's; accumulated, " + r.Detail})
		r.Verdict, r.Class, r.Detail = Match, "", ""
	case ref.broken != "":
		r.Detail += "; " + right + ", and those of the reference are not: " + ref.broken
	default:
		r.Detail += "; " + right + ", but the reference does not show as much"
	}
	return nil
}

// wider reports whether a row has more digits on the local side than the order gives it: as an engine has that keeps float32
// where transformers rounds.
func (c *chain) wider(r *Row) bool {
	e, known := c.i.list.Lookup(r.Name)
	d, err := hooks.ParseDType(r.Local.DType)
	if !known || err != nil || !d.Float() {
		return false
	}
	own := e.DTypeOf(c.i.env.DType)
	return own.Float() && floats.Precision(d) > floats.Precision(own)
}

// otherKeys reports whether the sides mask other elements: that is no number that rounding moves.
func (r *Row) otherKeys() bool {
	return r.Metrics != nil && r.Metrics.Pattern != nil && r.Metrics.Pattern.Gained+r.Metrics.Pattern.Lost > 0
}

// tolerant reports whether the gate has limits: ids, masks and booleans are equal or not.
func (g *Gate) tolerant() bool { return g != nil && len(g.Checks) > 0 }
