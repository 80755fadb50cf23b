package program

import "slices"

// Reshape reads a tensor row-major in another shape. A size of −1 is computed from the other sizes. A view that is
// not row-major is an error.
func (b *Builder) Reshape(v Var, shape ...int) Var {
	if at := slices.Index(shape, -1); at >= 0 {
		shape = slices.Clone(shape)
		shape[at] = 1
		shape[at] = Size(v.Shape) / max(Size(shape), 1)
	}
	switch {
	case slices.Equal(v.Shape, shape):
		return v
	case Size(v.Shape) != Size(shape) || b.err == nil && !v.Plain():
		return b.Fail("%v read as %v", v.Shape, shape)
	}
	return Var{v.Step, v.Off, shape, Contiguous(shape)}
}

// View is a tensor's elements, row-major from 0, seen with strides: element [i, j …] is number off + i·stride₀ + j·stride₁ … of
// them, as in torch's as_strided. What is itself a view is copied where no view of its source shows that. A view beyond the elements is an error.
func (b *Builder) View(v Var, shape, stride []int, off int) Var {
	if b.err != nil {
		return v
	}
	if len(shape) != len(stride) || len(shape) == 0 || !Within(Size(v.Shape), shape, stride, off) {
		return b.Fail("%d elements seen as %v by %v from %d", Size(v.Shape), shape, stride, off)
	}
	if w, ok := v.seen(shape, stride, off); ok {
		return w
	}
	return Var{b.Cat(0, v).Step, off, shape, stride}
}

// seen returns the view w of the elements that v shows: w has the given shape, stride and offset in v. ok is false
// where no view can show them: each axis of w has to go along one axis of v.
func (v Var) seen(shape, stride []int, off int) (w Var, ok bool) {
	if v.Plain() {
		return Var{v.Step, v.Off + off, shape, stride}, true
	}
	if Size(shape) == 0 {
		return v, false
	}
	of := Contiguous(v.Shape)
	w = Var{v.Step, v.Off, shape, make([]int, len(shape))}
	reach := make([]int, len(v.Shape)) // the largest index of each axis
	for a, n := range v.Shape {
		if n > 1 {
			reach[a] = off / of[a]
			off %= of[a]
			w.Off += reach[a] * v.Stride[a]
		}
	}
	for k, n := range shape {
		if n == 1 || stride[k] == 0 {
			continue
		}
		a := 0
		for a < len(of) && (v.Shape[a] == 1 || of[a] > stride[k]) {
			a++
		}
		if stride[k] < 0 || a == len(of) || stride[k]%of[a] != 0 {
			return v, false
		}
		by := stride[k] / of[a]
		if reach[a] += by * (n - 1); reach[a] >= v.Shape[a] {
			return v, false
		}
		w.Stride[k] = by * v.Stride[a]
	}
	return w, true
}

// Expand is a view repeated to a larger shape, as in torch's expand: axes of one element, and axes before the first.
func (b *Builder) Expand(v Var, shape []int) Var {
	if all, ok := Broadcast(shape, v.Shape); b.err == nil && (!ok || !slices.Equal(all, shape)) {
		return b.Fail("%v repeated to %v", v.Shape, shape)
	}
	return v.Expanded(shape)
}

// Reverse is a view with an axis from its end to its beginning.
func (b *Builder) Reverse(v Var, axis int) Var {
	if axis >= len(v.Shape) {
		return b.Fail("axis %d of %v", axis, v.Shape)
	}
	w := Var{v.Step, v.Off + max(v.Shape[axis]-1, 0)*v.Stride[axis], v.Shape, slices.Clone(v.Stride)}
	w.Stride[axis] = -w.Stride[axis]
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
	if b.err != nil || v.Plain() {
		return v
	}
	return b.Cat(0, v)
}

// Split makes an axis two, the first of size n.
func (b *Builder) Split(v Var, axis, n int) Var {
	if axis >= len(v.Shape) || n < 1 || v.Shape[axis]%n != 0 {
		return b.Fail("axis %d of %v in %d pieces", axis, v.Shape, n)
	}
	inner := v.Shape[axis] / n
	return Var{
		v.Step, v.Off,
		slices.Concat(v.Shape[:axis], []int{n, inner}, v.Shape[axis+1:]),
		slices.Concat(v.Stride[:axis], []int{inner * v.Stride[axis], v.Stride[axis]}, v.Stride[axis+1:]),
	}
}

// Permute puts axes in another order, each of them once; −1 is a new axis of size 1.
func (b *Builder) Permute(v Var, axes ...int) Var {
	out := Var{Step: v.Step, Off: v.Off}
	seen := make([]bool, len(v.Shape))
	for _, a := range axes {
		if a >= len(v.Shape) || a >= 0 && seen[a] {
			return b.Fail("axes %v of %v", axes, v.Shape)
		}
		n, s := 1, 0
		if a >= 0 {
			n, s, seen[a] = v.Shape[a], v.Stride[a], true
		}
		out.Shape, out.Stride = append(out.Shape, n), append(out.Stride, s)
	}
	if slices.Contains(seen, false) {
		return b.Fail("axes %v of %v", axes, v.Shape)
	}
	return out
}

// Slice takes the indexes [from, to) of an axis.
func (b *Builder) Slice(v Var, axis, from, to int) Var {
	if axis >= len(v.Shape) || from < 0 || to > v.Shape[axis] || from > to {
		return b.Fail("indexes %d to %d of axis %d of %v", from, to, axis, v.Shape)
	}
	out := Var{v.Step, v.Off + from*v.Stride[axis], slices.Clone(v.Shape), v.Stride}
	out.Shape[axis] = to - from
	return out
}

