package recorded

import (
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// bits reads memory in a new dtype: complex numbers become pairs of real and imaginary parts, or pairs become complex
// numbers.
func bits(m *maker) program.Var {
	m.only()
	x := m.operand(0)
	if m.s.dtype != hooks.F32 || m.s.operands[0].dtype != hooks.F32 || program.Size(x.Shape) != program.Size(m.s.shape) {
		return m.unknown("of %s as %s", m.s.operands[0].dtype, m.s.dtype)
	}
	return m.b.Reshape(m.b.Plain(x), m.s.shape...)
}

// polar is r·cos φ and r·sin φ, the parts of a complex number.
func polar(m *maker) program.Var {
	m.only()
	b := m.b
	shape := m.s.shape[:len(m.s.shape)-1]
	r, angle := b.Expand(m.operand(0), shape), b.Expand(m.operand(1), shape)
	last := len(shape)
	parts := []program.Var{b.Mul("real", r, b.Cos("cos", angle)), b.Mul("imaginary", r, b.Sin("sin", angle))}
	for k, v := range parts {
		parts[k] = b.Permute(v, append(ascending(last), -1)...)
	}
	return b.Cat(last, parts...)
}

// complexProduct is (a + ib)·(c + id) = ac − bd + i(ad + bc), each product in float32.
func complexProduct(m *maker) program.Var {
	m.only()
	b := m.b
	x, y := m.operand(0), m.operand(1)
	part := func(v program.Var, k int) program.Var { return b.Slice(v, len(v.Shape)-1, k, k+1) }
	real := b.Sub("real", b.Mul("ac", part(x, 0), part(y, 0)), b.Mul("bd", part(x, 1), part(y, 1)))
	imaginary := b.Add("imaginary", b.Mul("ad", part(x, 0), part(y, 1)), b.Mul("bc", part(x, 1), part(y, 0)))
	return b.Cat(len(m.s.shape)-1, real, imaginary)
}
