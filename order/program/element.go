package program

import "slices"

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
