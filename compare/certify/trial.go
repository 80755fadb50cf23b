package certify

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

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
	d     hooks.DType                        // of y
	read  func(order.Node) (op.Value, error) // reads the leaves; nil: as the isolator does
}

// in evaluates the cut in an engine's arithmetic. The last rounding of the reference is to the entry's dtype; what an engine
// wrote in a wider one is held to that, unless its arithmetic is open.
func (t *trial) in(e engine) (*judged, error) {
	env := t.i.env
	env.Arith, env.Op = e.Arith, e.ops
	if t.read != nil {
		env.Read = t.read
	}
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
