package diagnose

import (
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// cacheSite is the place of a mistake in the content of a cache.
const cacheSite = "cache"

const (
	// mostCached is how many slots of a cache are tried one by one.
	mostCached = 32
	// mostSink is how many first tokens a cache may keep for good.
	mostSink = 4
)

// cachedTerm is the term of the tensors of a role in a cache.
func cachedTerm(role string) Term { return Term{Kind: TheCached, Name: role} }

// cachedRoles are the roles of the tensors that the caches in a program hold.
func cachedRoles(s *subject, e *Entry) []string {
	var all []string
	for _, i := range cachesOf(s, e, "") {
		if role := cachedRole(s, e, i); !slices.Contains(all, role) {
			all = append(all, role)
		}
	}
	return all
}

// cachedRole is the role of the tensors that a step joins over passes.
func cachedRole(s *subject, e *Entry, step int) string {
	leaf, _ := e.signed(s.m).Moved(step)
	return order.NameOf(s.m.List.Entries[e.Inputs[e.Program.Steps[leaf].Index()].Entry].Name).Role()
}

// cachesOf are the steps that join the kept tensors of a role with new ones: the last join of each cache. The role "" means any role.
func cachesOf(s *subject, e *Entry, role string) []int {
	t := e.signed(s.m)
	var all []int
	for i := range t.Steps {
		st := &t.Steps[i]
		leaf, ok := t.Moved(i)
		if !ok || st.Prim != program.Cat || len(st.Args) != 2 || t.Steps[leaf].Index() >= len(e.Inputs) || role != "" && cachedRole(s, e, i) != role {
			continue
		}
		// A join of an earlier pass is a part of this cache, and no cache itself.
		all = slices.DeleteFunc(all, func(k int) bool { return slices.Contains(edit.Ancestors(t.Program, i), k) })
		all = append(all, i)
	}
	return all
}

// cachedSlots yields wrong slots in the caches within a program: the oldest slots in place of the newest, a slot that was not written, a slot with the
// content of the slot before, blocks of slots with the content of other blocks, and a wrong order. [heldSlots] does so for an entry that is a cache
// itself.
func cachedSlots(s *search) iter.Seq[Mistake] {
	var all []Mistake
	if _, _, ok := cache(s.first.Program); ok {
		return slices.Values(all)
	}
	for _, role := range cachedRoles(s.subject, s.first) {
		add := func(kind Kind, n int, runs ...sourceRun) {
			all = append(all, Mistake{Kind: kind, Place: cacheSite, Of: cachedTerm(role), N: n, Runs: makeRuns(runs...)})
		}
		add("cache.oldest-kept", 0)
		add("cache.decode-unwritten", 0)
		add("cache.decode-stale", 0)
		for n := 1; n <= mostSink; n++ {
			add("cache.sink", n)
		}
		add("cache.newest-unwritten", 0)
		add("cache.newest-stale", 0)
		add("cache.slots-moved", 1)
		add("cache.slots-moved", -1)
		steps := cachesOf(s.subject, s.first, role)
		st := &s.first.Program.Steps[steps[len(steps)-1]]
		most := min(st.Shape[st.Axis()], mostCached)
		for k := range most {
			if add("cache.slot-unwritten", 0, slotRun(k, isZero)); k > 0 {
				add("cache.slot-repeated", 0, slotRun(k, k-1))
			}
		}
		for n := 2; n <= most/2; n++ {
			for to := 0; to+n <= most; to += n {
				for of := 0; of+n <= most; of += n {
					if of != to {
						add("cache.slots-repeated", 0, sourceRun{From: to, To: to + n, Is: of})
					}
				}
			}
		}
	}
	return slices.Values(all)
}

// partOfSteps is the mistake of decode steps that write a part of each token's channels.
const partOfSteps Kind = "cache.decode-channels"

// writtenChannels yields caches to which decode steps write only the first channels of a token.
func writtenChannels(s *search) iter.Seq[Mistake] {
	var all []Mistake
	for _, role := range cachedRoles(s.subject, s.first) {
		shape := s.first.Program.Steps[cachesOf(s.subject, s.first, role)[0]].Shape
		last := shape[len(shape)-1]
		for n := 1; n < last; n++ {
			if n&(n-1) == 0 || 2*n == last || n == last-1 {
				all = append(all, Mistake{Kind: partOfSteps, Place: cacheSite, Of: cachedTerm(role), N: n, M: last})
			}
		}
	}
	return slices.Values(all)
}

// firstChannels keeps the first channels of what decode steps have written to the caches of a role. The others are 0.
func firstChannels(s *subject, e *Entry, m Mistake) *program.Edited {
	return inCaches(s, e, m.Of.Name, func(ed *edit.Editor, i int) (program.Var, bool) {
		st := &e.Program.Steps[i]
		axis, last, n := st.Axis(), len(st.Shape)-1, st.Shape[st.Axis()]
		first := firstOfSteps(s, e, n)
		if first >= n || axis >= last || m.N >= st.Shape[last] {
			return e.Program.Result(i), false
		}
		own := ed.Move(i)
		steps := ed.Slice(own, axis, first, n)
		none := ed.Mul("", ed.Slice(steps, last, m.N, st.Shape[last]), ed.Literal(0))
		steps = ed.Cat(last, ed.Slice(steps, last, 0, m.N), none)
		if first == 0 {
			return steps, true
		}
		return ed.Cat(axis, ed.Slice(own, axis, 0, first), steps), true
	})
}

// firstOfSteps is the first of n slots that a decode step has written; n or more if the prompt has written all.
func firstOfSteps(s *subject, e *Entry, n int) int {
	pass := s.m.Passes[e.Node.Pass]
	return max(s.m.Passes[0].Tokens-(pass.Past+pass.Tokens-n), 0)
}

// solvedSlots is 1 for a mistake whose slots were found from the elements.
func solvedSlots(m Mistake) int {
	if m.Of.Kind == TheCache || m.Runs != "" {
		return 1
	}
	return 0
}

// inCaches edits the caches of a role within a program, or the entry if it is such a cache itself. The function change returns the new content of a cache,
// or false for a cache that stays unchanged. The edit is nil if no cache changes.
func inCaches(s *subject, e *Entry, role string, change func(ed *edit.Editor, step int) (program.Var, bool)) *program.Edited {
	ed, some, all := edit.NewEditor(e.Program), false, cachesOf(s, e, role)
	if step, _, ok := cache(e.Program); ok && order.NameOf(s.m.List.At(e.Node).Name).Role() == role && len(e.Program.Steps[step].Args) == 2 {
		all = []int{step}
	}
	for _, i := range all {
		if v, ok := change(ed, i); ok {
			ed.Pass(i, v)
			some = true
		}
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// otherSlots replaces slots in the caches of a role. If the entry is the cache, it gets the slots of the trace's tensor.
func otherSlots(s *subject, e *Entry, m Mistake) *program.Edited {
	switch {
	case m.Of.Kind == TheCache:
		return joined(e, foundSlots(s, e))
	case m.Kind == "cache.oldest-kept" || m.Kind == "cache.sink":
		return firstsKept(s, e, m)
	}
	return inCaches(s, e, m.Of.Name, func(ed *edit.Editor, i int) (program.Var, bool) {
		st := &e.Program.Steps[i]
		at := make([]int, st.Shape[st.Axis()])
		for k := range at {
			at[k] = k
		}
		right := slices.Clone(at)
		if reslot(s, e, m, at); slices.Min(at) < isZero {
			return ed.Fail("slot"), true
		} else if slices.Equal(at, right) {
			return e.Program.Result(i), false
		}
		own := ed.Move(i)
		var all []program.Var
		for k := 0; k < len(at); {
			n := 1
			for k+n < len(at) && at[k] >= 0 && at[k+n] == at[k]+n {
				n++
			}
			if at[k] < 0 {
				all = append(all, ed.Mul("", ed.Slice(own, st.Axis(), k, k+1), ed.Literal(0)))
			} else {
				all = append(all, ed.Slice(own, st.Axis(), at[k], at[k]+n))
			}
			k += n
		}
		return ed.Cat(st.Axis(), all...), true
	})
}

// reslot sets, for each slot of a cache, the index of the right slot that it holds; isZero for zeros. It changes nothing in a cache with fewer slots than
// the mistake needs.
func reslot(s *subject, e *Entry, m Mistake, at []int) {
	n := len(at)
	switch m.Kind {
	case "cache.decode-unwritten", "cache.decode-stale":
		first := firstOfSteps(s, e, n)
		for k := first; k < n; k++ {
			if at[k] = isZero; m.Kind == "cache.decode-stale" {
				at[k] = first - 1
			}
		}
	case "cache.newest-unwritten":
		at[n-1] = isZero
	case "cache.newest-stale":
		at[n-1]--
	case "cache.slots-moved":
		for k := range at {
			at[k] = (k - m.N + n) % n
		}
	default:
		for _, r := range m.Runs.list() {
			for k := r.From; max(r.To, r.Is+r.To-r.From) <= n && k < r.To; k++ {
				if at[k] = isZero; r.Is >= 0 {
					at[k] = r.Is + k - r.From
				}
			}
		}
	}
}

// firstsKept keeps the first n slots that a cache ever had in place of the n oldest slots of the right cache. If the mistake has no n, it keeps the first
// slots in place of all but the new ones.
func firstsKept(s *subject, e *Entry, m Mistake) *program.Edited {
	return inCaches(s, e, m.Of.Name, func(ed *edit.Editor, i int) (program.Var, bool) {
		st := &e.Program.Steps[i]
		before, own := ever(ed, e.Program, st.Args[0], st.Axis()), st.Args[0].Shape
		if len(before.Shape) != len(own) || before.Shape[st.Axis()] <= own[st.Axis()] || own[st.Axis()] <= m.N {
			return before, false
		}
		all, size := before.Shape[st.Axis()], own[st.Axis()]
		if m.N == 0 {
			return ed.Cat(st.Axis(), ed.Slice(before, st.Axis(), 0, size), st.Args[1]), true
		}
		return ed.Cat(st.Axis(), ed.Slice(before, st.Axis(), 0, m.N), ed.Slice(before, st.Axis(), all-size+m.N, all), st.Args[1]), true
	})
}

// ever is everything that a cache was given up to some pass, and v is the part that was kept.
func ever(ed *edit.Editor, p *program.Program, v program.Var, axis int) program.Var {
	whole, ok := edit.Unsliced(p, v, axis)
	if !ok {
		return v
	}
	st := &p.Steps[v.Step]
	if st.Prim == program.Round { // a captured tensor, which is rounded
		st = &p.Steps[st.Args[0].Step]
	}
	if st.Prim == program.Cat && len(st.Args) == 2 && st.Axis() == axis && slices.Equal(st.Shape, whole.Shape) {
		return ed.Cat(axis, ever(ed, p, st.Args[0], axis), st.Args[1])
	}
	return whole
}

// beforeAlone ends the kinds of operations that are applied only to the tensors of earlier passes, not to the tensor of the pass.
const beforeAlone = "-before"

// appliedToCached yields operations of the layer that are applied to the tensors in a cache, with the further inputs of each tensor's own pass. An example
// is keys that are rotated when they are written, and again when they are read.
func appliedToCached(s *search) iter.Seq[Mistake] {
	own := s.m.List.Entries[s.first.Node.Entry].Name
	roles := cachedRoles(s.subject, s.first)
	seen := map[string]bool{}
	var all []Mistake
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		name := order.NameOf(other.Name)
		kind := name.Role()
		if seen[kind] || name.Within() && !name.SameLayer(order.NameOf(own)) || !insertable(s.subject, other, s.first.Node.Pass) {
			continue
		}
		seen[kind] = true
		for _, role := range roles {
			m := Mistake{Kind: "cache.operation-taken", Place: kind, Of: operationTerm(other), By: cachedTerm(role), For: tensorTerm(kind), Source: other.Name}
			if kind == role {
				m.Kind, m.For = "cache.operation-taken-again", Term{}
			}
			all = append(all, m)
			m.Kind += beforeAlone
			all = append(all, m)
		}
	}
	return slices.Values(all)
}

// takenOfCached applies an operation to each tensor of a role in a cache. Depending on the kind, it leaves out the tensor of the pass.
func takenOfCached(s *subject, e *Entry, m Mistake) *program.Edited {
	n := s.m.List.Index(s.here(m.Source, e))
	if n < 0 {
		return nil
	}
	ed, some := edit.NewEditor(e.Program), false
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		if st.Prim != program.Input || st.Index() >= len(e.Inputs) || order.NameOf(s.m.List.Entries[e.Inputs[st.Index()].Entry].Name).Role() != m.By.Name {
			continue
		}
		from := e.Inputs[st.Index()]
		if from.Pass == e.Node.Pass && strings.HasSuffix(string(m.Kind), beforeAlone) {
			continue
		}
		o, ok := operationFor(s, e, &s.m.List.Entries[n], from.Pass)
		if !ok || program.Size(st.Shape) != program.Size(s.shapeOf(o.entry.Inputs[0], from.Pass)) {
			return nil
		}
		some = true
		ed.Pass(i, taken(s, ed, o, ed.Move(i)))
	}
	if !some {
		return nil
	}
	return ended(ed)
}
