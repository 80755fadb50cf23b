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
