package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// cacheSite is the place of a mistake in what a cache holds.
const cacheSite = "cache"

// cachedTerm is the term of what a cache holds of a role.
func cachedTerm(role string) Term { return Term{Kind: TheCached, Name: role} }

// mostCached is how many slots of a cache are tried each by itself.
const mostCached = 32

// kept looks at caches within a program: what several passes put into one, joined on the way to the result. Where the cache itself is
// captured, [search.slots] sees what it holds; here a few usual ways to hold something else are tried.
func (s *search) kept() error {
	if _, _, ok := cache(s.first.Program); ok {
		return nil
	}
	for _, role := range s.cachedRoles(s.first) {
		if err := s.cachedSlots(role); err != nil {
			return err
		}
	}
	return nil
}

// cachedRoles are the roles of what is kept over passes.
func (s *search) cachedRoles(e *Entry) []string {
	var all []string
	for _, i := range s.caches(e, "") {
		if role := s.cachedRole(e, i); !slices.Contains(all, role) {
			all = append(all, role)
		}
	}
	return all
}

// cachedRole is the role of what a step joins over passes.
func (s *subject) cachedRole(e *Entry, step int) string {
	leaf, _ := e.signed(s.m).Moved(step)
	return Role(s.m.List.Entries[e.Inputs[e.Program.Steps[leaf].Index].Entry].Name)
}

// caches are the steps that join what is kept of a role with what is new, the last of each: of any role for "".
func (s *subject) caches(e *Entry, role string) []int {
	t := e.signed(s.m)
	var all []int
	for i := range t.Steps {
		st := &t.Steps[i]
		leaf, ok := t.Moved(i)
		if !ok || st.Prim != program.Cat || len(st.Args) != 2 || t.Steps[leaf].Index >= len(e.Inputs) || role != "" && s.cachedRole(e, i) != role {
			continue
		}
		// What is kept of it for the next pass is no cache of its own.
		all = slices.DeleteFunc(all, func(k int) bool { return slices.Contains(t.Ancestors(i), k) })
		all = append(all, i)
	}
	return all
}

