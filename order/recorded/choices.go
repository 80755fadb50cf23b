package recorded

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// ranks are topk, sort, max and min along an axis, argmax and argmin. Their indexes are a choice: where rounding may have made another,
// an engine's own is followed, see [program.Builder.Rank]. What was chosen is taken by the choice, which is the last operand here. The
// order that a sort gives counts; that of topk does not, since most engines have another.
func ranks(m *maker) program.Var {
	m.only("k", "dim", "largest", "sorted", "descending", "stable", "keepdim")
	x := m.operand(0)
	if _, along := m.s.attr["dim"]; !along && m.o.Name != "topk" && m.o.Name != "sort" {
		if m.has(1) { // max(x, y) is maximum
			if m.o.Name == "max" {
				return m.b.Max(x, m.operand(1))
			}
			return smaller(m.b, x, m.operand(1))
		}
		if x = m.b.Reshape(m.b.Plain(x), -1); m.o.Name == "max" || m.o.Name == "min" {
			return m.extreme(x)
		}
	}
	axis := axisOf(m.b, m.integer("dim", -1), x.Shape)
	there, back := lastAxis(len(x.Shape), axis)
	rows := m.b.Permute(x, there...)
	if m.o.Out == 0 && len(m.s.operands) == 2 {
		index := m.operand(1)
		if len(index.Shape) < len(there) { // without keepdim
			index = m.b.Permute(index, slices.Insert(ascending(len(index.Shape)), axis, -1)...)
		}
		return m.b.Permute(m.b.Gather(len(there)-1, rows, m.b.Permute(index, there...)), back...)
	}
	n := rows.Last()
	if n > maxRepeats || n == 0 {
		return m.unknown("%d elements a row", n)
	}
	k, sorted, down := 1, false, m.o.Name == "max" || m.o.Name == "argmax"
	switch m.o.Name {
	case "topk":
		k, down = m.integer("k", 0), m.flag("largest", true)
	case "sort":
		k, sorted, down = n, true, m.flag("descending", false)
	}
	if !down {
		rows = m.b.Neg(rows)
	}
	return m.b.Permute(m.b.Rank(rows, k, sorted), back...)
}

// extreme is the largest element of each row, or the smallest.
func (m *maker) extreme(rows program.Var) program.Var {
	if rows.Last() > maxRepeats || rows.Last() == 0 {
		return m.unknown("%d elements a row", rows.Last())
	}
	last := len(rows.Shape) - 1
	top := m.b.Plain(m.b.Slice(rows, last, 0, 1))
	for k := 1; k < rows.Last(); k++ {
		if next := m.b.Slice(rows, last, k, k+1); m.o.Name == "min" || m.o.Name == "amin" {
			top = smaller(m.b, top, next)
		} else {
			top = m.b.Max(top, next)
		}
	}
	return top
}

// outermost is the extreme of some axes: amax and amin.
func outermost(m *maker) program.Var {
	m.only("dim", "keepdim")
	axes, _ := m.integers("dim")
	rows, _ := rowsOver(m.b, m.operand(0), axes)
	return m.extreme(rows)
}

// scatter writes elements by indexes of their own shape, the last that is written to a place; scatter_add adds them, in float32,
// and rounds once. Operands: the tensor, indexes, elements or one number.
func scatter(m *maker) program.Var {
	m.only("dim")
	x, index := m.operand(0), m.operand(1)
	axis := axisOf(m.b, m.integer("dim", 0), x.Shape)
	y := m.cast(2)
	if m.s.operands[2].source == fromNumber || m.s.operands[2].scalar {
		y = m.b.Expand(y, index.Shape)
	}
	if len(index.Shape) != len(x.Shape) || len(y.Shape) != len(x.Shape) {
		return m.b.Fail("elements of %v by indexes of %v in %v", y.Shape, index.Shape, x.Shape)
	}
	for a, n := range index.Shape {
		if a != axis && n != x.Shape[a] {
			return m.unknown("indexes of a part")
		}
		if n < y.Shape[a] {
			y = m.b.Slice(y, a, 0, n)
		}
	}
	if m.o.Name == "scatter_add" {
		return m.b.Collect("sum", axis, x, index, y)
	}
	return m.b.Scatter(axis, x, index, y)
}

// indexed are index_copy, which writes slices by index along an axis, and index_add, which adds α times them in float32 and rounds
// once. Operands: the tensor, indexes, slices.
func indexed(m *maker) program.Var {
	m.only("dim", "alpha")
	x, y := m.operand(0), m.operand(2)
	axis := axisOf(m.b, m.integer("dim", 0), x.Shape)
	index := m.indexes(1, x.Shape[axis])
	if m.o.Name == "index_copy" {
		return scattered(m.b, axis, x, index, y, false)
	}
	if alpha := m.real("alpha", 1); alpha != 1 {
		y = m.b.Mul("scaled", y, m.b.Scalar("alpha", alpha))
	}
	return scattered(m.b, axis, x, index, y, true)
}

// scattered writes or adds slices along an axis.
func scattered(b *program.Builder, axis int, x, index, y program.Var, add bool) program.Var {
	if index = b.Reshape(b.Plain(index), -1); len(y.Shape) != len(x.Shape) {
		return b.Fail("slices of %v in %v", y.Shape, x.Shape)
	}
	axes := make([]int, len(x.Shape))
	for a := range axes {
		axes[a] = -1
	}
	axes[axis] = 0
	wide := b.Expand(b.Permute(index, axes...), y.Shape)
	if add {
		return b.Collect("sum", axis, x, wide, y)
	}
	return b.Scatter(axis, x, wide, y)
}

