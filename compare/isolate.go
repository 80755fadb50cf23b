package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// Arithmetic is which engines an isolated entry may come from.
type Arithmetic string

// The arithmetics.
const (
	// Auto is strict, and where that fails free, by kind of operation: an engine has one arithmetic for all its norms.
	Auto   Arithmetic = "auto"
	Strict Arithmetic = "strict" // every rounding point of the reference and no other
	FreeIn Arithmetic = "free"   // a rounding to the model's dtype after any inner step, or none
	// Float16In is free, and inner steps may be float16: caches and lookup tables of some engines.
	Float16In Arithmetic = "float16"
)

// IsolateOptions say how entries are isolated. The zero value is auto arithmetic with probabilistic bounds, in which every
// operation may accuse.
type IsolateOptions struct {
	Arithmetic Arithmetic
	// Rigorous takes bounds that hold for any order of summation, in place of those that hold for nearly every.
	Rigorous bool
	// Certified says which operations may accuse; nil for all. It is asked when something is to be accused or excused, and
	// may take its time.
	Certified func() (Certified, error)
	// Thorough asks it for every entry, also for those that are right: where nothing else is tested.
	Thorough bool
}

// Isolator computes entries of one trace from that trace's own captured ancestors and a checkpoint's weights. It may be
// used from several goroutines.
type Isolator struct {
	trace   *capture.Trace
	list    *order.List
	env     order.Env
	derived map[string]bool // recomputed by the capturing side: says nothing about the engine
	o       IsolateOptions
}

// NewIsolator prepares a trace of the model that list describes. weights are in the trace's dtype. The error says what a
// trace lacks: token ids, whole rows, a dtype.
func NewIsolator(t *capture.Trace, list *order.List, weights func(order.Weight) (op.Rows, error), o IsolateOptions) (*Isolator, error) {
	m := t.Manifest()
	switch {
	case list.Config == nil:
		return nil, errors.New("an order of names alone has no operations")
	case m.DType != hooks.F32 && m.DType != hooks.BF16 && m.DType != hooks.F16:
		return nil, errors.New("the trace does not say in which dtype it was computed")
	case len(m.Scope.Positions) > 0:
		return nil, errors.New("the trace has some positions only: operations need all rows")
	}
	passes, err := t.IDs()
	if err != nil && len(m.Scope.Passes) > 0 {
		return nil, fmt.Errorf("the trace has some passes only, and what was computed before them is not known; that takes no --passes (%w)", err)
	}
	if err != nil {
		return nil, err
	}
	var tokens []int
	for _, ids := range passes {
		tokens = append(tokens, len(ids))
	}
	if o.Arithmetic == "" {
		o.Arithmetic = Auto
	}
	i := &Isolator{trace: t, list: list, derived: map[string]bool{}, o: o}
	for _, name := range m.Derived {
		i.derived[name] = true
	}
	i.env = order.Env{
		Arith: op.Arith{DType: m.DType, Emulated: true, Bounds: true, Rigorous: o.Rigorous}, Passes: order.Passes(tokens), Weights: weights,
		Read: func(n order.Node) (op.Value, error) {
			v, _, err := i.value(n.Pass, &list.Entries[n.Entry])
			return v, err
		},
	}
	return i, nil
}

// value reads an entry of the trace and says of which dtype its elements are. A mask of booleans, true where a key is seen,
// becomes one that is added.
func (i *Isolator) value(pass int, e *order.Entry) (op.Value, hooks.DType, error) {
	v, err := i.trace.Value(pass, e.Name)
	rec, ok := i.trace.Lookup(pass, e.Name)
	if err != nil || !ok || e.Compare != order.Pattern || rec.DType.Float() {
		return v, rec.DType, err
	}
	for k, seen := range v.Data {
		if v.Data[k] = 0; seen == 0 {
			v.Data[k] = math.Inf(-1)
		}
	}
	return v, i.env.DType, nil
}

// has reports whether a node was captured.
func (i *Isolator) has(n order.Node) bool {
	name := i.list.Entries[n.Entry].Name
	_, ok := i.trace.Lookup(n.Pass, name)
	return ok && !i.derived[name]
}

