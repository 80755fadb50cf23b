package op

import "github.com/tracediff/tracediff/order/program"

// ExpertRows is R(Σ W_e[From+o,k]·x[k]) for each expert e of a token: [T·k, out]. Inputs: x [T,in], the experts [T,k]. Weights: the matrices
// [n, in] of all experts, concatenated.
type ExpertRows struct {
	Experts int `json:"experts"`
	From    int `json:"from,omitempty"`
}

// Kind is "expert_rows".
func (ExpertRows) Kind() string { return "expert_rows" }

// Steps takes each token's matrices, and multiplies.
func (o ExpertRows) Steps(b *program.Builder, in, w []program.Var) program.Var {
	x := b.Reshape(in[0], -1, in[0].Last())
	all := experts(b, w, o.Experts, x.Last())
	return b.Dot("product", "tk,tsok->tso", x, chosen(b, b.Slice(all, 1, o.From, o.From+b.Shape[len(b.Shape)-1]), in[1]))
}

// experts are matrices of rows of some length, as one tensor [experts, n, length].
func experts(b *program.Builder, w []program.Var, n, length int) program.Var {
	var all []program.Var
	for _, m := range w {
		all = append(all, b.Reshape(b.Whole(m), -1))
	}
	flat := all[0]
	if len(all) > 1 {
		flat = b.Cat(0, all...)
	}
	return b.Reshape(flat, n, -1, length)
}

// chosen are the matrices of the experts of each token: [T,k,rows,columns].
func chosen(b *program.Builder, all, index program.Var) program.Var {
	s, n := all.Shape, index.Shape
	tokens, k := n[len(n)-2], n[len(n)-1]
	flat := b.Permute(b.Reshape(b.Plain(index), tokens*k), 0, -1, -1)
	wide := []int{tokens * k, s[1], s[2]}
	return b.Reshape(b.Gather(0, all, b.Expand(flat, wide)), tokens, k, s[1], s[2])
}

// Experts is the weighted sum over a token's experts: Σ_e p_e·R(D_e·R(act_e ⊙ R(U_e·x))), with act_e the activation of e's gate. The products
// with p are rounded with Rounded. Inputs: x [T,in], the experts [T,k], p [T,k], act [T·k,n]. Weights: the matrices of all experts with gate
// and up concatenated, then the matrices D.
type Experts struct {
	Experts int  `json:"experts"`
	Rounded bool `json:"rounded,omitempty"`
}

// Kind is "experts".
func (Experts) Kind() string { return "experts" }

// Steps takes each token's matrices, multiplies twice, and adds.
func (o Experts) Steps(b *program.Builder, in, w []program.Var) program.Var {
	x, act := b.Reshape(in[0], -1, in[0].Last()), in[3]
	n, tokens, k := act.Last(), in[1].Shape[len(in[1].Shape)-2], in[1].Last()
	cut := len(w) * 2 / 3
	if len(w) == 2 {
		cut = 1
	}
	all := experts(b, w[:cut], o.Experts, x.Last())
	up := b.R(b.Dot("up", "tk,tsok->tso", x, chosen(b, b.Slice(all, 1, n, 2*n), in[1])))
	gated := b.R(b.Mul("gated", b.Reshape(act, tokens, k, n), up))
	down := b.R(b.Dot("down", "tsk,tsok->tso", gated, chosen(b, experts(b, w[cut:], o.Experts, n), in[1])))
	p := b.Permute(b.Reshape(in[2], tokens, k), 0, 1, -1)
	shares := b.Mul("weighted", down, p)
	if o.Rounded {
		shares = b.R(shares)
	}
	return b.Sum("sum", b.Permute(shares, 0, 2, 1))
}
