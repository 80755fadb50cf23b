package certify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/keyorder"
	"github.com/tracediff/tracediff/compare/measure"
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
	// DType is the dtype that the model computed in, for a trace that does not say; see [ModelDType].
	DType hooks.DType
	// Thorough asks it for every entry, also for those that are right: where nothing else is tested.
	Thorough bool
}

// Isolator computes entries of one trace from that trace's own captured ancestors and a checkpoint's weights. It may be
// used from several goroutines.
type Isolator struct {
	trace   *capture.Trace
	list    *order.List
	env     order.Env
	derived map[string]bool // recomputed by the capturing side, where the order has it so: says nothing about the engine
	o       IsolateOptions
	layout  *keyorder.Layout // of cached keys and values
	narrow  bool             // the trace has some rows only: see [NewConfirmer]

	mu     sync.Mutex
	varied map[order.Node]bool  // captured entries that were looked at: not constant
	kinds  map[string]*siblings // by form
}

// NewIsolator prepares a trace of the model that list describes. weights are in the trace's dtype. The error says what a
// trace lacks: token ids, whole rows, a dtype.
func NewIsolator(t *capture.Trace, list *order.List, weights func(order.Weight) (op.Rows, error), o IsolateOptions) (*Isolator, error) {
	if t.SomeRows() {
		return nil, errors.New("the trace has some positions only: operations need all rows")
	}
	return newIsolator(t, list, weights, o, false)
}

