package order_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// sizes are the shapes of one entry's inputs, weights and result in a pass.
type sizes struct {
	in, w [][]int
	out   []int
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

func last(shape []int) int { return shape[len(shape)-1] }

// same reports whether all inputs have the shape of the result.
func (s sizes) same() bool {
	return !slices.ContainsFunc(s.in, func(in []int) bool { return !slices.Equal(in, s.out) })
}

// scalars reports whether an input has one number a token of the result.
func (s sizes) scalar(in []int) bool {
	return slices.Equal(in, append(slices.Clone(s.out[:len(s.out)-1]), 1))
}

// fits says of each operation whether the shapes are such as its definition makes.
func fits(o op.Op, s sizes) bool {
	switch o := o.(type) {
	case op.Argument:
		return len(s.in) == 0 && len(s.out) == 2
	case op.Lookup:
		width := product(s.out[2:])
		return slices.Equal(s.in[0], s.out[:2]) && slices.EqualFunc(s.w, [][]int{{o.Rows, width}}, slices.Equal)
	case op.Identity, op.Scale, op.Softcap, op.Tanh, op.GELU, op.GELUTanh, op.SiLU, op.Softmax, op.Cast:
		return len(s.in) == 1 && s.same() && len(s.w) == 0
	case op.ScaleChannels:
		return len(s.in) == 1 && s.same() && slices.Equal(s.w[0], s.out[2:])
	case op.Sub, op.Mul, op.AddScale:
		return len(s.in) == 2 && s.same()
	case op.Cutoff:
		return len(s.in) == 2 && s.same() && last(s.out) == 1
	case op.StreamMean:
		return len(s.in) > 1 && s.same()
	case op.Add: // a mask is the same for all heads
		masked := slices.Clone(s.out)
		masked[1] = 1
		return len(s.in) == 2 && slices.Equal(s.in[0], s.out) && (s.same() || len(s.out) == 4 && slices.Equal(s.in[1], masked))
	case op.ShiftedReLU:
		return len(s.in) == 2 && slices.Equal(s.in[0], s.out) && s.scalar(s.in[1])
	case op.Rescale:
		return len(s.in) == 3 && slices.Equal(s.in[0], s.out) && s.scalar(s.in[1]) && s.scalar(s.in[2])
	case op.Magnitude, op.Mean, op.Std:
		return len(s.in) == 1 && last(s.out) == 1 && slices.Equal(s.in[0][:2], s.out[:2])
	case op.Select:
		return slices.Equal(slices.Delete(slices.Clone(s.in[0]), o.Axis, o.Axis+1), s.out) && o.Index < s.in[0][o.Axis]
	case op.Linear:
		rows := product(s.out[2:])
		want := [][]int{{rows, product(s.in[0][2:])}}
		if o.Bias {
			want = append(want, []int{rows})
		}
		return slices.Equal(s.in[0][:2], s.out[:2]) && slices.EqualFunc(s.w, want, slices.Equal)
	case op.RMSNorm:
		want := [][]int{{last(s.out)}}
		if o.Gain == op.NoScale {
			want = nil
		}
		return len(s.in) == 1 && product(s.in[0]) == product(s.out) && slices.EqualFunc(s.w, want, slices.Equal)
	}
	return fitsAttention(o, s) || fitsAltUp(o, s)
}

func fitsAttention(o op.Op, s sizes) bool {
	switch o := o.(type) {
	case op.Mask:
		return slices.Equal(s.out[:3], []int{1, 1, s.in[0][1]})
	case op.Rotary:
		return slices.Equal(s.out, []int{1, s.in[0][1], o.Dim})
	case op.RoPE: // [1,T,h,D], or the same flat, to [1,h,T,D]
		heads, tokens, d := s.out[1], s.out[2], s.out[3]
		table := []int{1, tokens, d}
		return s.turned(0, tokens, heads, d) && slices.Equal(s.in[1], table) && slices.Equal(s.in[2], table)
	case op.Cache:
		heads, keys, d := s.out[1], s.out[2], s.out[3]
		tokens := product(s.in[0]) / heads / d
		kept := 0
		if len(s.in) == 2 {
			kept = s.in[1][2]
			if !slices.Equal(s.in[1], []int{1, heads, kept, d}) {
				return false
			}
			if o.Window > 0 {
				kept = min(kept, o.Window-1)
			}
		}
		if !o.Transpose {
			return slices.Equal(s.in[0], []int{1, heads, tokens, d}) && keys == kept+tokens
		}
		return s.turned(0, tokens, heads, d) && keys == kept+tokens
	case op.Scores:
		q, k := s.in[0], s.in[1]
		return q[3] == k[3] && q[1]%k[1] == 0 && slices.Equal(s.out, []int{1, q[1], q[2], k[2]})
	case op.Context:
		p, v := s.in[0], s.in[1]
		return p[3] == v[2] && p[1]%v[1] == 0 && slices.Equal(s.out, []int{1, p[2], p[1] * v[3]})
	}
	return false
}

// turned reports whether input k is [1,T,h,D], or flat.
func (s sizes) turned(k, tokens, heads, d int) bool {
	return slices.Equal(s.in[k], []int{1, tokens, heads, d}) || slices.Equal(s.in[k], []int{1, tokens, heads * d})
}

func fitsAltUp(o op.Op, s sizes) bool {
	switch o := o.(type) {
	case op.AltUpInit:
		for i, in := range s.in {
			one := slices.Equal(in, s.out[1:])
			if i%2 == 1 {
				one = slices.Equal(in, []int{1, s.out[2], 1})
			}
			if !one {
				return false
			}
		}
		return len(s.in) == 2*s.out[0]
	case op.AltUpPredict:
		return slices.Equal(s.in[0], []int{1, s.out[2], o.Streams * o.Streams}) && slices.Equal(s.in[1], s.out) && s.out[0] == o.Streams
	case op.AltUpCorrect:
		return slices.Equal(s.in[0], s.out[1:]) && slices.Equal(s.in[1], []int{1, s.out[2], o.Streams}) &&
			slices.Equal(s.in[2], s.out) && s.out[0] == o.Streams
	case op.AddToOthers:
		return slices.Equal(s.in[0], s.out) && slices.Equal(s.in[1], s.out[1:])
	}
	return false
}

// checkShapes reports an entry whose shape is not what its operation makes of its inputs, in a prompt and in the pass
// after it.
func checkShapes(t *rapid.T, l *order.List, e order.Entry, prompt, next order.Pass) {
	window := l.Config.SlidingWindow
	for _, p := range []order.Pass{prompt, next} {
		s := sizes{out: e.Size(p, window)}
		for _, ref := range e.Inputs {
			in, _ := l.Lookup(ref.Name)
			at := p
			if ref.Prev {
				if at = prompt; p == prompt {
					continue
				}
			}
			shape := in.Size(at, window)
			if ref.Index != nil {
				if *ref.Index >= shape[0] {
					t.Fatalf("%s takes stream %d of %d", e.Name, *ref.Index, shape[0])
				}
				shape = shape[1:]
			}
			s.in = append(s.in, shape)
		}
		for _, w := range e.Weights {
			s.w = append(s.w, w.Shape)
		}
		if !fits(e.Op, s) {
			t.Errorf("%s of %+v: %s makes %v of %v with weights %v", e.Name, p, e.Op.Kind(), s.out, s.in, s.w)
		}
	}
}