// cachedSlots tries other slots in a cache: one that was not written, or holds what that before it holds, blocks of them that hold what
// others hold, another order, and the oldest in place of the newest.
func (s *search) cachedSlots(role string) error {
	steps := s.caches(s.first, role)
	st := &s.first.Program.Steps[steps[len(steps)-1]]
	most := min(st.Shape[st.Axis], mostCached)
	mistake := func(kind Kind, n int, runs ...Run) Mistake {
		return Mistake{Kind: kind, Place: cacheSite, Of: cachedTerm(role), N: n, Runs: makeRuns(runs...)}
	}
	all := func(m Mistake, make func(e *Entry) *program.Edited) error {
		return s.try(hypothesis{class: program.Known, make: make, say: func(*Entry) Name { return m.name() }})
	}
	try := func(m Mistake, solved int, from func(slots []int)) error {
		return s.try(hypothesis{
			class: program.Known, solved: solved,
			make: func(e *Entry) *program.Edited { return s.reslotted(e, role, from) },
			say:  func(*Entry) Name { return m.name() },
		})
	}
	for _, c := range []struct {
		kind Kind
		make func(e *Entry) *program.Edited
	}{
		{"cache.oldest-kept", func(e *Entry) *program.Edited { return s.oldest(e, role) }},
		{"cache.decode-unwritten", func(e *Entry) *program.Edited {
			return s.reslotted(e, role, func(at []int) { s.decoded(e, at, func(int) int { return -1 }) })
		}},
		{"cache.decode-stale", func(e *Entry) *program.Edited {
			return s.reslotted(e, role, func(at []int) { s.decoded(e, at, func(first int) int { return first - 1 }) })
		}},
	} {
		if err := all(mistake(c.kind, 0), c.make); err != nil {
			return err
		}
	}
	for n := 1; n <= mostSink; n++ {
		if err := all(mistake("cache.sink", n), func(e *Entry) *program.Edited { return s.firstsKept(e, role, n) }); err != nil {
			return err
		}
	}
	if err := try(mistake("cache.newest-unwritten", 0), 0, func(at []int) { at[len(at)-1] = -1 }); err != nil {
		return err
	}
	if err := try(mistake("cache.newest-stale", 0), 0, func(at []int) { at[len(at)-1]-- }); err != nil {
		return err
	}
	for _, by := range []int{1, -1} {
		if err := try(mistake("cache.slots-moved", by), 0, func(at []int) { roll(at, by) }); err != nil {
			return err
		}
	}
	for k := range most {
		if err := try(mistake("cache.slot-unwritten", 0, Run{From: k, To: k + 1, Is: isZero}), 1, func(at []int) { set(at, k, -1, 1) }); err != nil {
			return err
		}
		if err := try(mistake("cache.slot-repeated", 0, Run{From: k, To: k + 1, Is: k - 1}), 1, func(at []int) { set(at, k, k-1, 1) }); k > 0 && err != nil {
			return err
		}
	}
	for n := 2; n <= most/2; n++ {
		for to := 0; to+n <= most; to += n {
			for of := 0; of+n <= most; of += n {
				m := mistake("cache.slots-repeated", 0, Run{From: to, To: to + n, Is: of})
				if err := try(m, 1, func(at []int) { set(at, to, of, n) }); of != to && err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// decoded changes the slots that decode steps wrote: to has the first of them.
func (s *subject) decoded(e *Entry, at []int, to func(first int) int) {
	pass := s.m.Passes[e.Node.Pass]
	first := max(s.m.Passes[0].Tokens-(pass.Past+pass.Tokens-len(at)), 0)
	for k := first; k < len(at); k++ {
		at[k] = to(first)
	}
}

// set has some slots hold others; nothing where there are not as many.
func set(at []int, to, of, n int) {
	if to+n > len(at) || of+n > len(at) {
		return
	}
	for k := range n {
		if at[to+k] = of + k; of < 0 {
			at[to+k] = -1
		}
	}
}

// roll moves slots on.
func roll(at []int, by int) {
	n := len(at)
	for k := range at {
		at[k] = (k - by + n) % n
	}
}

// reslotted has other slots in the caches of a role: from changes the index that each is of, −1 for zeros.
func (s *subject) reslotted(e *Entry, role string, from func(slots []int)) *program.Edited {
	ed, some := e.Program.Edit(), false
	for _, i := range s.caches(e, role) {
		st := &e.Program.Steps[i]
		at := make([]int, st.Shape[st.Axis])
		for k := range at {
			at[k] = k
		}
		if from(at); slices.Min(at) < -1 {
			return nil
		}
		own := ed.Move(i)
		var all []program.Var
		for k := 0; k < len(at); {
			n := 1
			for k+n < len(at) && at[k] >= 0 && at[k+n] == at[k]+n {
				n++
			}
			some = some || at[k] != k
			if at[k] < 0 {
				all = append(all, ed.Mul("", ed.Slice(own, st.Axis, k, k+1), ed.Literal(0)))
			} else {
				all = append(all, ed.Slice(own, st.Axis, at[k], at[k]+n))
			}
			k += n
		}
		ed.Pass(i, ed.Cat(st.Axis, all...))
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// mostSink is how many first tokens a cache may keep for good.
const mostSink = 4

// firstsKept has the first n slots that a cache ever had before the newest, of which it has let go of n more.
func (s *subject) firstsKept(e *Entry, role string, n int) *program.Edited {
	ed, some := e.Program.Edit(), false
	for _, i := range s.caches(e, role) {
		st := &e.Program.Steps[i]
		before, own := ever(ed, e.Program, st.Args[0], st.Axis), st.Args[0].Shape()
		if len(before.Shape()) != len(own) || before.Shape()[st.Axis] <= own[st.Axis] || own[st.Axis] <= n {
			continue
		}
		some = true
		all, kept := before.Shape()[st.Axis], own[st.Axis]
		ed.Pass(i, ed.Cat(st.Axis, ed.Slice(before, st.Axis, 0, n), ed.Slice(before, st.Axis, all-kept+n, all), st.Args[1]))
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// oldest has the first slots that a cache ever had before what is new, where it should have let go of them.
func (s *subject) oldest(e *Entry, role string) *program.Edited {
	ed, some := e.Program.Edit(), false
	for _, i := range s.caches(e, role) {
		st := &e.Program.Steps[i]
		before, own := ever(ed, e.Program, st.Args[0], st.Axis), st.Args[0].Shape()
		if len(before.Shape()) != len(own) || before.Shape()[st.Axis] <= own[st.Axis] {
			continue
		}
		some = true
		ed.Pass(i, ed.Cat(st.Axis, ed.Slice(before, st.Axis, 0, own[st.Axis]), st.Args[1]))
	}
	if !some {
		return nil
	}
	return ended(ed)
}

// ever is all that a cache was given until some pass, of which v is what was kept.
func ever(ed *program.Editor, p *program.Program, v program.Var, axis int) program.Var {
	whole, ok := p.Unsliced(v, axis)
	if !ok {
		return v
	}
	st := &p.Steps[p.Source(v)]
	if st.Prim == program.Round { // of what was captured, which is rounded
		st = &p.Steps[p.Source(st.Args[0])]
	}
	if st.Prim == program.Cat && len(st.Args) == 2 && st.Axis == axis && slices.Equal(st.Shape, whole.Shape()) {
		return ed.Cat(axis, ever(ed, p, st.Args[0], axis), st.Args[1])
	}
	return whole
}

// appliedToCached tries an operation of the layer on what a cache was given, in each pass with what the operation reads there: as keys
// are rotated again that were rotated when they were written.
func (s *search) appliedToCached() error {
	own := s.m.List.Entries[s.first.Node.Entry].Name
	roles := s.cachedRoles(s.first)
	seen := map[string]bool{}
	for k := range s.m.List.Entries {
		other := &s.m.List.Entries[k]
		kind := Role(other.Name)
		a, in := layerOf(other.Name)
		if b, _ := layerOf(own); seen[kind] || in && a != b || !s.insertable(other) {
			continue
		}
		seen[kind] = true
		for _, role := range roles {
			for _, before := range []bool{false, true} {
				m := Mistake{Kind: "cache.operation-taken", Place: kind, Of: operationTerm(other), By: cachedTerm(role), For: tensorTerm(kind)}
				if kind == role {
					m.Kind, m.For = "cache.operation-taken-again", Term{}
				}
				if before {
					m.Kind += "-before"
				}
				if err := s.try(hypothesis{
					class: program.Inserted,
					make:  func(e *Entry) *program.Edited { return s.takenOfCached(e, other.Name, role, before) },
					say:   func(*Entry) Name { return m.name() },
				}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// takenOfCached has an operation taken of each tensor of a role, of the passes before alone or of all.
func (s *subject) takenOfCached(e *Entry, name, role string, before bool) *program.Edited {
	n := s.m.List.Index(beside(name, s.m.List.Entries[e.Node.Entry].Name))
	if n < 0 {
		return nil
	}
	ed, some := e.Program.Edit(), false
	for i := range e.Program.Steps {
		st := &e.Program.Steps[i]
		if st.Prim != program.Input || st.Index >= len(e.Inputs) || Role(s.m.List.Entries[e.Inputs[st.Index].Entry].Name) != role {
			continue
		}
		from := e.Inputs[st.Index]
		if before && from.Pass == e.Node.Pass {
			continue
		}
		o, ok := s.operation(e, &s.m.List.Entries[n], from.Pass)
		if !ok || product(st.Shape) != product(s.shapeOf(o.entry.Inputs[0], from.Pass)) {
			return nil
		}
		some = true
		ed.Pass(i, s.take(ed, o, ed.Move(i)))
	}
	if !some {
		return nil
	}
	return ended(ed)
}
