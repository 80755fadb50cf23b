package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// mostHeads is how many heads are tried with each other.
const mostHeads = 64

// otherHeads describes products of two tensors by heads, such as scores and contexts, some of which are products of other heads of these tensors.
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

// headsOf describes a value that is such a product.
func headsOf(x *difference, all []observed, of Term) *Description {
	t := x.first.signed(x.m)
	for _, i := range t.Firsts() {
		st := &t.Steps[i]
		if st.Prim != program.Dot || product(st.Shape) != len(all[0].want) || x.value(x.first, t.Result(i)) != of && of != theResult {
			continue
		}
		if of == theResult && t.Source(t.Out) != i && !onlyHandsOn(t, i) {
			continue
		}
		d := &Description{Kind: "described.heads", Of: of}
		for n := range all {
			p := all[n].e.signed(x.m)
			copies := p.Copies(t.Of(i))
			if len(copies) != 1 || all[n].e.Few != nil || !x.productHeads(d, &all[n], &p.Steps[copies[0]]) {
				return nil
			}
		}
		if d.Explained > 0 && d.Explained == d.Elements {
			d.Wrong = d.Explained
			return d
		}
	}
	return nil
}

// onlyHandsOn reports whether the result of a program is that of a step, rounded.
func onlyHandsOn(t *program.Parts, step int) bool {
	i := t.Source(t.Out)
	for t.Steps[i].Prim == program.Round || t.Steps[i].Prim == program.Copy {
		i = t.Source(t.Steps[i].Args[0])
	}
	return i == step
}

// headed is how the elements of a product lie: so many of each head, for each index of the axes before the heads.
type headed struct{ before, heads, each, width int }

// headsAt are the axes of a product's result by which heads are told apart: those of the heads of keys, and of the queries of each. It is not ok for other products.
func headsAt(s *search, st *program.Step) (h headed, ok bool) {
	c := s.m.List.Config
	for k := 0; k+1 < len(st.Shape) && c.NumKVHeads > 0; k++ {
		if n := st.Shape[k] * st.Shape[k+1]; len(st.Shape) == 5 && st.Shape[k] == c.NumKVHeads && n == c.NumHeads && n > 1 && n <= mostHeads {
			return headed{product(st.Shape[:k]), n, product(st.Shape[k+2:]), st.Args[0].Last()}, true
		}
	}
	return h, false
}

// productHeads counts the wrong heads of an entry, and those that are products of other heads. It is not ok where there are no heads to tell.
func (x *difference) productHeads(d *Description, o *observed, st *program.Step) bool {
	h, ok := headsAt(x.search, st)
	if !ok || len(o.want) != product(st.Shape) {
		return false
	}
	var operands [2][]float64
	for k := range operands {
		v, ok := x.valueAt(o.e, st.Args[k])
		if operands[k] = nil; ok {
			operands[k] = stretched(v, st.Args[k].Shape(), append(slices.Clone(st.Shape), h.width))
		}
		if operands[k] == nil {
			return false
		}
	}
	for head := range h.heads {
		wrong := 0
		for n := range h.before * h.each {
			if i := h.element(head, n); math.Abs(o.want[i]-o.value[i]) > 4*off(o, i) {
				wrong++
			}
		}
		if wrong < shownElements {
			continue
		}
		d.Elements++
		for pair := range h.heads * h.heads {
			if a, b := pair/h.heads, pair%h.heads; o.isProduct(operands, h, head, a, b) {
				d.Explained++
				d.Cases = oneMore(d.Cases, headWords(head, a, b, x.value(o.e, st.Args[0]), x.value(o.e, st.Args[1])))
				break
			}
		}
	}
	return true
}

// element is the n-th element of a head.
func (h headed) element(head, n int) int { return (n/h.each*h.heads+head)*h.each + n%h.each }

// isProduct reports whether a head is the product of two other heads.
func (o *observed) isProduct(operands [2][]float64, h headed, head, a, b int) bool {
	told := 0
	for n := range h.before * h.each {
		k := h.element(head, n)
		if silent(o, k) {
			continue
		}
		sum, size := 0.0, 0.0
		for c := range h.width {
			d := operands[0][h.element(a, n)*h.width+c] * operands[1][h.element(b, n)*h.width+c]
			sum, size = sum+d, size+math.Abs(d)
		}
		if !(math.Abs(sum-o.want[k]) <= off(o, k)+0x1p-20*size) {
			return false
		}
		told++
	}
	return told >= shownElements
}