// indexPut writes elements where indexes say; with accumulate it adds them one after the other, and rounds after each in 16 bits.
// Operands: the tensor, an index for each of its first axes or nothing, elements.
func indexPut(m *maker) program.Var {
	m.only("accumulate", "unsafe")
	x := m.operand(0)
	last := len(m.s.operands) - 1
	axis, axes, index, ok := m.joined(x.Shape, last)
	if !ok {
		return index
	}
	shape := slices.Concat(x.Shape[:axis], index.Shape, x.Shape[axis+axes:])
	y := m.operand(last)
	if m.s.operands[last].scalar {
		y = m.b.Reshape(m.b.Plain(y), 1)
	}
	n := program.Size(x.Shape[axis : axis+axes])
	flat := slices.Concat(x.Shape[:axis], []int{n}, x.Shape[axis+axes:])
	y = m.b.Reshape(m.b.Plain(m.b.Expand(y, shape)), slices.Concat(x.Shape[:axis], []int{program.Size(index.Shape)}, x.Shape[axis+axes:])...)
	add := m.flag("accumulate", false)
	out := scattered(m.b, axis, m.b.Reshape(m.b.Plain(x), flat...), index, y, add)
	if add {
		out = m.narrow(out)
	}
	return m.b.Reshape(out, x.Shape...)
}

// joined combines indexes of neighbouring axes, operands 1 to last−1, into one index over all these axes. It returns
// the first axis and the number of axes. A flag operand selects the elements that are set. For any other operands ok
// is false, and index is an error of the program.
func (m *maker) joined(shape []int, last int) (axis, axes int, index program.Var, ok bool) {
	axis = -1
	at := 0
	for k := 1; k < last; k++ {
		switch {
		case !m.has(k):
			at++
			continue
		case axis >= 0 && at != axis+axes:
			return 0, 0, m.unknown("indexes of axes that do not follow each other"), false
		case axis < 0:
			axis = at
		}
		p := &m.s.operands[k]
		if p.dtype.String() == "bool" {
			var i program.Var
			if i, ok = m.set(k, shape, at); !ok || axes > 0 {
				return 0, 0, m.unknown("an index of flags"), false
			}
			index, axes = i, len(p.shape)
			at += axes
			continue
		}
		if at >= len(shape) {
			return 0, 0, m.b.Fail("more indexes than axes of %v", shape), false
		}
		i := m.indexes(k, shape[at])
		if axes > 0 {
			if program.Size(shape[axis:at+1]) > maxPlaces {
				return 0, 0, m.unknown("indexes of more than %d places", maxPlaces), false
			}
			n := m.b.Literal(float64(shape[at]))
			i = m.b.Add("place", m.b.Mul("places", index, n), i)
		}
		index = i
		axes++
		at++
	}
	if axis < 0 {
		return 0, 0, m.unknown("no index"), false
	}
	return axis, axes, index, true
}

// maxPlaces is how many places float32 counts, in which indexes are computed.
const maxPlaces = 1 << 24

// set are the places at which constant flags are set, in row-major order.
func (m *maker) set(k int, shape []int, at int) (index program.Var, ok bool) {
	p := &m.s.operands[k]
	if p.source != fromConst || at+len(p.shape) > len(shape) || !slices.Equal(shape[at:at+len(p.shape)], p.shape) ||
		!slices.Equal(p.stride, RowMajor(p.shape)) || p.off != 0 || len(p.data.Numbers) != program.Size(p.shape) {
		return index, false
	}
	var places []float64
	for i, x := range p.data.Numbers {
		if x != 0 {
			places = append(places, float64(i))
		}
	}
	if len(places) == 0 {
		return index, false
	}
	return m.b.Constant("", places, []int{len(places)}), true
}

// compared is 1 where a comparison holds, and 0 elsewhere; where bounds allow for either, so has that.
func compared(m *maker) program.Var {
	m.only()
	b := m.b
	above := func(x, y program.Var) program.Var { return b.Gate(b.Sub("difference", x, y)) }
	none := func(x program.Var) program.Var { return b.Choose(x, b.Literal(0), b.Literal(1)) }
	x, y := m.operand(0), m.operand(1)
	switch m.o.Name {
	case "gt":
		return above(x, y)
	case "lt":
		return above(y, x)
	case "ge":
		return none(above(y, x))
	case "le":
		return none(above(x, y))
	}
	other := b.Max(above(x, y), above(y, x))
	if m.o.Name == "ne" {
		return other
	}
	return none(other)
}

// not is 1 where a flag is 0.
func not(m *maker) program.Var {
	m.only()
	if m.o.Name == "bitwise_not" && m.s.operands[0].dtype.String() != "bool" {
		return m.unknown("its dtype %s", m.s.operands[0].dtype)
	}
	return m.b.Choose(m.operand(0), m.b.Literal(0), m.b.Literal(1))
}

// both is 1 where two flags are, or one of them.
func both(m *maker) program.Var {
	m.only()
	for k := range 2 {
		if m.s.operands[k].dtype.String() != "bool" && m.o.Name[0] == 'b' {
			return m.unknown("its dtype %s", m.s.operands[k].dtype)
		}
	}
	x, y := m.operand(0), m.operand(1)
	if m.o.Name == "bitwise_or" || m.o.Name == "logical_or" {
		return m.b.Choose(x, m.b.Literal(1), m.b.Choose(y, m.b.Literal(1), m.b.Literal(0)))
	}
	return m.b.Choose(x, m.b.Choose(y, m.b.Literal(1), m.b.Literal(0)), m.b.Literal(0))
}
