package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// family is a mistake with one unknown number.
type family struct {
	starts []float64
	of     func(n number) Mistake
	// roundings are further roundings of the mistake, which are tried in turn. The number is solved with the rounding of the formula, which is tried
	// first.
	roundings []Rounding
	old       float64 // the right number, or 0; a number near a nonzero old is no mistake
}

// solved yields mistakes with numbers that are solved from the elements: numbers of the formula, and a factor, a term or a soft cap too many. An
// unused value has no number: if 0 gives everything, a factor or a soft cap that removes the value gives everything, too.
func solved(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range t.Numbers() {
			if !solveFamily(s, numberFamily(s, t, i), yield) {
				return
			}
		}
		for _, i := range s.places(t) {
			if before := len(s.found); i >= 0 && (!yield(Mistake{Kind: "value.unused", Of: placeTerm(s, t, i), Edit: placed(placeOf(t, i))}) || len(s.found) > before) {
				return
			}
			for _, f := range insertions(s, t, i) {
				if !solveFamily(s, f, yield) {
					return
				}
			}
		}
	}
}

// numberFamily has the mistakes with a wrong number of a step.
func numberFamily(s *search, t *edit.StepIndex, i int) family {
	old, at := t.Steps[i].Number().Value, t.PlaceOf(i)
	starts := []float64{old, 2 * old, old / 2, 10 * old, old / 10, 100 * old, -old}
	if old == 0 {
		starts = []float64{1, -1}
	}
	return family{
		starts: starts, old: old,
		of: func(n number) Mistake { return otherConstant(s.subject, s.first, i, n, at) },
	}
}

// ofOneScale solves numbers if the first entry is the right result times one number. If no solution gives everything, ofOneScale tries the factor
// between the two results: a choice of roundings may hide the factor from Newton's method. A result of zeros is left to [zeroRows].
func ofOneScale(s *search) error {
	e := s.first
	x, y, half, err := e.own()
	s.whole(e.Program)
	if err != nil || len(x.Data) != len(y) || !slices.ContainsFunc(y, func(v float64) bool { return v != 0 }) {
		return outside(err)
	}
	f, o := fit{kind: "described.factor", right: 1}, observed{value: x.Data, off: make([]float64, len(y)), want: y, half: half, shape: x.Shape, e: e}
	copy(o.off, x.Bound)
	all := []observed{o}
	one, _ := groupsBy(nil, nil, all)
	if f.of(all, one); !f.explains() {
		return nil
	}
	if err := withSolved(solved)(s); err != nil || len(s.found) > 0 || ofOneSize(x.Data) {
		return err
	}
	d := &Description{Kind: f.kind, Of: theResult}
	s.draft(d).proposes = f.proposals(s, nil, nil, d, edit.Place{Arg: result})
	confirm(s, d)
	return s.err
}

// ofOneSize reports whether all numbers except zeros have the same size, as in a mask. A factor of a mask says nothing: every mask with the same
// zeros is a multiple.
func ofOneSize(x []float64) bool {
	size := 0.0
	for _, v := range x {
		switch v = math.Abs(v); {
		case v == 0 || v == size:
		case size == 0:
			size = v
		default:
			return false
		}
	}
	return true
}

// unusedValue puts 0 in place of a value.
func unusedValue(s *subject, e *Entry, m Mistake) *program.Edited {
	return s.at(e, s.place(m), func(ed *edit.Editor, v program.Var) program.Var { return ed.Mul("", v, ed.Literal(0)) })
}

// The places of insertions that are not steps: the rounded result, and the result before it is rounded.
const (
	result    = -1
	unrounded = -2
)

// places lists where something may be inserted: at the result, at the inputs of the program, and at the ends of operations within a cut.
func (s *search) places(t *edit.StepIndex) []int {
	all := []int{result}
	if s.first.Call.DType != hooks.F32 {
		all = append(all, unrounded)
	}
	for _, i := range leafSteps(t, program.Input) {
		if _, given := s.m.List.Entries[s.first.Inputs[t.Steps[i].Index()].Entry].Op.(op.Given); !given { // ids and positions are no numbers of a formula
			all = append(all, i)
		}
	}
	ends := 0
	for i := range t.Steps { // where one operation of a cut ends and the next begins
		st := &t.Steps[i]
		if st.Prim.Computes() && i != t.Out.Step && ends < maxEnds && t.Last(i) {
			all, ends = append(all, i), ends+1
		}
	}
	return all
}

// maxEnds is the largest number of results within a cut at which something is inserted.
const maxEnds = 8

// placeOf is the place of a step, or, for a negative number, of the result, rounded or not.
func placeOf(t *edit.StepIndex, step int) edit.Place {
	if step < 0 {
		return edit.Place{Arg: step}
	}
	return t.PlaceOf(step)
}

// at changes the value of a place of [placeOf] for each step that reads the value. The value of an operand is changed for its own step.
func (s *subject) at(e *Entry, at edit.Place, change func(ed *edit.Editor, v program.Var) program.Var) *program.Edited {
	t := e.signed(s.m)
	ed := edit.NewEditor(e.Program)
	switch {
	case at == edit.Place{Arg: unrounded}:
		ed.Return(change(ed, t.Out))
	case at == edit.Place{Arg: result}:
		ed.Return(change(ed, ed.Rounded(t.Out)))
	case at.Arg >= 0:
		for _, i := range t.Copies(at) {
			ed.Read(i, at.Arg, change(ed, t.Steps[i].Args[at.Arg]))
		}
	default:
		for _, i := range t.Copies(at) {
			ed.Pass(i, change(ed, ed.Move(i)))
		}
	}
	return ended(ed)
}

