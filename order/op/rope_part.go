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
// result; the tables have an angle for each channel of the result, of which with Half the first half is taken for all:
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
	half := o.Dims / 2
	if o.From < 0 || o.From+o.Dims > d || 2*half != o.Dims || half == 0 {
		return b.Fail("%d channels from %d of %d", o.Dims, o.From, d)
	}
	x := b.Permute(b.Reshape(in[0], b.Shape[0], tokens, heads, d), 0, 2, 1, 3)
	turned := b.Slice(x, 3, o.From, o.From+o.Dims)
	first, second := pair(b, turned, o.Pairs)
	var tables [2][2]program.Var // by table, of the first of a pair and of the second
	for k := range tables {
		t := b.Permute(in[1+k], 0, -1, 1, 2)
		if o.Half || t.Last() == half {
			t = b.Slice(t, 3, 0, half)
			tables[k] = [2]program.Var{t, t}
		} else {
			tables[k][0], tables[k][1] = pair(b, t, o.Out)
		}
	}
	r := b.R
	if o.Single {
		r = func(v program.Var) program.Var { return v }
	}
	cos, sin := tables[0], tables[1]
	y := b.Sub("first", r(b.Mul("a·cos", first, cos[0])), r(b.Mul("b·sin", second, sin[0])))
	z := b.Add("second", r(b.Mul("b·cos", second, cos[1])), r(b.Mul("a·sin", first, sin[1])))
	if !o.Single {
		y, z = b.R(y), b.R(z)
	}
	var out program.Var
	if o.Out == Neighbours {
		out = b.Reshape(b.Cat(4, b.Permute(y, 0, 1, 2, 3, -1), b.Permute(z, 0, 1, 2, 3, -1)), b.Shape[0], heads, tokens, o.Dims)
	} else {
		out = b.Cat(3, y, z)
	}
	parts := []program.Var{out}
	if o.From > 0 {
		parts = append([]program.Var{b.Slice(x, 3, 0, o.From)}, parts...)
	}
	if end := o.From + o.Dims; end < d {
		parts = append(parts, b.Slice(x, 3, end, d))
	}
	if len(parts) > 1 {
		out = b.Cat(3, parts...)
	}
	return out
}

// pair are the first channels of all pairs, and the second.
func pair(b *program.Builder, x program.Var, p Pairs) (first, second program.Var) {
	last := len(x.Shape()) - 1
	half := x.Last() / 2
	if p == Neighbours {
		x = b.Split(x, last, half)
		return b.Take(x, last+1, 0), b.Take(x, last+1, 1)
	}
	return b.Slice(x, last, 0, half), b.Slice(x, last, half, 2*half)
}
