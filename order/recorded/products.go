package recorded

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// product is x·y, or c + x·y: mm, mv and addmm. The sum is accumulated in float32 and rounded once. A weight whose rows are the
// columns of y is streamed.
func product(m *maker) program.Var {
	at := 0
	if m.o.Name == "addmm" {
		at = 1
	} else {
		m.only()
	}
	x := m.operand(at)
	if w, ok := m.rowsOf(at + 1); ok {
		if at == 0 {
			return m.b.Affine("product", x, w)
		}
		if c := m.operand(0); slices.Equal(c.Shape, []int{w.Shape[0]}) && len(m.s.attr) == 0 {
			return m.b.Affine("product", x, w, c)
		}
		return m.beside(m.b.Affine("product", x, w))
	}
	axes := "rk,kc->rc"
	if m.o.Name == "mv" {
		axes = "rk,k->r"
	}
	y := m.b.Dot("product", axes, x, m.operand(at+1))
	if at == 0 {
		return y
	}
	return m.beside(y)
}

// rowsOf returns the matrix of the checkpoint, if operand k is the whole transpose of the matrix.
func (m *maker) rowsOf(k int) (w program.Var, ok bool) {
	if !m.has(k) || m.s.operands[k].source != fromWeight {
		return w, false
	}
	p := &m.s.operands[k]
	w = m.w[p.index]
	s := w.Shape
	if p.turned {
		return w, len(s) == 2 && p.off == 0 && slices.Equal(p.shape, []int{s[1], s[0]}) && slices.Equal(p.stride, []int{s[0], 1})
	}
	return w, len(s) == 2 && len(p.more) == 0 && p.off == 0 && slices.Equal(p.shape, []int{s[1], s[0]}) && slices.Equal(p.stride, []int{1, s[1]})
}

// batched is a batched product of matrices: bmm, or baddbmm, which adds the product to its first operand.
func batched(m *maker) program.Var {
	if m.o.Name == "bmm" {
		m.only()
		return m.b.Dot("product", "brk,bkc->brc", m.operand(0), m.operand(1))
	}
	return m.beside(m.b.Dot("product", "brk,bkc->brc", m.operand(1), m.operand(2)))
}

// beside is β·c + α·y, with c the first operand: baddbmm and addmm, rounded once.
func (m *maker) beside(y program.Var) program.Var {
	m.only("alpha", "beta")
	c := m.operand(0)
	if alpha := m.real("alpha", 1); alpha != 1 {
		y = m.b.Mul("scaled", y, m.b.Scalar("alpha", alpha))
	}
	if beta := m.real("beta", 1); beta != 1 {
		c = m.b.Mul("other scaled", c, m.b.Scalar("beta", beta))
	}
	return m.b.Add("sum", y, c)
}

// convolution is Σ x·w + bias over the channels of a group and the places of a kernel, along one axis. Operands: x [B, C, T],
// w [out, C/groups, K], bias. Padding is with zeros.
func convolution(m *maker) program.Var {
	m.only("stride", "padding", "dilation", "transposed", "output_padding", "groups")
	x, w := m.operand(0), m.operand(1)
	if len(x.Shape) != 3 || len(w.Shape) != 3 || m.flag("transposed", false) {
		return m.unknown("its %d axes, or its transposition", len(x.Shape))
	}
	one := func(name string, otherwise int) int {
		if all, ok := m.integers(name); ok && len(all) == 1 {
			return all[0]
		}
		return otherwise
	}
	stride, padding, dilation, groups := one("stride", 1), one("padding", 0), one("dilation", 1), m.integer("groups", 1)
	batch, channels, outs, taps := x.Shape[0], x.Shape[1], w.Shape[0], w.Shape[2]
	if stride < 1 || dilation < 1 || padding < 0 || groups < 1 || channels%groups != 0 || outs%groups != 0 || taps < 1 {
		return m.b.Fail("a convolution of %d channels in %d groups", channels, groups)
	}
	if x = m.b.Plain(x); padding > 0 {
		zeros := m.b.Expand(m.b.Literal(0), []int{batch, channels, padding})
		x = m.b.Cat(2, zeros, x, zeros)
	}
	length := x.Shape[2]
	times := (length-dilation*(taps-1)-1)/stride + 1
	if times < 1 {
		return m.b.Fail("a convolution of %d places with a kernel of %d", length, taps)
	}
	in := channels / groups
	seen := m.b.View(x, []int{batch, groups, in, times, taps}, []int{channels * length, in * length, length, stride, dilation}, 0)
	flat := m.b.Reshape(m.b.Plain(m.b.Permute(seen, 0, 1, 3, 2, 4)), batch, groups, times, in*taps)
	kernel := m.b.Reshape(m.b.Plain(w), groups, outs/groups, in*taps)
	y := m.b.Dot("product", "bgtk,gok->bgot", flat, kernel)
	y = m.b.Reshape(y, batch, outs, times)
	if m.has(2) {
		y = m.b.Add("bias", y, m.b.Permute(m.operand(2), 0, -1))
	}
	return y
}

