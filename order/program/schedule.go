package program

import (
	"fmt"
	"slices"
)

// stage is a run of steps that are computed together, a block of rows at a time, or one step that is not computed by row.
type stage struct {
	steps []int
	rows  int // of each step's result, a row being its last axis; 0 for one step that is not computed by row
	width int // the widest row
}

// floor is what the values of a step are not below, whatever their bounds: number is the step whose value is added to add.
type floor struct {
	known  bool
	number int // −1 for none
}

// schedule is what an evaluation of all of a program needs.
func (p *Program) schedule() {
	p.inStages(func(int) bool { return false })
	p.end(p.Out.Step)
}

// inStages puts the steps that are not done into stages. A step that is computed by row joins the stage before if both have as many rows. A step that reads a
// result of that stage in another order than the stage computes it begins a new stage.
func (p *Program) inStages(done func(step int) bool) {
	at := make([]int, len(p.Steps)) // the stage of a step, plus 1
	p.whole = make([]bool, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Prim.IsLeaf() || done(i) {
			continue
		}
		last := len(p.stages) - 1
		byRow := s.Prim.ByElement() || s.Prim.byRow()
		rows := 0
		if byRow {
			rows = Size(s.Shape) / max(s.Shape[len(s.Shape)-1], 1)
		}
		width := s.Shape[len(s.Shape)-1]
		if s.Prim.byRow() {
			width = s.Args[0].Last()
		}
		joins := last >= 0 && byRow && p.stages[last].rows == rows && rows > 0
		for _, a := range s.Args {
			if joins && at[a.Step] == last+1 && !aligned(p, a) {
				joins = false
			}
		}
		if !joins {
			p.stages = append(p.stages, stage{rows: rows})
			last++
		}
		st := &p.stages[last]
		st.steps, st.width = append(st.steps, i), max(st.width, width)
		at[i] = last + 1
		for _, a := range s.Args {
			if k := at[a.Step]; k > 0 && k != last+1 {
				p.whole[a.Step] = true
			}
		}
	}
	p.whole[p.Out.Step] = true
}

// isWhole reports whether the result of a step is read outside of its stage.
func (p *Program) isWhole(step int) bool { return p.whole == nil || p.whole[step] }

// end marks as final the steps whose results become only the program's result, directly or after moves.
func (p *Program) end(i int) {
	s := &p.Steps[i]
	switch {
	case s.Prim == Cat || s.Prim == Neg || s.Prim == Max || s.Prim == Copy:
		for _, a := range s.Args {
			p.end(a.Step)
		}
	case s.Prim.Computes():
		readers := 0
		for j := range p.Steps {
			for _, a := range p.Steps[j].Args {
				if a.Step == i && p.Steps[j].Prim.Computes() {
					readers++
				}
			}
		}
		s.final = readers == 0
	}
}

// aligned reports whether a view has the rows of the step's result in their order: as they are, or each element of a row of
// one repeated.
func aligned(p *Program, v Var) bool {
	shape := p.Steps[v.Step].Shape
	last := len(v.Shape) - 1
	if v.Off != 0 || Size(v.Shape[:last]) != Size(shape[:len(shape)-1]) {
		return false
	}
	head := Var{Shape: v.Shape[:last]}
	for _, s := range v.Stride[:last] {
		if n := shape[len(shape)-1]; n > 0 {
			s /= n
		}
		head.Stride = append(head.Stride, s)
	}
	if !head.Plain() {
		return false
	}
	return v.Last() == shape[len(shape)-1] && (v.Stride[last] == 1 || v.Last() == 1) || shape[len(shape)-1] == 1 && v.Stride[last] == 0
}

// bounds works out what steps are not below: squares, sums and means of squares, and what is added to them.
func (p *Program) bounds() {
	p.floors = make([]floor, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		var x, y floor
		if len(s.Args) > 0 {
			x = p.floors[s.Args[0].Step]
		}
		if len(s.Args) > 1 {
			y = p.floors[s.Args[1].Step]
		}
		f := floor{known: true, number: -1}
		switch {
		case s.Prim == Number:
			f.number = i
		case s.Prim == Mul && s.Args[0].Same(s.Args[1]), s.Prim == Exp, s.Prim == Sqrt:
		case (s.Prim == Sum || s.Prim == Div && y.number >= 0 && p.Steps[y.number].Number().Value > 0) && x.known && x.number < 0:
		case s.Prim == Add && x.known && x.number < 0 && y.number >= 0:
			f.number = y.number
		default:
			f = floor{number: -1}
		}
		p.floors[i] = f
	}
}

