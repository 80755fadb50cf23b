package diagnose

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	maskSite = "mask" // the place of mistakes of masks
	// mostMasked limits the tokens of a prefix or a block, and the keys that are masked one at a time.
	mostMasked = 64
	// mostRings limits the sizes of chunks that are tried with each size of a ring.
	mostRings = 16
	// mostPattern limits the elements of masks that are compared before the masks are tried.
	mostPattern = 1 << 14
)

// windows yields masks with another window or no window, without causality, with small numbers, and moved by one key.
func windows(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		right, ok := windowOf(s)
		if !ok {
			return
		}
		all := []float64{0, -1, shownWindow(s, right), right + 1, right - 1, float64(s.m.List.Config.SlidingWindow), 2 * right, math.Floor(right / 2), right + 2, right - 2}
		for k, w := range all {
			if w == right || w < -1 || w <= 0 && k > 1 || slices.Contains(all[:k], w) {
				continue
			}
			m := Mistake{Kind: "mask.window", Place: maskSite, X: some(w), Right: some(right)}
			switch {
			case w < 0:
				m.Kind, m.X, m.Right = "mask.not-causal", Number{}, Number{}
			case right == 0:
				m.Kind, m.X, m.Right, m.By = "mask.window-added", Number{}, Number{}, literal(w)
			case w == 0:
				m.Kind = "mask.window-left-out"
			}
			if !yield(m) {
				return
			}
		}
		if !yield(Mistake{Kind: "mask.layers-exchanged", Place: maskSite}) {
			return
		}
		if !yield(Mistake{Kind: "mask.boolean", Place: maskSite}) {
			return
		}
		for _, x := range maskValues {
			if !yield(Mistake{Kind: "mask.value-small", Place: maskSite, X: some(x)}) {
				return
			}
		}
		_ = yield(Mistake{Kind: "mask.key-ahead", Place: maskSite}) && yield(Mistake{Kind: "mask.own-key-masked", Place: maskSite})
	}
}

// shownWindow is the window that the wrong entries show. A mask with a window of w keys and a mask without a window first differ in the query at position w, so
// the window is the first position that the program without a window does not give. It is 0 if the program gives all positions. In a port that is right in earlier
// passes the position says nothing.
func shownWindow(s *search, right float64) float64 {
	byPass := map[int]*Entry{}
	for _, e := range s.entries {
		if byPass[e.Node.Pass] == nil && tokenAxis(s.subject, e) >= 0 {
			byPass[e.Node.Pass] = e
		}
	}
	for _, pass := range slices.Sorted(maps.Keys(byPass)) {
		e := byPass[pass]
		left, ok := e.Left, true
		if right > 0 {
			left, ok = leavesWithout(s, e)
		}
		if !ok {
			return 0
		}
		shape, axis, first := e.Program.Out.Shape, tokenAxis(s.subject, e), math.MaxInt
		for _, i := range left {
			first = min(first, i/program.Size(shape[axis+1:])%shape[axis])
		}
		if len(left) > 0 {
			return float64(s.m.Passes[pass].Past + first)
		}
	}
	return 0
}

// leavesWithout lists the elements that a program without a window does not give. ok is false if there is no such program.
func leavesWithout(s *search, e *Entry) (left []int, ok bool) {
	d := otherWindow(s.subject, e, Mistake{})
	if d == nil || s.spent() {
		return nil, false
	}
	p, call := d.Whole(e.Call)
	s.whole(p)
	call.Choices = e.Choices(p)
	x, err := p.Eval(call)
	if err != nil {
		s.failed(outside(err))
		return nil, false
	}
	left, err = e.Leaves(x, e.elements()+1)
	return left, !s.failed(err)
}

// maskValues are the small numbers that a port may subtract from masked scores, in place of the largest number of the dtype.
var maskValues = []float64{1, 2, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 1000, 1024}

// windowOf is the window of the largest mask, 0 for no window. ok is false if there are no masks.
func windowOf(s *search) (window float64, ok bool) {
	size := 0
	for _, e := range s.entries {
		for _, i := range edit.StepsOf(e.Program, program.Mask) {
			if st := &e.Program.Steps[i]; program.Size(st.Shape) > size {
				window, size = st.Sight().Window, program.Size(st.Shape)
			}
		}
	}
	return window, size > 0
}

// otherWindow makes masks with another window. A mask that hides nothing, for example the mask of a single token, is a constant in the program.
func otherWindow(s *subject, e *Entry, m Mistake) *program.Edited {
	window := m.X.Value
	switch m.Kind {
	case "mask.not-causal":
		window = -1
	case "mask.window-added":
		window = m.By.X
	}
	if len(edit.StepsOf(e.Program, program.Mask)) > 0 || len(e.Program.Steps) > 1 {
		return edit.Windows(e.Program, window)
	}
	return masking(s, e, func(v view) bool { return window < 0 || v.k <= v.q && (window == 0 || v.k > v.q-window) })
}

