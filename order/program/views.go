package program

import "slices"

// Reshape is a tensor read row-major in another shape; one size of −1 is what is left. A view that is not row-major is an
// error.
func (b *Builder) Reshape(v Var, shape ...int) Var {
	if at := slices.Index(shape, -1); at >= 0 {
		shape = slices.Clone(shape)
		shape[at] = 1
		shape[at] = size(v.shape) / max(size(shape), 1)
	}
	switch {
	case slices.Equal(v.shape, shape):
		return v
	case size(v.shape) != size(shape) || b.err == nil && !v.plain():
		return b.Fail("%v read as %v", v.shape, shape)
	}
	return Var{v.step, v.off, shape, contiguous(shape)}
}

// View is a tensor's elements, row-major from 0, seen with strides: element [i, j …] is number off + i·stride₀ + j·stride₁ … of
// them, as in torch's as_strided. What is itself a view is copied where no view of its source shows that. A view beyond the elements is an error.
func (b *Builder) View(v Var, shape, stride []int, off int) Var {
	if b.err != nil {
		return v
	}
	if len(shape) != len(stride) || len(shape) == 0 || !Within(size(v.shape), shape, stride, off) {
		return b.Fail("%d elements seen as %v by %v from %d", size(v.shape), shape, stride, off)
	}
	if w, ok := v.seen(shape, stride, off); ok {
		return w
	}
	return Var{b.Cat(0, v).step, off, shape, stride}
}

// seen is a view of a view's elements, where it is one of what that shows: each of its axes has to go along one axis of v.
func (v Var) seen(shape, stride []int, off int) (w Var, ok bool) {
	if v.plain() {
		return Var{v.step, v.off + off, shape, stride}, true
	}
	if size(shape) == 0 {
		return v, false
	}
	of := contiguous(v.shape)
	w = Var{v.step, v.off, shape, make([]int, len(shape))}
	reach := make([]int, len(v.shape)) // the largest index of each axis
	for a, n := range v.shape {
		if n > 1 {
			reach[a] = off / of[a]
			off %= of[a]
			w.off += reach[a] * v.stride[a]
		}
	}
	for k, n := range shape {
		if n == 1 || stride[k] == 0 {
			continue
		}
		a := 0
		for a < len(of) && (v.shape[a] == 1 || of[a] > stride[k]) {
			a++
		}
		if stride[k] < 0 || a == len(of) || stride[k]%of[a] != 0 {
			return v, false
		}
		by := stride[k] / of[a]
		if reach[a] += by * (n - 1); reach[a] >= v.shape[a] {
			return v, false
		}
		w.stride[k] = by * v.stride[a]
	}
	return w, true
}

// Expand is a view repeated to a larger shape, as in torch's expand: axes of one element, and axes before the first.
func (b *Builder) Expand(v Var, shape []int) Var {
	if all, ok := broadcast(shape, v.shape); b.err == nil && (!ok || !slices.Equal(all, shape)) {
		return b.Fail("%v repeated to %v", v.shape, shape)
	}
	return v.to(shape)
}

// Reverse is a view with an axis from its end to its beginning.
func (b *Builder) Reverse(v Var, axis int) Var {
	if axis >= len(v.shape) {
		return b.Fail("axis %d of %v", axis, v.shape)
	}
	w := Var{v.step, v.off + max(v.shape[axis]-1, 0)*v.stride[axis], v.shape, slices.Clone(v.stride)}
	w.stride[axis] = -w.stride[axis]
	return w
}

// Within reports whether a view shows none but the first n elements: a view with no elements shows none, whatever its strides.
func Within(n int, shape, stride []int, off int) bool {
	if off < 0 || off > n {
		return false
	}
	if slices.Contains(shape, 0) {
		for a, d := range shape {
			if s := stride[a]; d < 0 || d > 1<<31 || s < -1<<31 || s > 1<<31 {
				return false
			}
		}
		return true
	}
	least, most := off, off
	for a, d := range shape {
		switch s := stride[a]; {
		case d < 0 || d > n && s != 0:
			return false
		case d > 1 && (s > n || s < -n):
			return false
		case s > 0:
			most += (d - 1) * s
		default:
			least += (d - 1) * s
		}
		if most < 0 || least > off || most > 1<<50 || least < -1<<50 {
			return false
		}
	}
	return least >= 0 && most < n
}

// Plain is a tensor whose elements follow each other: itself, or a copy.
func (b *Builder) Plain(v Var) Var {
	if b.err != nil || v.plain() {
		return v
	}
	return b.Cat(0, v)
}

// Split makes an axis two, the first of size n.
func (b *Builder) Split(v Var, axis, n int) Var {
	if axis >= len(v.shape) || n < 1 || v.shape[axis]%n != 0 {
		return b.Fail("axis %d of %v in %d pieces", axis, v.shape, n)
	}
	inner := v.shape[axis] / n
	return Var{
		v.step, v.off,
		slices.Concat(v.shape[:axis], []int{n, inner}, v.shape[axis+1:]),
		slices.Concat(v.stride[:axis], []int{inner * v.stride[axis], v.stride[axis]}, v.stride[axis+1:]),
	}
}

// Permute puts axes in another order, each of them once; −1 is a new axis of size 1.
func (b *Builder) Permute(v Var, axes ...int) Var {
	out := Var{step: v.step, off: v.off}
	seen := make([]bool, len(v.shape))
	for _, a := range axes {
		if a >= len(v.shape) || a >= 0 && seen[a] {
			return b.Fail("axes %v of %v", axes, v.shape)
		}
		n, s := 1, 0
		if a >= 0 {
			n, s, seen[a] = v.shape[a], v.stride[a], true
		}
		out.shape, out.stride = append(out.shape, n), append(out.stride, s)
	}
	if slices.Contains(seen, false) {
		return b.Fail("axes %v of %v", axes, v.shape)
	}
	return out
}

// Slice takes the indexes [from, to) of an axis.
func (b *Builder) Slice(v Var, axis, from, to int) Var {
	if axis >= len(v.shape) || from < 0 || to > v.shape[axis] || from > to {
		return b.Fail("indexes %d to %d of axis %d of %v", from, to, axis, v.shape)
	}
	out := Var{v.step, v.off + from*v.stride[axis], slices.Clone(v.shape), v.stride}
	out.shape[axis] = to - from
	return out
}

// Take takes one index of an axis, which is gone.
func (b *Builder) Take(v Var, axis, index int) Var {
	if v = b.Slice(v, axis, index, index+1); b.err != nil {
		return v
	}
	return Var{v.step, v.off, slices.Delete(slices.Clone(v.shape), axis, axis+1), slices.Delete(slices.Clone(v.stride), axis, axis+1)}
}

// Unsliced is a view with all indexes that its step has along an axis; ok is false for one that has not all of the rest.
func (p *Program) Unsliced(v Var, axis int) (whole Var, ok bool) {
	all := size(p.Steps[v.step].Shape)
	if axis >= len(v.shape) || v.stride[axis] < 1 || v.off%v.stride[axis] != 0 {
		return v, false
	}
	rest := size(v.shape[:axis]) * size(v.shape[axis+1:])
	if rest == 0 || all%rest != 0 || all/rest < v.shape[axis] {
		return v, false
	}
	whole = Var{v.step, 0, slices.Clone(v.shape), v.stride}
	whole.shape[axis] = all / rest
	last := 0 // the last element of the view is that of the step
	for a, n := range whole.shape {
		last += (n - 1) * whole.stride[a]
	}
	return whole, last == all-1
}