// Some asks for a part of a program's result: some indexes of one axis, in the order of Keep, and some columns. The result has this part only. Each step
// computes the rows that the part needs, and a product with a weight the columns. The steps of the program stay the same, so that an
// edit of the program means the same in a part and in the whole: attention of four queries over all keys, a few logits of a few tokens.
type Some struct {
	Axis    int // not the last one
	Keep    []int
	Columns []int // indexes of the last axis; nil for all
}

// needed holds, by step, the needed rows of the result; nil: all rows. A row lies along the last axis.
type needed [][]bool

// of reports whether a row of a step's result is needed.
func (n needed) of(step, row int) bool { return n == nil || n[step] == nil || n[step][row] }

// count is how many rows of a step's result are needed, of so many.
func (n needed) count(step, rows int) int {
	if n == nil || n[step] == nil {
		return rows
	}
	count := 0
	for _, is := range n[step] {
		if is {
			count++
		}
	}
	return count
}

// need works out the rows of every step that some of the result needs. need skips steps that are done. stages are the
// groups of steps that are computed together, row by row; nil: every step is its own stage. need returns nil where
// all rows are needed, and where some.Axis is the last axis.
func (p *Program) need(some *Some, done func(step int) bool, stages []stage) needed {
	if some == nil || some.Axis >= len(p.Out.Shape)-1 {
		return nil
	}
	n := make(needed, len(p.Steps))
	rows := make([]bool, rowCount(p.Out.Shape))
	inner := Size(p.Out.Shape[some.Axis+1 : len(p.Out.Shape)-1])
	for r := range rows {
		rows[r] = slices.Contains(some.Keep, r/inner%p.Out.Shape[some.Axis])
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; !s.Prim.IsLeaf() {
			n[i] = make([]bool, rowCount(s.Shape))
		}
	}
	n.mark(p, p.Out, rows)
	last := len(stages) - 1
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if p.Steps[i].Prim.IsLeaf() || done != nil && done(i) {
			continue
		}
		for last >= 0 && !slices.Contains(stages[last].steps, i) {
			last--
		}
		if last >= 0 && i == stages[last].steps[len(stages[last].steps)-1] && stages[last].rows > 0 {
			n.together(stages[last].steps)
		}
		n.operands(p, i)
	}
	return n
}

func rowCount(shape []int) int { return Size(shape[:len(shape)-1]) }

// together has steps of one stage need the same rows.
func (n needed) together(steps []int) {
	all := n[steps[0]]
	for _, i := range steps {
		if n[i] == nil {
			all = nil
		}
		for r := range all {
			all[r] = all[r] || n[i][r]
		}
	}
	for _, i := range steps {
		n[i] = all
	}
}

// operands marks what the needed rows of a step are computed from.
func (n needed) operands(p *Program, i int) {
	s := &p.Steps[i]
	switch {
	case n.count(i, rowCount(s.Shape)) == 0:
	case s.Prim.ByElement():
		for _, a := range s.Args {
			n.mark(p, a, n[i])
		}
	case s.Prim.byRow():
		n.mark(p, s.Args[0], repeated(n[i], s.Shape[len(s.Shape)-1]))
	case s.Prim == Dot:
		last := len(s.Shape) - 1
		for _, a := range s.Args {
			if a.Stride[last] != 0 { // a row of it is read for each element of a row
				n.all(p, a)
				continue
			}
			one := Var{Step: a.Step, Off: a.Off, Shape: slices.Clone(s.Shape), Stride: slices.Clone(a.Stride[:last+1])}
			one.Shape[last], one.Stride[last] = a.Last(), a.Stride[last+1]
			n.mark(p, one, n[i])
		}
	case s.Prim == Affine && p.byRows(i):
		n.mark(p, s.Args[0], n[i])
		for _, a := range s.Args[1:] {
			n.all(p, a)
		}
	case s.Prim == Cat && p.byRows(i):
		for _, a := range s.Args {
			n.mark(p, a, n[i])
		}
	default:
		for _, a := range s.Args {
			n.all(p, a)
		}
	}
}

