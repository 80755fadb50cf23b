package program

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

// end marks the steps whose results are the program's, as they are or moved there, and nothing else.
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
