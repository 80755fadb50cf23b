package certify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// trial prepares what an entry is certified from. The error is a [*misfit] where the entry or what it is computed from is no
// tensor to be certified, or a [*order.BareError].
func (i *Isolator) trial(n order.Node) (*trial, error) {
	return i.trialFrom(n, i.has)
}

// trialFrom is trial with a choice of the captured entries that may be computed from.
func (i *Isolator) trialFrom(n order.Node, has func(order.Node) bool) (*trial, error) {
	t, err := i.unread(n, has)
	if err != nil {
		return nil, err
	}
	return t, t.readAll()
}

// unread is trialFrom before anything of the entry is read.
func (i *Isolator) unread(n order.Node, has func(order.Node) bool) (*trial, error) {
	e := i.list.At(n)
	if _, ok := i.trace.Lookup(n.Pass, e.Name); !ok {
		return nil, fmt.Errorf("the trace has no %s", capture.Key(n.Pass, e.Name, 0))
	}
	cut, err := i.list.Cut(has, n)
	if err != nil {
		return nil, err
	}
	last := i.lastRow(n) && i.byRows(n, cut)
	for _, used := range append([]order.Node{n}, cut.Leaves...) {
		if bad := i.misfitIn(used, last); bad != nil {
			return nil, bad
		}
	}
	if bad := i.opaque(cut); bad != nil {
		return nil, bad
	}
	t := &trial{i: i, node: n, cut: cut, entry: e}
	if t.last = last; last {
		t.tokens = 1
	}
	return t, nil
}

// readAll reads the entry.
func (t *trial) readAll() error {
	y, dtype, err := t.i.value(t.node)
	if y.Bound != nil && err == nil {
		y.Bound, err = t.i.summed(t.node)
	}
	t.hold(y, dtype)
	return err
}

// heldTo is the dtype that an entry is held to: whole numbers and flags are compared as they are.
func (i *Isolator) heldTo(d hooks.DType) hooks.DType {
	if !d.Float() {
		return hooks.F64
	}
	return i.stored(d)
}

// trial is one entry being certified.
type trial struct {
	i       *Isolator
	node    order.Node
	cut     *order.Plan
	entry   *order.Entry
	y       program.Value
	d       hooks.DType                             // of y; float64 where it has no fractions
	saved   hooks.DType                             // that y was saved in, where it lost digits; else 0
	read    func(order.Node) (program.Value, error) // reads the leaves; nil: as the isolator does
	formula *order.Formula                          // nil for an operation that computes itself
	call    program.Call                            // of the formula
	made    bool
	other   map[program.Rewrite]*order.Formula // the formula in other orders of steps
	tokens  int                                // how many were kept; 0 for all
	focused bool                               // some tokens or columns alone, see [evidence.focus]
	last    bool                               // y is the row of the last token alone
	kept    []int                              // the tokens whose rows y has; nil for all, or for the last alone
	edited  bool                               // the formula is not that of the cut
	change  *partly                            // of the formula; nil for none
	value   *program.Value                     // what the first evaluation gives, where it was made with those of other passes
	// readings are the operands of the call as the engine may have read them otherwise than captured; see readOperands.
	readings  [][]program.Value
	account   *account // of the form that it is evaluated for; nil where nothing is counted
	mixed     bool     // results of ranks are added with what the formula adds to them; see together
	right     bool     // no arithmetic is searched for; see [Chain.Prepare]
	strictly  *looked  // after certify: the elements against transformers' arithmetic
	said      *looked  // after certify: the elements against the arithmetic of the certificate
	remaining []int    // after certify: the elements that no arithmetic gives
}

// prepare reads what the entry is computed from.
func (t *trial) prepare(ctx context.Context) error {
	if t.made {
		return nil
	}
	t.made = true
	f, err := t.cut.Formula(t.passes(), t.i.env.DType)
	if errors.Is(err, order.ErrOwn) {
		return nil
	} else if err != nil {
		return err
	}
	if f, err = t.change.of(f); err != nil {
		return err
	}
	env := t.env()
	t.formula, t.other = f, map[program.Rewrite]*order.Formula{0: f}
	if t.call, err = f.Call(t.i.list, env); err != nil {
		return err
	}
	return readOperands(ctx, t)
}

