package op

import "github.com/tracediff/tracediff/order/program"

// Part is a part of the last axis: of x [B,T,Heads·n] as heads of n each the elements from From on, as many as the result has. With
// Transpose the result is [B,h,T,D], its heads before its tokens. Input: x.
type Part struct {
	Heads     int  `json:"heads"`
	From      int  `json:"from"`
	Transpose bool `json:"transpose,omitempty"`
}

// Kind is "part".
func (Part) Kind() string { return "part" }

// Steps takes the part.
func (o Part) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	return o.of(b, in[0], b.Shape)
}

// of is the part in a shape.
func (o Part) of(b *program.Builder, x program.Var, shape []int) program.Var {
	last := len(x.Shape) - 1
	n, rows := 1, 1
	for _, d := range shape {
		n *= d
	}
	for _, d := range x.Shape[:last] {
		rows *= d
	}
	if o.Heads < 1 || rows == 0 || x.Last()%o.Heads != 0 || n%(rows*o.Heads) != 0 {
		return b.Fail("%d parts of %v as %v", o.Heads, x.Shape, shape)
	}
	wide := n / (rows * o.Heads)
	x = b.Cat(last, b.Slice(b.Split(x, last, o.Heads), last+1, o.From, o.From+wide))
	if !o.Transpose {
		return b.Reshape(x, shape...)
	}
	if len(shape) != 4 {
		return b.Fail("%v has no heads", shape)
	}
	return b.Permute(b.Reshape(x, shape[0], shape[2], shape[1], shape[3]), 0, 2, 1, 3)
}

// Exact: elements are copied.
func (Part) Exact() {}
