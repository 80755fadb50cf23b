package op

import (
	"fmt"
	"math"
)

// Gain is what an RMSNorm does with its weight.
type Gain string

// The gains of the families.
const (
	Plain   Gain = "plain"   // x·inv·w, one R at the end
	NoScale Gain = "none"    // x·inv, one R at the end; no weight
	OnePlus Gain = "oneplus" // x·inv·(1+w), one R at the end
	After   Gain = "after"   // R(R(x·inv)·w): Llama and Qwen round before the weight
)

// Gains that no family has in transformers, but other engines where the family has OnePlus.
const (
	OnePlusAfter  Gain = "oneplus_after"  // R(R(x·inv)·(1+w))
	OnePlusStored Gain = "oneplus_stored" // R(R(x·inv)·R(1+w)): 1+w was made a weight in the model's dtype
)

// RMSNorm is x · inv, inv = (mean(x²)+Eps)^(−1/2), then the gain, over the last axis of the result, in float32. Input: x.
// Weight: w, unless Gain is NoScale.
type RMSNorm struct {
	Eps  float64 `json:"eps"`
	Gain Gain    `json:"gain"`
}

// Kind is "rms_norm".
func (RMSNorm) Kind() string { return "rms_norm" }

// Eval norms each row. Bound: by running error analysis. Squares are positive, so a sum of n of them is off by no more
// than 2λ·√n·u of itself, see [Arith.total]; the root halves that; each product adds u. The inverse is one number for
// the whole row: its error is no noise but a scale, which a certificate allows for.
func (o RMSNorm) Eval(c Call) (Value, error) {
	x, out := c.In[0], c.result()
	n := out.last()
	var w []float64
	if o.Gain != NoScale {
		var err error
		if w, err = c.vector(0); err != nil {
			return Value{}, err
		}
	}
	for start := 0; start < len(x.Data); start += n {
		row := x.slice(start, n)
		inv := o.inverse(c, row)
		for i := range n {
			y := c.mul(row.at(i), inv)
			switch o.Gain {
			case Plain:
				y = c.mul(y, Num{V: w[i]})
			case OnePlus:
				y = c.mul(y, c.add(Num{V: 1}, Num{V: w[i]}))
			case After:
				y = c.mul(c.R(y), Num{V: w[i]})
			case OnePlusAfter:
				y = c.mul(c.R(y), c.add(Num{V: 1}, Num{V: w[i]}))
			case OnePlusStored:
				y = c.mul(c.R(y), c.R(c.add(Num{V: 1}, Num{V: w[i]})))
			}
			out.set(start+i, y)
		}
	}
	return out, nil
}

// inverse is (mean(x²)+Eps)^(−1/2).
func (o RMSNorm) inverse(c Call, x Value) Num {
	ms := c.mean(len(x.Data), func(i int) Num { return c.mul(x.at(i), x.at(i)) })
	eps := c.scalar(o.Eps)
	// A mean of squares is not below zero, whatever its bound.
	return c.function(func(v float64) float64 { return 1 / math.Sqrt(math.Max(v, eps.V)) }, c.add(ms, eps))
}

// Shares is the inverse, which follows from the mean square. A gain that is rounded before it is used is the same for all
// rows.
func (o RMSNorm) Shares() (s Shared, entry bool) {
	return SharedMeanSquare, o.Gain != NoScale && o.Gain != Plain
}

// Otherwise has the gains that round before the weight.
func (o RMSNorm) Otherwise() []Rounding {
	const before = "rounds before the weight, transformers does not"
	switch o.Gain {
	case Plain:
		return []Rounding{{before, RMSNorm{o.Eps, After}}}
	case OnePlus:
		return []Rounding{
			{before, RMSNorm{o.Eps, OnePlusAfter}},
			{"rounds before the weight, and 1 + w too, transformers does neither", RMSNorm{o.Eps, OnePlusStored}},
		}
	}
	return nil
}

// Mistakes has the values of epsilon that other models have.
func (o RMSNorm) Mistakes() []Rounding {
	var all []Rounding
	for _, eps := range []float64{1e-3, 1e-5, 1e-6, 1e-8, 1e-12, 0} {
		if eps != o.Eps {
			all = append(all, Rounding{fmt.Sprintf("has an epsilon of %g, not %g", eps, o.Eps), RMSNorm{eps, o.Gain}})
		}
	}
	return all
}