// Certify isolates one entry of one pass. The error is an [*order.BareError] when what it is made of was not captured, or
// that of reading the trace or the weights.
func (i *Isolator) Certify(ctx context.Context, name string, pass int) (*Certificate, error) {
	c, _, err := i.certify(ctx, name, pass)
	return c, err
}

func (i *Isolator) certify(ctx context.Context, name string, pass int) (*Certificate, *order.Plan, error) {
	at := i.list.Index(name)
	if at < 0 {
		return nil, nil, fmt.Errorf("the order has no %s", name)
	}
	if pass >= len(i.env.Passes) { // nor is known how many tokens the passes before had
		return nil, nil, &order.BareError{Name: order.InputIDs, Pass: len(i.env.Passes)}
	}
	if _, ok := i.trace.Lookup(pass, name); !ok {
		return nil, nil, fmt.Errorf("the trace has no %s", capture.Key(pass, name, 0))
	}
	cut, err := i.list.Cut(i.has, order.Node{Entry: at, Pass: pass})
	if err != nil {
		return nil, nil, err
	}
	y, dtype, err := i.value(pass, &i.list.Entries[at])
	if err != nil {
		return nil, nil, err
	}
	t := &trial{ctx: ctx, i: i, cut: cut, entry: &i.list.Entries[at], y: y, d: dtype}
	c, err := t.certify()
	if err != nil {
		return nil, nil, err
	}
	for _, n := range cut.Leaves {
		c.From = append(c.From, capture.Key(n.Pass, i.list.Entries[n.Entry].Name, 0))
	}
	return c, cut, nil
}

// trial is one entry being certified.
type trial struct {
	ctx   context.Context
	i     *Isolator
	cut   *order.Plan
	entry *order.Entry
	y     op.Value
	d     hooks.DType // of y
}

// in evaluates the cut in an arithmetic. The last rounding of the reference is to the entry's dtype; what an engine wrote in
// a wider one is held to that in strict arithmetic only.
func (t *trial) in(a op.Arith) (*judged, error) {
	env := t.i.env
	env.Arith = a
	x, err := t.cut.Value(t.ctx, env)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(x.Shape, t.y.Shape) {
		return nil, fmt.Errorf("%s has shape %v, not %v", t.entry.Name, t.y.Shape, x.Shape)
	}
	if own := t.entry.DTypeOf(a.DType); a.Inner == op.AsReference && floats.Precision(own) < floats.Precision(t.d) {
		a.Round(x, own)
	}
	return &judged{x: x, y: t.y, d: t.d, arith: a, rule: t.entry.Compare}, nil
}

// certify tries the arithmetics in order: the reference's, those of other engines, and for sums that are left the orders
// in which engines add.
func (t *trial) certify() (*Certificate, error) {
	a := t.i.env.Arith
	switch t.i.o.Arithmetic {
	case FreeIn:
		a.Inner = op.Free
	case Float16In:
		a.Inner, a.Narrow = op.Free, hooks.F16
	}
	j, err := t.in(a)
	if err != nil {
		return nil, err
	}
	c := newCertificate(j, t.entry.Compare, t.shares())
	c.Form, c.Arithmetic = op.Form(t.entry.Op), string(Strict)
	if a.Inner == op.Free {
		c.Arithmetic = string(t.i.o.Arithmetic)
	}
	left := j.outside()
	if len(left) > 0 && t.i.o.Arithmetic == Auto {
		if j, left, err = t.otherEngines(c, j, left); err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		if left, err = t.replay(c, j, left); err != nil {
			return nil, err
		}
	}
	if c.ScaleOff && len(left) == 0 && c.Arithmetic == string(Strict) {
		if err := t.replayScale(c, j); err != nil {
			return nil, err
		}
	}
	c.settle(j, left, t.entry)
	return c, t.verify(c)
}

