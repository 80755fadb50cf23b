package detectable

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/compare/arithmetic"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Sight is which of the usual mistakes of docs/mistakes.md a run would have shown: as a BUG in one entry at least, whatever the engine's
// roundings. Each was made in the run's own numbers. Mistakes that the model cannot have do not count.
type Sight struct {
	Known  int      `json:"known"`
	Seen   []string `json:"seen"`             // their names
	Unseen []Unseen `json:"unseen,omitempty"` // what would change no element, or none by more than roundings may
	// Skipped are the names of mistakes that were not tried. Untried has the same mistakes in words, each with the reason.
	Skipped []string  `json:"skipped,omitempty"`
	Untried []Untried `json:"untried,omitempty"`
	// Times is the SearchWork of the search: 1 for the default work, 0 for a search with a limit of the caller.
	Times int `json:"times,omitempty"`
}

// Unseen is a mistake that a run would not have shown.
type Unseen struct {
	Name    string `json:"name"`
	Mistake string `json:"mistake"` // in words
	Page    string `json:"page"`    // its heading in docs/mistakes.md
	ShownBy string `json:"shown_by"`
	// Rounding: elements would change, by no more than some choice of roundings may.
	Rounding bool `json:"rounding,omitempty"`
	// Capture lists the uncaptured tensors that would show the mistake; "*" stands for any layer. ShownBy names the
	// first.
	Capture []string `json:"capture,omitempty"`
}

// What would show a mistake that a run lacks nothing to show.
const (
	byLevel   = "a capture with --level 3"
	byTensors = "a capture of " // and their names
	byDump    = "a dump of "    // where the trace is a file that a person's own program wrote
	byDType   = "float32"
	// ByNumbers: nothing is known that would, but numbers of another size.
	ByNumbers = "other weights or another prompt"
)

const (
	// A search may take sightWork of [program.Program.Time] on any trace, about a quarter of a second, or one part in sightShare of what certifying took, about
	// a tenth of the time: few rows take twenty times as long an element as many do. What moves elements by no more than roundings may has as much again.
	sightWork  = 1 << 24
	sightShare = 200
	// Of an entry that takes more than sightFocus some tokens, and columns of a linear operation, are looked at.
	sightFocus   = 1 << 15
	sightTokens  = 2
	sightColumns = 16
	// sightRoom is how many numbers a mistake may take at one time: 128 MiB.
	sightRoom = 1 << 24
)

// Unite returns the union of several runs: a mistake counts as seen if one run shows it. Nil runs are skipped; the
// result is nil if every run is nil.
func Unite(runs []*Sight) *Sight {
	var all *Sight
	state := map[string]int{} // 1 unseen, 2 skipped, 3 seen
	for _, r := range runs {
		if r == nil {
			continue
		}
		if all == nil {
			all = &Sight{Seen: []string{}}
		}
		for _, name := range r.Seen {
			state[name] = 3
		}
		for _, name := range r.Skipped {
			state[name] = max(state[name], 2)
		}
		for _, u := range r.Unseen {
			state[u.Name] = max(state[u.Name], 1)
		}
	}
	if all == nil {
		return nil
	}
	done := map[string]bool{}
	// What a run that shows more lacks to show the rest is less.
	runs = slices.DeleteFunc(slices.Clone(runs), func(r *Sight) bool { return r == nil })
	slices.SortStableFunc(runs, func(a, b *Sight) int { return len(b.Seen) - len(a.Seen) })
	add := func(name string, is int) bool {
		if done[name] || state[name] != is {
			return false
		}
		done[name] = true
		all.Known++
		return true
	}
	for _, r := range runs {
		for _, name := range r.Seen {
			if add(name, 3) {
				all.Seen = append(all.Seen, name)
			}
		}
		for _, u := range r.Unseen {
			if add(u.Name, 1) {
				all.Unseen = append(all.Unseen, u)
			}
		}
		all.Times = max(all.Times, r.Times)
		for _, u := range r.Untried {
			if add(u.Name, 2) {
				all.Skipped, all.Untried = append(all.Skipped, u.Name), append(all.Untried, u)
			}
		}
		for _, name := range r.Skipped { // of a report that has no reasons
			if add(name, 2) {
				all.Skipped = append(all.Skipped, name)
			}
		}
	}
	return all
}

