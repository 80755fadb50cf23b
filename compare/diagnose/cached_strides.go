package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// grownCache is the mistake of a cache that is stored by channel, a row of slots for each channel: its rows have grown after the prompt, and its content
// was not moved.
const grownCache Kind = "cache.rows-read-apart"

// mostGrown is how many times as many slots as the prompt has a grown row has at most.
const mostGrown = 2

// grownCaches yields caches whose rows have grown to whole blocks.
func grownCaches(s *search) iter.Seq[Mistake] {
	var all []Mistake
	prompt := s.m.Passes[0].Tokens
	for _, role := range cachedRoles(s.subject, s.first) {
		var sizes []int
		for _, block := range []int{1, 2, 4, 8, 16, 32, 64, 128, 256} {
			sizes = append(sizes, prompt/block*block+block)
		}
		sizes = append(sizes, mostGrown*prompt)
		slices.Sort(sizes)
		for _, n := range slices.Compact(sizes) {
			if n > prompt && n <= max(mostGrown*prompt, mostPadded) {
				all = append(all, Mistake{Kind: grownCache, Place: cacheSite, Of: cachedTerm(role), N: n})
			}
		}
	}
	return slices.Values(all)
}

// readApart reads the prompt's slots of caches by channel, with rows of N slots. The port wrote them with rows of the prompt's slots. After the last written
// slot the memory is 0. N is smaller than the written memory, since larger N give the same elements.
func readApart(s *subject, e *Entry, m Mistake) *program.Edited {
	prompt := s.m.Passes[0].Tokens
	return inCaches(s, e, m.Of.Name, func(ed *edit.Editor, i int) (program.Var, bool) {
		st := &e.Program.Steps[i]
		axis, last, n := st.Axis(), len(st.Shape)-1, st.Shape[st.Axis()]
		if axis != last-1 || n <= prompt || firstOfSteps(s, e, n) != prompt || m.N <= prompt || m.N >= st.Shape[last]*prompt {
			return e.Program.Result(i), false
		}
		own, size, before := ed.Move(i), st.Shape[last], program.Size(st.Shape[:axis])
		order := make([]int, len(st.Shape))
		for k := range order {
			order[k] = k
		}
		order[axis], order[last] = last, axis
		written := ed.Reshape(ed.Plain(ed.Permute(ed.Slice(own, axis, 0, prompt), order...)), before, size*prompt)
		rows := []program.Var{written}
		for behind := size * (m.N - prompt); behind > 0; behind -= size * prompt {
			rows = append(rows, ed.Mul("", ed.Slice(written, 1, 0, min(behind, size*prompt)), ed.Literal(0)))
		}
		memory := ed.Cat(1, rows...)
		read := ed.View(memory, []int{before, prompt, size}, []int{size * m.N, 1, m.N}, 0)
		shape := slices.Clone(st.Shape)
		shape[axis] = prompt
		return ed.Cat(axis, ed.Reshape(ed.Plain(read), shape...), ed.Slice(own, axis, prompt, n)), true
	})
}
