package op

import "github.com/tracediff/tracediff/order/program"

// Pairs says which channels turn together.
type Pairs string

// The pairs of the families.
const (
	Halves     Pairs = "halves"     // j and j+Dims/2
	Neighbours Pairs = "neighbours" // 2j and 2j+1
)

// RoPEPart turns Dims channels of each head from From on, and hands the others on. Pairs are those of x, and Out where a pair stands in the
// result; the tables have an angle for each channel of the result, with Half the first half serves all:
//
//	y[a] = R(R(x[a]·cos) − R(x[b]·sin))
//	y[b] = R(R(x[b]·cos) + R(x[a]·sin))
//
// With Single nothing but the result is rounded. It transposes [B,T,h,D] to [B,h,T,D]. Inputs: x, cos, sin.
type RoPEPart struct {
	Dims   int   `json:"dims"`
	From   int   `json:"from,omitempty"`
	Pairs  Pairs `json:"pairs"`
	Out    Pairs `json:"out"`
	Half   bool  `json:"half,omitempty"`
	Single bool  `json:"single,omitempty"`
}

// Kind is "rope_part".
func (RoPEPart) Kind() string { return "rope_part" }

// Steps turns a part.
func (o RoPEPart) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	heads, tokens, d := b.Shape[1], b.Shape[2], b.Shape[3]
	end := o.From + o.Dims
	if o.From < 0 || end > d {
		return b.Fail("%d channels from %d of %d", o.Dims, o.From, d)
	}
	x := b.Permute(b.Reshape(in[0], b.Shape[0], tokens, heads, d), 0, 2, 1, 3)
	out := o.turn(b, b.Slice(x, 3, o.From, end), in[1], in[2])
	if o.Dims == d {
		return out
	}
	var parts []program.Var
	if o.From > 0 {
		parts = append(parts, b.Slice(x, 3, 0, o.From))
	}
	if parts = append(parts, out); end < d {
		parts = append(parts, b.Slice(x, 3, end, d))
	}
	return b.Cat(3, parts...)
}

// turn turns all channels of x [B,h,T,Dims].
func (o RoPEPart) turn(b *program.Builder, x, cos, sin program.Var) program.Var {
	half := o.Dims / 2
	if 2*half != o.Dims || half == 0 || x.Last() != o.Dims {
		return b.Fail("%d channels of %v", o.Dims, x.Shape)
	}
	first, second := pair(b, x, o.Pairs)
	table := func(t program.Var) (first, second program.Var) { // of the first of a pair, and of the second
		t = b.Permute(t, 0, -1, 1, 2)
		if o.Half || t.Last() == half {
			t = b.Slice(t, 3, 0, half)
			return t, t
		}
		return pair(b, t, o.Out)
	}
	cosFirst, cosSecond := table(cos)
	sinFirst, sinSecond := table(sin)
	r := b.R
	if o.Single {
		r = func(v program.Var) program.Var { return v }
	}
	y := r(b.Sub("first", r(b.Mul("a·cos", first, cosFirst)), r(b.Mul("b·sin", second, sinFirst))))
	z := r(b.Add("second", r(b.Mul("b·cos", second, cosSecond)), r(b.Mul("a·sin", first, sinSecond))))
	if o.Out == Halves {
		return b.Cat(3, y, z)
	}
	return b.Reshape(b.Cat(4, b.Permute(y, 0, 1, 2, 3, -1), b.Permute(z, 0, 1, 2, 3, -1)), x.Shape...)
}

// pair are the first channels of all pairs, and the second.
func pair(b *program.Builder, x program.Var, p Pairs) (first, second program.Var) {
	last := len(x.Shape) - 1
	half := x.Last() / 2
	if p == Neighbours {
		x = b.Split(x, last, half)
		return b.Take(x, last+1, 0), b.Take(x, last+1, 1)
	}
	return b.Slice(x, last, 0, half), b.Slice(x, last, half, 2*half)
}
