package op

import "github.com/tracediff/tracediff/order/program"

// StateSpace is the mixer of Mamba 2 after its projection, by token and head. The projection has the gate, x, B, C and the time
// steps, concatenated; x, B and C go through a short causal convolution and silu first:
//
//	dt[h]    = softplus(dt[h] + bias[h])
//	h[h,d,n] = exp(−exp(A[h])·dt[h])·h[h,d,n] + dt[h]·B[g,n]·x[h,d]
//	y[h,d]   = Σ_n C[g,n]·h[h,d,n] + D[h]·x[h,d]
//
// with h zero before the first token, and g the group of head h. Inputs: the projection of each pass, the earliest first. Weights: A, the
// convolution's w and bias, the bias of dt, D. Where it rounds is the steps' to say.
type StateSpace struct {
	Kernel int `json:"kernel"`
	State  int `json:"state"`
	Groups int `json:"groups"`
}

// Kind is "state_space".
func (StateSpace) Kind() string { return "state_space" }

// Steps goes through the tokens of all passes.
func (o StateSpace) Steps(b *program.Builder, in, w []program.Var) program.Var {
	heads, inner, tokens := w[0].Last(), b.Shape[len(b.Shape)-1], b.Shape[1]
	if len(b.Shape) == 4 {
		inner *= b.Shape[2]
	}
	shared := o.Groups * o.State
	p := joined(b, in)
	batch, seen, width := p.Shape[0], p.Shape[1], p.Last()
	from := width - heads - inner - 2*shared
	if from < 0 || inner%heads != 0 || o.Groups < 1 || heads%o.Groups != 0 || w[1].Last() != o.Kernel {
		return b.Fail("%d heads in %v", heads, p.Shape)
	}
	c := b.Add("bias", causal(b, b.Slice(p, 2, from, from+inner+2*shared), seen, b.Whole(w[1])), w[2])
	c = b.Swish(b.R(c))
	of := func(at, n int) program.Var { return b.Slice(c, 2, at, at+n) }
	groups := func(v program.Var) program.Var { // [B,S,groups,heads,1,state]
		v = b.Split(b.Permute(v, 0, 1, 2, -1, -1), 2, o.Groups)
		return b.Permute(v, 0, 1, 2, 4, 5, 3)
	}
	x := b.Split(b.Split(of(0, inner), 2, heads), 2, o.Groups) // [B,S,groups,heads,d]
	dt := softplus(b, b.Add("time step", b.Slice(p, 2, width-heads, width), w[3]))
	decay := b.Exp("decay", b.Mul("rate", dt, b.Neg(b.Exp("A", w[0]))))
	heads6 := func(v program.Var) program.Var { return b.Permute(b.Split(v, 2, o.Groups), 0, 1, 2, 3, -1, -1) }
	added := b.Mul("added", b.Mul("dt·x", heads6(dt), b.Permute(x, 0, 1, 2, 3, 4, -1)), groups(of(inner, shared)))
	states := scanned(b, heads6(decay), added, tokens)
	last := func(v program.Var) program.Var { return b.Slice(v, 1, seen-tokens, seen) }
	out := b.Split(last(of(inner+shared, shared)), 2, o.Groups)
	y := b.Dot("output", "btghdn,btgn->btghd", states, out)
	skip := b.Permute(b.Split(b.Permute(w[4], -1, -1, 0), 2, o.Groups), 0, 1, 2, 3, -1)
	y = b.Add("skip", y, b.Mul("D·x", last(x), skip))
	return b.Reshape(y, batch, tokens, inner)
}

// OtherOrder: engines add in chunks of tokens.
func (StateSpace) OtherOrder() {}
