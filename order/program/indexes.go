package program

import (
	"fmt"
	"math"
	"slices"
)

// Rank are the indexes of the k largest elements of the last axis, the largest first; of equal elements the smaller index comes
// first. It copies nothing and rounds nothing: it chooses. Where the bounds of x allow for another choice, and [Call.Open] says so,
// an index has an infinite bound, and what is gathered by it has the bounds of all that it may be.
//
// The choice that an engine made is the result wherever bounds allow for it, see [Call.Own]. It is allowed as a set: no element
// that was left out is certainly larger than one that was taken. With sorted, its order is held to the same.
func (b *Builder) Rank(x Var, k int, sorted bool) Var {
	if b.err == nil && (k < 0 || k > x.Last()) {
		return b.Fail("the %d largest of %d", k, x.Last())
	}
	shape := slices.Clone(x.Shape)
	shape[len(shape)-1] = k
	return b.Append(Step{Prim: Rank, Args: []Var{x}, Shape: shape, Payload: marked(sorted, Sorted)})
}

// rank chooses by row.
func (r *run) rank(i int, out operand) {
	s := &r.p.Steps[i]
	x := r.packed(s.Args[0])
	n, k := s.Args[0].Last(), s.Shape[len(s.Shape)-1]
	var own []float64
	if out.e != nil {
		own = r.own(i)
	}
	for row := range Size(s.Shape[:len(s.Shape)-1]) {
		at, to := x.slice(row*n, n), out.slice(row*k, k)
		order := ranked(at.v)
		for rank := range to.v {
			to.v[rank] = float64(order[rank])
		}
		if out.e == nil {
			continue
		}
		for rank, certain := range at.certain(order)[:k] {
			if !certain && (r.c.Open || at.unknown()) {
				to.e[rank] = math.Inf(1)
			}
		}
		if own == nil || at.unknown() {
			continue
		}
		clear(to.e) // the choice is right or wrong
		if taken := own[row*k:][:k]; at.allows(taken, s.Is(Sorted)) {
			for rank, index := range taken {
				if index != to.v[rank] {
					r.followed++
				}
			}
			copy(to.v, taken)
		}
	}
}

// ranked are the indexes of a row, the largest element first; NaN counts as larger than any number, as in torch.
func ranked(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int {
		switch a, b := x[i], x[k]; {
		case a > b || a != a && b == b:
			return -1
		case b > a || b != b && a == a:
			return 1
		}
		return 0
	})
	return order
}

// certain reports, by rank, whether the element of the rank has the rank for all values within the bounds.
func (x operand) certain(order []int) []bool {
	n := len(order)
	clear := make([]bool, n+1) // by rank: every element before the rank is certainly larger than every element from the rank on
	clear[0], clear[n] = true, true
	high := make([]float64, n+1) // of the elements from a rank on
	high[n] = math.Inf(-1)
	for rank := n - 1; rank >= 0; rank-- {
		high[rank] = math.Max(high[rank+1], x.v[order[rank]]+x.e[order[rank]])
	}
	low := math.Inf(1)
	for rank, i := range order[:max(n-1, 0)] {
		low = math.Min(low, x.v[i]-x.e[i])
		clear[rank+1] = low > high[rank+1] // false for NaN
	}
	certain := make([]bool, n)
	for rank := range certain {
		certain[rank] = clear[rank] && clear[rank+1]
	}
	return certain
}

// contenders returns the elements of a row that may have a rank, counted from 0: at most rank elements are certainly
// larger, and the number of certainly smaller elements is at most the number of ranks after this rank.
func (x operand) contenders(rank int) []int {
	var all []int
	for i := range x.v {
		larger, smaller := 0, 0
		for k := range x.v {
			if x.v[k]-x.e[k] > x.v[i]+x.e[i] {
				larger++
			}
			if x.v[i]-x.e[i] > x.v[k]+x.e[k] {
				smaller++
			}
		}
		if larger <= rank && smaller < len(x.v)-rank {
			all = append(all, i)
		}
	}
	return all
}

