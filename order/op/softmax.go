package op

import "math"

// Softmax is exp(x−m) / Σ exp(x−m) with m the maximum, over the last axis, in float32 and not rounded. Input: x.
type Softmax struct{}

// Kind is "softmax".
func (Softmax) Kind() string { return "softmax" }

// Eval norms each row. Bound: by running error analysis (for the algorithm: Blanchard, Higham and Higham, Accurately
// computing the log-sum-exp and softmax functions, 2021). x − m is off by E_x + u·|x − m|, which the exponential turns
// into as large a relative error; a sum of positive terms is off by no more than 2λ·√n·u of itself beside what the
// terms are. Which element is the maximum does not matter: it cancels.
func (Softmax) Eval(c Call) (Value, error) {
	x, out := c.In[0], c.result()
	n := x.last()
	exps := make([]Num, n)
	for start := 0; start < len(x.Data); start += n {
		row := x.slice(start, n)
		top := Num{V: math.Inf(-1)}
		for _, v := range row.Data {
			top.V = math.Max(top.V, v)
		}
		sum := c.sum(n, func(i int) Num {
			exps[i] = c.function(math.Exp, c.sub(row.at(i), top))
			return exps[i]
		})
		for i, e := range exps {
			out.set(start+i, c.div(e, sum))
		}
	}
	return out, nil
}

// Unsaturated holds below a probability that leaves the others a part of the sum: above it, the sum is little more than 1.
func (Softmax) Unsaturated(y float64) bool { return !(y > 0.9) }

// Shares is the sum.
func (Softmax) Shares() (s Shared, entry bool) { return SharedSum, false }
