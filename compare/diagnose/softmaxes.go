package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// softmax takes the place of a sigmoid, as in a router.
type softmax struct{}

func (softmax) Kind() string { return "softmax" }

func (softmax) Steps(b *program.Builder, in, _ []program.Var) program.Var {
	x := in[0]
	exp := b.Exp("exp", b.Sub("difference", x, b.RowMax(x)))
	return b.Div("quotient", exp, b.Sum("sum", exp))
}

// maxSlots is the largest number of unwritten cache slots that are tried in a softmax.
const maxSlots = 32

// softmaxOf is a mistake of all softmaxes, placed at the first softmax.
func softmaxOf(s *search, kind Kind) Mistake {
	return Mistake{Kind: kind, Place: s.site(s.first, edit.Softmaxes(s.first.Program)[0])}
}

// softmaxVariants yields softmaxes over a wrong axis, with a wrong base, and with unwritten slots of a cache.
func softmaxVariants(s *search) iter.Seq[Mistake] {
	var all []Mistake
	softmaxes, t := edit.Softmaxes(s.first.Program), s.first.signed(s.m)
	if len(softmaxes) == 0 {
		return slices.Values(all)
	}
	for a := 1; a < len(t.Steps[softmaxes[0]].Shape); a++ {
		m := softmaxOf(s, "softmax.axis")
		m.Axis, m.Edit = "axis", edit.Edit{At: []edit.Place{t.PlaceOf(softmaxes[0])}, Map: edit.Map{Axis: a}}.Text()
		if axes := s.m.List.Entries[s.first.Node.Entry].Axes; len(axes) > a {
			m.Axis = axisWords(axes[len(axes)-1-a])
		}
		all = append(all, m)
	}
	for _, base := range []float64{2, 10} {
		m := softmaxOf(s, "softmax.base")
		m.X, m.By = some(base), literal(math.Log(base))
		all = append(all, m)
	}
	for n := 1.0; n <= maxSlots; n++ {
		m := softmaxOf(s, "softmax.slots-unwritten")
		m.X = some(n)
		all = append(all, m)
	}
	all = append(all, softmaxOf(s, "softmax.own-key-twice"))
	for n := range min(mostTwice, keysOfPasses(s)) {
		m := softmaxOf(s, "softmax.key-twice")
		m.N = n
		all = append(all, m)
	}
	for _, kind := range []Kind{"softmax.slots-to-block", "softmax.whole-blocks"} {
		for _, n := range blocksOfKeys {
			m := softmaxOf(s, kind)
			m.N = n
			all = append(all, m)
		}
	}
	return slices.Values(all)
}

// softmaxesElsewhere yields sigmoids in place of softmaxes, softmaxes on the wrong side of a choice of parts, and softmaxes without one of the
// tensors that are joined into their operand.
func softmaxesElsewhere(s *search) iter.Seq[Mistake] {
	var all []Mistake
	if len(edit.Softmaxes(s.first.Program)) == 0 {
		return slices.Values(all)
	}
	for _, kind := range []Kind{"router.sigmoid", "router.softmax-over-all", "router.softmax-over-chosen"} {
		all = append(all, softmaxOf(s, kind))
	}
	for _, v := range edit.Joined(s.first.Program) {
		m := softmaxOf(s, "softmax.joined-left-out")
		m.Of = s.value(s.first, v)
		all = append(all, m)
	}
	return slices.Values(all)
}

// keysOfPasses is the number of keys in the last pass of the entries.
func keysOfPasses(s *search) (keys int) {
	for _, e := range s.entries {
		pass := s.m.Passes[e.Node.Pass]
		keys = max(keys, pass.Past+pass.Tokens)
	}
	return keys
}

// mostTwice is how many keys are counted twice, one at a time.
const mostTwice = 16

// addedToScores adds a number to each score before a softmax, by the positions of the query and the key.
func addedToScores(s *subject, e *Entry, number func(q, k int) float64) *program.Edited {
	pass := s.m.Passes[e.Node.Pass]
	end := pass.Past + pass.Tokens
	for _, i := range edit.Softmaxes(e.Program) {
		if !ofKeys(e.Program.Result(i).Shape, pass) {
			return nil
		}
	}
	return edit.SoftmaxOfMasked(e.Program, func(shape []int) program.Value {
		n := len(shape)
		queries, keys := shape[n-2], shape[n-1]
		v := program.Value{Shape: slices.Repeat([]int{1}, n), Data: make([]float64, queries*keys)}
		v.Shape[n-2], v.Shape[n-1] = queries, keys
		for i := range v.Data {
			v.Data[i] = number(end-queries+i/keys, end-keys+i%keys)
		}
		return v
	})
}

