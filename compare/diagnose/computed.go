package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// narrowTypes are the types in which a port may compute what the model computes in float32.
var narrowTypes = []hooks.DType{hooks.BF16, hooks.F16}

// tf32 is the type of the inputs of tensor cores.
const tf32 = "tf32"

// computedAs is one text for all ways to compute in a type. A result that stays float32 has a different text.
func computedAs(m Mistake) string {
	text := "computed:" + m.By.Name
	if m.DType != 0 {
		text += m.DType.String()
	}
	if m.Kind == "precision.narrow-operands" {
		text += ":operands"
	}
	return text
}

// narrowOperands yields, in float32, operands that are rounded to a narrower type, and sums of products in float16.
func narrowOperands(s *search) iter.Seq[Mistake] {
	var all []Mistake
	if s.first.Call.DType == hooks.F32 {
		for _, kind := range []Kind{"precision.narrow", "precision.narrow-operands"} {
			for _, d := range narrowTypes {
				all = append(all, Mistake{Kind: kind, By: dtypeTerm(d)})
			}
		}
		m := Mistake{Kind: "precision.narrow", By: Term{Kind: AName, Name: tf32}}
		cut := m
		cut.Rounding = TowardZero
		all = append(all, cut, m, Mistake{Kind: "precision.products", DType: hooks.F16})
	}
	return slices.Values(all)
}

// ofNarrowOperands rounds inputs and weights to a narrower type. It rounds the result too, except for TF32 and for the kind "precision.narrow-operands".
func ofNarrowOperands(s *subject, e *Entry, m Mistake) *program.Edited {
	d, err := hooks.ParseDType(m.By.Name)
	switch {
	case m.By.Name == tf32:
		half := uint64(1 << 41)
		if m.Rounding == TowardZero {
			half = 0
		}
		return leavesOf(e, func(x []float64) {
			for i := range x {
				x[i] = math.Float64frombits((math.Float64bits(x[i]) + half) &^ (1<<42 - 1))
			}
		})
	case err != nil:
		return nil
	}
	edited := leavesOf(e, func(x []float64) { floats.RoundAll(d, x) })
	if edited == nil || m.Kind == "precision.narrow-operands" {
		return edited
	}
	w := stored{dtype: d}
	if refused(s, e, func(some *program.Some) (program.Value, error) {
		k, err := s.m.values(e)
		if err != nil {
			return program.Value{}, err
		}
		v, err := k.EvalSome(edited, some)
		if err == nil {
			v = ownedValue(v)
			w.store(v, v.Shape[len(v.Shape)-1], e.Call.DType)
		}
		return v, err
	}) {
		return nil
	}
	return stores(s, e, edited, w)
}

// leavesOf changes the numbers of all inputs and weights.
func leavesOf(e *Entry, round func(x []float64)) *program.Edited {
	ed := edit.NewEditor(e.Program)
	for i := range e.Program.Steps {
		changeLeaf(ed, e, i, round)
	}
	return ended(ed)
}

// changeLeaf changes the numbers of a step that is an input or a weight.
func changeLeaf(ed *edit.Editor, e *Entry, step int, round func(x []float64)) {
	switch st := &e.Program.Steps[step]; st.Prim {
	case program.Input:
		v := program.Value{Shape: st.Shape, Data: slices.Clone(e.Call.In[st.Index()].Data)}
		round(v.Data)
		ed.OtherInput(step, v)
	case program.Weight, program.Matrix:
		ed.OtherWeight(step, changed(e.Call.W[st.Index()], round))
	}
}

// ofNarrowProducts rounds the operands and results of sums of products to float16.
func ofNarrowProducts(_ *subject, e *Entry, _ Mistake) *program.Edited {
	ed := edit.NewEditor(e.Program)
	all := edit.StepsOf(e.Program, program.Dot)
	for _, i := range all {
		var args []program.Var
		for _, a := range e.Program.Steps[i].Args {
			args = append(args, ed.RoundTo(a, program.Half))
		}
		ed.Pass(i, ed.RoundTo(ed.MoveWith(i, args...), program.Half))
	}
	if len(all) == 0 {
		return nil
	}
	return ended(ed)
}

// narrowSteps yields, in float32, an operation that is computed in a narrower type up to some step: each step rounds its result, and a mean rounds once.
// The whole operation comes last.
func narrowSteps(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		if s.first.Call.DType != hooks.F32 {
			return
		}
		t := s.first.signed(s.m)
		end := t.Out.Step
		all := slices.DeleteFunc(t.Firsts(), func(i int) bool { return i == end || !narrows(t, i) })
		for _, d := range narrowTypes {
			for _, i := range append(slices.Clone(all), end) {
				m := Mistake{Kind: "precision.each-step", DType: d, Edit: placed(t.PlaceOf(i))}
				if i != end {
					m.Kind, m.Of = "precision.up-to", s.step(s.first, i)
				}
				if !rootsToo(t, m, yield) {
					return
				}
			}
		}
	}
}

