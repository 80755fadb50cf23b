package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// partial is a result in which a step with two operands has changed a part of its first operand: some indexes of an axis have the result of the step, and
// the other indexes have the operand itself. The second operand is the same for all indexes.
type partial struct {
	end, step int // the concatenation of the parts, and the step
	arg       int // of the second operand
	axis      int
	of        int // the step with the first operand
	changed   []bool
}

// partialOf finds the parts of a result; ok is false for a result without such parts.
func partialOf(p *program.Program) (x partial, ok bool) {
	x = partial{end: beforeRounding(p, p.Out.Step), step: -1, of: -1}
	end := &p.Steps[x.end]
	if end.Prim != program.Cat || !slices.Equal(end.Shape, p.Out.Shape) {
		return x, false
	}
	x.axis = end.Axis()
	x.changed = make([]bool, end.Shape[x.axis])
	from := 0
	for _, part := range end.Args {
		v, size := part, part.Shape[x.axis]
		if st := &p.Steps[part.Step]; len(st.Args) == 2 && part.Plain() && (x.step < 0 || x.step == part.Step) {
			x.step = part.Step
			x.arg = slices.IndexFunc(st.Args, func(v program.Var) bool { return v.Stride[x.axis] == 0 })
			if x.arg < 0 || len(st.Args[1-x.arg].Shape) != len(end.Shape) {
				return x, false
			}
			v = st.Args[1-x.arg]
			for k := range size {
				x.changed[from+k] = true
			}
		}
		if x.of < 0 {
			x.of = v.Step
		}
		whole := p.Result(x.of)
		if v.Step != x.of || !slices.Equal(whole.Shape, end.Shape) || !slices.Equal(whole.Stride, v.Stride) || v.Off != from*whole.Stride[x.axis] {
			return x, false
		}
		from += size
	}
	return x, x.step >= 0 && slices.Contains(x.changed, false)
}

// otherParts yields a step that changes the wrong indexes of its operand. An index with unexplained elements is unchanged if the step should change the
// index, and changed if not.
func otherParts(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		x, ok := partialOf(s.first.Program)
		axes := s.m.List.Entries[s.first.Node.Entry].Axes
		if !ok || len(axes) <= x.axis {
			return
		}
		wrong := map[int]bool{}
		for _, e := range s.entries {
			shape := e.Program.Out.Shape
			for _, i := range e.Left {
				wrong[i/program.Size(shape[x.axis+1:])%shape[x.axis]] = true
			}
		}
		var runs []sourceRun
		for k, changed := range x.changed {
			run := sourceRun{From: k, To: k + 1, Is: k}
			if changed {
				run.Is = isZero
			}
			if wrong[k] {
				runs = append(runs, run)
			}
		}
		t := s.first.signed(s.m)
		yield(Mistake{
			Kind: "operand.at-other-indexes", Place: s.site(s.first, x.step), Of: s.value(s.first, t.Steps[x.step].Args[x.arg]), Axis: axisWords(axes[x.axis]),
			Runs: makeRuns(runs...), Edit: placed(t.PlaceOf(x.step)),
		})
	}
}

// atOtherIndexes makes the step at the place of a mistake change other indexes of its operand.
func atOtherIndexes(_ *subject, e *Entry, m Mistake) *program.Edited {
	x, ok := partialOf(e.Program)
	if !ok {
		return nil
	}
	for _, run := range m.Runs.list() {
		if run.From < 0 || run.From >= len(x.changed) {
			return nil
		}
		x.changed[run.From] = run.Is != isZero
	}
	ed := edit.NewEditor(e.Program)
	st := e.Program.Steps[x.step]
	var parts []program.Var
	for k, changed := range x.changed {
		part := ed.Slice(e.Program.Result(x.of), x.axis, k, k+1)
		if changed {
			args := []program.Var{part, part}
			args[x.arg] = ed.Slice(st.Args[x.arg], x.axis, 0, 1)
			part = ed.Append(program.Step{Prim: st.Prim, Args: args, Shape: slices.Clone(part.Shape), Round: st.Round})
		}
		parts = append(parts, part)
	}
	ed.Pass(x.end, ed.Cat(x.axis, parts...))
	return ended(ed)
}