// Take takes one index of an axis, which is gone.
func (b *Builder) Take(v Var, axis, index int) Var {
	if v = b.Slice(v, axis, index, index+1); b.err != nil {
		return v
	}
	return Var{v.Step, v.Off, slices.Delete(slices.Clone(v.Shape), axis, axis+1), slices.Delete(slices.Clone(v.Stride), axis, axis+1)}
}

// element adds a step by element, its operands broadcast as numpy does.
func (b *Builder) element(p Prim, name string, args ...Var) Var {
	if b.err != nil {
		return args[0]
	}
	shape := args[0].Shape
	for _, a := range args[1:] {
		var ok bool
		if shape, ok = Broadcast(shape, a.Shape); !ok {
			return b.Fail("%s: %v and %v do not go together", name, args[0].Shape, a.Shape)
		}
	}
	views := make([]Var, len(args))
	for i, a := range args {
		views[i] = a.Expanded(shape)
	}
	s := Step{Prim: p, Name: name, Args: views, Shape: shape}
	for _, a := range args {
		number := &b.Steps[a.Step]
		if p == Mul && number.Number().Inverse {
			s.Payload = ByNumber
		}
	}
	return b.Append(s)
}

// Broadcast returns the shape of an operation by element on tensors of shapes a and b, in new memory. The last axes are aligned. An axis of
// size 1, or a missing axis, takes the size in the other shape. Broadcast returns false if two sizes differ and neither size is 1.
func Broadcast(a, b []int) ([]int, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := slices.Clone(a)
	for i := range b {
		at := len(a) - len(b) + i
		switch {
		case a[at] == b[i] || b[i] == 1:
		case a[at] == 1:
			shape[at] = b[i]
		default:
			return nil, false
		}
	}
	return shape, true
}

// Expanded is the view repeated to a larger shape.
func (v Var) Expanded(shape []int) Var {
	stride := make([]int, len(shape))
	for i := range v.Shape {
		if at := len(shape) - len(v.Shape) + i; v.Shape[i] == shape[at] {
			stride[at] = v.Stride[i]
		}
	}
	return Var{v.Step, v.Off, shape, stride}
}

// The primitives by element. A name makes the step a site; moves have none.

// Add is x + y.
func (b *Builder) Add(name string, x, y Var) Var { return b.element(Add, name, x, y) }

// Sub is x − y.
func (b *Builder) Sub(name string, x, y Var) Var { return b.element(Sub, name, x, y) }

// Mul is x · y.
func (b *Builder) Mul(name string, x, y Var) Var { return b.element(Mul, name, x, y) }

// Div is x / y.
func (b *Builder) Div(name string, x, y Var) Var { return b.element(Div, name, x, y) }

// Max is the larger of x and y.
func (b *Builder) Max(x, y Var) Var { return b.element(Max, "", x, y) }

// Gate is 1 where x is above 0, and 0 elsewhere.
func (b *Builder) Gate(x Var) Var { return b.element(Gate, "", x) }

// Floor is the largest whole number that is not above x.
func (b *Builder) Floor(x Var) Var { return b.element(Floor, "", x) }

// Neg is −x.
func (b *Builder) Neg(x Var) Var { return b.element(Neg, "", x) }

// Sqrt is √x.
func (b *Builder) Sqrt(name string, x Var) Var { return b.element(Sqrt, name, x) }

// Rsqrt is x^(−1/2).
func (b *Builder) Rsqrt(name string, x Var) Var { return b.element(Rsqrt, name, x) }

// Exp is eˣ.
func (b *Builder) Exp(name string, x Var) Var { return b.element(Exp, name, x) }

// Tanh is tanh x.
func (b *Builder) Tanh(name string, x Var) Var { return b.element(Tanh, name, x) }

// Erf is erf x.
func (b *Builder) Erf(name string, x Var) Var { return b.element(Erf, name, x) }

// Log is log x, to the base e.
func (b *Builder) Log(name string, x Var) Var { return b.element(Log, name, x) }

// Log1p is log(1 + x).
func (b *Builder) Log1p(name string, x Var) Var { return b.element(Log1p, name, x) }

// Expm1 is eˣ − 1.
func (b *Builder) Expm1(name string, x Var) Var { return b.element(Expm1, name, x) }

// Pow is xʸ.
func (b *Builder) Pow(name string, x, y Var) Var { return b.element(Pow, name, x, y) }

// Cos is cos x.
func (b *Builder) Cos(name string, x Var) Var { return b.element(Cos, name, x) }

// Sin is sin x.
func (b *Builder) Sin(name string, x Var) Var { return b.element(Sin, name, x) }

// Angle is frequency · position, rounded to float32 in every arithmetic.
func (b *Builder) Angle(frequency, position Var) Var {
	return b.element(Angle, "", frequency, position)
}

// Sum is Σ x over the last axis, kept with size 1.
func (b *Builder) Sum(name string, x Var) Var { return b.reduce(Sum, name, x) }

// RowMax is the largest of the last axis, kept with size 1.
func (b *Builder) RowMax(x Var) Var { return b.reduce(RowMax, "", x) }

// Mean is Σ x / n over the last axis, two steps: the sum, whose name has "sum of" before it, and the division.
func (b *Builder) Mean(name string, x Var) Var {
	return b.Div(name, b.Sum("sum of "+name, x), b.Literal(float64(x.Last())))
}

func (b *Builder) reduce(p Prim, name string, x Var) Var {
	shape := slices.Clone(x.Shape)
	shape[len(shape)-1] = 1
	return b.Append(Step{Prim: p, Name: name, Args: []Var{x}, Shape: shape})
}
