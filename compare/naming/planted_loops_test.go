package naming_test

import (
	"fmt"
	"math"
	"slices"
)

// Mistakes in plain loops. None of them knows an operation or a program: each reads the numbers that an entry is computed from.

// gives is a tensor of a function of the place of each element.
func gives(f func(p *wrongPort, i int) float64) func(p *wrongPort) []float64 {
	return func(p *wrongPort) []float64 {
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		y := make([]float64, n)
		for i := range y {
			y[i] = f(p, i)
		}
		return y
	}
}

// sees is a mask of which query sees which key, by their positions.
func sees(rule func(q, k float64) bool) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		positions, keys := p.In[0].Data, p.Shape[len(p.Shape)-1]
		last := positions[len(positions)-1]
		if rule(positions[i/keys], last+1-float64(keys)+float64(i%keys)) {
			return 0
		}
		return -math.MaxFloat32
	})
}

// pairOf computes one channel of a rotated head from its tokens and tables: of channel j of a row of d.
func pairOf(other func(j, d int) int, sign func(j, d int) float64, column func(j, d int) int) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		heads, tokens, d := p.Shape[1], p.Shape[2], p.Shape[3]
		h, t, j := i/d/tokens, i/d%tokens, i%d
		x := p.In[0].Data[(t*heads+h)*d:][:d]
		at := t*d + column(j, d)
		return x[j]*p.In[1].Data[at] + sign(j, d)*x[other(j, d)]*p.In[2].Data[at]
	})
}

func halfOf(j, d int) int      { return (j + d/2) % d }
func neighbourOf(j, _ int) int { return j ^ 1 }
func itself(j, _ int) int      { return j }
func ofPair(j, _ int) int      { return j / 2 }

func firstMinus(j, d int) float64 {
	if j < d/2 {
		return -1
	}
	return 1
}
func firstPlus(j, d int) float64 { return -firstMinus(j, d) }
func evenMinus(j, _ int) float64 { return float64(2*(j%2) - 1) }
func evenPlus(j, _ int) float64  { return -evenMinus(j, 0) }

// turns is a table of cosines or sines of angles: of the position and the pair of each.
func turns(angle func(position float64, pair, pairs int) float64) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		d := p.Shape[len(p.Shape)-1]
		a := angle(p.In[0].Data[i/d], i%d%(d/2), d/2)
		if p.Entry.Name[len(p.Entry.Name)-3:] == "sin" {
			return math.Sin(a)
		}
		return math.Cos(a)
	})
}

// byBase are angles of a base, with a factor of the frequencies and an offset of the positions.
func byBase(base, by, offset float64) func(p *wrongPort) []float64 {
	return turns(func(position float64, pair, pairs int) float64 {
		return in32(in32(math.Pow(base, -float64(pair)/float64(pairs)))*by) * (position + offset)
	})
}

// firstPairs are angles of the first pairs alone: the others do not turn.
func firstPairs(n int) func(p *wrongPort) []float64 {
	return turns(func(position float64, pair, pairs int) float64 {
		if pair >= n {
			return 0
		}
		return in32(math.Pow(1e4, -float64(pair)/float64(pairs))) * position
	})
}

// rmsOf is an RMS norm of rows, of numbers less so much of their mean, with a function of each weight.
func rmsOf(eps, mean float64, weight func(w float64) float64) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		n := p.In[0].Last()
		row, sum, squares := p.In[0].Data[i/n*n:][:n], 0.0, 0.0
		for _, x := range row {
			sum += x
		}
		for _, x := range row {
			squares += (x - mean*sum/float64(n)) * (x - mean*sum/float64(n))
		}
		return (row[i%n] - mean*sum/float64(n)) / math.Sqrt(squares/float64(n)+eps) * weight(p.W[0].Data[i%n])
	})
}

func plainWeight(w float64) float64 { return w }
func onePlus(w float64) float64     { return 1 + w }
func noWeight(float64) float64      { return 1 }
func zeroWeight(float64) float64    { return 0 }

// ofEach is a function of each element of the first tensor that is read.
func ofEach(f func(x float64) float64) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 { return f(p.In[0].Data[i]) })
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
func erfGELU(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) }
func tanhGELU(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}
func quickGELU(x float64) float64 { return x * sigmoid(1.702*x) }

// sigmoidGELU is GELU by a sigmoid with a steepness.
func sigmoidGELU(by float64) func(float64) float64 {
	return func(x float64) float64 { return x * sigmoid(by*x) }
}

// cutGELU is GELU between two inputs, 0 below and the input above.
func cutGELU(least, most float64) func(float64) float64 {
	return func(x float64) float64 {
		switch {
		case x < least:
			return 0
		case x > most:
			return x
		}
		return tanhGELU(x)
	}
}

// leakyBelow has a slope below 0.
func leakyBelow(slope float64) func(float64) float64 {
	return func(x float64) float64 { return max(x, slope*x) }
}

// capped are numbers with a soft cap.
func capped(limit float64) func(p *wrongPort) []float64 {
	return ofEach(func(x float64) float64 { return math.Tanh(x/limit) * limit })
}