// unknown reports whether nothing is known of some element of a row.
func (x operand) unknown() bool {
	return slices.ContainsFunc(x.v, math.IsNaN) || slices.ContainsFunc(x.e, func(e float64) bool { return math.IsInf(e, 0) || e != e })
}

// allows reports whether bounds allow for a choice of elements of a row.
func (x operand) allows(taken []float64, sorted bool) bool {
	is := make([]bool, len(x.v))
	low := math.Inf(1) // the least that some taken element may be at most
	for _, index := range taken {
		k := int(index)
		if !(index >= 0 && index < float64(len(is))) || index != float64(k) || is[k] {
			return false
		}
		if is[k] = true; sorted && x.v[k]-x.e[k] > low {
			return false
		}
		low = math.Min(low, x.v[k]+x.e[k])
	}
	for k, v := range x.v {
		if !is[k] && v-x.e[k] > low {
			return false
		}
	}
	return true
}

// own is the engine's choice as a step has it, where the program's result shows all of the step; else nil.
func (r *run) own(step int) []float64 {
	if len(r.c.Own) == 0 || len(r.c.Own) != Size(r.p.Out.Shape) || len(r.c.Own) != Size(r.p.Steps[step].Shape) {
		return nil
	}
	at, from := chosen(r.p, r.p.Out)
	if at != nil && from == step {
		own := make([]float64, len(at))
		seen := make([]bool, len(at))
		for i, k := range at {
			if seen[k] {
				return nil
			}
			own[k], seen[k] = r.c.Own[i], true
		}
		return own
	}
	return nil
}

// chosen says where the elements of a view of a choice come from: the [Rank] step, and the places of its result, row-major. Copies
// and what only looks at them are followed; at is nil for anything else.
func chosen(p *Program, v Var) (at []int, step int) {
	at = places(v)
	for {
		s := &p.Steps[v.Step]
		switch {
		case s.Prim == Rank:
			return at, v.Step
		case (s.Prim == Cat || s.Prim == Copy || s.Prim == Round) && len(s.Args) == 1:
		default:
			return nil, 0
		}
		v = s.Args[0]
		behind := places(v)
		for i, k := range at {
			at[i] = behind[k]
		}
	}
}

// places are the places in a step's result that a view shows, row-major.
func places(v Var) []int {
	at := make([]int, Size(v.Shape))
	for i := range at {
		k, rest := v.Off, i
		for axis := len(v.Shape) - 1; axis >= 0; axis-- {
			k += rest % v.Shape[axis] * v.Stride[axis]
			rest /= v.Shape[axis]
		}
		at[i] = k
	}
	return at
}

// alternatives holds the values, other than the computed value, that an index may have.
type alternatives struct {
	r    *run
	at   []int // of the choice
	step int
	x    operand
	all  int
}

// alternatives are those of the elements of an index to an axis of n elements.
func (r *run) alternatives(index Var, n int) *alternatives {
	a := &alternatives{r: r, all: n}
	if a.at, a.step = chosen(r.p, index); a.at != nil {
		a.x = r.packed(r.p.Steps[a.step].Args[0])
	}
	return a
}

// of are the indexes that element i may be: all, where nobody knows.
func (a *alternatives) of(i int) []int {
	if a.at != nil {
		s := &a.r.p.Steps[a.step]
		k := s.Shape[len(s.Shape)-1]
		n := s.Args[0].Last()
		all := a.x.slice(a.at[i]/k*n, n).contenders(a.at[i] % k)
		if len(all) > 0 && slices.Max(all) < a.all {
			return all
		}
	}
	all := make([]int, a.all)
	for k := range all {
		all[k] = k
	}
	return all
}

// Scatter is x with elements of y written by index along an axis: that which is x[… index[… i …] …] is y[… i …], the last that is
// written there. The index has y's shape, and x has it but for that axis; an index outside of it is an error of the evaluation.
func (b *Builder) Scatter(axis int, x, index, y Var) Var {
	return b.scattered(Scatter, "", axis, x, index, y)
}

// Collect is [Builder.Scatter] with the elements of y added to those of x, one after the other, each sum rounded.
func (b *Builder) Collect(name string, axis int, x, index, y Var) Var {
	return b.scattered(Collect, name, axis, x, index, y)
}

