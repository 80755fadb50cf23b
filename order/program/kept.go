package program

import (
	"errors"
	"slices"
)

// ErrRoom is the error of an evaluation that would take more than [Kept.Room].
var ErrRoom = errors.New("the values need more memory than there is")

// Kept is a program whose values are kept: of a program that is edited only what is computed from the edit is computed again. The program's own values are
// computed, row by row, when an edited program first reads them. Not for several goroutines.
type Kept struct {
	p      *Program
	c      Call
	choose func(*Program) []Choice
	own    *run   // of the program itself: each step, and each leaf, is a stage
	at     []int  // by step of the program: the step of own; −1 for one that nothing reads
	there  needed // the rows of own that were computed; nil for all
	spare  spare
	err    error // of one of the program's own steps, after which no value can be trusted

	// Room is how many numbers, bounds counted as well, the values of the program and of one edited program may take; 0 for any.
	Room int
	Work int // elements and products that edited programs took
	Time int // about how long edited programs took, as [Program.Time] has it; each step takes [StepTime] more
}

// StepTime is the fixed cost of a step, in units of [Program.Time].
const StepTime = 1 << 8

// The measured costs of an evaluation of a few rows, in units of [Program.Time], besides the elements that it computes.
const (
	madeTime = 8 // an element of a value that an edit adds, for example of a mask; every evaluation makes the value anew
	laidTime = 3 // an element of the rows of a [Dot] that are laid out for the few rows which multiply them
)

// Keep prepares a program for edits. Choose gives a program its choices; nil for the choices of the program. The error is an error of the inputs. If a step of the
// program fails, the evaluation that reads the step returns the error, and so does every later evaluation.
func (p *Program) Keep(c Call, choose func(*Program) []Choice) (*Kept, error) {
	e, err := p.unedited()
	if err != nil {
		return nil, err
	}
	k := &Kept{p: p, c: c, choose: choose, at: slices.Repeat([]int{-1}, len(p.Steps)), spare: spare{}}
	k.own = k.begin(e, nil)
	for i := range k.own.p.Steps {
		k.own.p.stages = append(k.own.p.stages, alone(k.own.p, i))
	}
	for i, from := range e.From {
		k.at[from] = i
	}
	k.there, k.own.slots = k.none(), make([]*slots, len(k.own.p.Steps))
	for i := range k.own.p.Steps {
		if s := &k.own.p.Steps[i]; s.Prim.IsLeaf() {
			if err := k.own.leaf(i, s); err != nil {
				return nil, err
			}
		}
	}
	return k, nil
}

// begin is an evaluation of an edited program that has computed nothing yet. It has no stages.
func (k *Kept) begin(e *Edited, some *Some) *run {
	c := e.call(k.c)
	c.Some = some
	p := &Program{Steps: e.Steps, Out: e.Out, floors: e.floors}
	if len(e.In)+len(e.W) > 0 {
		p.Steps = slices.Clone(p.Steps)
		e.indexes(p, len(c.In), len(c.W))
	}
	if k.choose != nil {
		c.Choices = k.choose(p)
	}
	return &run{p: p, c: &c, a: c.Arith, values: make([]operand, len(p.Steps))}
}

// none are no rows of the program's own steps.
func (k *Kept) none() needed {
	n := make(needed, len(k.own.p.Steps))
	for i := range n {
		if s := &k.own.p.Steps[i]; !s.Prim.IsLeaf() {
			n[i] = make([]bool, rowCount(s.Shape))
		}
	}
	return n
}

// Eval evaluates an edited program: its result before the last rounding, which is not to be written to.
func (k *Kept) Eval(e *Edited) (Value, error) { return k.EvalSome(e, nil) }

// EvalSome is Eval of some of the result; nil for all of it.
func (k *Kept) EvalSome(e *Edited, some *Some) (Value, error) {
	r, err := k.run(e, some)
	if err != nil {
		return Value{}, err
	}
	v, err := r.some()
	if some != nil { // the value is a copy
		for i, from := range e.From {
			if from < 0 {
				r.free(i, r.values[i])
			}
		}
	}
	return v, err
}

// Numbers is how many numbers are kept, bounds counted as well.
func (k *Kept) Numbers() int {
	n := 0
	for _, o := range k.own.values {
		n += len(o.v) + len(o.e)
	}
	for _, all := range k.spare {
		for _, o := range all {
			n += len(o.v) + len(o.e)
		}
	}
	return n
}

// Own is the result of the program itself.
func (k *Kept) Own() (Value, error) { return k.OwnSome(nil) }

// OwnSome is Own of some of the result; nil for all of it.
func (k *Kept) OwnSome(some *Some) (Value, error) {
	e, err := k.p.unedited()
	if err != nil {
		return Value{}, err
	}
	return k.EvalSome(e, some)
}