// env is what the entry is computed in.
func (t *trial) env() order.Env {
	env := t.i.env
	if single := t.i.o.Single; single != nil && env.Passes[t.node.Pass].Tokens == 1 {
		env.Weights = single
	}
	if t.read != nil {
		env.Read = t.read
	}
	if t.last {
		env.Passes, env.Read = t.passes(), t.lastRows(env.Read)
	}
	if t.kept != nil {
		env.Passes, env.Read = t.passes(), t.keptRows(env.Read)
	}
	return env
}

// rewritten is the formula in another order of steps.
func (t *trial) rewritten(r program.Rewrite) (*program.Program, error) {
	if f := t.other[r]; f != nil {
		return f.Program, nil
	}
	f, err := t.formulaOf(r)
	if err != nil {
		return nil, err
	}
	t.other[r] = f
	return f.Program, nil
}

// rewrites are those that change the formula, those with additions in another order last.
func (t *trial) rewrites() ([]program.Rewrite, error) {
	var all, ordered []program.Rewrite
	seen := map[string]bool{}
	for _, r := range program.AllRewrites() {
		p, err := t.rewritten(r)
		if err != nil {
			return nil, err
		}
		if k := p.Text(); !seen[k] {
			seen[k] = true
			all = append(all, r)
			for k := range p.Orders() {
				ordered = append(ordered, r.InOrder(k+1))
			}
		}
	}
	return append(all, ordered...), nil
}

// evaluated is how a trial is evaluated.
type evaluated struct {
	*arithmetic
	sum      *program.Summation
	rigorous bool
	hull     bool
	// held: bounds are computed where they decide something, see [program.Held]; alone: where an element is not what the engine has.
	held, alone bool
}

// in evaluates the cut in an arithmetic. The last rounding of the reference is to the entry's dtype; what an engine wrote in
// a wider one is held to that, unless its arithmetic is open.
func (t *trial) in(ctx context.Context, e evaluated) (*judged, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	a := t.i.env.Arith
	a.Together = t.mixed
	a.Sum, a.Hull, a.HullLast = e.sum, e.hull, e.hull && t.wider()
	a.Rigorous = a.Rigorous || e.rigorous
	var x program.Value
	var err error
	if t.formula != nil {
		var p *program.Program
		if p, err = t.rewritten(e.rewrites); err != nil {
			return nil, err
		}
		call := t.call
		call.Arith = a
		call.Choices = e.choices(p)
		// A choice that bounds allow for is the engine's own. One that was not captured is open, but to an arithmetic that has to explain
		// what transformers' does not: it makes it.
		call.Open = e.hull || e.arithmetic.strict()
		if t.chooses() {
			call.Own = t.y.Data
		}
		if e.wide {
			call.In = t.widened()
		}
		if e.held {
			if call.Held = t.held(); call.Held != nil {
				call.Held.Alone = e.alone
			}
		}
		if given := t.value; e.held && given != nil {
			x, t.value = *given, nil
		} else {
			t.account.add(timeOf(p, call))
			x, err = p.Eval(call)
		}
	} else {
		env := t.env()
		env.Arith = a
		x, err = t.cut.Value(ctx, env)
	}
	if err != nil {
		return nil, fmt.Errorf("computing %s of pass %d: %w", t.entry.Name, t.node.Pass, err)
	}
	return t.judge(x, e.arithmetic, e.hull)
}

// held is what the engine has of the entry, for bounds where they decide something; nil where more than that is asked of them.
func (t *trial) held() *program.Held {
	if t.wider() || t.y.Bound != nil {
		return nil
	}
	return &program.Held{Data: t.y.Data, DType: t.d}
}

