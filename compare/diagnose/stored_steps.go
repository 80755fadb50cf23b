package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// storedTypes are the types in which a port may store a value within an operation.
var storedTypes = []hooks.DType{hooks.BF16, hooks.F16, hooks.F8E4M3, hooks.F8E5M2}

// storedSteps yields a step whose result is stored in a narrower type, and a step with one reader that reads the result in a narrower type. The step is
// computed as before. The model's own dtype is tried for one reader only, since an arithmetic may round a result to this dtype.
func storedSteps(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, d := range storedTypes {
			for _, i := range t.Firsts() {
				if !rounds(t, i) || i == t.Out.Step {
					continue
				}
				m := Mistake{Kind: "precision.step-stored", Of: s.step(s.first, i), DType: d, Edit: placed(t.PlaceOf(i))}
				if d != s.first.Call.DType && !yield(m) {
					return
				}
				all := operandsOf(t, i)
				for _, at := range all {
					m.Kind, m.By, m.Edit = "precision.operand-stored", s.step(s.first, t.Copies(at)[0]), placed(at)
					if len(all) > 1 && !yield(m) {
						return
					}
				}
			}
		}
	}
}

// operandsOf are the operands that read a step.
func operandsOf(t *edit.StepIndex, step int) (all []edit.Place) {
	for _, i := range program.ReadersOf(t.Program, step) {
		for a, v := range t.Steps[i].Args {
			if at := (edit.Place{Step: t.PlaceOf(i).Step, Arg: a}); v.Step == step && !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all
}

// storedStep stores the result of a step in a narrower type.
func storedStep(s *subject, e *Entry, m Mistake) *program.Edited {
	at := s.place(m)
	ed := edit.NewEditor(e.Program)
	copies := e.signed(s.m).Copies(at)
	for _, i := range copies {
		if at.Arg < 0 {
			v, ok := storedResult(s, e, i, m.DType)
			if !ok {
				return nil
			}
			ed.Pass(i, ed.Other(v))
			continue
		}
		if at.Arg >= len(e.Program.Steps[i].Args) {
			return nil
		}
		read := e.Program.Steps[i].Args[at.Arg]
		v, ok := storedResult(s, e, read.Step, m.DType)
		if !ok {
			return nil
		}
		read.Step = ed.Other(v).Step
		ed.Read(i, at.Arg, read)
	}
	if len(copies) == 0 {
		return nil
	}
	return ended(ed)
}

// storedResult is the result of a step in a narrower type. It is not ok if the result is not known.
func storedResult(s *subject, e *Entry, step int, d hooks.DType) (v program.Value, ok bool) {
	one, err := edit.NewEditor(e.Program).Only(e.Program.Result(step))
	if err != nil || !e.known(one.Program) {
		return v, false
	}
	v, ok = s.valueOf(e, one)
	return v, ok && len(v.Shape) > 0 && (stored{dtype: d}).store(v, v.Shape[len(v.Shape)-1], e.Call.DType)
}
