package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// inner is a value within the operation, in each entry.
type inner struct {
	of  Term
	at  edit.Place // the operand with the value
	all []observed
	// repeated is set if an axis repeats the elements of a value on the way from the result: an element then stands for a whole row.
	repeated bool
	number   bool // the value is a number of the formula: no search for factors
}

// mostInverted limits the steps that are inverted from the result back to a value.
const mostInverted = 8

// requiredValues are the values within the operation that give the trace's tensors if they are changed. The search goes from the result backwards and
// inverts each step with a known other operand. A value is left out if the step has several copies, or if only some elements of the value are read.
func requiredValues(s *search, results []observed) []inner {
	var all []inner
	for _, path := range inversions(s) {
		t := s.first.signed(s.m)
		at := path[len(path)-1]
		if len(t.Copies(at)) != 1 {
			continue
		}
		v := t.Steps[t.Copies(at)[0]].Args[at.Arg]
		next := inner{of: s.value(s.first, v), at: at, repeated: repeatedOn(t, path), number: t.Steps[v.Step].Prim == program.Number}
		if name := uncaptured(s); name != "" && len(path) == 1 && next.of.Kind == Step && !isUnnamed(s.subject, name) {
			next.of = tensorTerm(name)
		}
		for _, apart := range []bool{true, false} { // first every copy of a repeated element, then a single element for all copies
			if !apart && v.Same(t.Result(v.Step)) {
				continue
			}
			if next.all = s.required(results, path, apart); next.all != nil {
				all = append(all, next)
			}
		}
	}
	return all
}

// required is the wanted value in each entry; nil if it does not follow from the result.
func (s *search) required(results []observed, path []edit.Place, apart bool) (all []observed) {
	for n := range results {
		o, ok := backAlong(s, &results[n], path, apart)
		if !ok || len(all) > 0 && !all[0].alike(&o) {
			return nil
		}
		all = append(all, o)
	}
	return all
}

// uncaptured names the only input that was not captured, for an operation with one step. A computed value that the step reads is this input. The name is
// empty for an operation with more steps, and if several inputs were not captured.
func uncaptured(s *search) (name string) {
	entry := &s.m.List.Entries[s.first.Node.Entry]
	b := program.NewBuilder()
	var in []program.Var
	for _, r := range entry.Inputs {
		at := s.m.List.Index(r.Name)
		in = append(in, b.Input(len(in), s.shapeOf(r, s.first.Node.Pass)))
		if !slices.ContainsFunc(s.first.Inputs, func(n order.Node) bool { return n.Entry == at }) {
			if name != "" {
				return ""
			}
			name = r.Name
		}
	}
	if len(entry.Weights) > 0 {
		return ""
	}
	p, err := b.Program(b.Apply(entry.Op, "", entry.Size(s.m.Passes[s.first.Node.Pass], s.m.List.Config.SlidingWindow), in, nil))
	if err != nil {
		return ""
	}
	steps := 0
	for i := range p.Steps {
		if p.Steps[i].Prim.Computes() {
			steps++
		}
	}
	if steps != 1 {
		return ""
	}
	return name
}

// inversions are the ways from the result to operands. A way is a list of steps, each with the operand that the way goes through.
func inversions(s *search) (all [][]edit.Place) {
	t := s.first.signed(s.m)
	ways := [][]edit.Place{nil}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		i := t.Out.Step
		if len(way) > 0 {
			at := way[len(way)-1]
			i = t.Steps[t.Copies(at)[0]].Args[at.Arg].Step
		}
		st := &t.Steps[i]
		if len(way) == mostInverted || !invertible(st.Prim) || len(all) > 4*mostInverted {
			continue
		}
		for a, v := range st.Args {
			if slices.ContainsFunc(st.Args[:a], v.Same) {
				continue
			}
			next := append(slices.Clone(way), edit.Place{Step: t.PlaceOf(i).Step, Arg: a})
			all = append(all, next)
			if spreads(t, v) && t.Steps[v.Step].Prim != program.Number { // a view has other elements
				ways = append(ways, next)
			}
		}
	}
	return all
}

// repeatedOn reports whether a way goes through a value with repeated elements.
func repeatedOn(t *edit.StepIndex, path []edit.Place) bool {
	for _, at := range path {
		if v := t.Steps[t.Copies(at)[0]].Args[at.Arg]; !v.Same(t.Result(v.Step)) {
			return true
		}
	}
	return false
}