// solveFamily yields the members of a family with the number that gives everything. It tries the number of the Gauss-Newton method on the unrounded
// program of one entry, nearby numbers of the configuration, and the shortest decimal. It reports whether to go on.
func solveFamily(s *search, f family, yield func(Mistake) bool) bool {
	return solveIn(s, s.entries[:min(len(s.entries), mostSolved)], f, yield)
}

// solveIn is solveFamily with the elements of some entries.
func solveIn(s *search, entries []*Entry, f family, yield func(Mistake) bool) bool {
	for _, start := range f.starts {
		x, ok, err := newton(s, f, start)
		if s.failed(err) {
			return false
		}
		if !ok {
			continue
		}
		low, high, ok, err := narrow(s, entries, f, x)
		if s.failed(err) {
			return false
		}
		if !ok {
			low, high = 0, -1
		} else if x < low || x > high {
			x = low/2 + high/2
		}
		return yieldNumbers(s, f, append(overRoots(x, f.old, low, high), s.candidates(x, low, high)...), x, yield)
	}
	return true
}

// yieldNumbers yields the members of a family with some numbers, until one gives everything. x is the solved number.
func yieldNumbers(s *search, f family, of []number, x float64, yield func(Mistake) bool) bool {
	if math.Abs(x) < negligible*math.Abs(f.old) {
		of = append([]number{{}}, of...)
	}
	for _, n := range of {
		if f.old != 0 && (math.Abs(n.value/f.old-1) < nearOne && n.words == "" || nearNumber(s, f.old, n.value)) {
			continue
		}
		m := f.of(n)
		for _, m.Rounding = range append([]Rounding{""}, f.roundings...) {
			if before := len(s.found); !yield(m) {
				return false
			} else if len(s.found) > before {
				return true
			}
		}
	}
	return true
}

// negligible is a fraction of the right number. Before a solved number below this fraction, the search tries 0.
const negligible = 1e-6

// editWith makes the edit of an entry with a number of a family.
func editWith(s *search, f family, e *Entry, x float64) *program.Edited {
	return s.apply(f.of(number{value: x}), e)
}

const (
	// nearOne is the least distance from 1 of a factor that no field of the configuration has. A nearer factor is a rounded constant or an unknown
	// arithmetic.
	nearOne     = 0.01
	newtonSteps = 12
	newtonMoves = 1e-4 // relative step for the slope
)

// mostSolved is the number of entries that bound a number before the number is tried on all entries.
const mostSolved = 8

// solving holds what a number is solved from: the trace's elements of an entry, half a unit of each element, and the indexes of the unexplained
// elements. An entry with long rows gives a few columns only, since one number acts on all columns.
type solving struct {
	call    program.Call
	y, half []float64
	left    []int
}

func solvedFrom(e *Entry) solving {
	from := solving{call: e.Call, left: e.Left}
	if f := e.Few; f != nil && f.Some.Columns != nil {
		from.call.Some, from.left = &f.Some, f.Left
		from.y, from.half = f.Target()
	} else {
		from.y, from.half = e.Target()
	}
	from.call.Emulated, from.call.Bounds = false, false
	return from
}

// valueIn returns the unrounded value of an edit for the elements of a solving, and counts as a try.
func valueIn(s *search, d *program.Edited, from solving) ([]float64, error) {
	p, c := d.Whole(from.call)
	s.tried++
	s.m.work += int(float64(p.Time()) * float64(len(from.y)) / float64(max(program.Size(p.Out.Shape), 1)))
	v, err := p.Eval(c)
	return v.Data, err
}

// newton finds the number with which the unrounded program comes nearest to the unexplained elements of one entry. ok is false if Newton's method
// fails, or if many elements stay far from the trace.
func newton(s *search, f family, start float64) (x float64, ok bool, err error) {
	from := solvedFrom(s.first)
	y, half := from.y, from.half
	at := func(x float64) []float64 {
		d := editWith(s, f, s.first, x)
		if d == nil || s.spent() {
			return nil
		}
		v, err := valueIn(s, d, from)
		if outside(err) != nil && s.failed(err) || err != nil {
			return nil
		}
		return v
	}
	x = start
	for range newtonSteps {
		if s.spent() {
			return 0, false, s.ctx.Err()
		}
		h := newtonMoves * max(math.Abs(x), negligible*math.Abs(start))
		if h == 0 {
			h = newtonMoves
		}
		v, w := at(x), at(x+h)
		if v == nil || w == nil {
			return 0, false, s.err
		}
		var up, down float64
		for _, i := range from.left {
			slope := (w[i] - v[i]) / h
			if q := 1 / (half[i] * half[i]); slope != 0 && q-q == 0 && slope-slope == 0 {
				up += q * slope * (y[i] - v[i])
				down += q * slope * slope
			}
		}
		if down == 0 {
			return 0, false, nil
		}
		step := up / down
		if math.Abs(step) > math.Abs(x) && x != 0 {
			step = 0.75 * math.Copysign(x, step)
		}
		x += step
		if x-x != 0 {
			return 0, false, nil
		}
		if math.Abs(step) < 1e-9*math.Abs(x) {
			break
		}
	}
	v := at(x)
	if v == nil {
		return 0, false, s.err
	}
	// With the right number, elements are within some units of the trace, because of roundings within the program.
	far := 0
	for _, i := range from.left {
		if !(math.Abs(v[i]-y[i]) <= 64*half[i]) {
			far++
		}
	}
	return x, 4*far <= len(from.left), nil
}