// narrowParts yields parts that are computed in a narrower type: one step, the steps from one step on, or one of several operations. The inputs of the part
// are rounded, and so is the result of each step. In a narrower model the part is the step of angles, since every arithmetic has angles in float32, and may
// round the results of other steps.
func narrowParts(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		model, types := s.first.Call.DType, narrowTypes
		if model != hooks.F32 {
			types = []hooks.DType{model}
		}
		t := s.first.signed(s.m)
		for _, d := range types {
			for _, i := range t.Firsts() {
				if !narrows(t, i) || model != hooks.F32 && t.Steps[i].Prim != program.Angle || i == t.Out.Step && len(edit.Ancestors(t.Program, i)) == 1 {
					continue
				}
				for _, kind := range []Kind{"precision.one-step", "precision.from-step-on", "precision.operation-to"} {
					if kind == "precision.operation-to" && !t.Last(i) || kind != "precision.one-step" && model != hooks.F32 {
						continue
					}
					if !rootsToo(t, Mistake{Kind: kind, Of: s.step(s.first, i), DType: d, Edit: placed(t.PlaceOf(i))}, yield) {
						return
					}
				}
			}
		}
	}
}

// rounds reports whether a step computes a value and rounds it.
func rounds(t *edit.StepIndex, step int) bool {
	return t.Steps[step].Prim.Computes() && !isSumOfMean(t.Program, step)
}

// narrows reports whether a step rounds its result if it is computed in a narrower type.
func narrows(t *edit.StepIndex, step int) bool {
	return rounds(t, step) || t.Steps[step].Prim == program.Angle
}

// computeIn rounds the result of a step to the model's dtype. An angle becomes a product with rounded frequencies, since every arithmetic has angles in float32.
func computeIn(d hooks.DType, ed *edit.Editor, step int) {
	if st := ed.Step(step); st.Prim == program.Angle {
		for _, a := range st.Args {
			if of := &ed.Steps[a.Step]; of.Prim == program.Vector {
				v := slices.Clone(of.Vector())
				floats.RoundAll(d, v)
				ed.SetVector(a.Step, v)
			}
		}
		ed.Become(step, program.Mul, st.Args...)
	}
	ed.Step(step).Round = program.Model
}

// isSumOfMean reports whether a step is the sum of a mean, which is rounded when it is divided.
func isSumOfMean(p *program.Program, step int) bool {
	return slices.ContainsFunc(program.ReadersOf(p, step), func(k int) bool {
		_, ok := edit.Divisor(p, k)
		return ok && p.Steps[k].Args[0].Step == step
	})
}

// stepsIn marks the steps that a mistake computes in a narrower type. some is false if the program does not have the step that the mistake names.
func stepsIn(s *subject, t *edit.StepIndex, m Mistake) (in []bool, some bool) {
	in = make([]bool, len(t.Steps))
	all := t.Copies(s.place(m))
	for _, i := range all {
		switch in[i] = true; m.Kind {
		case "precision.one-step":
			withSumOfMean(t, i, in)
		case "precision.from-step-on":
			withSumOfMean(t, i, in)
			for k := i + 1; k < len(t.Steps); k++ {
				in[k] = in[k] || slices.ContainsFunc(t.Steps[k].Args, func(v program.Var) bool { return in[v.Step] })
			}
		case "precision.operation-to":
			operationTo(t, i, in)
		default:
			for _, k := range edit.Ancestors(t.Program, i) {
				in[k] = true
			}
		}
	}
	return in, len(all) > 0
}

// withSumOfMean marks the sum of a mean together with the division.
func withSumOfMean(t *edit.StepIndex, i int, in []bool) {
	if _, ok := edit.Divisor(t.Program, i); ok {
		in[t.Steps[i].Args[0].Step] = true
	}
}

// operationTo marks the operation that ends with a step: back to the last steps of other operations.
func operationTo(t *edit.StepIndex, i int, in []bool) {
	for k := i; k >= 0; k-- {
		if !in[k] {
			continue
		}
		for _, a := range t.Steps[k].Args {
			if from := a.Step; t.Steps[from].Prim.Computes() && !t.Last(from) {
				in[from] = true
			}
		}
	}
}

