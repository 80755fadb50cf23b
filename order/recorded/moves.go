package recorded

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// all are the operands from the first on.
func (m *maker) all() []program.Var {
	var all []program.Var
	for k := range m.s.operands {
		all = append(all, m.operand(k))
	}
	return all
}

// cat joins tensors along an axis. An empty tensor with one axis is left out: torch joins it to tensors of any rank.
func cat(m *maker) program.Var {
	m.only("dim")
	axis := axisOf(m.b, m.integer("dim", 0), m.s.shape)
	all := slices.DeleteFunc(m.all(), func(v program.Var) bool { return len(v.Shape) == 1 && v.Shape[0] == 0 && len(m.s.shape) > 1 })
	if len(all) == 0 {
		return m.b.Fail("nothing is joined")
	}
	return m.b.Cat(axis, all...)
}

// stack joins tensors along a new axis.
func stack(m *maker) program.Var {
	m.only("dim")
	axis := axisOf(m.b, m.integer("dim", 0), m.s.shape)
	var all []program.Var
	for k, v := range m.all() {
		axes := make([]int, len(v.Shape))
		for a := range axes {
			axes[a] = a
		}
		if m.s.operands[k].scalar {
			axes = nil
		}
		if axis > len(axes) {
			return m.b.Fail("axis %d of %v", axis, v.Shape)
		}
		if axes == nil {
			all = append(all, v)
			continue
		}
		all = append(all, m.b.Permute(v, slices.Insert(axes, axis, -1)...))
	}
	if len(all) == 0 {
		return m.b.Fail("nothing is joined")
	}
	return m.b.Cat(axis, all...)
}

// repeat writes a tensor several times along each axis.
func repeat(m *maker) program.Var {
	m.only("repeats")
	times, ok := m.integers("repeats")
	v := m.operand(0)
	if !ok || len(times) < len(v.Shape) {
		return m.unknown("its repeats")
	}
	for len(v.Shape) < len(times) {
		axes := []int{-1}
		for a := range v.Shape {
			axes = append(axes, a)
		}
		v = m.b.Permute(v, axes...)
	}
	for a, n := range times {
		if n < 0 || n > maxRepeats {
			return m.b.Fail("repeated %d times", n)
		}
		if n*max(program.Size(v.Shape), 1) > maxElements {
			return m.b.Fail("more than %d elements", maxElements)
		}
		if n != 1 {
			copies := slices.Repeat([]program.Var{v}, n)
			if n == 0 {
				copies = []program.Var{m.b.Slice(v, a, 0, 0)}
			}
			v = m.b.Cat(a, copies...)
		}
	}
	return v
}

// maxRepeats bounds the copies of one axis.
const maxRepeats = 1 << 12

// pad puts numbers before and after a tensor, along its last axes: a pair of counts for each, the last axis first. A count below
// zero takes elements away.
func pad(m *maker) program.Var {
	m.only("pad", "value")
	counts, ok := m.integers("pad")
	v := m.operand(0)
	if !ok || len(counts)%2 != 0 || len(counts) > 2*len(v.Shape) {
		return m.unknown("its counts")
	}
	value := m.number("value", m.real("value", 0))
	for k := 0; k < len(counts); k += 2 {
		a := len(v.Shape) - 1 - k/2
		parts := []program.Var{v}
		for side, n := range counts[k : k+2] {
			shape := slices.Clone(v.Shape)
			switch {
			case n > maxElements || n < -v.Shape[a]:
				return m.b.Fail("padded by %d", n)
			case n < 0 && side == 0:
				parts[0] = m.b.Slice(parts[0], a, -n, parts[0].Shape[a])
			case n < 0:
				last := len(parts) - 1
				parts[last] = m.b.Slice(parts[last], a, 0, parts[last].Shape[a]+n)
			case n > 0:
				shape[a] = n
				parts = slices.Insert(parts, side*len(parts), m.b.Expand(value, shape))
			}
		}
		v = m.b.Cat(a, parts...)
	}
	return v
}

