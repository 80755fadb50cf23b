package program

import "github.com/tracediff/tracediff/order/program/functions"

// Rewrite is a set of formulas in another order of steps: the same result in exact arithmetic, other sites. Beside these it has
// the number of an order of additions, and that of a fused kernel of attention.
type Rewrite uint32

// The rewrites.
const (
	ScaleFirst Rewrite = 1 << iota // Σ (x·scale)·y for (Σ x·y)·scale
	RatioFirst                     // y·(target/own) for y·target/own
	Symmetric                      // a sigmoid of |x|: 1/(1 + exp|x|), or 1 less that where x is positive
	rewrites
)

// orderBits is where the number of an order of additions begins.
const orderBits = 8

// kernelBits is where the number of a fused kernel begins.
const kernelBits = 24

// InOrder is a rewrite with additions in another order, which package rewrite numbers for a program; 0 is the program's own.
func (r Rewrite) InOrder(k int) Rewrite {
	return r.Steps() | Rewrite(k)<<orderBits | r>>kernelBits<<kernelBits
}

// Order is the number of the order of additions.
func (r Rewrite) Order() int { return int(r >> orderBits & (1<<(kernelBits-orderBits) - 1)) }

// InKernel is a rewrite with attention in a fused kernel, numbered from 1 as in package rewrite; 0 is for none.
func (r Rewrite) InKernel(k int) Rewrite { return r&(1<<kernelBits-1) | Rewrite(k)<<kernelBits }

// Kernel is the number of the fused kernel.
func (r Rewrite) Kernel() int { return int(r &^ ReadApart >> kernelBits) }

// Steps is a rewrite with the program's own order of additions, and no fused kernel.
func (r Rewrite) Steps() Rewrite { return r & (rewrites - 1) }

// AllRewrites are all sets of them, with the program's own order of additions.
func AllRewrites() []Rewrite {
	var all []Rewrite
	for r := Rewrite(0); r < rewrites; r++ {
		all = append(all, r)
	}
	return all
}

var rewriteWords = map[Rewrite]string{
	ScaleFirst: "scales an operand of the sum, not the sum",
	RatioFirst: "takes the ratio of the magnitudes first",
	Symmetric:  "takes the sigmoid of |x|",
}

// Words say what is done otherwise.
func (r Rewrite) Words() []string {
	var all []string
	for k := Rewrite(1); k < rewrites; k <<= 1 {
		if r&k != 0 {
			all = append(all, rewriteWords[k])
		}
	}
	return all
}

// ReadApart is a rewrite by which queries and keys of a fused attention each round what both are computed from, such as a rotary table: a compiler
// that fuses the rotation in front of a kernel makes a loop for queries and a loop for keys, and each loop reads the rounded table or computes the
// table again. No result changes, but the keys have sites of their own.
const ReadApart Rewrite = 1 << 31

// Apart reports whether queries and keys have sites of their own.
func (r Rewrite) Apart() bool { return r&ReadApart != 0 }

// ScaledDot is R(Σ x·y) · scale, see [Builder.Dot] for the axes. With [ScaleFirst], Σ R(x·scale)·y.
func (b *Builder) ScaledDot(name, axes string, x, y, scale Var) Var {
	if b.Rewrites&ScaleFirst != 0 {
		return b.Dot(name, axes, b.R(b.Mul("scaled operand", x, scale)), y)
	}
	return b.Mul("scaled", b.R(b.Dot(name, axes, x, y)), scale)
}

// Rescaled is R(y·target) / own. With [RatioFirst], y · R(target/own).
func (b *Builder) Rescaled(y, target, own Var) Var {
	if b.Rewrites&RatioFirst != 0 {
		return b.Mul("product", y, b.R(b.Div("ratio", target, own)))
	}
	return b.Div("quotient", b.R(b.Mul("product", y, target)), own)
}

// Swish is x / (1 + exp(−x)). With [Symmetric] it is x·R(s), s = 1/(1 + exp|x|) for x below zero and 1 − 1/(1 + exp|x|)
// above: of the two products the larger one is meant on both sides.
func (b *Builder) Swish(x Var) Var {
	if b.Rewrites&Symmetric == 0 {
		q := b.Div("quotient", x, b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Neg(x))))
		if b.err == nil {
			b.Steps[q.Step].Payload = Quotient{Units: functions.Sigmoid}
		}
		return q
	}
	below := b.Div("sigmoid", b.Literal(1), b.Add("1+exp", b.Literal(1), b.Exp("exp", b.Max(x, b.Neg(x)))))
	above := b.Sub("1-sigmoid", b.Literal(1), below)
	return b.Max(b.Mul("product", x, b.R(below)), b.Mul("product", x, b.R(above)))
}
