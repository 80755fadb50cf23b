package program

import "slices"

// A chunked recurrence pads a prompt of nine tokens to a chunk of 64, and drops the other rows from its result. A trimmed program has no rows that nothing reads, and
// sums no zeros of the padding. The result has the same elements. A product of such a zero and an infinity, which is not a
// number, is not seen: an engine that has one there has another result than the program. Additions in halves are those of the terms that are left.

// trim is the program without padding; the steps themselves, where that saves less than half of the time.
func trim(steps []Step, out Var) ([]Step, Var) {
	t := trimmer{steps: steps, cuts: make([][]cut, len(steps)), live: make([][]int, len(steps)), need: make([][]int, len(steps))}
	if !t.padded() || t.empty(out) {
		return steps, out
	}
	for i := range steps {
		t.live[i] = t.liveOf(i)
	}
	last := t.cut(out)
	t.mark(out, last, out.Shape)
	for i := len(steps) - 1; i >= 0; i-- {
		t.read(i)
	}
	all, end := t.rebuilt(out, last)
	if 2*(&Program{Steps: all}).Time() > (&Program{Steps: steps}).Time() {
		return steps, out
	}
	return all, end
}

// trimmer has two sizes for each axis of a step's result: from index live on all elements are 0 in every arithmetic, and from index need on no element is read. need is
// nil if no element is read.
type trimmer struct {
	steps      []Step
	cuts       [][]cut // by step: of its operands
	live, need [][]int
}

// padded reports whether a Cat of the program ends with zeros.
func (t *trimmer) padded() bool {
	return slices.ContainsFunc(t.steps, func(s Step) bool {
		return s.Prim == Cat && len(s.Args) > 1 && t.zero(s.Args[len(s.Args)-1].Step)
	})
}

// empty reports whether some view, of an operand or the result, has no elements: then it has no place either.
func (t *trimmer) empty(out Var) bool {
	none := func(v Var) bool { return Size(v.Shape) == 0 }
	return none(out) || slices.ContainsFunc(t.steps, func(s Step) bool { return slices.ContainsFunc(s.Args, none) })
}

func (t *trimmer) zero(step int) bool {
	return t.steps[step].Prim == Number && t.steps[step].Number().Value == 0
}

// cut says which elements of a step's result a view shows, by the axes of that result: element [i, j …] of the view is at index at[a] + i·by[0][a] + j·by[1][a] …
// of axis a. It is not known of a view whose axis goes over the end of an axis of the result.
type cut struct {
	known bool
	at    []int
	by    [][]int
}

func (t *trimmer) cut(v Var) cut {
	shape := t.steps[v.Step].Shape
	of := Contiguous(shape)
	digits := func(n int) []int {
		all := make([]int, len(shape))
		for a, size := range shape {
			if size > 1 {
				all[a], n = n/of[a], n%of[a]
			}
		}
		return all
	}
	c := cut{known: Size(v.Shape) > 0 && Size(shape) > 0, at: digits(v.Off)}
	most := slices.Clone(c.at)
	for k, n := range v.Shape {
		stride := v.Stride[k]
		if n == 1 {
			stride = 0
		}
		c.known = c.known && stride >= 0
		c.by = append(c.by, digits(max(stride, 0)))
		for a, by := range c.by[k] {
			most[a] += by * (n - 1)
		}
	}
	for a, n := range most {
		c.known = c.known && n < shape[a]
	}
	return c
}

// liveView lists, by axis of a view, the index from which on the view shows zeros only; 0 for each axis of a view that shows zeros only.
func (t *trimmer) liveView(v Var, c cut) []int {
	of, all := t.live[v.Step], slices.Clone(v.Shape)
	if slices.Contains(of, 0) {
		clear(all)
		return all
	}
	if !c.known {
		return all
	}
	for a, n := range of {
		if c.at[a] >= n {
			clear(all)
			return all
		}
		for k := range all {
			if by := c.by[k][a]; by > 0 {
				all[k] = min(all[k], (n-c.at[a]+by-1)/by)
			}
		}
	}
	return all
}

// liveOf are the live sizes of a step's result, given those of its operands.
func (t *trimmer) liveOf(i int) []int {
	s := &t.steps[i]
	live := slices.Clone(s.Shape)
	if t.zero(i) {
		clear(live)
		return live
	}
	var of [][]int
	for _, a := range s.Args {
		c := t.cut(a)
		t.cuts[i] = append(t.cuts[i], c)
		of = append(of, t.liveView(a, c))
	}
	switch s.Prim {
	case Neg, Round, Copy, Max, Add, Sub:
		clear(live)
		for _, sizes := range of {
			live = largest(live, sizes)
		}
	case Choose:
		live = largest(of[1], of[2])
	case Mul, Dot:
		for k, sizes := range of {
			for a := range live {
				if s.Args[k].Shape[a] == s.Shape[a] { // a product repeats an operand along the axes of the other
					live[a] = min(live[a], sizes[a])
				}
			}
			if slices.Contains(sizes, 0) {
				clear(live)
			}
		}
	case Cat:
		clear(live)
		from := 0
		for k, sizes := range of {
			if !slices.Contains(sizes, 0) {
				sizes[s.Axis()] += from
				live = largest(live, sizes)
			}
			from += s.Args[k].Shape[s.Axis()]
		}
	case Solve: // a zero row of B at a zero row of L has a zero solution, unless the solution is divided by a diagonal of 0
		if s.Is(UnitDiagonal) {
			live = slices.Clone(of[1])
		}
		if !slices.Contains(live, 0) {
			live[1] = max(live[1], of[0][1])
		}
	}
	if slices.Contains(live, 0) {
		clear(live)
	}
	return live
}