// multipliedBy are numbers times one number, of the whole tensor that is read.
func multipliedBy(by float64) func(p *wrongPort) []float64 {
	return ofEach(func(x float64) float64 { return x * by })
}

// addedOf is one tensor times a number and another one.
func addedOf(a, b float64) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 { return a*p.In[0].Data[i] + b*p.In[1].Data[i] })
}

// byMatrix is a product with another matrix than the entry's: of its row and column, and of the port.
func byMatrix(w func(p *wrongPort, row, column int) float64) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		n, sum := p.In[0].Last(), 0.0
		rows := p.Shape[len(p.Shape)-1]
		for j := range n {
			sum += p.In[0].Data[i/rows*n+j] * w(p, i%rows, j)
		}
		if len(p.W) > 1 {
			sum += p.W[1].Data[i%rows]
		}
		return sum
	})
}

// ofWeight is another weight of a layer.
func ofWeight(role string) func(p *wrongPort, row, column int) float64 {
	return func(p *wrongPort, row, column int) float64 { return p.tensor(role).Row(row)[column] }
}

// turnedWeight is the entry's own matrix transposed.
func turnedWeight(p *wrongPort, row, column int) float64 { return p.W[0].Row(column)[row] }

// reversedWeight has the rows of the entry's matrix from the last to the first.
func reversedWeight(p *wrongPort, row, column int) float64 {
	return p.W[0].Row(p.W[0].Shape[0] - 1 - row)[column]
}

// slots is a cache that has other slots than it should: of each slot, −1 for zeros, from what was there and what is new.
func slots(of func(slot, slots int) int) func(p *wrongPort) []float64 {
	return func(p *wrongPort) []float64 {
		y := p.Eval()
		heads, n, d := p.Shape[1], p.Shape[2], p.Shape[3]
		if p.Pass == 0 {
			return y
		}
		right := slices.Clone(y)
		for h := range heads {
			for s := range n {
				if at := of(s, n); at < 0 {
					clear(y[(h*n+s)*d:][:d])
				} else {
					copy(y[(h*n+s)*d:][:d], right[(h*n+at)*d:][:d])
				}
			}
		}
		return y
	}
}

// grown is a cache whose slots of the prompt are stored by channel, and read in rows of another length by the first decode step.
func grown(length func(channel int) int) func(p *wrongPort) []float64 {
	return func(p *wrongPort) []float64 {
		y := p.Eval()
		heads, n, d := p.Shape[1], p.Shape[2], p.Shape[3]
		if p.Pass != 1 {
			return y
		}
		prompt := n - 1
		for h := range heads {
			var memory []float64
			for c := range d {
				for s := range prompt {
					memory = append(memory, y[(h*n+s)*d+c])
				}
			}
			memory = append(memory, make([]float64, 64*d)...)
			for c := range d {
				for s := range prompt {
					y[(h*n+s)*d+c] = memory[c*length(c)+s]
				}
			}
		}
		return y
	}
}

// foreign is a cache in which the first slots of earlier passes hold numbers of no tensor.
func foreign(slots int) func(p *wrongPort) []float64 {
	return func(p *wrongPort) []float64 {
		y := p.Eval()
		n, d := p.Shape[2], p.Shape[3]
		for i := range y {
			if s := i / d % n; p.Pass > 0 && s < slots && s < n-1 {
				y[i] = in32(math.Sin(float64(7*i + s)))
			}
		}
		return y
	}
}

// scattered is a cache whose first slots have right numbers of the cache in wrong places.
func scattered(slots int) func(p *wrongPort) []float64 {
	return func(p *wrongPort) []float64 {
		right := p.Eval()
		y := append([]float64{}, right...)
		n, d := p.Shape[2], p.Shape[3]
		for i := range y {
			if s := i / d % n; p.Pass > 0 && s < slots && s < n-1 {
				y[i] = right[(37*i+11)%len(y)]
			}
		}
		return y
	}
}

// keptOf is a cache of keys that takes in a tensor of the layer as it is, without the rotation.
func keptOf(module string) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		heads, n, d := p.Shape[1], p.Shape[2], p.Shape[3]
		h, s, j := i/d/n, i/d%n, i%d
		now := p.run.Tensor(fmt.Sprintf("layers.%d.self_attn.%s", p.Entry.Layer, module)).Data
		tokens := len(now) / heads / d
		if t := s - (n - tokens); t >= 0 {
			return now[(t*heads+h)*d+j]
		}
		before := p.In[1].Data
		return before[(h*(n-tokens)+s)*d+j]
	})
}

// heldBy has attention in which each query head has another key head.
func heldBy(head func(h, heads, keyHeads int) int) func(p *wrongPort) []float64 {
	return gives(func(p *wrongPort, i int) float64 {
		probs, values := p.In[0], p.In[1]
		heads, tokens, keys, d := probs.Shape[1], probs.Shape[2], probs.Shape[3], values.Last()
		t, h, j, sum := i/d/heads, i/d%heads, i%d, 0.0
		for s := range keys {
			sum += probs.Data[(h*tokens+t)*keys+s] * values.Data[(head(h, heads, values.Shape[1])*keys+s)*d+j]
		}
		return sum
	})
}
