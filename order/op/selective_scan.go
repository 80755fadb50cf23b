package op

import "github.com/tracediff/tracediff/order/program"

// SelectiveScan is the scan of Mamba, by token, for each channel c and each of State numbers n of its state:
//
//	dt[c]  = softplus(Σ_r W[c,r]·p[r] + bias[c])
//	h[c,n] = exp(−exp(A[c,n])·dt[c])·h[c,n] + dt[c]·B[n]·x[c]
//	y[c]   = (Σ_n C[n]·h[c,n] + D[c]·x[c])·silu(z[c])
//
// with h zero before the first token. p, B and C follow each other in one projection, or are inputs of their own with Apart, and z are the
// channels of another projection from From on. Inputs: that with z, x [B,T,channels] of each pass, the earliest first, and p, B and C of each
// pass. Weights: A [channels,State],
// W, bias, D. Where it rounds is the steps' to say.
type SelectiveScan struct {
	State int  `json:"state"`
	Rank  int  `json:"rank"` // of p
	From  int  `json:"from,omitempty"`
	Apart bool `json:"apart,omitempty"`
}

// Kind is "selective_scan".
func (SelectiveScan) Kind() string { return "selective_scan" }

// Steps goes through the tokens of all passes.
func (o SelectiveScan) Steps(b *program.Builder, in, w []program.Var) program.Var {
	inputs := 2
	if o.Apart {
		inputs = 4
	}
	passes := (len(in) - 1) / inputs
	of := func(k int) program.Var { return joined(b, in[1+k*passes:1+(k+1)*passes]) }
	x, p := of(0), of(1)
	var into, out program.Var
	if o.Apart {
		into, out = of(2), of(3)
	} else {
		into, out = b.Slice(p, 2, o.Rank, o.Rank+o.State), b.Slice(p, 2, o.Rank+o.State, o.Rank+2*o.State)
		p = b.Slice(p, 2, 0, o.Rank)
	}
	channels := x.Last()
	dt := b.Add("time step", b.Affine("projection", p, w[1]), w[2])
	dt = b.Permute(softplus(b, dt), 0, 1, 2, -1) // [B,S,channels,1]
	decay := b.Exp("decay", b.Mul("rate", b.Neg(b.Exp("A", b.Whole(w[0]))), dt))
	added := b.Mul("added", b.Mul("dt·B", dt, b.Permute(into, 0, 1, -1, 2)), b.Permute(x, 0, 1, 2, -1))
	states := scanned(b, decay, added, b.Shape[1])
	seen, tokens := x.Shape[1], b.Shape[1]
	y := b.Dot("output", "btcn,btn->btc", states, b.Slice(out, 1, seen-tokens, seen))
	y = b.Add("skip", y, b.Mul("D·x", b.Slice(x, 1, seen-tokens, seen), w[3]))
	return b.Mul("gated", y, b.Swish(b.Slice(in[0], 2, o.From, o.From+channels)))
}

// OtherOrder: engines add in chunks of tokens.
func (SelectiveScan) OtherOrder() {}

// softplus is log(1+eˣ), as max(x, 0) + log(1 + e^−|x|).
func softplus(b *program.Builder, x program.Var) program.Var {
	return b.Add("softplus", b.Max(x, b.Literal(0)), b.Log1p("log", b.Exp("exp", b.Neg(b.Max(x, b.Neg(x))))))
}

// scanned are the states h = decay·h + added of the last tokens, by token along axis 1: [B,tokens,...].
func scanned(b *program.Builder, decay, added program.Var, tokens int) program.Var {
	seen := added.Shape[1]
	var state program.Var
	var all []program.Var
	for t := range seen {
		next := b.Slice(added, 1, t, t+1)
		if t > 0 {
			next = b.Add("state", b.Mul("kept", b.Slice(decay, 1, t, t+1), state), next)
		}
		if state = next; t >= seen-tokens {
			all = append(all, state)
		}
	}
	return b.Cat(1, all...)
}