// candidate is a mistake that is being looked for.
type candidate struct {
	*diagnose.Usual
	edits           []bool // by entry
	shows           []bool // by entry
	seen            bool
	touched, looked bool              // some captured entry is computed by what is edited; it was looked at
	moved           bool              // float32 would show it
	rounds          bool              // an element changed
	near            []isolate.FormKey // forms of entries in which it does no more than roundings may
	ended           bool              // work or memory ended before all edited entries were computed, or before the search for a name
	large           bool              // memory ended, and work never did
}

// search is the search.
type search struct {
	i     *isolate.Isolator
	forms *arithmetic.Forms
	all   []*candidate
	work  int
	most  int
	short bool // the last entry would have taken more than is left
	large bool // it was memory that is not left
	// revealed is the work that looking for what would show mistakes has taken.
	revealed int
	of       func(name string, pass int) bool
	read     func(order.Node) (program.Value, error) // what was not captured; nil: nothing
}

// Find returns the usual mistakes detectable by this trace. work bounds the search, in units of
// [program.Program.Time]; 0 is a quarter of a second or a tenth of the time spent on certificates, times
// SearchWork. of selects the entries to use; nil uses all. Find ignores whether an operation may produce a BUG,
// because deciding this takes longer than the search: an uncertified operation that reproduces the trace stops
// reproducing it with a mistake. The error is the error of ctx, or of reading the trace or the weights.
func Find(ctx context.Context, forms *arithmetic.Forms, work int, of func(name string, pass int) bool) (*Sight, error) {
	i, times := forms.I, 0
	if work == 0 {
		times = i.Times()
		work = times * max(sightWork, int(i.Worked())/sightShare)
	}
	words := func(w io.Writer) {
		fmt.Fprintf(w, "sight %d\n", work)
		for _, r := range i.Trace().Records() {
			if of != nil && r.Firing == 0 && i.List().Index(r.Name) >= 0 {
				fmt.Fprintf(w, "%q %d %v\n", r.Name, r.Pass, of(r.Name, r.Pass))
			}
		}
	}
	return isolate.Recalled(ctx, i, words, func() (*Sight, error) {
		found, err := lookFor(ctx, forms, work, of)
		if found != nil {
			found.Times = times
		}
		return found, err
	})
}

// lookFor looks for what the trace would have shown.
func lookFor(ctx context.Context, forms *arithmetic.Forms, work int, of func(name string, pass int) bool) (*Sight, error) {
	i := forms.I
	s := &search{i: i, forms: forms, most: work, of: of}
	for _, k := range diagnose.Usuals(i.List()) {
		m := &candidate{Usual: k}
		for e := range i.List().Entries {
			m.edits = append(m.edits, k.Edits(&i.List().Entries[e]))
			m.shows = append(m.shows, k.ShownBy(&i.List().Entries[e]))
		}
		s.all = append(s.all, m)
	}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	if i.Options().Arithmetic == isolate.Auto {
		if err := s.nearly(ctx); err != nil {
			return nil, err
		}
	}
	return s.found(ctx)
}