// spreads reports whether a value is the result of a step, or the result with its elements repeated along axes of size 1.
func spreads(t *edit.StepIndex, v program.Var) bool {
	own := t.Result(v.Step)
	if v.Same(own) {
		return true
	}
	ed := edit.NewEditor(t.Program)
	all := ed.Expand(own, v.Shape)
	return ed.Err() == nil && all.Same(v)
}

// invertible reports whether an operand of a step follows from the result and the other operand.
func invertible(p program.Prim) bool {
	switch p {
	case program.Add, program.Sub, program.Mul, program.Div, program.Neg, program.Max, program.Round, program.Copy, program.Tanh, program.Exp, program.Log, program.Sqrt, program.Rsqrt:
		return true
	}
	return false
}

// backAlong computes the wanted value in an entry, from the steps between the value and the result. If apart is set, every copy of a repeated element that
// the last step reads is an element. Otherwise all copies are a single element.
func backAlong(s *search, o *observed, path []edit.Place, apart bool) (observed, bool) {
	t := o.e.signed(s.m)
	if o.e.Few != nil {
		return observed{}, false
	}
	now := *o
	now.wrong = nil
	now.want, now.half = slices.Clone(o.want), slices.Clone(o.half)
	for i := range now.half { // the steps after the value round too
		now.half[i] += o.off[i]
	}
	for k, at := range path {
		all := t.Copies(at)
		if len(all) != 1 {
			return now, false
		}
		st := &t.Steps[all[0]]
		var other []float64
		if len(st.Args) == 2 {
			var ok bool
			if other, ok = s.valueAt(o.e, st.Args[1-at.Arg]); ok {
				other = stretched(other, st.Args[1-at.Arg].Shape, st.Shape)
			}
			if !ok || len(other) != len(now.want) {
				return now, false
			}
		}
		for i := range now.want {
			x := 0.0
			if other != nil {
				x = other[i]
			}
			now.want[i], now.half[i] = invert(st.Prim, at.Arg, now.want[i], now.half[i], x)
		}
		arg := st.Args[at.Arg]
		if spreads(t, arg) && (!apart || k < len(path)-1) {
			arg = t.Result(arg.Step)
		}
		v, ok := s.valueAt(o.e, arg)
		if !ok {
			return now, false
		}
		now.value, now.shape = v, arg.Shape
		if n := program.Size(now.shape); n > 0 {
			now.each = max(now.each, 1) * max(len(now.want)/n, 1)
		}
		if now.want, now.half = shared(now.want, now.half, st.Shape, now.shape); len(v) != len(now.want) {
			return now, false
		}
	}
	now.off = make([]float64, len(now.value))
	if len(now.shape) != len(now.axes) {
		now.axes = ""
	}
	return now, true
}

// invert computes an operand of a step from the result y, with an error of e, and the other operand. The operand is NaN if it does not follow.
func invert(p program.Prim, arg int, y, e, other float64) (x, off float64) {
	of := func(f func(y float64) float64) (float64, float64) {
		low, high := f(y-e), f(y+e)
		return low/2 + high/2, math.Abs(high-low) / 2
	}
	switch p {
	case program.Add:
		return y - other, e
	case program.Sub:
		if arg == 0 {
			return y + other, e
		}
		return other - y, e
	case program.Mul:
		return y / other, e / math.Abs(other)
	case program.Div:
		if arg == 0 {
			return y * other, e * math.Abs(other)
		}
		if math.Abs(y) <= 4*e { // no number gives 0, and any large number nearly does
			if math.Abs(other) <= 4*e {
				return y, math.Inf(1)
			}
			return math.NaN(), e
		}
		return of(func(y float64) float64 { return other / y })
	case program.Neg:
		return -y, e
	case program.Max:
		if math.Abs(y-other) <= e {
			return y, math.Inf(1) // any number that is not larger
		}
		return y, e
	case program.Tanh:
		return of(math.Atanh)
	case program.Exp:
		return of(math.Log)
	case program.Log:
		return of(math.Exp)
	case program.Sqrt:
		return of(func(y float64) float64 { return y * y })
	case program.Rsqrt:
		return of(func(y float64) float64 { return 1 / (y * y) })
	}
	return y, e // the step hands on its operand
}
