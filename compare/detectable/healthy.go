package detectable

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// prepareHealthy evaluates an entry without mistakes; of a large entry, some tokens. It returns nil if the entry cannot be computed or if the work is used up.
func (s *search) prepareHealthy(ctx context.Context, n order.Node, has func(order.Node) bool, opened bool) (*healthyEntry, error) {
	s.short, s.large = false, false
	t, err := s.i.Unread(n, has)
	if isolate.Lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if opened {
		t.Read = s.i.OrArgument
	}
	if e, err := rowsToLookAt(ctx, t); err != nil {
		return nil, err
	} else if e != nil {
		return s.computed(ctx, e.FocusAbove(sightFocus, sightTokens, sightColumns, false).Trial)
	}
	if err := t.ReadAll(); err != nil {
		return nil, err
	}
	return s.prepared(ctx, t)
}

// rowsToLookAt returns the sampled tokens' rows of a large entry, or nil for an entry read as a whole.
func rowsToLookAt(ctx context.Context, t *isolate.Trial) (*isolate.Evidence, error) {
	if t.Block() == 0 {
		return nil, nil
	}
	rec, _ := t.Isolator.Trace().Lookup(t.Node.Pass, t.Entry.Name)
	all, at := spread(t.Entry, rec.Shape), isolate.TokenAxis(t.Entry)
	keep := isolate.MostLeft(all, rec.Shape, at, sightTokens)
	part, err := t.Of(keep)
	if err != nil {
		return nil, err
	}
	if err := part.Prepare(ctx); err != nil || part.Formula == nil || streams(part) || len(keep) == rec.Shape[at] {
		return nil, err
	}
	return &isolate.Evidence{Trial: part, Left: isolate.Kept(all, rec.Shape, at, keep)}, nil
}

// prepared computes what an entry should be.
func (s *search) prepared(ctx context.Context, t *isolate.Trial) (*healthyEntry, error) {
	if err := t.Prepare(ctx); err != nil || t.Formula == nil {
		return nil, err
	}
	if streams(t) {
		return s.computed(ctx, t)
	}
	e := (&isolate.Evidence{Trial: t, Left: spread(t.Entry, t.Y.Shape)}).FocusAbove(sightFocus, sightTokens, sightColumns, false)
	if e.Formula.Work() > isolate.FocusWork {
		e = e.FewQueries(sightTokens)
	}
	return s.computed(ctx, e.Trial)
}

