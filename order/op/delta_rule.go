package op

import (
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// DeltaRule is the gated delta rule, by token and head. Queries, keys and values go through a short causal convolution and silu; queries and
// keys are divided by √(Σ x² + Eps), and queries by √Dk:
//
//	S = exp(g)·S;  S = S + k ⊗ β(v − k·S);  y = q·S
//
// with S [Dk,Dv] zero before the first token, β = sigmoid(b), twice that with Double, and g = −exp(A)·softplus(a + bias) of each head; with
// Given g is an input of its own, for each channel of the keys. Heads keys and queries serve consecutive heads of values. Inputs, each of
// every pass, the earliest first: queries, keys and values as one projection or as three; b; a or g. With Woven they are two: in each head of
// keys the query, the key, the values and a gate, and in each b and a. Weights: the convolution's, A and bias. Where it rounds is the steps'
// to say.
type DeltaRule struct {
	Kernel int     `json:"kernel"`
	Heads  int     `json:"heads"`
	Size   int     `json:"size"` // of a head of keys
	Eps    float64 `json:"eps"`
	Woven  bool    `json:"woven,omitempty"`
	Double bool    `json:"double,omitempty"`
	Given  bool    `json:"given,omitempty"`
}

// Kind is "delta_rule".
func (DeltaRule) Kind() string { return "delta_rule" }

// delta are the operands of the rule by token: q and k [B,S,heads,Dk], v [B,S,heads,Dv], β [B,S,heads], exp(g) [B,S,heads,Dk or 1].
type delta struct{ q, k, v, beta, decay program.Var }

// Steps goes through the tokens of all passes.
func (o DeltaRule) Steps(b *program.Builder, in, w []program.Var) program.Var {
	d, ok := o.operands(b, in, w)
	if !ok {
		return b.Fail("no delta rule of %d heads", o.Heads)
	}
	q, k := o.norm(b, d.q), o.norm(b, d.k)
	q = b.Mul("q/√Dk", q, b.Scalar("scale", 1/math.Sqrt(float64(o.Size))))
	out := b.Shape[len(b.Shape)-1]
	n := 1
	for _, size := range b.Shape {
		n *= size
	}
	s := d.v.Shape
	tokens := n / (s[0] * s[2] * out)
	if s[3] != out || tokens < 1 || tokens > s[1] {
		return b.Fail("values of %v as %v", s, b.Shape)
	}
	var state program.Var
	var all []program.Var
	at := func(x program.Var, t int) program.Var { return b.Take(x, 1, t) }
	for t := range s[1] {
		key, value := at(k, t), at(d.v, t)
		if t > 0 {
			state = b.Mul("kept", state, b.Permute(at(d.decay, t), 0, 1, 2, -1))
			value = b.Sub("missing", value, b.Dot("seen", "bhkv,bhk->bhv", state, key))
		}
		value = b.Mul("delta", value, b.Permute(at(d.beta, t), 0, 1, -1))
		added := b.Mul("added", b.Permute(key, 0, 1, 2, -1), b.Permute(value, 0, 1, -1, 2))
		if t == 0 {
			state = added
		} else {
			state = b.Add("state", state, added)
		}
		if t >= s[1]-tokens {
			all = append(all, b.Permute(b.Dot("output", "bhkv,bhk->bhv", state, at(q, t)), 0, -1, 1, 2))
		}
	}
	return b.Cat(1, all...)
}

// norm divides each row by its length.
func (o DeltaRule) norm(b *program.Builder, x program.Var) program.Var {
	return b.Mul("unit", x, b.Rsqrt("rsqrt", b.Add("+eps", b.Sum("squares", b.Mul("square", x, x)), b.Scalar("eps", o.Eps))))
}

// operands are those of all tokens.
func (o DeltaRule) operands(b *program.Builder, in, w []program.Var) (d delta, ok bool) {
	var kernel program.Var
	own := len(w) - 2
	if o.Given {
		own = len(w)
	}
	var convs []program.Var
	channels := 0
	for _, m := range w[:own] {
		convs = append(convs, b.Whole(m))
		channels += m.Shape[0]
	}
	if kernel = convs[0]; len(convs) > 1 {
		kernel = b.Cat(0, convs...)
	}
	keys := o.Heads * o.Size
	values := channels - 2*keys
	groups := 3
	switch {
	case values <= 0 || kernel.Last() != o.Kernel:
		return d, false
	case o.Woven:
		groups = 2
	case in[0].Last() == keys:
		groups = 5
	}
	if len(in)%groups != 0 {
		return d, false
	}
	passes := len(in) / groups
	of := func(k int) program.Var { return joined(b, in[k*passes:(k+1)*passes]) }
	var x, gate, a program.Var
	switch groups {
	case 2:
		x, gate, a, ok = o.woven(b, of(0), of(1), values)
	case 3:
		x, gate, a, ok = of(0), of(1), of(2), true
	default:
		x, gate, a, ok = b.Cat(2, of(0), of(1), of(2)), of(3), of(4), true
	}
	heads := gate.Last()
	if !ok || x.Last() != channels || heads%o.Heads != 0 || values%heads != 0 || len(gate.Shape) != 3 {
		return d, false
	}
	c := b.Swish(b.R(causal(b, x, x.Shape[1], kernel)))
	each := func(from int) program.Var { // a head of keys for each head of values
		v := b.Permute(b.Split(b.Slice(c, 2, from, from+keys), 2, o.Heads), 0, 1, 2, -1, 3)
		s := v.Shape
		return b.Reshape(b.Cat(2, b.Expand(v, []int{s[0], s[1], s[2], heads / o.Heads, s[4]})), s[0], s[1], heads, s[4])
	}
	d.q, d.k, d.v = each(0), each(keys), b.Split(b.Slice(c, 2, 2*keys, channels), 2, heads)
	if d.beta = sigmoid(b, gate); o.Double {
		d.beta = b.Mul("2β", d.beta, b.Literal(2))
	}
	if o.Given {
		if len(a.Shape) != 4 || a.Shape[2] != heads {
			return d, false
		}
		d.decay = b.Exp("decay", a)
		return d, true
	}
	rate := b.Neg(b.Exp("A", w[own]))
	if len(a.Shape) != 3 || a.Last() != heads || rate.Last() != heads {
		return d, false
	}
	d.decay = b.Permute(b.Exp("decay", b.Mul("g", rate, softplus(b, b.Add("a + bias", a, w[own+1])))), 0, 1, 2, -1)
	return d, true
}

// woven takes apart what stands in each head of keys: the query, the key, its values and a gate, and b and a of as many heads.
func (o DeltaRule) woven(b *program.Builder, x, ba program.Var, values int) (qkv, gate, a program.Var, ok bool) {
	if values%o.Heads != 0 || x.Last() != 2*o.Heads*o.Size+2*values || ba.Last()%(2*o.Heads) != 0 {
		return x, x, x, false
	}
	s, own := x.Shape, values/o.Heads
	x, ba = b.Split(x, 2, o.Heads), b.Split(ba, 2, o.Heads)
	of := func(v program.Var, from, n int) program.Var {
		return b.Reshape(b.Cat(2, b.Slice(v, 3, from, from+n)), s[0], s[1], o.Heads*n)
	}
	half := ba.Last() / 2
	return b.Cat(2, of(x, 0, o.Size), of(x, o.Size, o.Size), of(x, 2*o.Size, own)), of(ba, 0, half), of(ba, half, half), true
}

// OtherOrder: engines add in chunks of tokens.
func (DeltaRule) OtherOrder() {}
