package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// slot is where a slot of a cache comes from: an index of an input. A negative input stands for a slot of zeros.
type slot struct{ input, index int }

// heldSlots yields the mistake of a cache that holds wrong tokens. The entry's program only joins tensors along an axis. Each slot of the result has
// to come from a slot of a joined tensor, kept by the program or not, or be 0.
func heldSlots(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		if now := foundSlots(s.subject, s.first); now != nil {
			yield(slotMistake(rightSlots(s.first), now))
		}
	}
}

// cache is the step that joins tensors along an axis, with nothing else computed.
func cache(p *program.Program) (step, axis int, ok bool) {
	step = p.Out.Step
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Prim != program.Input && i != step {
			return 0, 0, false
		}
	}
	s := &p.Steps[step]
	return step, s.Axis(), s.Prim == program.Cat && slices.Equal(s.Shape, p.Out.Shape)
}

// rightSlots are the slots that the program takes.
func rightSlots(e *Entry) []slot {
	step, axis, _ := cache(e.Program)
	args := e.Program.Steps[step].Args
	var all []slot
	for k, a := range args {
		skip := 0
		if before, ok := e.before(); ok && k == 0 {
			skip = before.Shape[axis] - a.Shape[axis]
		}
		for j := range a.Shape[axis] {
			all = append(all, slot{k, skip + j})
		}
	}
	return all
}

// before is the whole cache before the pass; the program takes its last slots. ok is false for a cache that begins with the pass.
func (e *Entry) before() (v program.Var, ok bool) {
	step, axis, _ := cache(e.Program)
	args := e.Program.Steps[step].Args
	if len(args) < 2 {
		return v, false
	}
	v = e.Program.Result(args[0].Step)
	shape, part := v.Shape, args[0].Shape
	if len(shape) != len(part) {
		return v, false
	}
	for a := range shape {
		if a != axis && shape[a] != part[a] || shape[a] < part[a] {
			return v, false
		}
	}
	return v, true
}

// sources are the whole tensors that are joined into a cache. The first is the whole cache before the pass.
func sources(e *Entry) []program.Var {
	step, _, _ := cache(e.Program)
	all := slices.Clone(e.Program.Steps[step].Args)
	if whole, ok := e.before(); ok {
		all[0] = whole
	}
	return all
}

// foundSlots finds where the slots of the trace's tensor come from. The right source comes first among equal sources. The result is nil if a slot has
// no source.
func foundSlots(s *subject, e *Entry) []slot {
	step, axis, ok := cache(e.Program)
	if !ok {
		return nil
	}
	y, _ := e.Target()
	shape, right, from := e.Program.Steps[step].Shape, rightSlots(e), sources(e)
	values := make([][]float64, len(from))
	for k, v := range from {
		if values[k], ok = s.valueAt(e, v); !ok {
			return nil
		}
	}
	inner, outer := program.Size(shape[axis+1:]), program.Size(shape[:axis])
	holds := func(at int, s slot) bool {
		for o := range outer {
			for i := range inner {
				v := 0.0
				if s.input >= 0 {
					v = values[s.input][(o*from[s.input].Shape[axis]+s.index)*inner+i]
				}
				if y[(o*shape[axis]+at)*inner+i] != v {
					return false
				}
			}
		}
		return true
	}
	others := []slot{{-1, 0}}
	for k := range from {
		for j := range from[k].Shape[axis] {
			others = append(others, slot{k, j})
		}
	}
	candidates := func(at int) iter.Seq[slot] { return slices.Values(append([]slot{right[at]}, others...)) }
	all, _ := assign(shape[axis], candidates, holds)
	return all
}

// joined makes a cache of other slots.
func joined(e *Entry, slots []slot) *program.Edited {
	if slots == nil {
		return nil
	}
	step, axis, _ := cache(e.Program)
	from := sources(e)
	ed := edit.NewEditor(e.Program)
	var all []program.Var
	for _, s := range slots {
		if s.input < 0 {
			all = append(all, ed.Mul("", ed.Slice(from[0], axis, 0, 1), ed.Literal(0)))
		} else {
			all = append(all, ed.Slice(from[s.input], axis, s.index, s.index+1))
		}
	}
	ed.Become(step, program.Cat, all...)
	return ended(ed)
}

// slotMistake is the mistake of a cache with wrong tokens in some slots.
func slotMistake(right, now []slot) Mistake {
	m := slotsHeld(right, now)
	m.Place, m.Of = cacheSite, Term{Kind: TheCache}
	return m
}

