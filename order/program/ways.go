package program

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program/functions"
)

// The ways to a quotient: x/y, or x times the reciprocal of y.
const (
	WayQuotient uint8 = iota
	WayReciprocal
	WayRoundedReciprocal
)

// The ways to a reciprocal root: at once, or as the reciprocal of the root.
const (
	WayRsqrt uint8 = iota
	WayRoot
	WayRoundedRoot
)

// reciprocalRound is how the first of two steps is rounded, by way.
var reciprocalRound = [...]Rounding{Plain, Plain, Model}

// The ways to a product with a constant c: as it is, or the quotient by 1/c, which is rounded to float32 or to the model's
// dtype.
const (
	WayProduct uint8 = iota
	WayQuotientBy
	WayQuotientByRounded
)

// The ways to x·W + b, for a sum that is taken in one. The bias is one more term of it, or is added to the product, which was
// rounded to float32 or to the model's dtype.
const (
	WayOneSum uint8 = iota
	WayBiasAfter
	WayBiasAfterRounding
	waysOfBias
)

// parts are in how many parts an engine may take a sum, for the ways from 1 on: each part is rounded to the model's dtype.
// They are added in float32 by the first ways, and in the model's dtype by the others.
var parts = [...]int{2, 4, 8}

// WaysOfSum is how many ways there are to a sum.
const WaysOfSum = 1 + 2*len(parts)

// ofParts says what a way to a sum is: in how many parts it is taken, 0 for one sum, and whether they are added in the
// model's dtype.
func ofParts(way uint8) (n int, narrow bool) {
	if way == 0 {
		return 0, false
	}
	k := int(way - 1)
	return parts[k%len(parts)], k >= len(parts)
}

// ofSum separates a way to a sum into how the sum is taken and how a bias comes to it.
func (s *Step) ofSum(way uint8) (sum, bias uint8) {
	if s.Prim == Affine && len(s.Args) == 3 {
		return way / waysOfBias, way % waysOfBias
	}
	return way, 0
}

// Split returns the way of a step that takes its sum by the way sum, and then adds the bias. ok is false for a step
// without a sum.
func (s *Step) Split(sum uint8) (way uint8, ok bool) {
	switch {
	case s.Prim == Affine && len(s.Args) == 3:
		return sum*waysOfBias + WayBiasAfter, true
	case s.Prim == Affine, s.Prim == Dot, s.Prim == Sum:
		return sum, true
	}
	return 0, false
}

// Ways is how many ways there are to the result of a step that give the same in exact arithmetic. Way 0 is the program's own.
func (s *Step) Ways() int {
	switch {
	case s.Prim == Div, s.Prim == Rsqrt, s.Prim == Mul && s.Is(ByNumber):
		return len(reciprocalRound)
	case s.Is(Fused):
		return int(waysOfFusedExp)
	case s.Prim == Affine && len(s.Args) == 3:
		return WaysOfSum * int(waysOfBias)
	case s.Prim == Dot, s.Prim == Sum, s.Prim == Affine:
		return WaysOfSum
	case s.Prim == Angle && s.turns() != nil:
		return int(WaysOfAngles)
	}
	return 1
}

// WayWords describes a way, other than the program's own, for a sentence such as "at mean multiplies by the
// reciprocal".
func (s *Step) WayWords(way uint8, d hooks.DType) string {
	switch {
	case s.Is(Fused):
		return wordsOfExp[way]
	case s.Prim == Mul && way == WayQuotientBy:
		return "divides by the constant's reciprocal"
	case s.Prim == Mul:
		return fmt.Sprintf("divides by the constant's reciprocal in %s", d)
	case s.Prim == Div && way == WayReciprocal:
		return "multiplies by the reciprocal"
	case s.Prim == Div:
		return fmt.Sprintf("multiplies by the reciprocal in %s", d)
	case s.Prim == Rsqrt && way == WayRoot:
		return "takes 1/√x in two steps"
	case s.Prim == Rsqrt:
		return fmt.Sprintf("rounds √x to %s before 1/√x", d)
	case s.Prim == Angle:
		return "makes rotary tables " + TableWords(way)
	}
	sum, bias := s.ofSum(way)
	words := ""
	switch n, narrow := ofParts(sum); {
	case n == 0:
	case narrow:
		words = fmt.Sprintf("takes the sum in %d parts in %s", n, d)
	default:
		words = fmt.Sprintf("takes the sum in %d parts, each rounded to %s", n, d)
	}
	if bias == 0 {
		return words
	}
	if words != "" {
		words += ", and "
	}
	if bias == WayBiasAfter {
		return words + "adds the bias to the finished sum"
	}
	return words + fmt.Sprintf("rounds the sum to %s before the bias", d)
}

// wordsOfExp are those of an exponential of a fused attention.
var wordsOfExp = [waysOfFusedExp]string{
	WayEightLanes: "takes torch's vector function, of 8 lanes", WaySixteen: "takes torch's vector function, of 16 lanes",
	WayStatedError: "takes a function that may be off by 1.2e-4",
}

func unitOf(d hooks.DType) float64 { return floats.Unit(d) }

// Rewrite is a set of formulas in another order of steps: the same result in exact arithmetic, with other sites. A
// Rewrite also holds the number of an order of additions, and the number of a fused attention kernel.
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