// otherLayersWindow makes masks with the window of the other kind of layer: a mask with a window loses the window, and a mask without a window gets
// the window of the configuration.
func otherLayersWindow(s *subject, e *Entry, _ Mistake) *program.Edited {
	all := edit.StepsOf(e.Program, program.Mask)
	switch {
	case len(all) == 0:
		return nil
	case e.Program.Steps[all[0]].Sight().Window == 0:
		return edit.Windows(e.Program, float64(s.m.List.Config.SlidingWindow))
	}
	return edit.Windows(e.Program, 0)
}

// smallMask makes masks that lower masked scores by a number that is too small. The program makes or reads the masks.
func smallMask(s *subject, e *Entry, m Mistake) *program.Edited {
	ed := edit.NewEditor(e.Program)
	for i := range e.Program.Steps {
		if st := &e.Program.Steps[i]; st.Prim == program.Mask || isMaskRead(s, e, st) {
			ed.Pass(i, ed.Max(ed.Move(i), ed.Literal(-m.X.Value)))
		}
	}
	return ended(ed)
}

// booleanMask makes masks with 1 for visible keys and 0 for masked keys. The program makes or reads the masks, and adds them to the scores.
func booleanMask(s *subject, e *Entry, _ Mistake) *program.Edited {
	ed := edit.NewEditor(e.Program)
	for i := range e.Program.Steps {
		if st := &e.Program.Steps[i]; st.Prim == program.Mask || isMaskRead(s, e, st) {
			ed.Pass(i, ed.Sub("", ed.Literal(1), ed.Gate(ed.Neg(ed.Move(i)))))
		}
	}
	return ended(ed)
}

// isMaskRead reports whether a step is an input that is a mask.
func isMaskRead(s *subject, e *Entry, st *program.Step) bool {
	return st.Prim == program.Input && st.Index() >= 0 && st.Index() < len(e.Inputs) && strings.HasPrefix(s.m.List.At(e.Inputs[st.Index()]).Name, maskSite+".")
}

// keyAhead makes masks that are moved by one key, to later keys or to earlier keys.
func keyAhead(_ *subject, e *Entry, m Mistake) *program.Edited {
	if m.Kind == "mask.own-key-masked" {
		return edit.Ahead(e.Program, -1)
	}
	return edit.Ahead(e.Program, 1)
}

// tiledHeads yields keys and values with tiled heads. The program has to have both products of an attention.
func tiledHeads(*search) iter.Seq[Mistake] {
	return slices.Values([]Mistake{{Kind: "heads.tiled"}})
}

// tiledAttention makes an attention with tiled heads of keys and values.
func tiledAttention(_ *subject, e *Entry, _ Mistake) *program.Edited { return edit.Tiled(e.Program) }

// sights yields masks in which queries see other keys: masks of blocks, with a prefix, aligned to the wrong corner, or with one key or the first keys
// masked or seen by all queries.
func sights(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		all := masksOf(s.first)
		if len(all) == 0 {
			return
		}
		mask := &s.first.Program.Steps[all[0]]
		most := min(mostKeys(s), mostMasked)
		more := func(kind Kind, n int) bool { return yield(Mistake{Kind: kind, Place: maskSite, N: n}) }
		if !more("mask.top-left", 0) || mask.Prim == program.Vector && !sightsOfBoth(most, more) {
			return
		}
		blocks := Kind("mask.blocks")
		if mask.Sight().Window > 0 {
			blocks = "mask.blocks-not-window"
		}
		for n := 2; n <= most; n++ {
			if !more(blocks, n) || !more("mask.prefix", n) {
				return
			}
		}
		if mask.Sight().Window > 0 {
			for n := 2; n <= most; n *= 2 {
				if !more("mask.window-whole-block", n) {
					return
				}
			}
			if !more("mask.window-both-sides", 0) {
				return
			}
		}
		for n := range most {
			if !more("mask.key-masked", n) || !more("mask.key-masked-but-own", n) || n > 0 && n <= 8 && (!more("mask.first-keys-masked", n) || !more("mask.first-keys-seen", n)) {
				return
			}
		}
		if mask.Prim == program.Mask {
			sightsApart(s, mask.Sight().Window, most, yield)
		}
	}
}

// mostKeys is the largest number of keys in the masks of all entries. A mask of a decode step with a window has few keys.
func mostKeys(s *search) (most int) {
	for _, e := range s.entries {
		e = e.Small()
		for _, i := range masksOf(e) {
			shape := e.Program.Steps[i].Shape
			most = max(most, shape[len(shape)-1])
		}
	}
	return most
}

// sightsOfBoth yields masks for a model whose queries see later tokens.
func sightsOfBoth(most int, more func(kind Kind, n int) bool) bool {
	if !more("mask.causal", 0) || !more("mask.anti-causal", 0) || !more("mask.none", 0) {
		return false
	}
	for n := range most {
		if !more("mask.both-sides", n) {
			return false
		}
	}
	return true
}