// computed is prepared of what is looked at.
func (s *search) computed(ctx context.Context, t *isolate.Trial) (*healthyEntry, error) {
	r := &healthyEntry{Trial: t, costs: costs{time: isolate.TimeOf(t.Formula.Program, t.Call), products: isolate.PartOf(t.Formula.Work(), t.Formula.Program, t.Call.Some)}}
	if s.short = s.work+r.time > s.most; s.short {
		return nil, nil
	}
	s.work += 2 * r.time
	var err error
	if r.a, err = s.arithmetic(ctx, t); r.a == nil || err != nil {
		return nil, err
	}
	if r.whole, r.parts, err = t.Cut.Parts(t.Passes(), s.i.Env().DType, r.a.Rewrites); errors.Is(err, order.ErrOwn) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	call := t.Call
	call.Arith = s.i.Env().Arith
	if call.In, call.W, err = r.inOrder(r.whole); err != nil {
		return nil, err
	}
	r.given = call
	if r.model, err = r.evaluate(call.DType, r.a.Choices); errors.Is(err, program.ErrRoom) {
		s.short, s.large = true, true
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r.own, err = t.Hold(copied(r.model.own), r.a, false)
	return r, err
}

// wrong evaluates an entry with a mistake. It returns nil if the mistake does not apply to the entry, or gives no
// numbers.
func (s *search) wrong(r *healthyEntry, k *candidate) (*isolate.Judgement, *program.Edited, error) {
	if r.healthy == nil {
		r.healthy = s.model(r).Healthy(r.whole, r.parts, r.given, r.a.Choices)
	}
	d := r.healthy.With(k.Usual)
	if d == nil {
		return nil, nil, nil
	}
	before := r.model.kept.Time
	x, err := r.model.with(d)
	s.work += r.model.kept.Time - before
	if errors.Is(err, program.ErrRoom) {
		k.short(true)
	}
	if err != nil || program.Size(x.Shape) != len(r.Y.Data) { // such as an index out of range
		return nil, nil, nil
	}
	j, err := r.Hold(copied(x), r.a, false)
	return j, d, err
}

func copied(x program.Value) program.Value {
	return program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
}

// arithmetic returns the arithmetic that explains an entry: transformers', or the arithmetic of its form; nil if
// unknown.
func (s *search) arithmetic(ctx context.Context, t *isolate.Trial) (*isolate.Arithmetic, error) {
	_, left, _, err := t.Judge(ctx, &isolate.Arithmetic{})
	if err != nil || len(left) == 0 {
		return &isolate.Arithmetic{}, err
	}
	if s.i.Options().Arithmetic != isolate.Auto {
		return nil, nil
	}
	v, err := s.forms.Verdict(ctx, s.i.FormOf(t.Cut, t.Node))
	if err != nil {
		return nil, err
	}
	for _, a := range []*isolate.Arithmetic{v.Own, v.Second} {
		if a == nil || a.Wide {
			continue
		}
		if _, left, _, err := t.Judge(ctx, a); err != nil || len(left) == 0 {
			return a, err
		}
	}
	return nil, nil
}

// healthyEntry is a right entry in its arithmetic, for planting mistakes.
type healthyEntry struct {
	*isolate.Trial
	whole *order.Formula // of the cut, with what each entry has of it
	parts []order.Part
	given program.Call // with the chosen tokens
	// healthy is what mistakes are made in; nil where none was.
	healthy *diagnose.Healthy
	model   *evaluation // in the model's dtype
	float   *evaluation // in float32
	a       *isolate.Arithmetic
	judged
	costs
}

// judged is the entry without mistakes, in which a mistake is looked for. All but own are nil until they are asked for.
type judged struct {
	own       *isolate.Judgement   // in the arithmetic that gives the entry
	rigorous  *isolate.Judgement   // the same with bounds for any order of summation
	hulls     []*isolate.Judgement // in every choice of roundings, by the order of steps
	rewritten []program.Rewrite    // these orders
}

// costs are what an entry takes, and what was used.
type costs struct {
	time     int // of one evaluation, as [program.Program.Time] has it
	products int // of one evaluation, as [program.Program.Work] has it
	work     int // that was used
	most     int // of work, for all mistakes
}

// evaluation is the formula in a dtype, with and without mistakes.
type evaluation struct {
	kept *program.Kept
	some *program.Some
	own  program.Value // before its last rounding
}

// evaluate evaluates the formula.
func (r *healthyEntry) evaluate(dtype hooks.DType, choices func(*program.Program) []program.Choice) (*evaluation, error) {
	call := r.given
	call.DType = dtype
	kept, err := r.whole.Keep(call, choices)
	if err != nil {
		return nil, err
	}
	kept.Room = sightRoom
	own, err := kept.OwnSome(call.Some)
	return &evaluation{kept, call.Some, own}, err
}

// with is the result with a mistake, before its last rounding.
func (e *evaluation) with(d *program.Edited) (program.Value, error) {
	return e.kept.EvalSome(d, e.some)
}

// spread returns a sample of elements from all parts of a large entry.
func spread(e *order.Entry, shape []int) []int {
	tokens := strings.IndexRune(e.Axes, order.AxisToken)
	if tokens < 0 || len(shape) <= tokens {
		return nil
	}
	n, inner := shape[tokens], program.Size(shape[tokens+1:])
	width := shape[len(shape)-1]
	step, part := max(width/sightColumns, 1), max(n/sightTokens, 1)
	var all []int
	for row := range program.Size(shape[:tokens+1]) {
		if row%n%part != part-1 { // the last of each part: at the first position nothing is rotated
			continue
		}
		for i := row * inner; i < (row+1)*inner; i++ {
			if column := i % width; column%step == column/step%step {
				all = append(all, i)
			}
		}
	}
	return all
}

// streams reports whether one stream is read of a stack.
func streams(t *isolate.Trial) bool {
	for k, n := range t.Formula.Inputs {
		if len(t.Call.In[k].Shape) != len(t.Isolator.List().At(n).Axes) {
			return true
		}
	}
	return false
}

// inOrder are the inputs and weights of a formula, which may number them otherwise than the trial's.
func (r *healthyEntry) inOrder(f *order.Formula) (in []program.Value, w []program.Rows, err error) {
	for _, n := range f.Inputs {
		at := slices.Index(r.Formula.Inputs, n)
		v := r.Call.In[at]
		if len(v.Shape) != len(r.Isolator.List().At(n).Axes) { // one stream was read
			read := r.Isolator.Env().Read
			if r.Read != nil {
				read = r.Read
			}
			if v, err = read(n); err != nil {
				return nil, nil, err
			}
		}
		in = append(in, v)
	}
	for _, weight := range f.Weights {
		at := slices.IndexFunc(r.Formula.Weights, func(o order.Weight) bool { return o.Name == weight.Name })
		w = append(w, r.Call.W[at])
	}
	return in, w, nil
}

// shows reports whether a mistake changes an element beyond every choice of roundings and every order of summation.
// Such an element is a BUG whatever the engine's arithmetic, and whatever the other entries have.
func (r *healthyEntry) shows(ctx context.Context, wrong *isolate.Judgement, k *candidate) (bool, error) {
	off := elementsApart(r.own, wrong, nil)
	if len(off) == 0 {
		return false, nil
	}
	k.rounds = true
	var err error
	if r.rigorous == nil {
		r.work += r.time
		if r.rigorous, err = r.Evaluate(ctx, isolate.Evaluation{Arithmetic: r.a, Rigorous: true}); err != nil {
			return false, err
		}
	}
	if len(elementsApart(r.rigorous, wrong, off)) == 0 { // as of a trace: no order of summation gives all
		work := len(program.Summations()) * r.products // one product after the other
		if r.work+work > r.most {
			k.short(false)
			return false, nil
		}
		r.work += work
		t := r.with(wrong)
		_, left, _, err := t.Judge(ctx, r.a)
		if err != nil {
			return false, err
		}
		off = slices.DeleteFunc(off, func(i int) bool { return !slices.Contains(left, i) })
		if len(off) == 0 {
			return false, nil
		}
	}
	if r.rewritten == nil {
		if r.rewritten, err = r.Rewrites(); err != nil {
			return false, err
		}
	}
	for at, w := range r.rewritten {
		if at == len(r.hulls) {
			r.work += r.time
			j, err := r.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{Rewrites: w}, Hull: true})
			if err != nil {
				return false, err
			}
			r.hulls = append(r.hulls, j)
		}
		if off = elementsApart(r.hulls[at], wrong, off); len(off) == 0 {
			return false, nil
		}
	}
	return true, nil
}