// solve is X with L·X = B, L being triangular. An upper one is a lower one from the last row to the first.
func solve(m *maker) program.Var {
	m.only("upper", "left", "unitriangular")
	l, x := m.operand(0), m.operand(1)
	rank := len(l.Shape)
	if !m.flag("left", true) || rank < 2 || len(x.Shape) != rank {
		return m.unknown("its %d axes, or the matrix on the right", rank)
	}
	n, c := l.Last(), x.Last()
	if l.Shape[rank-2] != n || x.Shape[rank-2] != n || n == 0 {
		return m.unknown("%d equations", n)
	}
	l = m.b.Reshape(m.b.Plain(l), -1, n, n)
	x = m.b.Reshape(m.b.Plain(x), -1, n, c)
	if l.Shape[0] != x.Shape[0] {
		return m.b.Fail("%v and %v", m.s.operands[0].shape, m.s.operands[1].shape)
	}
	upper := m.flag("upper", false)
	if upper {
		l, x = m.b.Reverse(m.b.Reverse(l, 1), 2), m.b.Reverse(x, 1)
	}
	done := m.b.Solve("solution", l, x, m.flag("unitriangular", false))
	if upper {
		done = m.b.Plain(m.b.Reverse(done, 1))
	}
	return m.b.Reshape(m.b.Plain(done), m.s.shape...)
}

// attention is softmax(q·kᵀ·scale + mask)·v in float32, each row divided by its sum last. In 16 bits torch takes an exponential that
// is off by up to a hundredth: nothing is said of that. Operands: q [B, H, T, D], k and v [B, G, S, D], mask. G divides H: with fewer heads of keys than of
// queries, H/G heads of queries that follow each other have one head of keys.
func attention(m *maker) program.Var {
	m.only("dropout_p", "is_causal", "scale")
	q, k, v := m.operand(0), m.operand(1), m.operand(2)
	switch {
	case m.o.Out != 0:
		return m.unknown("its second result")
	case m.s.dtype != hooks.F32 || m.real("dropout_p", 0) != 0:
		return m.unknown("its result in %s", m.s.dtype)
	case len(q.Shape) != 4 || len(k.Shape) != 4:
		return m.unknown("its axes")
	}
	d := q.Last()
	if d == 0 {
		return m.b.Fail("heads of no channels")
	}
	b := m.b
	grouped := q.Shape
	if h, g := q.Shape[1], k.Shape[1]; h != g && g > 0 && h%g == 0 {
		grouped = []int{q.Shape[0], g, h / g * q.Shape[2], q.Last()}
	}
	of := func(x program.Var, last int) program.Var { // the queries of a group as one head of more tokens, and back
		if slices.Equal(grouped, q.Shape) {
			return x
		}
		return b.Reshape(b.Plain(x), append(slices.Clone(grouped[:3]), last)...)
	}
	whole := func(x program.Var, last int) program.Var {
		return b.Reshape(x, append(slices.Clone(q.Shape[:3]), last)...)
	}
	keys := k.Shape[2]
	scores := b.Mul("scaled", whole(b.Dot("scores", "bhtd,bhsd->bhts", of(q, d), k), keys), b.Scalar("scale", m.real("scale", 1/math.Sqrt(float64(d)))))
	if m.has(3) {
		if m.s.operands[3].dtype == hooks.Bool {
			scores = b.Choose(m.operand(3), scores, b.Literal(math.Inf(-1)))
		} else {
			scores = b.Add("masked", scores, m.operand(3))
		}
	}
	if m.flag("is_causal", false) {
		t, s := q.Shape[2], k.Shape[2]
		if t*s > maxOwn {
			return m.unknown("a mask of %d by %d", t, s)
		}
		seen := make([]float64, t*s)
		for i := range seen {
			if i%s <= i/s {
				seen[i] = 1
			}
		}
		scores = b.Choose(b.Constant("", seen, []int{t, s}), scores, b.Literal(math.Inf(-1)))
	}
	e := b.Exp("exp", b.Sub("difference", scores, b.RowMax(scores)))
	return b.Div("quotient", whole(b.Dot("product", "bhts,bhsd->bhtd", of(e, keys), v), v.Last()), b.Sum("sum", e))
}
