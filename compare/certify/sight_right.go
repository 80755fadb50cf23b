package certify

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// right is an entry as it should be, of which some tokens do where it is large; nil where nothing can be said of it, or where there is
// no work left for it.
func (s *sight) right(ctx context.Context, n order.Node, has func(order.Node) bool, opened bool) (*right, error) {
	s.short, s.large = false, false
	t, err := s.i.unread(n, has)
	if lacking(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if opened {
		t.read = s.i.orArgument
	}
	if e, err := t.someRows(ctx); err != nil {
		return nil, err
	} else if e != nil {
		return s.computed(ctx, e.focusAbove(sightFocus, sightTokens, sightColumns, false).trial)
	}
	if err := t.readAll(); err != nil {
		return nil, err
	}
	return s.prepared(ctx, t)
}

// someRows is a large entry with the rows of the tokens that are looked at; nil for one of which all are read.
func (t *trial) someRows(ctx context.Context) (*evidence, error) {
	if t.block() == 0 {
		return nil, nil
	}
	rec, _ := t.i.trace.Lookup(t.node.Pass, t.entry.Name)
	all, at := spread(t.entry, rec.Shape), tokenAxis(t.entry)
	keep := mostLeft(all, rec.Shape, at, sightTokens)
	part, err := t.of(keep)
	if err != nil {
		return nil, err
	}
	if err := part.prepare(ctx); err != nil || part.formula == nil || streams(part) || len(keep) == rec.Shape[at] {
		return nil, err
	}
	return &evidence{part, kept(all, rec.Shape, at, keep)}, nil
}

// prepared computes what an entry should be.
func (s *sight) prepared(ctx context.Context, t *trial) (*right, error) {
	if err := t.prepare(ctx); err != nil || t.formula == nil {
		return nil, err
	}
	if streams(t) {
		return s.computed(ctx, t)
	}
	e := (&evidence{t, spread(t.entry, t.y.Shape)}).focusAbove(sightFocus, sightTokens, sightColumns, false)
	if e.formula.Work() > focusWork {
		e = e.fewQueries(sightTokens)
	}
	return s.computed(ctx, e.trial)
}

// computed is prepared of what is looked at.
func (s *sight) computed(ctx context.Context, t *trial) (*right, error) {
	r := &right{trial: t, time: timeOf(t.formula.Program, t.call), products: partOf(t.formula.Work(), t.formula.Program, t.call.Some)}
	if s.short = s.work+r.time > s.most; s.short {
		return nil, nil
	}
	s.work += 2 * r.time
	var err error
	if r.a, err = s.arithmetic(ctx, t); r.a == nil || err != nil {
		return nil, err
	}
	if r.whole, r.parts, err = t.cut.Parts(t.passes(), s.i.env.DType, r.a.rewrites); errors.Is(err, order.ErrOwn) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	call := t.call
	call.Arith = s.i.env.Arith
	if call.In, call.W, err = r.inOrder(r.whole); err != nil {
		return nil, err
	}
	r.given = call
	if r.model, err = r.evaluate(call.DType, r.a.choices); errors.Is(err, program.ErrRoom) {
		s.short, s.large = true, true
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	r.own, err = t.judge(copied(r.model.own), r.a, false)
	return r, err
}

// wrong is an entry with a mistake; nil where the mistake is none in it, or gives no numbers.
func (s *sight) wrong(r *right, k *sighted) (*judged, *program.Edited, error) {
	if r.healthy == nil {
		r.healthy = s.model(r).Healthy(r.whole, r.parts, r.given, r.a.choices)
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
	if err != nil || size(x.Shape) != len(r.y.Data) { // such as an index out of range
		return nil, nil, nil
	}
	j, err := r.judge(copied(x), r.a, false)
	return j, d, err
}

func copied(x program.Value) program.Value {
	return program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
}

// arithmetic is that in which an entry is right: transformers', or that of its form; nil where none is known to be.
func (s *sight) arithmetic(ctx context.Context, t *trial) (*arithmetic, error) {
	_, left, _, err := t.strict(ctx, &arithmetic{})
	if err != nil || len(left) == 0 {
		return &arithmetic{}, err
	}
	if s.i.o.Arithmetic != Auto {
		return nil, nil
	}
	v, err := s.i.forms.verdictOf(ctx, s.i.formOf(t.cut, t.node))
	if err != nil {
		return nil, err
	}
	for _, a := range []*arithmetic{v.own, v.second} {
		if a == nil || a.wide {
			continue
		}
		if _, left, _, err := t.strict(ctx, a); err != nil || len(left) == 0 {
			return a, err
		}
	}
	return nil, nil
}

// right is what an entry may be.
type right struct {
	*trial
	whole *order.Formula // of the cut, with what each entry has of it
	parts []order.Part
	given program.Call // also of which tokens
	// healthy is what mistakes are made in; nil where none was.
	healthy   *diagnose.Healthy
	model     *evaluation // in the model's dtype
	float     *evaluation // in float32
	a         *arithmetic
	own       *judged
	rigorous  *judged
	hulls     []*judged
	rewritten []program.Rewrite
	time      int // of one evaluation, as [program.Program.Time] has it
	products  int // of one evaluation, as [program.Program.Work] has it
	work      int
	most      int // of work, for all mistakes
}

// evaluation is the formula in a dtype, with and without mistakes.
type evaluation struct {
	kept *program.Kept
	some *program.Some
	own  program.Value // before its last rounding
}

// evaluate evaluates the formula.
func (r *right) evaluate(dtype hooks.DType, choices func(*program.Program) []program.Choice) (*evaluation, error) {
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

// spread are elements all over an entry of some shape: what is looked at of it where it is large.
func spread(e *order.Entry, shape []int) []int {
	tokens := strings.IndexRune(e.Axes, order.AxisToken)
	if tokens < 0 || len(shape) <= tokens {
		return nil
	}
	n, inner := shape[tokens], size(shape[tokens+1:])
	width := shape[len(shape)-1]
	step, part := max(width/sightColumns, 1), max(n/sightTokens, 1)
	var all []int
	for row := range size(shape[:tokens+1]) {
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
func streams(t *trial) bool {
	for k, n := range t.formula.Inputs {
		if len(t.call.In[k].Shape) != len(t.i.list.At(n).Axes) {
			return true
		}
	}
	return false
}

// inOrder are the inputs and weights of a formula, which may number them otherwise than the trial's.
func (r *right) inOrder(f *order.Formula) (in []program.Value, w []program.Rows, err error) {
	for _, n := range f.Inputs {
		at := slices.Index(r.formula.Inputs, n)
		v := r.call.In[at]
		if len(v.Shape) != len(r.i.list.At(n).Axes) { // one stream was read
			read := r.i.env.Read
			if r.read != nil {
				read = r.read
			}
			if v, err = read(n); err != nil {
				return nil, nil, err
			}
		}
		in = append(in, v)
	}
	for _, weight := range f.Weights {
		at := slices.IndexFunc(r.formula.Weights, func(o order.Weight) bool { return o.Name == weight.Name })
		w = append(w, r.call.W[at])
	}
	return in, w, nil
}

// shows reports whether a mistake gives an element that no choice of roundings gives, and one that no order of summation gives. That
// is a BUG whatever the engine's arithmetic is, and whatever the other entries have.
func (r *right) shows(ctx context.Context, wrong *judged, k *sighted) (bool, error) {
	off := r.own.apartFrom(wrong, nil)
	if len(off) == 0 {
		return false, nil
	}
	k.rounds = true
	var err error
	if r.rigorous == nil {
		r.work += r.time
		if r.rigorous, err = r.in(ctx, evaluated{arithmetic: r.a, rigorous: true}); err != nil {
			return false, err
		}
	}
	if len(r.rigorous.apartFrom(wrong, off)) == 0 { // as of a trace: no order of summation gives all
		work := len(program.Summations()) * r.products // one product after the other
		if r.work+work > r.most {
			k.short(false)
			return false, nil
		}
		r.work += work
		t := r.with(wrong)
		_, left, _, err := t.strict(ctx, r.a)
		if err != nil {
			return false, err
		}
		off = slices.DeleteFunc(off, func(i int) bool { return !slices.Contains(left, i) })
		if len(off) == 0 {
			return false, nil
		}
	}
	if r.rewritten == nil {
		if r.rewritten, err = r.rewrites(); err != nil {
			return false, err
		}
	}
	for at, w := range r.rewritten {
		if at == len(r.hulls) {
			r.work += r.time
			j, err := r.in(ctx, evaluated{arithmetic: &arithmetic{rewrites: w}, hull: true})
			if err != nil {
				return false, err
			}
			r.hulls = append(r.hulls, j)
		}
		if off = r.hulls[at].apartFrom(wrong, off); len(off) == 0 {
			return false, nil
		}
	}
	return true, nil
}

// with is the entry of a port that has a mistake.
func (r *right) with(wrong *judged) *trial {
	t := *r.trial
	t.y.Data = make([]float64, len(wrong.x.Data))
	for i, x := range wrong.x.Data {
		t.y.Data[i] = floats.Round(t.d, x)
	}
	return &t
}

// inFloat32 reports whether a mistake would move an element in float32: the same formula of the same inputs, rounded to that.
func (r *right) inFloat32(d *program.Edited) (bool, error) {
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
	own, wrong := &judged{x: x, d: hooks.F32, model: hooks.F32, rule: r.entry.Compare}, &judged{x: y}
	return len(own.apartFrom(wrong, nil)) > 0, nil
}

// apartFrom lists elements, of some or of all for nil, of which two values have no number in common. A port with the mistake has errors
// of its own: where only its numbers without any are outside, nothing is promised.
func (j *judged) apartFrom(k *judged, some []int) []int {
	var at []int
	n := len(some)
	if some == nil {
		n = len(j.x.Data)
	}
	limit := measure.MaskLimit(j.d, j.model)
	to := func(x float64) float64 { return floats.Round(j.d, x) }
	for c := range n {
		i := c
		if some != nil {
			i = some[c]
		}
		x, y := j.x.Data[i], k.x.Data[i]
		e, f := j.x.Bound[i], k.x.Bound[i]
		switch {
		case x != x || y != y:
			if (x != x) == (y != y) {
				continue
			}
		case math.IsInf(e, 0) || math.IsInf(f, 0) || e != e || f != f:
			continue
		case j.rule != order.All && to(x) < limit && to(y) < limit:
			continue
		case to(y+f) >= to(x-e) && to(y-f) <= to(x+e):
			continue
		}
		at = append(at, i)
	}
	return at
}