func (k *Kept) run(e *Edited, some *Some) (*run, error) {
	if k.err != nil {
		return nil, k.err
	}
	r := k.begin(e, some)
	if some != nil {
		r.spare = k.spare
	}
	p, done := r.p, func(step int) bool { return e.From[step] >= 0 }
	if err := some.in(p.Out.Shape); err != nil {
		return nil, err
	}
	p.inStages(done)
	r.need, r.few = p.need(some, done, p.stages), p.columns(some)
	r.slots = p.slots(r.need)
	for _, v := range e.In {
		k.Time += madeTime * len(v.Data)
	}
	own := k.read(e, r.need)
	if k.Room > 0 && k.takes(r, e, own) > k.Room {
		return nil, ErrRoom
	}
	if err := k.compute(own); err != nil {
		return nil, err
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if from := e.From[i]; from >= 0 {
			own := k.at[from]
			if r.values[i] = k.own.values[own]; r.slots != nil {
				r.slots[i] = k.own.slots[own]
			}
			continue
		}
		if s.Prim.IsLeaf() {
			if err := r.leaf(i, s); err != nil {
				return nil, err
			}
		}
	}
	for n := range p.stages {
		work, time, err := r.counted(n)
		if err != nil {
			return nil, err
		}
		k.Work, k.Time = k.Work+work, k.Time+time
	}
	return r, nil
}

// counted computes the needed rows of a stage. It returns how many elements and products the rows take, and their [Program.Time].
func (r *run) counted(stage int) (work, time int, err error) {
	steps := r.p.stages[stage].steps
	if !r.needs(steps[0]) {
		return 0, 0, nil
	}
	for _, i := range steps {
		all := rowCount(r.p.Steps[i].Shape)
		rows := r.need.count(i, all)
		all = max(all, 1)
		w, t := r.p.work(i)/all*rows, r.p.time(i)/all*rows
		s := &r.p.Steps[i]
		if s.Prim == Affine && r.few != nil && r.few[i] != nil {
			width := max(s.width(), 1)
			w, t = w/width*len(r.few[i]), t/width*len(r.few[i])
		}
		if s.Prim == Dot && rows > 0 && rows < all {
			t += laidTime * laid(r.p, i)
		}
		work, time = work+w, time+t+StepTime
	}
	return work, time, r.stage(stage)
}

// read lists the rows of the program's own steps that have to be computed before an edited program can read what it needs. need has the needed rows of the edited
// program; nil for all rows. The result is nil if nothing has to be computed.
func (k *Kept) read(e *Edited, need needed) needed {
	var n needed
	reads := func(step int, rows []bool) {
		from := e.From[step]
		if from < 0 || k.there[k.at[from]] == nil {
			return
		}
		own := k.at[from]
		if n == nil {
			n = k.none()
		}
		if rows == nil {
			n[own] = nil
		}
		for row, is := range rows {
			if is && n[own] != nil {
				n[own][row] = true
			}
		}
	}
	switch {
	case need != nil:
		for i, rows := range need {
			reads(i, rows)
		}
	default:
		reads(e.Out.Step, nil)
		for i, from := range e.From {
			if from >= 0 {
				continue
			}
			for _, a := range e.Steps[i].Args {
				reads(a.Step, nil)
			}
		}
	}
	k.missing(n)
	return n
}

// missing removes the rows that are computed already, and adds the rows that the other rows are computed from.
func (k *Kept) missing(rows needed) {
	p := k.own.p
	for i := len(rows) - 1; i >= 0; i-- {
		there := k.there[i]
		if there == nil {
			rows[i] = nil
			continue
		}
		missing := make([]bool, len(there))
		for row, is := range there {
			missing[row] = !is && rows.of(i, row)
		}
		rows[i] = missing
		rows.operands(p, i)
	}
}

// takes is how many numbers an evaluation of an edited program takes, for which some rows of the program's own steps are missing.
func (k *Kept) takes(r *run, e *Edited, missing needed) int {
	n := k.Numbers()
	for i, rows := range missing {
		count := 0
		for _, is := range rows {
			if is {
				count++
			}
		}
		if count == 0 {
			continue
		}
		if !k.own.p.byRows(i) { // grow makes room for all rows
			count = len(rows)
		}
		n += 2 * count * k.own.p.Steps[i].width()
	}
	for i, from := range e.From {
		if s := &r.p.Steps[i]; from < 0 && r.p.isWhole(i) && !s.Prim.IsLeaf() {
			n += 2 * r.rowsOf(i) * s.width()
		}
	}
	return n
}

// compute computes rows of the program's own steps.
func (k *Kept) compute(rows needed) error {
	k.own.need = rows
	for i := range rows {
		if !slices.Contains(rows[i], true) {
			continue
		}
		k.grow(i, rows[i])
		if _, _, err := k.own.counted(i); err != nil {
			k.err = err
			return err
		}
	}
	return nil
}

// grow makes room for more rows of one of the program's own steps, or for all where rows are not computed apart.
func (k *Kept) grow(i int, more []bool) {
	r := k.own
	before, was := r.slots[i], r.values[i]
	for row := range k.there[i] {
		k.there[i][row] = k.there[i][row] || more[row] || !r.p.byRows(i)
	}
	width := r.p.Steps[i].width()
	r.slots[i], r.values[i] = slotsOf(k.there[i], width), operand{}
	if r.values[i] = r.roomOf(i); r.slots[i] == nil {
		k.there[i] = nil
	}
	if before == nil {
		return
	}
	for row, from := range before.at {
		if from >= 0 {
			to := r.slots[i].place(row * width)
			copy(r.values[i].v[to:], was.v[from*width:][:width])
			if was.e != nil {
				copy(r.values[i].e[to:], was.e[from*width:][:width])
			}
		}
	}
}