// byRows reports whether a row of a step's result can be computed without the other rows.
func (p *Program) byRows(i int) bool {
	s := &p.Steps[i]
	switch s.Prim {
	case Affine:
		return rowCount(s.Args[0].Shape) == rowCount(s.Shape)
	case Cat:
		return s.Axis() == len(s.Shape)-1
	case Mask:
		return true
	}
	return s.Prim.ByElement() || s.Prim.byRow() || s.Prim == Dot
}

// repeated has each row as often as it has elements.
func repeated(rows []bool, width int) []bool {
	all := make([]bool, 0, len(rows)*width)
	for _, is := range rows {
		for range width {
			all = append(all, is)
		}
	}
	return all
}

// all marks all that a view reads.
func (n needed) all(p *Program, v Var) { n[v.Step] = nil }

// mark marks the rows of a step's result that a view reads in some of the view's rows, or all rows if the view has another number of rows.
func (n needed) mark(p *Program, v Var, rows []bool) {
	if n[v.Step] == nil {
		return
	}
	if rowCount(v.Shape) != len(rows) {
		n.all(p, v)
		return
	}
	width, last := p.Steps[v.Step].Shape[len(p.Steps[v.Step].Shape)-1], len(v.Shape)-1
	w, stride := v.Shape[last], v.Stride[last]
	index, at := make([]int, last), v.Off
	for _, is := range rows {
		switch {
		case !is || w == 0:
		case stride == 0:
			n[v.Step][at/width] = true
		case stride == 1:
			for row := at / width; row <= (at+w-1)/width; row++ {
				n[v.Step][row] = true
			}
		default:
			for k := range w {
				n[v.Step][(at+k*stride)/width] = true
			}
		}
		for a := last - 1; a >= 0; a-- {
			index[a]++
			at += v.Stride[a]
			if index[a] < v.Shape[a] {
				break
			}
			at -= index[a] * v.Stride[a]
			index[a] = 0
		}
	}
}

// in returns an error if a shape does not have the part. An edited program may have a result of another shape.
func (s *Some) in(shape []int) error {
	last := len(shape) - 1
	if s == nil || s.Axis < last && !slices.ContainsFunc(s.Keep, func(k int) bool { return k >= shape[s.Axis] }) &&
		!slices.ContainsFunc(s.Columns, func(c int) bool { return c >= shape[last] }) {
		return nil
	}
	return fmt.Errorf("some of a result of shape %v: %w", shape, ErrIndex)
}

// shape is that of the part.
func (s *Some) shape(all []int) []int {
	shape := slices.Clone(all)
	shape[s.Axis] = len(s.Keep)
	if s.Columns != nil {
		shape[len(shape)-1] = len(s.Columns)
	}
	return shape
}

// needs reports whether a row of a step's result is needed. All is needed of one without rows.
func (r *run) needs(step int) bool {
	all := rowCount(r.p.Steps[step].Shape)
	return all == 0 || r.need.count(step, all) > 0
}

// SomeRows are some rows of a weight.
type SomeRows struct {
	Rows
	Keep []int
}

// Size is that of the rows.
func (w SomeRows) Size() (rows, columns int) {
	_, columns = w.Rows.Size()
	return len(w.Keep), columns
}

// All is the whole weight.
func (w SomeRows) All() Rows { return w.Rows }

// Of are the same rows of another weight.
func (w SomeRows) Of(all Rows) Rows { return SomeRows{all, w.Keep} }

// Row is one of the rows.
func (w SomeRows) Row(dst []float64, i int) error { return w.Rows.Row(dst, w.Keep[i]) }

// Product is that of the whole weight.
func (w SomeRows) Product(x, bound []float64) Product {
	p := ProductOf(w.Rows, x, bound)
	p.W = w.Of(p.W)
	return p
}