// largest are the larger of two sizes of each axis.
func largest(x, y []int) []int {
	all := slices.Clone(x)
	for a := range all {
		all[a] = max(all[a], y[a])
	}
	return all
}

// mark notes that a view is read up to some sizes of its axes.
func (t *trimmer) mark(v Var, c cut, sizes []int) {
	shape := t.steps[v.Step].Shape
	if t.need[v.Step] == nil {
		t.need[v.Step] = make([]int, len(shape))
	}
	need := t.need[v.Step]
	for a := range need {
		end := shape[a]
		if c.known {
			end = c.at[a] + 1
			for k, n := range sizes {
				end += c.by[k][a] * (n - 1)
			}
		}
		need[a] = max(need[a], end)
	}
}

// read marks the elements of the operands that a step needs for the needed elements of its result.
func (t *trimmer) read(i int) {
	s := &t.steps[i]
	if t.need[i] == nil || s.Prim.IsLeaf() {
		return
	}
	if !t.trims(s) {
		copy(t.need[i], s.Shape)
	}
	for k, a := range s.Args {
		if sizes := t.sizes(i, k); !slices.Contains(sizes, 0) {
			t.mark(a, t.cuts[i][k], sizes)
		}
	}
}

// trims reports whether some of a step's elements can be computed from some of its operands' elements.
func (t *trimmer) trims(s *Step) bool {
	switch {
	case s.Prim == Dot, s.Prim == Sum, s.Prim == RowMax, s.Prim == Cat, s.Prim == Solve:
		return true
	case s.Prim == Choose, s.Prim.ByElement() && s.Prim != Angle:
		return !slices.ContainsFunc(s.Args, func(a Var) bool { return !slices.Equal(a.Shape, s.Shape) })
	}
	return false
}

// sizes are the sizes up to which operand k of a step is read; one is 0 where nothing of it is.
func (t *trimmer) sizes(i, k int) []int {
	s, v := &t.steps[i], t.steps[i].Args[k]
	need := t.need[i]
	switch {
	case !t.trims(s):
		return v.Shape
	case s.Prim == Dot, s.Prim == Sum:
		terms := v.Last()
		for n, a := range s.Args {
			live := t.liveView(a, t.cuts[i][n])
			terms = min(terms, live[len(live)-1])
		}
		sizes := slices.Clone(need)
		if s.Prim == Sum {
			sizes = sizes[:len(sizes)-1]
		}
		for a := range sizes {
			sizes[a] = min(sizes[a], v.Shape[a])
		}
		return append(sizes, min(max(terms, 1), v.Last()))
	case s.Prim == RowMax:
		return append(slices.Clone(need[:len(need)-1]), v.Last())
	case s.Prim == Solve && k == 0:
		return []int{need[0], need[1], need[1]}
	case s.Prim == Cat:
		sizes := slices.Clone(need)
		for _, a := range s.Args[:k] {
			sizes[s.Axis()] -= a.Shape[s.Axis()]
		}
		sizes[s.Axis()] = min(max(sizes[s.Axis()], 0), v.Shape[s.Axis()])
		return sizes
	}
	return need
}

// rebuilt are the steps that are read, with the shapes that are.
func (t *trimmer) rebuilt(out Var, last cut) ([]Step, Var) {
	var all []Step
	to := make([]int, len(t.steps))
	view := func(v Var, c cut, sizes []int) Var {
		w := Var{to[v.Step], v.Off, slices.Clone(sizes), v.Stride}
		if shape := all[w.Step].Shape; c.known && !slices.Equal(shape, t.steps[v.Step].Shape) {
			of := Contiguous(shape)
			w.Off, w.Stride = 0, make([]int, len(sizes))
			for a, n := range of {
				w.Off += c.at[a] * n
				for k := range sizes {
					w.Stride[k] += c.by[k][a] * n
				}
			}
		}
		return w
	}
	for i := range t.steps {
		s := t.steps[i]
		if t.need[i] == nil && (!s.Prim.IsLeaf() || s.Prim == Number || s.Prim == Vector) {
			continue
		}
		if s.readers = 0; !s.Prim.IsLeaf() {
			s.Shape = t.need[i]
		}
		old := s.Args
		s.Args = nil
		for k, a := range old {
			sizes := t.sizes(i, k)
			if slices.Contains(sizes, 0) && Size(a.Shape) > 0 { // a part that is not read
				continue
			}
			w := view(a, t.cuts[i][k], sizes)
			all[w.Step].readers++
			s.Args = append(s.Args, w)
		}
		to[i] = len(all)
		all = append(all, s)
	}
	return all, view(out, last, out.Shape)
}