// judge holds the trace's tensor to a value before its last rounding.
func (t *trial) judge(x program.Value, a *arithmetic, hull bool) (*judged, error) {
	if size(x.Shape) != len(t.y.Data) {
		return nil, fmt.Errorf("%s has shape %v, not %v", t.entry.Name, t.y.Shape, x.Shape)
	}
	if !a.open && !hull && t.wider() {
		t.i.env.Round(x, t.entry.DTypeOf(t.i.env.DType))
	}
	if t.y.Bound != nil && x.Bound != nil { // what the engine has is within it
		x.Bound = slices.Clone(x.Bound)
		for i, e := range t.y.Bound {
			x.Bound[i] += e
		}
	}
	return &judged{x: x, y: t.y, d: t.d, saved: t.saved, model: t.i.env.DType, rule: t.entry.Compare, run: runOf(t.entry, t.y.Shape)}, nil
}

// runOf is how many elements one token of an entry has, if the token axis is the first with more than one index; else how many the entry has.
func runOf(e *order.Entry, shape []int) int {
	if at := tokenAxis(e); at >= 0 && at < len(shape) && size(shape[:at]) == 1 {
		return size(shape[at+1:])
	}
	return size(shape)
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// wider reports whether the trace has more digits of the entry than the order gives it.
func (t *trial) wider() bool {
	own := t.entry.DTypeOf(t.i.env.DType)
	return own.Float() && floats.Precision(own) < floats.Precision(t.d)
}

// widened are the inputs as numbers of which only the stored dtype was captured: each lies within half a unit of it.
func (t *trial) widened() []program.Value {
	var in []program.Value
	for k, v := range t.call.In {
		if k >= len(t.formula.Inputs) { // beside the cut
			in = append(in, v)
			continue
		}
		rec, ok := t.i.trace.Lookup(t.formula.Inputs[k].Pass, t.i.list.At(t.formula.Inputs[k]).Name)
		if ok && rec.DType.Float() {
			before, stored := v.Bound, t.i.stored(rec.DType)
			v.Bound = make([]float64, len(v.Data))
			for i, x := range v.Data {
				v.Bound[i] = lastPlace(stored, x) / 2
				if before != nil {
					v.Bound[i] += before[i]
				}
			}
		}
		in = append(in, v)
	}
	return in
}

// strict judges the entry in transformers' arithmetic, also with sums in the orders in which engines add, and returns the
// elements that nothing of it explains.
func (t *trial) strict(ctx context.Context, a *arithmetic) (j *judged, left []int, order string, err error) {
	if j, err = t.in(ctx, evaluated{arithmetic: a}); err != nil {
		return nil, nil, "", err
	}
	left, order, err = t.explained(ctx, j, a, j.outside())
	return j, left, order, err
}

// explained takes out of what is outside in an arithmetic what an order of summation gives.
func (t *trial) explained(ctx context.Context, j *judged, a *arithmetic, left []int) (_ []int, order string, err error) {
	if len(left) == 0 {
		return left, "", nil
	}
	if left, order, err = t.replay(ctx, j, a, left); len(left) == 0 || err != nil {
		return left, order, err
	}
	if rest, all, err := t.together(ctx, a, left); err != nil || all != "" {
		return rest, all, err
	}
	return left, order, nil
}

// first judges the entry in transformers' arithmetic with bounds where they decide something, and with all of them where that does not settle
// it: an element is without a bound, or ceilings and sample do not both show that bounds reach no further than any limit. Which elements are outside
// is the same either way.
func (t *trial) first(ctx context.Context) (j *judged, l *looked, err error) {
	for _, held := range []bool{true, false} {
		if j, err = t.in(ctx, evaluated{arithmetic: &arithmetic{}, held: held}); err != nil {
			return nil, nil, err
		}
		l = look(j)
		if c, ceiling := l.certificate(); j.x.Columns == 0 || c.settled(ceiling, t) {
			break
		}
	}
	return j, l, nil
}

// settled reports whether ceilings and sample both show that the bounds of an entry reach no further than any limit.
func (c *Certificate) settled(ceiling float64, t *trial) bool {
	return c.Sampled > 0 && c.Unbounded == 0 && (c.Unequal == 0 || max(ceiling, float64(c.Reach)) <= gate.TableLimit(t.i.env.DType))
}
