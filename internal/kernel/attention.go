package kernel

import "math"

// Attention is the sizes of one layer's attention.
type Attention struct {
	Heads  int // of the queries
	KV     int // heads of the keys and of the values: query head h reads ⌊h·KV/Heads⌋
	Tokens int // of this pass: T
	Keys   int // that the tokens see: S
	Dim    int // of a head: D
}

// work is how many multiplications its products are.
func (n Attention) work() int { return n.Heads * n.Tokens * n.Keys * n.Dim }

// group is the keys, or the values, of x [KV, S, D] that a query head reads: [S, D].
func (n Attention) group(x []float32, head int) []float32 {
	return x[head*n.KV/n.Heads*n.Keys*n.Dim:][:n.Keys*n.Dim]
}

// Tables are the cosines and the sines [tokens, D] that queries and keys are turned by.
type Tables struct{ Cos, Sin []float32 }

// Rotate turns the pairs (j, j+D/2) of each head of x [tokens, heads, D] by tables, three roundings an element, and writes
// [heads, tokens, D].
func (a Arith) Rotate(dst, x []float32, by Tables, tokens, heads, d int) {
	half := d / 2
	for t := range tokens {
		c, s := by.Cos[t*d:(t+1)*d], by.Sin[t*d:(t+1)*d]
		for h := range heads {
			in, out := x[(t*heads+h)*d:][:d], dst[(h*tokens+t)*d:][:d]
			for j := range half {
				out[j] = a.R(a.R(float32(in[j]*c[j])) + a.R(float32(-in[j+half]*s[j])))
				out[j+half] = a.R(a.R(float32(in[j+half]*c[j+half])) + a.R(float32(in[j]*s[j+half])))
			}
		}
	}
}

// Scores is R(q·kᵀ) for q [heads, tokens, D] and keys [KV, S, D]: [heads, tokens, S].
func (a Arith) Scores(dst, q, keys []float32, n Attention) {
	parallel(n.Heads, n.work(), func(lo, hi int) {
		tokens, s, d := n.Tokens, n.Keys, n.Dim
		for h := lo; h < hi; h++ {
			group := n.group(keys, h)
			for t := range tokens {
				row, query := dst[(h*tokens+t)*s:][:s], q[(h*tokens+t)*d:][:d]
				for j := range row {
					row[j] = a.R(float32(dot(query, group[j*d:(j+1)*d])))
				}
			}
		}
	})
}

func dot(x, y []float32) float64 {
	y = y[:len(x)]
	var sum float64
	for k, v := range x {
		sum += float64(v) * float64(y[k])
	}
	return sum
}

// Context is R(probs·v) for probs [heads, tokens, S] and values [KV, S, D], heads merged: [tokens, heads·D].
func (a Arith) Context(dst, probs, values []float32, n Attention) {
	parallel(n.Heads, n.work(), func(lo, hi int) {
		tokens, s, d := n.Tokens, n.Keys, n.Dim
		sum := make([]float64, d)
		for h := lo; h < hi; h++ {
			group := n.group(values, h)
			for t := range tokens {
				clear(sum)
				for j, p := range probs[(h*tokens+t)*s:][:s] {
					for k, v := range group[j*d : (j+1)*d] {
						sum[k] += float64(p) * float64(v)
					}
				}
				out := dst[(t*n.Heads+h)*d:][:d]
				for k, v := range sum {
					out[k] = a.R(float32(v))
				}
			}
		}
	})
}

// InverseFrequencies returns θ^(−2j/D) for j < D/2, rounded to float32 after the quotient, the power and the
// reciprocal, as torch computes them.
func InverseFrequencies(theta float64, d int) []float32 {
	inv := make([]float32, d/2)
	for j := range inv {
		exponent := float32(2*j) / float32(d)
		inv[j] = 1 / float32(math.Pow(theta, float64(exponent)))
	}
	return inv
}

// ScaleLinear divides every frequency by factor, in float32.
func ScaleLinear(inv []float32, factor float64) {
	for j := range inv {
		inv[j] /= float32(factor)
	}
}

// ScaleLlama3 scales frequencies by their wavelength λ = 2π/inv, as rope_type llama3 does: those with λ above
// positions/low are divided by factor, those below positions/high are kept, those between are blended. Every step is a
// float32 and a scalar over a tensor is the reciprocal times the scalar, as in torch.
func ScaleLlama3(inv []float32, factor, low, high float64, positions int) {
	n := float32(positions)
	longest, shortest := float32(float64(positions)/low), float32(float64(positions)/high)
	for j, f := range inv {
		wavelength := float32(1/f) * float32(2*math.Pi)
		switch {
		case wavelength > longest:
			inv[j] = f / float32(factor)
		case wavelength >= shortest:
			smooth := (float32(float32(1/wavelength)*n) - float32(low)) / float32(high-low)
			kept := float32(smooth * f)
			inv[j] = float32(float32(float32(1-smooth)*f)/float32(factor)) + kept
		}
	}
}

// RotaryTables writes the tables of positions, of the angles f32(inv[j]·position), each half twice, rounded to the dtype.
func (a Arith) RotaryTables(dst Tables, inv []float32, positions []int) {
	half := len(inv)
	for t, p := range positions {
		c, s := dst.Cos[t*2*half:][:2*half], dst.Sin[t*2*half:][:2*half]
		for j, f := range inv {
			angle := float64(f * float32(p))
			c[j], s[j] = a.R(float32(math.Cos(angle))), a.R(float32(math.Sin(angle)))
			c[j+half], s[j+half] = c[j], s[j]
		}
	}
}
