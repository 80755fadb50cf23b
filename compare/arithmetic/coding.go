package arithmetic

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// coding is the difference between a product and the product with the original's weight: the residue after
// subtraction, by last axis.
type coding struct {
	x, rest  []float64
	channels int     // that a token has
	free     int     // how many numbers are independent: where an engine rounds the inputs, too, no more than these are
	error    float64 // relative L2
	slope    float64 // how much too large the product is on average
}

func newCoding(e *order.Entry, x, y program.Value) *coding {
	channels, inputs := sizes(e, y.Shape)
	c := &coding{x: x.Data, rest: make([]float64, len(x.Data)), channels: channels, free: len(x.Data) / channels * min(channels, inputs)}
	wrong, whole, along := 0.0, 0.0, 0.0
	for k, v := range x.Data {
		r := y.Data[k] - v
		c.rest[k] = r
		wrong += float64(r * r)
		whole += float64(v * v)
		along += float64(r * v)
	}
	c.error, c.slope = math.Sqrt(wrong/whole), along/whole
	return c
}

// plausible reports whether codes in place of the weight may make the difference: by its size, which is much the same in every part of the
// channels, and because it is no factor.
func (c *coding) plausible() bool { return c.sized() && c.noFactor() && c.even() }

// sized reports whether the error is as large as errors of codes.
func (c *coding) sized() bool {
	of := thresholds.Codes.Product
	return c.error >= of.Least && c.error <= of.Most
}

// noFactor reports whether the product is no more too large or too small on average than codes make it.
func (c *coding) noFactor() bool {
	s := thresholds.Codes.Slope
	slope := min(s.Most, max(s.Least, s.Deviations/math.Sqrt(float64(c.free))))
	return !(math.Abs(c.slope) > slope*c.error+c.error*c.error)
}

// even reports whether the error is much the same in every part of the channels.
func (c *coding) even() bool {
	of := thresholds.Codes.Product
	if c.channels < of.Parts*of.Parts { // a part of so few is left to chance
		return true
	}
	var each []float64
	for p := range of.Parts {
		from, to := p*c.channels/of.Parts, (p+1)*c.channels/of.Parts
		wrong, whole := 0.0, 0.0
		for row := 0; row+c.channels <= len(c.x); row += c.channels {
			for k := row + from; k < row+to; k++ {
				wrong += float64(c.rest[k] * c.rest[k])
				whole += float64(c.x[k] * c.x[k])
			}
		}
		each = append(each, math.Sqrt(wrong/whole))
	}
	slices.Sort(each)
	return !(each[of.Parts-1] > of.Apart*each[of.Parts/2-1])
}

// asInputs reports whether the difference of a product is no more alike in all tokens than its inputs are, as that of another weight is: what is
// added to the product, such as a bias, is the same in each. Where the input was not captured, or there are too few numbers, nothing is asked.
//
// Null hypothesis: the errors of the weight are independent. Over m channels the cosine of two tokens' differences is then that of their
// inputs, give or take 1/√m, and so is the mean over all P pairs, give or take 1/√(m·P). That is so where the errors are as large in every
// column. A few columns of large inputs, whose weights may be small and have small errors, count with all of their size or as any other
// column: the cosine lies between, or above by less than Thresholds.Codes.Tokens.Alike. An engine that rounds the inputs, too, makes it smaller.
func asInputs(i *isolate.Isolator, n order.Node, c *coding) (bool, error) {
	e := i.List().At(n)
	if _, product := e.Op.(op.Linear); !product || len(e.Inputs) != 1 {
		return true, nil
	}
	at := order.Node{Entry: i.List().Index(e.Inputs[0].Name), Pass: n.Pass}
	if at.Entry < 0 || !i.Has(at) || e.Inputs[0].Prev || e.Inputs[0].Index != nil {
		return true, nil
	}
	v, _, err := i.Value(at)
	if err != nil {
		return true, err
	}
	tokens, all := len(c.rest)/c.channels, program.Size(i.List().Size(n, i.Env().Passes))/c.channels // the first, and how many there are
	if tokens < 2 || all < 1 || len(v.Data)%all != 0 {
		return true, nil
	}
	width := len(v.Data) / all
	tokens = min(tokens, codedTokens)
	even := evened(v.Data[:tokens*width], width)
	more, pairs := 0.0, 0
	for a := range tokens {
		for b := range a {
			is := cosine(rowOf(c.rest, c.channels, a), rowOf(c.rest, c.channels, b))
			one, other := cosine(rowOf(v.Data, width, a), rowOf(v.Data, width, b)), cosine(rowOf(even, width, a), rowOf(even, width, b))
			more += is - max(one, other)
			pairs++
		}
	}
	return more/float64(pairs) <= thresholds.Codes.Tokens.Alike+thresholds.Codes.Slope.Deviations/math.Sqrt(float64(c.channels*pairs)), nil
}

func rowOf(x []float64, n, at int) []float64 { return x[at*n : (at+1)*n] }

// evened are rows with every column divided by its root mean square.
func evened(x []float64, width int) []float64 {
	out := slices.Clone(x)
	for k := range width {
		squares := 0.0
		for at := k; at < len(x); at += width {
			squares += float64(x[at] * x[at])
		}
		for at := k; at < len(x) && squares > 0; at += width {
			out[at] /= math.Sqrt(squares)
		}
	}
	return out
}

func cosine(a, b []float64) float64 {
	aa, bb, ab := 0.0, 0.0, 0.0
	for k, x := range a {
		aa += float64(x * x)
		bb += float64(b[k] * b[k])
		ab += float64(x * b[k])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// sizes are how many numbers an entry has of a token, and of how many each is a sum, where that is known: the rows and columns of the weight,
// however a product splits its result, else the last axis.
func sizes(e *order.Entry, shape []int) (channels, inputs int) {
	if _, product := e.Op.(op.Linear); product && len(e.Weights) > 0 && len(e.Weights[0].Shape) == 2 {
		return max(1, e.Weights[0].Shape[0]), e.Weights[0].Shape[1]
	}
	channels = max(1, shape[len(shape)-1])
	return channels, channels
}
