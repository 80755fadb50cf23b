package order

import (
	"slices"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// turned are rotations of a part of each head, with the tables' widths.
func (t *lifting) turned() (all []op.Op) {
	shape := t.f.Out.Shape
	if len(shape) != 4 {
		return nil
	}
	width := slices.Min([]int{last(t.calls[0].In[0]), last(t.calls[0].In[1]), last(t.calls[0].In[2])})
	for _, dims := range []int{width, 2 * width} {
		for _, from := range []int{0, shape[3] - dims} {
			if dims > shape[3] {
				continue
			}
			for _, pairs := range []op.Pairs{op.Halves, op.Neighbours} {
				for _, out := range []op.Pairs{op.Halves, op.Neighbours} {
					for _, k := range []int{0, 1, 2, 3} {
						all = append(all, op.RoPEPart{Dims: dims, From: from, Pairs: pairs, Out: out, Half: k&1 > 0, Single: k&2 > 0})
					}
				}
			}
		}
	}
	return all
}

// latent returns candidates for the keys of latent attention. The turned part of a key is as wide as the tables, or
// twice as wide.
func (t *lifting) latent() (all []op.Op) {
	if len(t.f.Out.Shape) != 4 {
		return nil
	}
	width := t.last()
	for _, v := range t.calls[0].In {
		width = min(width, last(v))
	}
	for _, dims := range []int{width, 2 * width} {
		for _, pairs := range []op.Pairs{op.Neighbours, op.Halves} {
			for _, out := range []op.Pairs{op.Halves, op.Neighbours} {
				for _, half := range []bool{false, true} {
					all = append(all, op.LatentKeys{Dims: dims, Pairs: pairs, Out: out, Half: half})
				}
			}
		}
	}
	return all
}

// stacks are how many experts the weights may be those of.
func (t *lifting) stacks() (all []int) {
	for i := range t.f.Steps {
		if s := &t.f.Steps[i]; s.Prim == program.Gather {
			if n := s.Args[0].Shape[s.Axis()]; !slices.Contains(all, n) {
				all = append(all, n)
			}
		}
	}
	return all
}

// expertRows are products with the matrices of a token's experts.
func (t *lifting) expertRows() (all []op.Op) {
	for _, n := range t.stacks() {
		for _, from := range []int{0, t.last()} {
			all = append(all, op.ExpertRows{Experts: n, From: from})
		}
	}
	return all
}

// mixers are convolutions and scans over the tokens of all passes.
func (t *lifting) mixers() (all []op.Op) {
	shape := t.f.Out.Shape
	in := t.calls[0].In[t.groups[0][0]].Shape
	if len(in) != 3 || len(shape) < 3 {
		return nil
	}
	n := len(t.f.Weights)
	for _, w := range t.f.Weights {
		if len(w.Shape) != 3 || w.Shape[1] != 1 {
			continue
		}
		kernel, channels := w.Shape[2], w.Shape[0]
		if n <= 2 {
			for _, from := range []int{0, channels, in[2] - channels} {
				for _, silu := range []bool{true, false} {
					all = append(all, op.Convolution{Kernel: kernel, From: from, Bias: n == 2, SiLU: silu})
				}
			}
		}
		if n != 5 {
			continue
		}
		for groups := 1; groups <= 8; groups *= 2 {
			if shared := channels - program.Size(shape[2:]); shared > 0 && shared%(2*groups) == 0 {
				all = append(all, op.StateSpace{Kernel: kernel, State: shared / (2 * groups), Groups: groups})
			}
		}
	}
	return all
}

// convolves reports whether the weights are the weights of a convolution per channel: one weight at least has the
// shape [C, 1, K], no weight is a matrix, and the steps read several entries.
func (t *lifting) convolves() bool {
	some := false
	for _, w := range t.f.Weights {
		if len(w.Shape) == 2 {
			return false
		}
		some = some || len(w.Shape) == 3 && w.Shape[1] == 1
	}
	return some && len(t.groups) > 1
}

// deltaRules are those of Qwen3-Next and its kind.
func (t *lifting) deltaRules() (all []op.Op) {
	kernel, channels, vectors, heads := 0, 0, 0, 0
	for _, w := range t.f.Weights {
		if len(w.Shape) == 3 {
			kernel, channels = w.Shape[2], channels+w.Shape[0]
		} else {
			vectors, heads = vectors+1, program.Size(w.Shape)
		}
	}
	shape := t.f.Out.Shape
	if len(shape) < 2 {
		return nil
	}
	if vectors == 0 {
		heads = shape[len(shape)-2]
	}
	numbers := t.numbers()
	for n := 1; n <= heads; n++ {
		keys := (channels - heads*t.last()) / 2
		if heads%n != 0 || keys < n || keys%n != 0 {
			continue
		}
		for _, eps := range numbers {
			if !(eps > 0 && eps < 1e-3) {
				continue
			}
			o := op.DeltaRule{Kernel: kernel, Heads: n, Size: keys / n, Eps: eps, Woven: len(t.groups) == 2, Given: vectors == 0}
			all = append(all, o)
			o.Double = true
			all = append(all, o)
		}
	}
	return all
}

// scans are those of Mamba.
func (t *lifting) scans() (all []op.Op) {
	for _, a := range t.f.Weights {
		for _, w := range t.f.Weights {
			if len(a.Shape) == 2 && len(w.Shape) == 2 && a.Shape[0] == t.last() && w.Shape[0] == t.last() && a.Name != w.Name {
				for _, from := range []int{0, t.last()} {
					all = append(all, op.SelectiveScan{State: a.Shape[1], Rank: w.Shape[1], From: from, Apart: len(t.groups) == 5})
				}
			}
		}
	}
	return all
}