// sightsApart yields masks with other edges. If several masks are equal in the passes of the entries, only the first is yielded. A mask that equals
// the right mask is not yielded.
func sightsApart(s *search, window float64, most int, yield func(Mistake) bool) {
	right := func(v view) bool { return v.k >= v.low(v.q) && v.k <= v.q }
	seen := map[string]bool{patternOf(s, right, Mistake{}): true}
	for m := range edges(window, most) {
		key := patternOf(s, maskRules[m.Kind], m)
		if key != "" && seen[key] {
			continue
		}
		if seen[key] = true; !yield(m) {
			return
		}
	}
}

// edges yields masks in which each query sees the keys between two edges: windows that begin with a chunk or have no end ahead, keys that a ring
// cache has lost, blocks that are not full, and masks of the prompt or of decode steps. most is the largest size of a chunk.
func edges(window float64, most int) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		more := func(kind Kind, n, m int) bool { return yield(Mistake{Kind: kind, Place: maskSite, N: n, M: m}) }
		if !more("mask.reversed", 0, 0) || !more("mask.prompt-masked", 0, 0) || !more("mask.own-key-alone", 0, 0) {
			return
		}
		if window > 0 {
			if !more("mask.window-no-end", 0, 0) || !more("mask.window-of-first-query", 0, 0) {
				return
			}
			for _, by := range []int{1, -1, 2, -2} {
				if !more("mask.window-moved", by, 0) {
					return
				}
			}
		}
		for n := 2; n <= most; n++ {
			if !more("mask.chunks", n, 0) || !more("mask.last-block-left-out", n, 0) {
				return
			}
			if window > 0 && (!more("mask.window-of-chunk", n, 0) || !more("mask.window-of-chunk-no-end", n, 0) || !more("mask.window-next-block", n, 0)) {
				return
			}
		}
		for ring := 2; ring <= most; ring++ {
			if !more("mask.ring", ring, 0) {
				return
			}
			for n := 2; n < min(most, mostRings) && n <= ring; n++ {
				if window > 0 && float64(ring) < float64(n)+window-1 && !more("mask.ring-of-chunk", ring, n) { // a larger ring loses nothing
					return
				}
			}
		}
		more("mask.step-sees-prompt-alone", 0, 0)
	}
}

// masksOf returns the steps of a program that make a mask, or else the constants that are masks: of query by key, with 0 and numbers that hide a
// score. A constant that hides nothing counts only if it is the whole program.
func masksOf(e *Entry) []int {
	all := edit.StepsOf(e.Program, program.Mask)
	if len(all) > 0 {
		return all
	}
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		alone := len(e.Program.Steps) == 1
		if n := len(st.Shape); st.Prim != program.Vector || n < 2 || st.Shape[n-1] < 2 || st.Shape[n-2] < 2 && !alone || len(st.Vector()) != st.Shape[n-1]*st.Shape[n-2] {
			continue
		}
		hidden := slices.ContainsFunc(st.Vector(), func(x float64) bool { return x != 0 })
		if (hidden || alone) && !slices.ContainsFunc(st.Vector(), func(x float64) bool { return x != 0 && x > -hides }) {
			all = append(all, i)
		}
	}
	return all
}

// hides is the least number by which a mask lowers a hidden score.
const hides = 1e30

// otherSight makes masks in which queries see keys by the rule of the mistake.
func otherSight(s *subject, e *Entry, m Mistake) *program.Edited {
	rule := maskRules[m.Kind]
	return masking(s, e, func(v view) bool { v.Mistake = m; return rule(v) })
}

// masking makes other masks. sees reports whether a query sees a key.
func masking(s *subject, e *Entry, sees func(v view) bool) *program.Edited {
	ed := edit.NewEditor(e.Program)
	for _, i := range masksOf(e) {
		st := &e.Program.Steps[i]
		own, ok := s.valueAt(e, e.Program.Result(i))
		if !ok {
			return nil
		}
		v := viewOf(s, e, st)
		keys := st.Shape[len(st.Shape)-1]
		positions := make([]float64, len(own)/keys)
		for q := range positions { // a constant mask has the positions of its pass
			positions[q] = v.first + float64(q)
		}
		if st.Prim == program.Mask {
			if positions, ok = s.valueAt(e, st.Args[0]); !ok {
				return nil
			}
		}
		first := positions[len(positions)-1] + 1 - float64(keys)
		mask := program.Value{Shape: st.Shape, Data: make([]float64, len(own))}
		for k := range own {
			v.row, v.column, v.right = k/keys, k%keys, own[k] == 0
			if v.q, v.k = positions[v.row], first+float64(v.column); !sees(v) {
				mask.Data[k] = e.Call.Arith.Lowest()
			}
		}
		if st.Prim == program.Vector {
			ed.SetVector(i, mask.Data)
		} else {
			ed.Pass(i, ed.Other(mask))
		}
	}
	return ended(ed)
}

// FirstKeysMasked reports whether the mistake is a mask that hides the first n keys from every query. Padding in front of a text has the same effect.
func (f *Finding) FirstKeysMasked(n int) bool {
	if f == nil {
		return false
	}
	return f.Mistake == Mistake{Kind: "mask.first-keys-masked", Place: maskSite, N: n}
}