// with is the entry of a port that has a mistake.
func (r *healthyEntry) with(wrong *isolate.Judgement) *isolate.Trial { return r.Holding(wrong.X.Data) }

// inFloat32 reports whether a mistake would move an element in float32: the same formula of the same inputs, rounded to that.
func (r *healthyEntry) inFloat32(d *program.Edited) (bool, error) {
	if r.float == nil {
		r.work += r.time
		var err error
		if r.float, err = r.evaluate(hooks.F32, nil); err != nil {
			return false, err
		}
	}
	x := r.float.own
	y, err := r.float.with(d)
	if err != nil || len(x.Data) != len(y.Data) {
		return false, nil
	}
	own, wrong := &isolate.Judgement{X: x, DType: hooks.F32, Model: hooks.F32, Rule: r.Entry.Compare}, &isolate.Judgement{X: y}
	return len(elementsApart(own, wrong, nil)) > 0, nil
}

// elementsApart lists the elements with disjoint intervals of values in j and k; some restricts the elements, and
// nil means all. A port with the mistake also has errors of its own, so an exact value outside the other interval
// promises nothing.
func elementsApart(j *isolate.Judgement, k *isolate.Judgement, some []int) []int {
	var at []int
	n := len(some)
	if some == nil {
		n = len(j.X.Data)
	}
	limit := measure.MaskLimit(j.DType, j.Model)
	to := func(x float64) float64 { return floats.Round(j.DType, x) }
	for c := range n {
		i := c
		if some != nil {
			i = some[c]
		}
		x, y := j.X.Data[i], k.X.Data[i]
		e, f := j.X.Bound[i], k.X.Bound[i]
		switch {
		case x != x || y != y:
			if (x != x) == (y != y) {
				continue
			}
		case math.IsInf(e, 0) || math.IsInf(f, 0) || e != e || f != f:
			continue
		case j.Rule != order.All && to(x) < limit && to(y) < limit:
			continue
		case to(y+f) >= to(x-e) && to(y-f) <= to(x+e):
			continue
		}
		at = append(at, i)
	}
	return at
}
