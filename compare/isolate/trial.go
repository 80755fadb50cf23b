package isolate

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
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// Trial prepares what an entry is certified from. The error is a [*misfit] where the entry or what it is computed from is no
// tensor to be certified, or a [*order.BareError].
func (i *Isolator) Trial(n order.Node) (*Trial, error) {
	return i.TrialFrom(n, i.Has)
}

// TrialFrom is trial with a choice of the captured entries that may be computed from.
func (i *Isolator) TrialFrom(n order.Node, has func(order.Node) bool) (*Trial, error) {
	t, err := i.Unread(n, has)
	if err != nil {
		return nil, err
	}
	return t, t.ReadAll()
}

// Unread is trialFrom before anything of the entry is read.
func (i *Isolator) Unread(n order.Node, has func(order.Node) bool) (*Trial, error) {
	e := i.list.At(n)
	if _, ok := i.trace.Lookup(n.Pass, e.Name); !ok {
		return nil, fmt.Errorf("the trace has no %s", capture.Key(n.Pass, e.Name, 0))
	}
	cut, err := i.list.Cut(has, n)
	if err != nil {
		return nil, err
	}
	last := i.lastRow(n) && byRows(i, n, cut)
	for _, used := range append([]order.Node{n}, cut.Leaves...) {
		if bad := misfitIn(i, used, last); bad != nil {
			return nil, bad
		}
	}
	if bad := opaqueWeight(i, cut); bad != nil {
		return nil, bad
	}
	t := &Trial{Isolator: i, Node: n, Cut: cut, Entry: e, lastOnly: last}
	if last {
		t.part = region{rows: []int{i.env.Passes[n.Pass].Tokens - 1}}
	}
	return t, nil
}

// ReadAll reads the entry.
func (t *Trial) ReadAll() error {
	y, dtype, err := t.Isolator.Value(t.Node)
	if y.Bound != nil && err == nil {
		y.Bound, err = summedBound(t.Isolator, t.Node)
	}
	holdTo(t, y, dtype)
	return err
}

// heldTo returns the dtype for comparing an entry: integers and booleans are compared exactly.
func heldTo(i *Isolator, d hooks.DType) hooks.DType {
	if !d.Float() {
		return hooks.F64
	}
	return i.stored(d)
}

// Trial is the computation and judgement of one entry, or of a part of one.
type Trial struct {
	Isolator *Isolator
	Node     order.Node
	Entry    *order.Entry
	Cut      *order.Plan // what the entry is computed by, and from

	part     region
	lastOnly bool     // the trace has only the last token's row, and part is this row
	focused  bool     // part holds the rows and columns in which most is left, for a search
	Account  *Account // of the form that it is evaluated for; nil where nothing is counted
	right    bool     // no arithmetic is searched for
	Target
	Prepared
	certification
}

// Target is the trace's tensor, or the rows of it that a trial computes.
type Target struct {
	Y     program.Value
	DType hooks.DType // of Y; float64 where it has no fractions
	saved hooks.DType // that Y was saved in, where it lost digits; else 0
}

// Prepared is what a trial is computed with, after [Trial.Prepare].
type Prepared struct {
	Read    func(order.Node) (program.Value, error) // reads the leaves of the cut; nil: as the isolator does
	Formula *order.Formula                          // nil for an operation that computes itself
	Call    program.Call                            // of the formula
	Value   *program.Value                          // the value of the first evaluation, if several passes were evaluated together
	made    bool                                    // it was prepared
	other   map[program.Rewrite]*order.Formula      // the formula in other orders of steps
	edited  bool                                    // the formula is not that of the cut
	change  *PartlyRounded                          // of the formula; nil for none
	// readings are the operands of the call as the engine may have read them otherwise than captured; see readOperands.
	readings [][]program.Value
	mixed    bool // results of ranks are added with what the formula adds to them; see together
}

// certification is what certifying a trial has shown of its elements.
type certification struct {
	strictly  *Looked // against transformers' arithmetic
	said      *Looked // against the arithmetic of the certificate
	remaining []int   // those that no arithmetic gives
}

// Prepare reads what the entry is computed from.
func (t *Trial) Prepare(ctx context.Context) error {
	if t.made {
		return nil
	}
	t.made = true
	f, err := t.Cut.Formula(t.Passes(), t.Isolator.env.DType)
	if errors.Is(err, order.ErrOwn) {
		return nil
	} else if err != nil {
		return err
	}
	if f, err = t.change.of(f); err != nil {
		return err
	}
	env := t.env()
	t.Formula, t.other = f, map[program.Rewrite]*order.Formula{0: f}
	if t.Call, err = f.Call(t.Isolator.list, env); err != nil {
		return err
	}
	return readOperands(ctx, t)
}