func (b *Builder) scattered(p Prim, name string, axis int, x, index, y Var) Var {
	if b.err != nil {
		return x
	}
	ok := axis >= 0 && axis < len(x.Shape) && len(x.Shape) == len(index.Shape) && slices.Equal(index.Shape, y.Shape)
	for a := range x.Shape {
		ok = ok && (a == axis || x.Shape[a] == index.Shape[a])
	}
	if !ok {
		return b.Fail("%s: %v by indexes of %v along axis %d of %v", p, y.Shape, index.Shape, axis, x.Shape)
	}
	return b.Append(Step{Prim: p, Name: name, Args: []Var{x, index, y}, Shape: x.Shape, Payload: Axis(axis)})
}

// scatter writes elements, or adds them.
func (r *run) scatter(i int, out operand) error {
	s := &r.p.Steps[i]
	x, index, y := r.packed(s.Args[0]), r.packed(s.Args[1]), r.packed(s.Args[2])
	copy(out.v, x.v)
	copy(out.e, x.e)
	f := r.at(i, r.choice(i).Round)
	inner, own, n := Size(s.Shape[s.Axis()+1:]), s.Args[1].Shape[s.Axis()], s.Shape[s.Axis()]
	var others *alternatives
	for i, at := range index.v {
		k := int(at)
		if !(at >= 0 && at < float64(n)) || at != float64(k) {
			return fmt.Errorf("scattering: %w: %v at %d is outside [0, %d)", ErrIndex, at, i, n)
		}
		place := func(k int) int { return (i/(own*inner)*n+k)*inner + i%inner }
		to, e := place(k), 0.0
		if out.e != nil {
			e = y.e[i]
		}
		v := y.v[i]
		if s.Prim == Collect {
			if out.e != nil {
				e += out.e[to]
			}
			v, e = f.one(out.v[to]+v, e)
		}
		if out.e == nil || index.e[i] == 0 {
			if out.v[to] = v; out.e != nil {
				out.e[to] = e
			}
			continue
		}
		// An engine may have written y.v[i] at another place: each place keeps its value, or takes y.v[i].
		if others == nil {
			others = r.alternatives(s.Args[1], n)
		}
		for _, k := range others.of(i) {
			if p := place(k); p != to {
				there, te := y.v[i], y.e[i]
				if s.Prim == Collect {
					there, te = f.one(out.v[p]+y.v[i], te+out.e[p])
				}
				out.e[p] = either(out.v[p], out.e[p], there, te)
			}
		}
		out.v[to], out.e[to] = v, either(v, e, out.v[to], out.e[to])
	}
	return nil
}

// either is the bound of v where the other number may be the right one.
func either(v, e, other, oe float64) float64 {
	if v == other || v != v && other != other {
		return known(max(e, oe))
	}
	return known(max(e, math.Abs(other-v)+oe))
}

// cat copies operands side by side.
func (r *run) cat(i int, out operand) {
	s := &r.p.Steps[i]
	if has := r.slotsOf(i); has != nil {
		r.catRows(s, has, out)
		return
	}
	inner := Size(s.Shape[s.Axis()+1:])
	outer := Size(s.Shape[:s.Axis()])
	at := 0
	for _, v := range s.Args {
		x := r.packed(v)
		n := v.Shape[s.Axis()] * inner
		for k := range outer {
			copy(out.v[k*s.Shape[s.Axis()]*inner+at:][:n], x.v[k*n:])
			if out.e != nil {
				copy(out.e[k*s.Shape[s.Axis()]*inner+at:][:n], x.e[k*n:])
			}
		}
		at += n
	}
}

// catRows is cat along the last axis of the rows that are needed.
func (r *run) catRows(s *Step, has *slots, out operand) {
	for row, at := range has.at {
		if at < 0 {
			continue
		}
		at *= has.width
		for _, v := range s.Args {
			r.gather(out.slice(at, v.Last()), v, row, row+1)
			at += v.Last()
		}
	}
}