// run looks at the captured entries: one of each form, then the next of each, until every mistake was seen. Entries of fewer steps come first: attention takes
// most.
func (s *search) run(ctx context.Context) error {
	forms := s.i.CapturedForms()
	var turns [][]order.Node
	names := slices.Clone(forms.Names)
	slices.SortStableFunc(names, func(a, b isolate.FormKey) int { return s.steps(forms.Nodes[a][0]) - s.steps(forms.Nodes[b][0]) })
	for _, name := range names {
		nodes := forms.Nodes[name]
		for turn, n := range isolate.Permuted(nodes, isolate.Scattered(len(nodes))) {
			if turn == len(turns) {
				turns = append(turns, nil)
			}
			turns[turn] = append(turns[turn], n)
		}
	}
	for _, n := range slices.Concat(turns...) {
		if s.of != nil && !s.of(s.i.List().Entries[n.Entry].Name, n.Pass) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.node(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// steps counts the operations between captured entries and an entry. It is 0 for an entry that cannot be computed
// from captured entries.
func (s *search) steps(n order.Node) int {
	cut, err := s.i.List().Cut(s.i.Has, n)
	if err != nil {
		return 0
	}
	return len(cut.Steps)
}

// node looks at one entry.
func (s *search) node(ctx context.Context, n order.Node) error {
	for _, opened := range []bool{false, true} {
		if !slices.ContainsFunc(s.all, func(k *candidate) bool { return !k.seen && k.shows[n.Entry] && k.Opens() == opened }) {
			continue
		}
		has := s.i.Has
		if opened {
			has = func(n order.Node) bool { return s.i.Given(n) || s.i.Has(n) && !s.i.Fixed(n.Entry) }
		}
		cut, err := s.i.List().Cut(has, n)
		if err != nil { // the arguments of the model were not captured
			continue
		}
		var open []*candidate
		for _, k := range s.all {
			if !k.seen && k.Opens() == opened && k.shows[n.Entry] && slices.ContainsFunc(cut.Steps, func(at order.Node) bool { return k.edits[at.Entry] }) {
				k.touched = true
				open = append(open, k)
			}
		}
		if len(open) == 0 {
			continue
		}
		if err := s.look(ctx, n, has, opened, open); err != nil {
			return err
		}
	}
	return nil
}

// look makes mistakes in one entry.
func (s *search) look(ctx context.Context, n order.Node, has func(order.Node) bool, opened bool, open []*candidate) error {
	s.short, s.large = s.work >= s.most, false
	var r *healthyEntry
	var err error
	if !s.short {
		r, err = s.prepareHealthy(ctx, n, has, opened)
	}
	if r == nil || err != nil {
		for _, k := range open {
			k.lacked(s)
		}
		return err
	}
	return s.made(ctx, r, n, opened, open...)
}

// made makes mistakes in what is right.
func (s *search) made(ctx context.Context, r *healthyEntry, n order.Node, opened bool, open ...*candidate) error {
	r.most = s.most - s.work
	for _, k := range open {
		k.looked = true
		wrong, d, err := s.wrong(r, k)
		if err != nil {
			return err
		}
		if wrong == nil {
			continue
		}
		was := k.rounds
		if k.seen, err = r.shows(ctx, wrong, k); err != nil {
			return err
		}
		if s.i.Env().DType != hooks.F32 && !k.seen && !k.moved {
			if k.moved, err = r.inFloat32(d); err != nil {
				return err
			}
		}
		if name := s.i.FormOf(r.Cut, n); !opened && k.rounds && !was && !slices.Contains(k.near, name) {
			k.near = append(k.near, name)
		}
	}
	s.work += r.work
	return nil
}

// found sums up.
func (s *search) found(ctx context.Context) (*Sight, error) {
	f := &Sight{Known: len(s.all), Seen: []string{}}
	ids, err := s.i.Trace().IDs()
	if err != nil {
		return nil, err
	}
	run := diagnose.Ran{Passes: s.i.Env().Passes, IDs: ids, DType: s.i.Env().DType}
	for _, k := range s.all {
		switch {
		case k.seen:
			f.Seen = append(f.Seen, k.Name)
			continue
		case k.touched && !k.looked:
			f.skip(k)
			continue
		}
		u := Unseen{Name: k.Name, Mistake: k.What, Page: k.Page, Rounding: k.rounds, ShownBy: k.Needs(s.i.List().Config).Lacks(run)}
		if u.ShownBy == "" {
			if err := s.shownBy(ctx, k, &u); err != nil {
				return nil, err
			}
			if k.ended && u.ShownBy != byLevel && len(u.Capture) == 0 { // nobody knows
				f.skip(k)
				continue
			}
		}
		f.Unseen = append(f.Unseen, u)
	}
	return f, nil
}

// shownBy describes how to detect a mistake that this run cannot show, with the same ids.
func (s *search) shownBy(ctx context.Context, k *candidate, u *Unseen) error {
	names, single, err := s.reveals(ctx, k)
	if err != nil {
		return err
	}
	switch {
	case len(names) > 0:
		if u.ShownBy = byLevel; s.i.Options().Given || !s.beyond(names) {
			u.Capture, u.ShownBy = names, byTensors+isolate.Some(names)
			if s.i.Options().Given {
				u.ShownBy = byDump + isolate.Some(names)
			}
		}
		if single {
			u.ShownBy += " in " + byDType
		}
	case s.i.Env().DType.Size() == 2 && k.moved:
		u.ShownBy = byDType
	default:
		u.ShownBy = ByNumbers
	}
	return nil
}

// beyond reports whether entries were not captured because a smaller level was asked for.
func (s *search) beyond(names []string) bool {
	level := s.i.Trace().Manifest().Scope.Level
	return level > 0 && !slices.ContainsFunc(s.i.List().Entries, func(e order.Entry) bool {
		return e.Level <= level && slices.ContainsFunc(names, func(name string) bool { return hooks.Match(name, e.Name) })
	})
}