// env is what the entry is computed in.
func (t *Trial) env() order.Env {
	env := t.Isolator.env
	if single := t.Isolator.o.Single; single != nil && env.Passes[t.Node.Pass].Tokens == 1 {
		env.Weights = single
	}
	if t.Read != nil {
		env.Read = t.Read
	}
	if !t.Whole() {
		env.Passes, env.Read = t.Passes(), t.readPart(env.Read)
	}
	return env
}

// Rewritten is the formula in another order of steps.
func (t *Trial) Rewritten(r program.Rewrite) (*program.Program, error) {
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

// Rewrites lists the rewrites that change the formula; additions in another order come last.
func (t *Trial) Rewrites() ([]program.Rewrite, error) {
	var all, ordered []program.Rewrite
	seen := map[string]bool{}
	for _, r := range program.AllRewrites() {
		p, err := t.Rewritten(r)
		if err != nil {
			return nil, err
		}
		if k := p.Text(); !seen[k] {
			seen[k] = true
			all = append(all, r)
			for k := range rewrite.Orders(p) {
				ordered = append(ordered, r.InOrder(k+1))
			}
		}
	}
	return append(all, ordered...), nil
}

// Evaluation is how a trial is evaluated.
type Evaluation struct {
	*Arithmetic
	Sum      *program.Summation
	Rigorous bool
	Hull     bool
	// Held: compute bounds only where they decide something, see [program.Held]. Alone: only for elements unequal
	// to the engine's.
	Held, Alone bool
}

// Evaluate evaluates the cut in an arithmetic. The last rounding of the reference is to the entry's dtype; what an engine wrote in
// a wider one is held to that, unless its arithmetic is open.
func (t *Trial) Evaluate(ctx context.Context, e Evaluation) (*Judgement, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := t.Prepare(ctx); err != nil {
		return nil, err
	}
	a := t.Isolator.env.Arith
	a.Together = t.mixed
	a.Sum, a.Hull, a.HullLast = e.Sum, e.Hull, e.Hull && t.Wider()
	a.Rigorous = a.Rigorous || e.Rigorous
	var x program.Value
	var err error
	if t.Formula != nil {
		var p *program.Program
		if p, err = t.Rewritten(e.Rewrites); err != nil {
			return nil, err
		}
		call := t.Call
		call.Arith = a
		call.Choices = e.Choices(p)
		// Where bounds allow several choices, the engine's choice is taken. An uncaptured choice stays open in the
		// hull and in strict arithmetic; any other arithmetic has to explain more than strict does, and so makes
		// the choice.
		call.Open = e.Hull || e.Arithmetic.Strict()
		if t.Chooses() {
			call.Own = t.Y.Data
		}
		if e.Wide {
			call.In = t.Widened()
		}
		if e.Held {
			if call.Held = t.held(); call.Held != nil {
				call.Held.Alone = e.Alone
			}
		}
		if given := t.Value; e.Held && given != nil {
			x, t.Value = *given, nil
		} else {
			t.Account.Add(TimeOf(p, call))
			x, err = p.Eval(call)
		}
	} else {
		env := t.env()
		env.Arith = a
		x, err = t.Cut.Value(ctx, env)
	}
	if err != nil {
		return nil, fmt.Errorf("computing %s of pass %d: %w", t.Entry.Name, t.Node.Pass, err)
	}
	return t.Hold(x, e.Arithmetic, e.Hull)
}

// held returns the engine's values, for computing bounds only where they decide something. It returns nil if all
// bounds are needed.
func (t *Trial) held() *program.Held {
	if t.Wider() || t.Y.Bound != nil {
		return nil
	}
	return &program.Held{Data: t.Y.Data, DType: t.DType}
}

// Hold holds the trace's tensor to a value before its last rounding.
func (t *Trial) Hold(x program.Value, a *Arithmetic, hull bool) (*Judgement, error) {
	if program.Size(x.Shape) != len(t.Y.Data) {
		return nil, fmt.Errorf("%s has shape %v, not %v", t.Entry.Name, t.Y.Shape, x.Shape)
	}
	if !a.Open && !hull && t.Wider() {
		t.Isolator.env.Round(x, t.Entry.DTypeOf(t.Isolator.env.DType))
	}
	if t.Y.Bound != nil && x.Bound != nil { // what the engine has is within it
		x.Bound = slices.Clone(x.Bound)
		for i, e := range t.Y.Bound {
			x.Bound[i] += e
		}
	}
	return &Judgement{X: x, Y: t.Y, DType: t.DType, saved: t.saved, Model: t.Isolator.env.DType, Rule: t.Entry.Compare, run: runOf(t.Entry, t.Y.Shape)}, nil
}

// runOf is how many elements one token of an entry has, if the token axis is the first with more than one index; else how many the entry has.
func runOf(e *order.Entry, shape []int) int {
	if at := TokenAxis(e); at >= 0 && at < len(shape) && program.Size(shape[:at]) == 1 {
		return program.Size(shape[at+1:])
	}
	return program.Size(shape)
}

// Wider reports whether the trace has more digits of the entry than the order gives it.
func (t *Trial) Wider() bool {
	own := t.Entry.DTypeOf(t.Isolator.env.DType)
	return own.Float() && floats.Precision(own) < floats.Precision(t.DType)
}

// Widened returns the inputs with a bound of half a unit of their stored dtype, as if they had been computed in a
// wider dtype.
func (t *Trial) Widened() []program.Value {
	var in []program.Value
	for k, v := range t.Call.In {
		if k >= len(t.Formula.Inputs) { // not of the cut
			in = append(in, v)
			continue
		}
		rec, ok := t.Isolator.trace.Lookup(t.Formula.Inputs[k].Pass, t.Isolator.list.At(t.Formula.Inputs[k]).Name)
		if ok && rec.DType.Float() {
			before, stored := v.Bound, t.Isolator.stored(rec.DType)
			v.Bound = make([]float64, len(v.Data))
			for i, x := range v.Data {
				v.Bound[i] = LastPlace(stored, x) / 2
				if before != nil {
					v.Bound[i] += before[i]
				}
			}
		}
		in = append(in, v)
	}
	return in
}

// Judge judges the entry in transformers' arithmetic, also with sums in the orders in which engines add, and returns the
// elements that nothing of it explains.
func (t *Trial) Judge(ctx context.Context, a *Arithmetic) (j *Judgement, left []int, order string, err error) {
	if j, err = t.Evaluate(ctx, Evaluation{Arithmetic: a}); err != nil {
		return nil, nil, "", err
	}
	left, order, err = t.Unexplained(ctx, j, a, j.Outside())
	return j, left, order, err
}

// Unexplained takes out of what is outside in an arithmetic what an order of summation gives.
func (t *Trial) Unexplained(ctx context.Context, j *Judgement, a *Arithmetic, left []int) (_ []int, order string, err error) {
	if len(left) == 0 {
		return left, "", nil
	}
	if left, order, err = Replay(ctx, t, j, a, left); len(left) == 0 || err != nil {
		return left, order, err
	}
	if rest, all, err := withRanks(ctx, t, a, left); err != nil || all != "" {
		return rest, all, err
	}
	return left, order, nil
}

// judgeFirst judges the entry in transformers' arithmetic with bounds where they decide something, and with all of them where that does not settle
// it: an element is without a bound, or ceilings and sample do not both show that bounds reach no further than any limit. Which elements are outside
// is the same either way.
func judgeFirst(ctx context.Context, t *Trial) (j *Judgement, l *Looked, err error) {
	for _, held := range []bool{true, false} {
		if j, err = t.Evaluate(ctx, Evaluation{Arithmetic: &Arithmetic{}, Held: held}); err != nil {
			return nil, nil, err
		}
		l = Look(j)
		if c, ceiling := l.certificate(); j.X.Columns == 0 || c.settled(ceiling, t) {
			break
		}
	}
	return j, l, nil
}

// settled reports whether ceilings and sample both show that the bounds of an entry reach no further than any limit.
func (c *Certificate) settled(ceiling float64, t *Trial) bool {
	return c.Sampled > 0 && c.Unbounded == 0 && (c.Unequal == 0 || max(ceiling, float64(c.Reach)) <= gate.TableLimit(t.Isolator.env.DType))
}

// stored is the dtype to which a captured tensor was rounded.
func (i *Isolator) stored(d hooks.DType) hooks.DType {
	if i.o.Stored != 0 && d == hooks.F32 {
		return i.o.Stored
	}
	return d
}