// verify takes the outcome back if an operation on the way may not accuse.
func (t *trial) verify(c *Certificate) error {
	if t.i.o.Certified == nil || c.Good() && !t.i.o.Thorough {
		return nil
	}
	certified, err := t.i.o.Certified()
	if err != nil {
		return err
	}
	for _, n := range t.cut.Steps {
		if form := op.Form(t.i.list.Entries[n.Entry].Op); !certified[form] {
			c.Outcome, c.unverified = NotCertified, form
		}
	}
	return nil
}

// mayExcuse reports whether every operation of the order has reproduced transformers, so that a chain of them excuses an
// error that accumulated.
func (i *Isolator) mayExcuse() (bool, error) {
	if i.o.Certified == nil {
		return true, nil
	}
	certified, err := i.o.Certified()
	return err == nil && len(certified.unverified(i.list)) == 0, err
}

// settle gives the certificate its outcome by the elements that nothing explains.
func (c *Certificate) settle(j *judged, left []int, e *order.Entry) {
	c.Outside = int64(len(left))
	for _, i := range left {
		want := floats.Round(j.d, j.x.Data[i])
		c.Worst = max(c.Worst, Number(ratio(math.Abs(j.y.Data[i]-want), max(j.x.Bound[i], lastPlace(j.d, want)))))
	}
	c.Set = whereOutside(left, j.y.Shape, e.Axes)
	switch {
	case len(left) > 0:
		c.Outcome = Bug
	case c.ScaleOff && c.Arithmetic == string(Strict):
		c.Outcome = Bug
	case c.Unequal > 0:
		c.Outcome = Rounding
	default:
		c.Outcome = Exact
	}
}

// engine is an arithmetic that some engine has, in words.
type engine struct {
	words string
	set   func(*op.Arith)
}

const freeWords = "rounds inside at other steps than transformers"

// engines are the arithmetics that are named, before the one that allows them all.
var engines = []engine{
	{"keeps float32 inside, where transformers rounds", func(a *op.Arith) { a.Inner = op.Wide }},
	{"rounds after every step, where transformers keeps float32", func(a *op.Arith) { a.Inner = op.Every }},
	{freeWords, func(a *op.Arith) { a.Inner = op.Free }},
}

// otherEngines looks for an arithmetic that explains what strict arithmetic does not. In float32 there is none: all its
// steps are rounded alike.
func (t *trial) otherEngines(c *Certificate, strict *judged, left []int) (*judged, []int, error) {
	if t.i.env.DType == hooks.F32 {
		return strict, left, nil
	}
	for _, e := range engines {
		a := t.i.env.Arith
		e.set(&a)
		j, err := t.in(a)
		if err != nil {
			return nil, nil, err
		}
		if rest := j.outside(); len(rest) == 0 {
			c.Arithmetic = e.words
			return j, nil, nil
		} else if a.Inner == op.Free && len(rest) < len(left) {
			c.Arithmetic = e.words
			return j, rest, nil
		}
	}
	return strict, left, nil
}

// replay computes what is left in the orders of summation that engines use. An element that lies within what these give is
// rounding. Nothing is tried for an element that no order of summation can explain.
func (t *trial) replay(c *Certificate, j *judged, left []int) ([]int, error) {
	a := j.arith
	a.Rigorous = true
	all, err := t.in(a)
	if err != nil {
		return nil, err
	}
	for _, i := range left {
		if !all.consistent(i) {
			return left, nil
		}
	}
	lo, hi := slices.Clone(j.x.Data), slices.Clone(j.x.Data)
	for _, s := range op.Summations() {
		a := j.arith
		a.Sum = &s
		k, err := t.in(a)
		if err != nil {
			return nil, err
		}
		var rest []int
		for _, i := range left {
			lo[i], hi[i] = min(lo[i], k.x.Data[i]-k.x.Bound[i]), max(hi[i], k.x.Data[i]+k.x.Bound[i])
			if y := t.y.Data[i]; !(y >= floats.Round(t.d, lo[i]) && y <= floats.Round(t.d, hi[i])) {
				rest = append(rest, i)
			}
		}
		if len(rest) < len(left) {
			c.Summation = s.String()
		}
		if left = rest; len(left) == 0 {
			break
		}
	}
	return left, nil
}