// write is memory after a write to a part of it. Operands: the memory before, if used, and the written values; shape,
// stride and offset give the place.
func write(m *maker) program.Var {
	m.only("shape", "stride", "offset")
	shape, a := m.integers("shape")
	stride, b := m.integers("stride")
	off := m.integer("offset", 0)
	value := m.operand(1)
	n := program.Size(m.s.shape)
	if n > maxOwn || program.Size(shape) > maxOwn {
		return m.unknown("a memory of %d elements", n)
	}
	if len(shape) == 0 {
		shape, stride, a, b = []int{1}, []int{1}, true, true
	}
	if !a || !b || len(m.s.shape) != 1 || len(shape) != len(stride) || !program.Within(n, shape, stride, off) || !slices.Equal(atLeastOne(value.Shape), shape) {
		return m.b.Fail("%v by %v from %d of %v is written", shape, stride, off, m.s.shape)
	}
	old := m.b.Expand(m.b.Literal(math.NaN()), []int{n})
	if m.has(0) {
		old = m.b.Reshape(m.b.Plain(m.operand(0)), n)
	}
	from := make([]float64, n)
	for i := range from {
		from[i] = float64(i)
	}
	for i := range program.Size(shape) {
		at, rest := off, i
		for axis := len(shape) - 1; axis >= 0; axis-- {
			at += rest % shape[axis] * stride[axis]
			rest /= shape[axis]
		}
		from[at] = float64(n + i)
	}
	both := m.b.Cat(0, old, m.b.Reshape(m.b.Plain(value), program.Size(shape)))
	return m.b.Gather(0, both, m.b.Constant("", from, []int{n}))
}

// flip reverses axes.
func flip(m *maker) program.Var {
	m.only("dims")
	v := m.operand(0)
	dims, _ := m.integers("dims")
	for _, a := range dims {
		v = m.b.Reverse(v, axisOf(m.b, a, v.Shape))
	}
	return m.b.Cat(0, v)
}

// embedding takes rows of a table by index. Operands: the table, indexes. Only a matrix of the checkpoint is read row
// by row; a part, a transpose or any other table is read whole.
func embedding(m *maker) program.Var {
	ids := m.operand(1)
	if p := &m.s.operands[0]; p.source == fromWeight && !p.turned && len(p.more) == 0 {
		w := m.w[p.index]
		if s := w.Shape; len(s) == 2 && p.off == 0 && slices.Equal(p.shape, s) && slices.Equal(p.stride, []int{s[1], 1}) {
			return m.b.Lookup(ids, w, s[0], false)
		}
	}
	return take(m.b, m.operand(0), 0, ids)
}

// take is numpy's take: elements along an axis, which becomes the axes of the index.
func take(b *program.Builder, v program.Var, axis int, index program.Var) program.Var {
	shape := v.Shape
	n := program.Size(index.Shape)
	flat := b.Reshape(b.Plain(index), n)
	axes := make([]int, len(shape))
	wide := slices.Clone(shape)
	for a := range axes {
		axes[a] = -1
	}
	axes[axis], wide[axis] = 0, n
	taken := b.Gather(axis, v, b.Expand(b.Permute(flat, axes...), wide))
	return b.Reshape(taken, slices.Concat(shape[:axis], index.Shape, shape[axis+1:])...)
}

func indexSelect(m *maker) program.Var {
	m.only("dim")
	v := m.operand(0)
	return take(m.b, v, axisOf(m.b, m.integer("dim", 0), v.Shape), m.operand(1))
}

// gather takes elements by indexes of the result's shape.
func gather(m *maker) program.Var {
	m.only("dim", "sparse_grad")
	v, index := m.operand(0), m.operand(1)
	axis := axisOf(m.b, m.integer("dim", 0), v.Shape)
	if len(index.Shape) != len(v.Shape) {
		return m.b.Fail("indexes of %v in %v", index.Shape, v.Shape)
	}
	for a, n := range index.Shape {
		if a != axis && n < v.Shape[a] {
			v = m.b.Slice(v, a, 0, n)
		}
	}
	return m.b.Gather(axis, v, index)
}

// index takes elements by indexes of neighbouring axes; the other axes stay whole.
func index(m *maker) program.Var {
	m.only()
	v := m.operand(0)
	axis, axes, index, ok := m.joined(v.Shape, len(m.s.operands))
	if !ok {
		return index
	}
	if axes > 1 {
		v = m.b.Reshape(m.b.Plain(v), slices.Concat(v.Shape[:axis], []int{-1}, v.Shape[axis+axes:])...)
	}
	return take(m.b, v, axis, index)
}

// indexes returns operand k as indexes into n elements. A negative index counts from the end: this is done for
// constants only, since the sign of a computed index is not known.
func (m *maker) indexes(k, n int) program.Var {
	p := &m.s.operands[k]
	if p.source != fromConst || !slices.ContainsFunc(p.data.Numbers, func(x float64) bool { return x < 0 }) {
		return m.operand(k)
	}
	x := slices.Clone(p.data.Numbers)
	for i := range x {
		if x[i] < 0 {
			x[i] += float64(n)
		}
	}
	return m.b.View(m.b.Constant("", x, atLeastOne(p.data.Shape)), p.shape, p.stride, p.off)
}
