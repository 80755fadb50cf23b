package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostHeads is the largest number of heads that are compared with each other.
const mostHeads = 64

// otherHeads describes products of two tensors by heads, such as scores and contexts, where some products have the wrong heads of the two tensors.
func otherHeads(x *difference) *Description {
	if d := headsOf(x, x.results, theResult); d != nil || x.err != nil {
		return d
	}
	for _, inner := range x.inners() {
		if d := headsOf(x, inner.all, inner.of); d != nil || x.err != nil {
			return d
		}
	}
	return nil
}

// headsOf describes a value that is a product by heads.
func headsOf(x *difference, all []observed, of Term) *Description {
	t := x.first.signed(x.m)
	for _, i := range t.Firsts() {
		st := &t.Steps[i]
		if st.Prim != program.Dot || program.Size(st.Shape) != len(all[0].want) || x.value(x.first, t.Result(i)) != of && of != theResult {
			continue
		}
		if of == theResult && t.Out.Step != i && !onlyHandsOn(t, i) {
			continue
		}
		d := &Description{Kind: "described.heads", Of: of}
		if !x.productHeads(d, t.PlaceOf(i), all) {
			return nil
		}
		if d.Explained > 0 && d.Explained == d.Elements {
			d.Wrong = d.Explained
			x.draft(d).proposes = x.headMistakes(d, t, i)
			return d
		}
	}
	return nil
}

// headMistakes lists the mistakes of a product that reads wrong heads of a single operand: the first or the second.
func (x *difference) headMistakes(d *Description, t *edit.StepIndex, step int) (all []Mistake) {
	for k, v := range t.Steps[step].Args {
		m := Mistake{Kind: "heads.others", Of: d.Of, By: x.value(x.first, v), N: k, Edit: placed(t.PlaceOf(step))}
		h, _ := headsAt(x.search, &t.Steps[step])
		each := h.heads / x.m.List.Config.NumKVHeads
		var numbers []float64
		other := false
		for head, from := range x.draft(d).heads {
			is := from[k]
			if other = other || from[1-k] != head; !h.byQuery[k] { // a KV head
				is /= each
			}
			numbers = append(numbers, float64(is))
		}
		if m.Numbers = makeNumbers(numbers); !other {
			all = append(all, m)
		}
	}
	return all
}