func newIsolator(t *capture.Trace, list *order.List, weights func(order.Weight) (op.Rows, error), o IsolateOptions, narrow bool) (*Isolator, error) {
	m := t.Manifest()
	dtype := m.DType
	if dtype == 0 {
		dtype = o.DType
	}
	switch {
	case list.Config == nil:
		return nil, errors.New("an order of names alone has no operations")
	case dtype == 0:
		return nil, errors.New("nothing says in which dtype the trace was computed")
	case dtype != hooks.F32 && dtype != hooks.BF16 && dtype != hooks.F16:
		return nil, fmt.Errorf("the trace was computed in %s, and operations in float32, bfloat16 and float16 alone are described", dtype)
	}
	passes, err := t.IDs()
	if err != nil && len(m.Scope.Passes) > 0 {
		return nil, fmt.Errorf("the trace has some passes only, and what was computed before them is not known (%w)", err)
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
	i := &Isolator{trace: t, list: list, derived: map[string]bool{}, o: o, narrow: narrow, layout: keyorder.New(t, list), kinds: map[string]*siblings{}, varied: map[order.Node]bool{}}
	for _, name := range m.Derived { // what a trace claims beyond the order excuses it from nothing
		if e, ok := list.Lookup(name); ok && e.Derived() {
			i.derived[name] = true
		}
	}
	i.layout.Expect = i.expected
	i.env = order.Env{
		Arith: op.Arith{DType: dtype, Emulated: true, Bounds: true, Rigorous: o.Rigorous}, Passes: order.Passes(tokens), Weights: weights,
		Read: func(n order.Node) (op.Value, error) {
			v, _, err := i.value(n)
			return v, err
		},
	}
	return i, nil
}

// Options are those that the isolator was made with, with every default resolved.
func (i *Isolator) Options() IsolateOptions { return i.o }

// Trace is the trace whose entries are computed.
func (i *Isolator) Trace() *capture.Trace { return i.trace }

// Layout is the order in which the trace has its cached keys.
func (i *Isolator) Layout() *keyorder.Layout { return i.layout }

// Own is the arithmetic that was asked for, in words.
func (i *Isolator) Own() string { return i.strict().words }

// Recomputed reports whether the capturing side recomputed an entry, so that it says nothing about the engine.
func (i *Isolator) Recomputed(name string) bool { return i.derived[name] }

// value reads an entry of the trace, its keys from the oldest to the newest, and says of which dtype its elements are. A mask
// of booleans, true where a key is seen, becomes one that is added.
func (i *Isolator) value(n order.Node) (op.Value, hooks.DType, error) {
	e := &i.list.Entries[n.Entry]
	v, err := i.layout.Value(n)
	rec, ok := i.trace.Lookup(n.Pass, e.Name)
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

// maxExpected bounds the entries beside one a pass from which [Isolator.expected] computes one: more than attention has.
const maxExpected = 16

// expected computes a node without any tensor whose keys may lie in another order; nothing where what it is computed from
// is far away.
func (i *Isolator) expected(n order.Node) (op.Value, error) {
	cut, err := i.list.Cut(func(n order.Node) bool {
		return keyorder.KeyAxis(&i.list.Entries[n.Entry]) < 0 && i.has(n) && i.misfit(n) == nil
	}, n)
	if err != nil || len(cut.Steps) > n.Pass+maxExpected {
		return op.Value{}, nil
	}
	env := i.env
	env.Bounds = false
	return cut.Value(context.Background(), env)
}

// has reports whether a node was captured.
func (i *Isolator) has(n order.Node) bool {
	name := i.list.Entries[n.Entry].Name
	_, ok := i.trace.Lookup(n.Pass, name)
	return ok && !i.derived[name]
}

// Certify isolates one entry of one pass. The error is an [*order.BareError] when what it is made of was not captured, says
// which tensor is not what the order calls so, or is that of reading the trace or the weights.
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
	t, err := i.trial(ctx, order.Node{Entry: at, Pass: pass})
	if err != nil {
		return nil, nil, err
	}
	c, err := t.certify()
	if err != nil {
		return nil, nil, err
	}
	for _, n := range t.cut.Leaves {
		c.From = append(c.From, capture.Key(n.Pass, i.list.Entries[n.Entry].Name, 0))
	}
	return c, t.cut, nil
}

// trial prepares what an entry is certified from. The error is a [*misfit] where the entry or what it is computed from is no
// tensor to be certified, or a [*order.BareError].
func (i *Isolator) trial(ctx context.Context, n order.Node) (*trial, error) {
	return i.trialFrom(ctx, n, i.has)
}

// trialFrom is trial with a choice of the captured entries that may be computed from.
func (i *Isolator) trialFrom(ctx context.Context, n order.Node, has func(order.Node) bool) (*trial, error) {
	e := &i.list.Entries[n.Entry]
	if _, ok := i.trace.Lookup(n.Pass, e.Name); !ok {
		return nil, fmt.Errorf("the trace has no %s", capture.Key(n.Pass, e.Name, 0))
	}
	cut, err := i.list.Cut(has, n)
	if err != nil {
		return nil, err
	}
	for _, used := range append([]order.Node{n}, cut.Leaves...) {
		if bad := i.misfit(used); bad != nil {
			return nil, bad
		}
	}
	y, dtype, err := i.value(n)
	return &trial{ctx: ctx, i: i, node: n, cut: cut, entry: e, y: y, d: dtype}, err
}

// trial is one entry being certified.
type trial struct {
	ctx   context.Context
	i     *Isolator
	node  order.Node
	cut   *order.Plan
	entry *order.Entry
	y     op.Value
	d     hooks.DType // of y
}

// in evaluates the cut in an engine's arithmetic. The last rounding of the reference is to the entry's dtype; what an engine
// wrote in a wider one is held to that, unless its arithmetic is open.
func (t *trial) in(e engine) (*judged, error) {
	env := t.i.env
	env.Arith, env.Op = e.Arith, e.ops
	x, err := t.cut.Value(t.ctx, env)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(x.Shape, t.y.Shape) {
		return nil, fmt.Errorf("%s has shape %v, not %v", t.entry.Name, t.y.Shape, x.Shape)
	}
	if e.Inner == op.AsReference && !e.open && t.wider() {
		e.Round(x, t.entry.DTypeOf(e.DType))
	}
	return &judged{x: x, y: t.y, d: t.d, engine: e, rule: t.entry.Compare}, nil
}

// certify tries the arithmetics in order: the reference's, also with sums in the orders in which engines add, then those of
// other engines.
func (t *trial) certify() (*Certificate, error) {
	e := t.i.strict()
	j, err := t.in(e)
	if err != nil {
		return nil, err
	}
	c := newCertificate(j)
	c.Form, c.Arithmetic = op.Form(t.entry.Op), e.words
	left := j.outside()
	if len(left) > 0 {
		if left, c.Summation, err = t.replay(j, left); err != nil {
			return nil, err
		}
	}
	if err := t.weigh(c, j, len(left) == 0); err != nil {
		return nil, err
	}
	if len(left) > 0 && t.i.o.Arithmetic == Auto {
		if j, left, err = t.otherEngines(c, j, left); err != nil {
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
			c.Outcome, c.Unverified = NotCertified, form
		}
	}
	return nil
}

// Uncertified returns a form of an operation of the order that has not reproduced transformers; empty where all have. A chain
// excuses an error that accumulated only then.
func (i *Isolator) Uncertified() (string, error) {
	if i.o.Certified == nil {
		return "", nil
	}
	certified, err := i.o.Certified()
	if err != nil {
		return "", err
	}
	forms := certified.Unverified(i.list)
	if len(forms) == 0 {
		return "", nil
	}
	return slices.Min(slices.Collect(maps.Values(forms))), nil
}

// weigh says what the judgement in one arithmetic is worth: its power, and whether all elements are off by one factor, which
// an order of summation may take back where it matters.
func (t *trial) weigh(c *Certificate, j *judged, replay bool) error {
	c.Power, c.Scale, c.ScaleError, c.ScaleOff = measure.Nan, measure.Nan, measure.Nan, false
	if t.entry.Compare != order.All {
		return nil
	}
	c.power(j)
	c.fitScale(j, j.engine.Inner == op.Free || t.shares())
	if !c.ScaleOff || !replay {
		return nil
	}
	return t.replayScale(c, j)
}

// settle gives the certificate its outcome by the elements that nothing explains.
func (c *Certificate) settle(j *judged, left []int, e *order.Entry) {
	c.Outside = int64(len(left))
	for _, i := range left {
		want := floats.Round(j.d, j.x.Data[i])
		c.Worst = max(c.Worst, measure.Number(measure.Ratio(math.Abs(j.y.Data[i]-want), max(j.x.Bound[i], lastPlace(j.d, want)))))
	}
	c.Set = whereOutside(left, j.y.Shape, e.Axes)
	switch {
	case len(left) > 0:
		c.Outcome = Bug
	case c.ScaleOff:
		c.Outcome = Bug
	case c.Unequal > 0:
		c.Outcome = Rounding
	default:
		c.Outcome = Exact
	}
}

// replay computes what is left in the orders of summation that engines use, and returns what none of them explains and the
// name of what explained the rest. An element that lies within what these give is rounding. Nothing is tried for an
// element that no order of summation can explain.
func (t *trial) replay(j *judged, left []int) ([]int, string, error) {
	rigorous := j.engine
	rigorous.Rigorous = true
	all, err := t.in(rigorous)
	if err != nil {
		return nil, "", err
	}
	for _, i := range left {
		if !all.consistent(i) {
			return left, "", nil
		}
	}
	first, best, most := left, "", given{}
	lo, hi := slices.Clone(j.x.Data), slices.Clone(j.x.Data)
	for _, s := range op.Summations() {
		e := j.engine
		e.Sum = &s
		k, err := t.in(e)
		if err != nil {
			return nil, "", err
		}
		if g := k.gives(first); g.more(most) {
			best, most = s.String(), g
		}
		var rest []int
		for _, i := range left {
			lo[i], hi[i] = min(lo[i], k.x.Data[i]-k.x.Bound[i]), max(hi[i], k.x.Data[i]+k.x.Bound[i])
			if y := t.y.Data[i]; !(y >= floats.Round(t.d, lo[i]) && y <= floats.Round(t.d, hi[i])) {
				rest = append(rest, i)
			}
		}
		if left = rest; most.equal == len(first) {
			break
		}
	}
	return left, inOrder(best, most.within, len(first)-len(left)), nil
}

// given counts elements that an order gives by itself: within its bounds, and to the bit.
type given struct{ within, equal int }

func (g given) more(than given) bool {
	return g.within > than.within || g.within == than.within && g.equal > than.equal
}

// gives counts among some elements.
func (j *judged) gives(of []int) (g given) {
	for _, i := range of {
		if j.consistent(i) {
			g.within++
		}
		if j.y.Data[i] == floats.Round(j.d, j.x.Data[i]) {
			g.equal++
		}
	}
	return g
}

// inOrder names the order of summation that explains some elements: one that gives most of them by itself, if there is one.
func inOrder(best string, alone, explained int) string {
	switch {
	case explained == 0:
		return ""
	case 2*alone > explained:
		return best
	}
	return "several orders together"
}