// slotsHeld is slotMistake without the place.
func slotsHeld(right, now []slot) Mistake {
	var all []sourceRun
	zero := true
	for k := range now {
		switch {
		case now[k] == right[k]:
		case now[k].input < 0:
			all = append(all, slotRun(k, isZero))
		default:
			all, zero = append(all, slotRun(k, shouldHold(right, now[k]))), false
		}
	}
	have := func(s slot) bool { return slices.Contains(now, s) }
	lacking := slices.DeleteFunc(slices.Clone(right), have)
	switch {
	case zero:
		return Mistake{Kind: "cache.slot-unwritten", Runs: makeRuns(all...)}
	case len(lacking) == 0:
		return Mistake{Kind: "cache.order"}
	}
	if m, ok := repeated(right, now); ok {
		return m
	}
	if m, ok := shifted(right, now); ok {
		return m
	}
	if n := sink(right, now); n > 0 {
		return Mistake{Kind: "cache.sink", N: n}
	}
	older := true
	for k := range now {
		older = older && now[k].input == right[k].input && now[k].index <= right[k].index
	}
	if older {
		return Mistake{Kind: "cache.oldest-kept"}
	}
	return Mistake{Kind: "cache.other-slots", Runs: makeRuns(all...)}
}

// slotRun is a run of one slot; is becomes its Run.Is.
func slotRun(k, is int) sourceRun { return sourceRun{From: k, To: k + 1, Is: is} }

// shouldHold is the number of the slot that should hold a token; isUnknown if no slot should hold the token.
func shouldHold(right []slot, held slot) int {
	if k := slices.Index(right, held); k >= 0 {
		return k
	}
	return isUnknown
}

// sink counts the slots at the beginning that still hold the first tokens, if all later slots are right; 0 otherwise.
func sink(right, now []slot) int {
	n := 0
	for n < len(now) && now[n] != right[n] && now[n] == (slot{0, n}) {
		n++
	}
	if n == len(now) || right[n].input != 0 || !slices.Equal(now[n:], right[n:]) { // nothing newer is kept
		return 0
	}
	return n
}

// shifted is the mistake of tokens that are written into a wrong slot while the right slot stays 0. ok is false if a wrong slot has another cause.
func shifted(right, now []slot) (m Mistake, ok bool) {
	var runs []sourceRun
	for k := range now {
		if now[k] == right[k] {
			continue
		}
		from := slices.Index(right, now[k])
		switch {
		case now[k].input < 0:
			runs = append(runs, slotRun(k, isZero))
		case from >= 0 && now[from].input < 0:
			runs = append(runs, slotRun(k, from))
		default:
			return Mistake{}, false
		}
	}
	return Mistake{Kind: "cache.written-elsewhere", Runs: makeRuns(runs...)}, true
}

// repeated is the mistake of two slots with one token; ok is false if each token is in one slot.
func repeated(right, now []slot) (Mistake, bool) {
	var again []sourceRun
	of, ring, known := -1, 0, 0
	for k := range now {
		if now[k] == right[k] {
			continue
		}
		at := slices.Index(now, now[k])
		if at == k && !slices.Contains(now[k+1:], now[k]) {
			continue
		}
		is := shouldHold(right, now[k])
		again, of = append(again, slotRun(k, is)), at
		if is >= 0 {
			if known++; known == 1 {
				ring = is - k
			} else if ring != is-k {
				ring = 0
			}
		}
	}
	switch {
	case len(again) == 0:
		return Mistake{}, false
	case len(again) == 1:
		return Mistake{Kind: "cache.slot-repeated", Runs: makeRuns(slotRun(again[0].From, of))}, true
	case known == len(again) && ring > 0 && isRing(right, now, ring):
		return Mistake{Kind: "cache.ring", N: ring, Runs: makeRuns(again...)}, true
	case known == len(again) && ring != 0:
		return Mistake{Kind: "cache.slots-repeated", Runs: makeRuns(again...)}, true
	}
	return Mistake{Kind: "cache.slots-of-another", Runs: makeRuns(again...)}, true
}

// isRing reports whether no slot holds its own token where a ring of some slots has overwritten the token.
func isRing(right, now []slot, ring int) bool {
	for k := range now {
		if k+ring < len(now) && now[k] == right[k] {
			return false
		}
	}
	return true
}

// lastSlots yields results that are the last slot, along one axis, of a tensor of the pass before.
func lastSlots(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		own := s.m.List.Entries[s.first.Node.Entry].Name
		for k := range s.m.List.Entries {
			name := s.m.List.Entries[k].Name
			if !order.NameOf(name).SameLayer(order.NameOf(own)) {
				continue
			}
			m := Mistake{Kind: "result.last-slot", Place: order.NameOf(name).Role(), Of: tensorTerm(name), Source: name}
			if m.Of.Before = true; !yield(m) {
				return
			}
		}
	}
}

// lastSlot makes the last slot of a tensor of the pass before the result.
func lastSlot(s *subject, e *Entry, m Mistake) *program.Edited {
	v, ok := s.tensor(e, source{name: s.here(m.Source, e), pass: -1})
	shape := e.Program.Out.Shape
	if !ok || len(v.Shape) != len(shape) {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	out := ed.Other(v)
	for a, n := range shape {
		if v.Shape[a] != n {
			if n != 1 {
				return nil
			}
			out = ed.Slice(out, a, v.Shape[a]-1, v.Shape[a])
		}
	}
	ed.Return(out)
	return ended(ed)
}