// otherSoftmax makes a variant of each softmax.
func otherSoftmax(s *subject, e *Entry, m Mistake) *program.Edited {
	p := e.Program
	switch m.Kind {
	case "softmax.axis":
		if d, ok := s.edit(m); ok {
			return edit.SoftmaxOver(p, d.Map.Axis)
		}
	case "softmax.base":
		return edit.SoftmaxOfScaled(p, math.Log(m.X.Value))
	case "softmax.slots-unwritten":
		return edit.SoftmaxWith(p, m.X.Value)
	case "softmax.slots-to-block":
		if all := edit.Softmaxes(p); len(all) > 0 && m.N > 0 {
			keys := p.Result(all[0]).Last()
			return edit.SoftmaxWith(p, float64((m.N-keys%m.N)%m.N))
		}
	case "softmax.own-key-twice", "softmax.key-twice":
		return addedToScores(s, e, func(q, k int) float64 {
			if k == m.N && m.Kind == "softmax.key-twice" || k == q && m.Kind == "softmax.own-key-twice" {
				return math.Ln2
			}
			return 0
		})
	case "softmax.whole-blocks":
		return edit.SoftmaxOfBlocks(p, m.N)
	case "router.sigmoid":
		return edit.SoftmaxBy(p, func(ed *edit.Editor, x program.Var) program.Var { return ed.Insert(sigmoid{}, x) })
	case "router.softmax-over-all":
		return edit.SoftmaxOfAll(p)
	case "router.softmax-over-chosen":
		return edit.SoftmaxOfChosen(p)
	case "softmax.joined-left-out":
		part := slices.IndexFunc(edit.Joined(p), func(v program.Var) bool { return s.value(e, v).same(m.Of) })
		if part >= 0 {
			return edit.SoftmaxWithout(p, part, e.Call.Arith.Lowest())
		}
	}
	return nil
}

// Sizes of blocks of keys, and numbers of equal parts of the keys, in which a softmax may be taken.
var (
	blocksOfKeys = []int{2, 4, 8, 16, 32, 64, 128}
	partsOfKeys  = []int{2, 3, 4}
)

// softmaxParts yields softmaxes that are taken in parts of the keys and joined in a wrong way. Each part has its own maximum and sum, as in a kernel
// that goes over blocks of keys.
func softmaxParts(s *search) iter.Seq[Mistake] {
	var all []Mistake
	if len(edit.Softmaxes(s.first.Program)) == 0 {
		return slices.Values(all)
	}
	keys, uneven := 0, map[int]bool{} // uneven: the numbers of parts that are not of one size
	for _, e := range s.entries {
		for _, i := range edit.Softmaxes(e.Program) {
			own := e.Program.Result(i).Last()
			keys = max(keys, own)
			for _, n := range partsOfKeys {
				uneven[n] = uneven[n] || own%n != 0
			}
		}
	}
	add := func(n, size, up int) {
		for _, kind := range []Kind{"softmax.parts-averaged", "softmax.parts-added", "softmax.parts-own-maximum", "softmax.parts-not-rescaled"} {
			m := softmaxOf(s, kind)
			m.N, m.M, m.K = n, size, up
			all = append(all, m)
		}
	}
	for _, n := range partsOfKeys {
		if n < keys {
			add(n, 0, 0)
		}
		if n < keys && uneven[n] {
			add(0, 0, n)
		}
	}
	for _, size := range blocksOfKeys {
		if size < keys {
			add(0, size, 0)
		}
	}
	return slices.Values(all)
}

// endsOfParts lists the ends of n equal parts of the keys, or of blocks of a size. If up is not 0, the size is that of up parts, rounded up.
func endsOfParts(keys, n, size, up int) (all []int) {
	if up > 0 {
		size = (keys + up - 1) / up
	}
	for k := 1; k < n && keys >= n; k++ {
		all = append(all, k*(keys/n))
	}
	for at := size; size > 0 && at < keys; at += size {
		all = append(all, at)
	}
	return append(all, keys)
}

// softmaxInParts takes each softmax in parts of its keys.
func softmaxInParts(_ *subject, e *Entry, m Mistake) *program.Edited {
	return edit.SoftmaxBy(e.Program, func(ed *edit.Editor, x program.Var) program.Var {
		last, from := len(x.Shape)-1, 0
		var parts []program.Var
		for _, end := range endsOfParts(x.Last(), m.N, m.M, m.K) {
			parts, from = append(parts, ed.Slice(x, last, from, end)), end
		}
		if len(parts) < 2 { // a single part is a plain softmax
			parts = []program.Var{x}
		}
		switch m.Kind {
		case "softmax.parts-averaged":
			return ed.Div("", ownSums(ed, parts), ed.Literal(float64(len(parts))))
		case "softmax.parts-added":
			return ownSums(ed, parts)
		}
		return oneSum(ed, parts, m.Kind == "softmax.parts-not-rescaled")
	})
}

// leastScore is below every score that is not masked.
const leastScore = -1e30

// ownSums takes a softmax of each part.
func ownSums(ed *edit.Editor, parts []program.Var) program.Var {
	var all []program.Var
	for _, x := range parts {
		exp := ed.Exp("", ed.Sub("", x, ed.RowMax(x)))
		all = append(all, ed.Div("", exp, ed.Sum("", exp)))
	}
	return ed.Cat(len(parts[0].Shape)-1, all...)
}

// oneSum takes a softmax with one sum for all parts. From each part it subtracts the maximum of the part, or the maximum of the parts so far.
func oneSum(ed *edit.Editor, parts []program.Var, running bool) program.Var {
	var all []program.Var
	var top program.Var
	for k, x := range parts {
		own := ed.Max(ed.RowMax(x), ed.Literal(leastScore)) // a block of masked keys adds nothing to the sum
		if k == 0 || !running {
			top = own
		} else {
			top = ed.Max(top, own)
		}
		all = append(all, ed.Exp("", ed.Sub("", x, top)))
	}
	exp := ed.Cat(len(parts[0].Shape)-1, all...)
	return ed.Div("", exp, ed.Sum("", exp))
}