// computedUpTo computes the steps up to one place in a narrower type.
func computedUpTo(s *subject, e *Entry, m Mistake) *program.Edited {
	t, ed := e.signed(s.m), edit.NewEditor(e.Program)
	in, some := stepsIn(s, t, m)
	if !some {
		return nil
	}
	for i := range t.Steps {
		switch st := &t.Steps[i]; {
		case !narrows(t, i) && !st.Prim.Computes() && st.Prim != program.Round:
			if in[i] {
				changeLeaf(ed, e, i, func(x []float64) { floats.RoundAll(m.DType, x) })
			}
		case in[i] && !isSumOfMean(t.Program, i):
			computeIn(m.DType, ed, i)
		case st.Round == program.Model:
			ed.Step(i).Round = program.Plain
		}
	}
	edited := ended(ed)
	if edited == nil || refused(s, e, func(some *program.Some) (program.Value, error) { return evalAs(e, edited, m, some) }) {
		return nil
	}
	v, err := evalAs(e, edited, m, nil)
	if err != nil {
		s.failed(outside(err))
		return nil
	}
	return given(e, ownedValue(v))
}

// evalAs evaluates an edited program in the type of a mistake, in whole or in part.
func evalAs(e *Entry, edited *program.Edited, m Mistake, some *program.Some) (program.Value, error) {
	p, c := edited.Whole(e.Call)
	if c.DType, c.Choices = m.DType, nil; m.Rounding == RoundedRoot {
		c.Choices = p.Own()
		for _, i := range edit.StepsOf(p, program.Rsqrt) {
			c.Choices[i].Way = program.WayRoundedRoot
		}
	}
	if some != nil {
		c.Some = some
	}
	return p.Eval(c)
}

// rootsToo yields a mistake, and the same mistake with rounded roots if a program has reciprocal roots. It reports whether to go on.
func rootsToo(t *edit.StepIndex, m Mistake, yield func(Mistake) bool) bool {
	if !yield(m) {
		return false
	}
	m.Rounding = RoundedRoot
	return len(edit.StepsOf(t.Program, program.Rsqrt)) == 0 || yield(m)
}

// computedPart computes a part of the program in a narrower type. It goes through the copies of a step in the order of the program.
func computedPart(s *subject, e *Entry, m Mistake) *program.Edited {
	t, narrow := e.signed(s.m), edit.NewEditor(e.Program)
	in, _ := stepsIn(s, t, m)
	var ends []int // the values of the part that the rest reads
	end := func(v program.Var) {
		if k := v.Step; in[k] && !slices.Contains(ends, k) {
			ends = append(ends, k)
		}
	}
	for i := range t.Steps {
		st := &t.Steps[i]
		if in[i] {
			if narrows(t, i) {
				computeIn(m.DType, narrow, i)
			}
			if !readNarrowed(s, narrow, e, i, in, m.DType) {
				return nil
			}
			continue
		}
		if st.Round == program.Model && m.DType != e.Call.DType {
			narrow.Step(i).Round = program.Plain
		}
		for _, a := range st.Args {
			end(a)
		}
	}
	end(t.Out)
	var whole []program.Var
	for _, k := range ends {
		if len(t.Steps[k].Shape) == 0 {
			return nil
		}
		whole = append(whole, narrow.Reshape(narrow.Cat(0, t.Result(k)), program.Size(t.Steps[k].Shape)))
	}
	if len(whole) == 0 || narrow.Err() != nil {
		return nil
	}
	one, err := narrow.Only(narrow.Cat(0, whole...))
	if err != nil {
		return nil
	}
	v, err := evalAs(e, one, m, nil)
	if err != nil {
		s.failed(outside(err))
		return nil
	}
	v = ownedValue(v)
	ed := edit.NewEditor(e.Program)
	for from, k := 0, 0; k < len(ends); k++ {
		shape := t.Steps[ends[k]].Shape
		to := from + program.Size(shape)
		ed.Pass(ends[k], ed.Other(program.Value{Shape: shape, Data: v.Data[from:to], Bound: v.Bound[from:to]}))
		from = to
	}
	return ended(ed)
}

// readNarrowed rounds the values that a step of a part reads from outside the part. It reports false if a value cannot be read.
func readNarrowed(s *subject, narrow *edit.Editor, e *Entry, step int, in []bool, d hooks.DType) bool {
	p := e.Program
	for a, v := range p.Steps[step].Args {
		from := v.Step
		switch prim := p.Steps[from].Prim; {
		case in[from] || prim == program.Number:
		case prim == program.Matrix:
			changeLeaf(narrow, e, from, func(x []float64) { floats.RoundAll(d, x) })
		default:
			x, ok := s.valueAt(e, v)
			if !ok || len(x) != program.Size(v.Shape) {
				return false
			}
			x = slices.Clone(x)
			floats.RoundAll(d, x)
			narrow.Read(step, a, narrow.Other(program.Value{Shape: v.Shape, Data: x}))
		}
	}
	return true
}
