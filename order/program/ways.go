package program

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
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

// The ways to x·W + b, when the product is not rounded alone: the bias is one more term of the sum. Else it is added to the
// product, which was rounded to float32 or to the model's dtype.
const (
	WayOneSum uint8 = iota
	WayBiasAfter
	WayBiasAfterRounding
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
	k := int(way-1) % (2 * len(parts))
	return parts[k%len(parts)], k >= len(parts)
}

// Ways is how many ways there are to the result of a step that give the same in exact arithmetic. Way 0 is the program's own.
func (s *Step) Ways() int {
	switch s.Prim {
	case Div, Rsqrt:
		return len(reciprocalRound)
	case Dot, Sum:
		return WaysOfSum
	case Affine:
		if len(s.Args) == 3 {
			return 3
		}
		return WaysOfSum
	}
	return 1
}

// WayWords says what a way other than the program's own is, for a sentence such as "layer norm: ... ".
func (s *Step) WayWords(way uint8, d hooks.DType) string {
	switch {
	case s.Prim == Div && way == WayReciprocal:
		return "multiplies by the reciprocal"
	case s.Prim == Div:
		return fmt.Sprintf("multiplies by the reciprocal in %s", d)
	case s.Prim == Rsqrt && way == WayRoot:
		return "takes 1/√x in two steps"
	case s.Prim == Rsqrt:
		return fmt.Sprintf("rounds √x to %s before 1/√x", d)
	case s.Prim == Affine && len(s.Args) == 3 && way == WayBiasAfter:
		return "adds the bias to the finished sum"
	case s.Prim == Affine && len(s.Args) == 3:
		return fmt.Sprintf("rounds the sum to %s before the bias", d)
	}
	n, narrow := ofParts(way)
	if narrow {
		return fmt.Sprintf("takes the sum in %d parts in %s", n, d)
	}
	return fmt.Sprintf("takes the sum in %d parts, each rounded to %s", n, d)
}

func unitOf(d hooks.DType) float64 { return floats.Unit(d) }