// ofOtherHeads reads other heads of one operand of a product. Numbers has the head for each head of the result.
func ofOtherHeads(s *subject, e *Entry, m Mistake) *program.Edited {
	t := e.signed(s.m)
	all := t.Copies(s.place(m))
	if len(all) != 1 || m.N < 0 || m.N >= len(t.Steps[all[0]].Args) {
		return nil
	}
	st := &t.Steps[all[0]]
	axis := headsAxisOf(s.m.List.Config, st)
	from := m.Numbers.list()
	if axis < 0 || len(from) != st.Shape[axis]*st.Shape[axis+1] {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	v := st.Args[m.N]
	each := v.Shape[axis+1]
	var groups []program.Var
	for g := range st.Shape[axis] {
		var heads []program.Var
		for h := range st.Shape[axis+1] {
			is := int(from[g*st.Shape[axis+1]+h])
			if is < 0 || is >= v.Shape[axis]*each {
				return nil
			}
			heads = append(heads, ed.Slice(ed.Slice(v, axis, is/each, is/each+1), axis+1, is%each, is%each+1))
		}
		groups = append(groups, ed.Cat(axis+1, heads...))
	}
	args := slices.Clone(st.Args)
	args[m.N] = ed.Cat(axis, groups...)
	ed.Pass(all[0], ed.MoveWith(all[0], args...))
	return ended(ed)
}

// onlyHandsOn reports whether the result of a program is the result of a step, rounded.
func onlyHandsOn(t *edit.StepIndex, step int) bool {
	return beforeRounding(t.Program, t.Out.Step) == step
}

// headed is the layout of the elements of a product: each elements per head, for every index of the axes before the heads.
type headed struct {
	before, heads, each, width int
	byQuery                    [2]bool // an operand has its own heads for the queries of a group
}

// headsAt is the layout of the heads in the result of a product. Two axes number the heads: KV heads, and the query heads of each KV head. It is not ok
// for other products.
func headsAt(s *search, st *program.Step) (h headed, ok bool) {
	k := headsAxisOf(s.m.List.Config, st)
	if k < 0 {
		return h, false
	}
	h = headed{before: program.Size(st.Shape[:k]), heads: st.Shape[k] * st.Shape[k+1], each: program.Size(st.Shape[k+2:]), width: st.Args[0].Last()}
	for a := range h.byQuery {
		if shape := st.Args[a].Shape; len(shape) > k+1 {
			h.byQuery[a] = shape[k+1] > 1 || st.Shape[k+1] == 1
		}
	}
	return h, true
}

// headsAxisOf is the axis of KV heads in the result of a product. The next axis counts the query heads of each KV head. It is -1 for other products.
func headsAxisOf(c *order.Config, st *program.Step) int {
	for k := 0; k+1 < len(st.Shape) && c.NumKVHeads > 0; k++ {
		if n := st.Shape[k] * st.Shape[k+1]; len(st.Shape) == 5 && st.Shape[k] == c.NumKVHeads && n == c.NumHeads && n > 1 && n <= mostHeads {
			return k
		}
	}
	return -1
}

// headProduct is a product of heads in an entry, with the operands stretched to the shape of the product's terms.
type headProduct struct {
	*observed
	headed
	operands [2][]float64
}

// productHeads counts the heads of a product that are wrong in some entries, and how many of the wrong heads a different pair of heads
// gives in all of these entries. The result is false if an entry does not show the heads or the operands of the product.
func (x *difference) productHeads(d *Description, at edit.Place, results []observed) bool {
	var all []headProduct
	for n := range results {
		m, ok := x.multipliedAt(&results[n], at)
		if !ok || len(all) > 0 && m.heads != all[0].heads {
			return false
		}
		all = append(all, m)
	}
	draft, heads := x.draft(d), all[0].heads
	for head := range heads {
		draft.heads = append(draft.heads, [2]int{head, head})
		wrong := 0
		for k := range all {
			wrong += all[k].wrongIn(head)
		}
		if wrong < shownElements {
			continue
		}
		d.Elements++
		for pair := range heads * heads {
			if a, b := pair/heads, pair%heads; areProducts(all, head, a, b) {
				d.Explained++
				draft.heads[head] = [2]int{a, b}
				st := x.first.signed(x.m).Copies(at)[0]
				args := x.first.Program.Steps[st].Args
				d.Cases = oneMore(d.Cases, headWords(head, a, b, x.value(x.first, args[0]), x.value(x.first, args[1])))
				break
			}
		}
	}
	return true
}

// multipliedAt is the product at a place in an entry.
func (x *difference) multipliedAt(o *observed, at edit.Place) (m headProduct, ok bool) {
	p := o.e.signed(x.m)
	copies := p.Copies(at)
	if len(copies) != 1 || o.e.Few != nil {
		return m, false
	}
	st := &p.Steps[copies[0]]
	h, ok := headsAt(x.search, st)
	if !ok || len(o.want) != program.Size(st.Shape) {
		return m, false
	}
	m = headProduct{observed: o, headed: h}
	for k := range m.operands {
		v, ok := x.valueAt(o.e, st.Args[k])
		if ok {
			m.operands[k] = stretched(v, st.Args[k].Shape, append(slices.Clone(st.Shape), h.width))
		}
		if m.operands[k] == nil {
			return m, false
		}
	}
	return m, true
}

// wrongIn counts the wrong elements of a head.
func (m *headProduct) wrongIn(head int) (n int) {
	for k := range m.before * m.headed.each {
		if i := m.element(head, k); math.Abs(m.want[i]-m.value[i]) > 4*off(m.observed, i) {
			n++
		}
	}
	return n
}

// areProducts reports whether a head is the product of two other heads in each entry in which the head is wrong.
func areProducts(all []headProduct, head, a, b int) bool {
	told := 0
	for k := range all {
		if all[k].wrongIn(head) == 0 {
			continue
		}
		n, is := all[k].isProduct(head, a, b)
		if !is {
			return false
		}
		told += n
	}
	return told >= shownElements
}

// element is the n-th element of a head.
func (h headed) element(head, n int) int { return (n/h.each*h.heads+head)*h.each + n%h.each }

// isProduct reports whether a head is the product of two other heads, and counts the elements of the product.
func (m *headProduct) isProduct(head, a, b int) (told int, is bool) {
	for n := range m.before * m.headed.each {
		k := m.element(head, n)
		if silent(m.observed, k) {
			continue
		}
		sum, size := 0.0, 0.0
		for c := range m.width {
			d := m.operands[0][m.element(a, n)*m.width+c] * m.operands[1][m.element(b, n)*m.width+c]
			sum, size = sum+d, size+math.Abs(d)
		}
		if !(math.Abs(sum-m.want[k]) <= off(m.observed, k)+0x1p-20*size) {
			return told, false
		}
		told++
	}
	return told, true
}
