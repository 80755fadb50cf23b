package arithmetic

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// search looks for the definite arithmetic of some entries. The candidates depend only on the entries' programs and
// elements, so the result does not depend on the caller.
type search struct {
	left    []*isolate.Evidence // entries that transformers' arithmetic leaves something of
	entries []*isolate.Evidence // all that are to be explained
	panel   []*member           // those that arithmetics are tried on first: they decide which is nearer
	fixed   bool                // the panel stays as it is
	inOrder bool                // no other order of summation is tried on the panel
	open    bool                // results have more digits than the order gives them
	dtype   hooks.DType
	carry   carrier // asked for what other forms prove, if presets do not do
	tried
	descent
}

// tried is what a search has tried.
type tried struct {
	seen    map[string]bool // by what arithmetics do in the program, see keyOf
	best    []ranked        // those that leave least of the panel
	given   []ranked        // those that explain the panel, with the entries that they explain
	work    int             // what they have taken
	stopped bool            // the search has used all of its work
}

// descent is the state of descents, which change one site at a time.
type descent struct {
	descents int     // how many are made
	bar      int     // what a step has to go below
	nearest  *ranked // the step that goes furthest
}

// ranked is an arithmetic and its score: the distance from explaining the panel or, for an arithmetic that explains
// the panel, the explained entries.
type ranked struct {
	*isolate.Arithmetic
	far   int
	holds []*isolate.Evidence
}

const (
	// maxDescent is how many sites a descent changes, and descents how many arithmetics it starts from.
	maxDescent = 8
	descents   = 6
	ranks      = 2 * descents
	// A panel starts with entries of panelElements elements, at least one of them sufficient evidence. It grows by
	// entries unexplained by an arithmetic that explains the panel, up to maxPanel entries.
	panelElements = 600
	maxPanel      = 24
)

func newSearch(left, entries []*isolate.Evidence) *search {
	s := &search{left: left, entries: entries, tried: tried{seen: map[string]bool{}}}
	// Small entries that show something come first: they cost least.
	ordered := slices.Clone(left)
	slices.SortStableFunc(ordered, func(a, b *isolate.Evidence) int { return len(a.Y.Data) - len(b.Y.Data) })
	elements, shown := 0, false
	for _, e := range ordered {
		if len(s.panel) > 0 && elements >= panelElements && shown || len(s.panel) >= maxPanel/2 {
			break
		}
		s.join(e)
		elements += len(e.Y.Data)
		shown = shown || len(e.Left) >= thresholds.Proof.Elements && isolate.RowsIn(e.Trial, e.Left) >= thresholds.Proof.Rows
	}
	s.begin()
	return s
}

// searchOf prepares a search in a single entry. Other entries may match by luck.
func searchOf(one *isolate.Evidence, left, entries []*isolate.Evidence) *search {
	s := &search{left: left, entries: entries, tried: tried{seen: map[string]bool{}}, fixed: true}
	s.join(one)
	s.begin()
	return s
}

func (s *search) begin() {
	s.dtype = s.panel[0].Isolator.Env().DType
	s.open = slices.ContainsFunc(s.left, func(e *isolate.Evidence) bool { return e.Wider() })
}

// starts are what a search begins with.
func (s *search) starts() ([]*isolate.Arithmetic, error) {
	rewrites, err := s.panel[0].Rewrites()
	if err != nil {
		return nil, err
	}
	var starts []*isolate.Arithmetic
	for _, r := range rewrites {
		p, err := s.of(r)
		if err != nil {
			return nil, err
		}
		starts = append(starts, newPresetter(p, r).presets(s.dtype)...)
	}
	for _, a := range starts {
		a.Open = s.open
	}
	return starts, nil
}

// between tries transformers' arithmetic with float32 between any two steps.
func (s *search) between(ctx context.Context, starts []*isolate.Arithmetic) (*isolate.Arithmetic, error) {
	return s.wider(ctx, starts, true, func(a *isolate.Arithmetic) bool { return len(a.At) == 0 })
}

// from tries what the search began with, in float32 from some step on.
func (s *search) from(ctx context.Context, starts []*isolate.Arithmetic) (*isolate.Arithmetic, error) {
	return s.wider(ctx, starts, false, func(*isolate.Arithmetic) bool { return true })
}

func (s *search) wider(ctx context.Context, starts []*isolate.Arithmetic, toAny bool, which func(*isolate.Arithmetic) bool) (*isolate.Arithmetic, error) {
	if s.dtype == hooks.F32 || s.descents < descents {
		return nil, nil
	}
	for _, from := range starts {
		if !which(from) || from.Rewrites.Order() != 0 {
			continue
		}
		p, err := s.of(from.Rewrites)
		if err != nil {
			return nil, err
		}
		if found, err := s.each(ctx, newPresetter(p, from.Rewrites).between(from, toAny)); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// habits returns the presets that explain every entry, by name. Presets with the same effect in this program are
// different habits, since some other form may distinguish them.
func (s *search) habits(ctx context.Context) (map[isolate.Preset]*isolate.Arithmetic, error) {
	rewrites, err := s.panel[0].Rewrites()
	if err != nil {
		return nil, err
	}
	all, tried := map[isolate.Preset]*isolate.Arithmetic{}, map[string]bool{}
	for _, r := range rewrites {
		if r.Order() != 0 { // an order is that of one chain of additions, and no habit
			continue
		}
		p, err := s.of(r)
		if err != nil {
			return nil, err
		}
		for _, a := range newPresetter(p, r).plain(s.dtype) {
			if a.Preset == (isolate.Preset{}) || all[a.Preset] != nil {
				continue
			}
			a.Open = s.open
			key := keyOf(a, p)
			holds, known := tried[key]
			if !known {
				if holds, err = s.explains(ctx, a); err != nil {
					return nil, err
				}
				tried[key] = holds
			}
			if holds {
				all[a.Preset] = a
			}
		}
	}
	return all, nil
}

// explains reports whether an arithmetic leaves nothing of any entry.
func (s *search) explains(ctx context.Context, a *isolate.Arithmetic) (bool, error) {
	left, _, err := s.leaves(ctx, a)
	if left > 0 || err != nil {
		return false, err
	}
	held, err := s.holds(ctx, a)
	return len(held) == len(s.entries), err
}

// spent reports whether the search has used up its work, and then stops the search.
func (s *search) spent() bool {
	s.stopped = s.stopped || s.work >= arithmeticWork*s.panel[0].Isolator.Times() || s.account().Spent()
	return s.stopped
}

// account is that of the form.
func (s *search) account() *isolate.Account { return s.panel[0].Account }

// find returns an arithmetic that explains every entry, in its shortest form, or nil.
func (s *search) find(ctx context.Context) (*isolate.Arithmetic, error) {
	starts, err := s.starts()
	if err != nil {
		return nil, err
	}
	// What lies outside of the hull, no choice of roundings gives: only what the hull does not have is tried on.
	s.descents = descents
	for _, m := range s.panel {
		inside, err := m.InHull(ctx)
		if err != nil {
			return nil, err
		}
		if !inside {
			own := starts[0]
			starts = slices.DeleteFunc(starts, func(a *isolate.Arithmetic) bool { return !beyondHull(a) })
			starts, s.descents = append([]*isolate.Arithmetic{own}, starts...), 1
			break
		}
	}
	for _, step := range []func(context.Context, []*isolate.Arithmetic) (*isolate.Arithmetic, error){s.all, s.between, s.carried, s.from, s.descend} {
		if found, err := step(ctx, starts); found != nil || err != nil {
			if err == nil {
				found, err = s.plainest(ctx, found)
			}
			return found, err
		}
	}
	return inUnknownKernel(ctx, s)
}

// of is the program of the first of the panel in an order of steps.
func (s *search) of(r program.Rewrite) (*program.Program, error) { return s.panel[0].Rewritten(r) }

// each tries some arithmetics, and returns the first that explains all entries.
func (s *search) each(ctx context.Context, some iter.Seq[*isolate.Arithmetic]) (*isolate.Arithmetic, error) {
	for a := range some {
		if done, err := s.try(ctx, a); done || err != nil {
			return a, err
		}
		if s.stopped { // to make the others is work, too
			break
		}
	}
	return nil, nil
}

// all is each of a list.
func (s *search) all(ctx context.Context, list []*isolate.Arithmetic) (*isolate.Arithmetic, error) {
	return s.each(ctx, slices.Values(list))
}

// try reports whether an arithmetic explains all entries: the panel first.
func (s *search) try(ctx context.Context, a *isolate.Arithmetic) (bool, error) {
	p, err := s.of(a.Rewrites)
	if err != nil {
		return false, err
	}
	key := keyOf(a, p)
	if s.seen[key] || s.spent() {
		return false, nil
	}
	s.seen[key] = true
	cost := s.cost()
	s.work += cost
	s.account().Add(cost)
	left, far, err := s.leaves(ctx, a)
	if err != nil {
		return false, err
	}
	if left > 0 {
		r := ranked{Arithmetic: a, far: far}
		if s.rank(r); far < s.bar && (s.nearest == nil || far < s.nearest.far) {
			s.nearest = &r
		}
		return false, nil
	}
	held, err := s.holds(ctx, a)
	if err != nil {
		return false, err
	}
	s.given = append(s.given, ranked{a, 0, held})
	if len(held) == len(s.entries) || s.fixed || len(s.panel) >= maxPanel {
		return len(held) == len(s.entries), nil
	}
	for _, e := range s.entries { // what it does not explain tells it from the next
		if !slices.Contains(held, e) {
			s.join(e)
			break
		}
	}
	return false, s.again(ctx, a)
}

// again ranks anew what was tried, for a panel that has grown.
func (s *search) again(ctx context.Context, last *isolate.Arithmetic) error {
	old := append(s.best, ranked{Arithmetic: last})
	s.best = nil
	for _, r := range old {
		_, far, err := s.leaves(ctx, r.Arithmetic)
		if err != nil {
			return err
		}
		s.rank(ranked{Arithmetic: r.Arithmetic, far: far})
	}
	return nil
}

// rank keeps the arithmetics that leave least of the target.
func (s *search) rank(r ranked) {
	at := len(s.best)
	for at > 0 && r.far < s.best[at-1].far {
		at--
	}
	if s.best = slices.Insert(s.best, at, r); len(s.best) > ranks {
		s.best = s.best[:ranks]
	}
}

// descend improves the arithmetics nearest to the panel, and transformers', by changing one site at a time, as long
// as fewer elements are left.
func (s *search) descend(ctx context.Context, starts []*isolate.Arithmetic) (*isolate.Arithmetic, error) {
	done := map[*isolate.Arithmetic]bool{}
	for k := range s.descents {
		at := slices.IndexFunc(s.best, func(r ranked) bool { return !done[r.Arithmetic] })
		if at < 0 && k != 1 {
			return nil, nil
		}
		from := ranked{Arithmetic: starts[0], far: math.MaxInt}
		if k != 1 { // after the nearest, transformers' own
			from = s.best[at]
		}
		for range maxDescent {
			done[from.Arithmetic] = true
			near, err := s.neighbours(from.Arithmetic)
			if err != nil {
				return nil, err
			}
			s.bar, s.nearest = from.far, nil
			found, err := s.all(ctx, near)
			if found != nil || err != nil {
				return found, err
			}
			if s.nearest == nil || done[s.nearest.Arithmetic] {
				break
			}
			from = *s.nearest
		}
	}
	return nil, nil
}

// plainest undoes every choice not needed to explain the entries, so the report describes only visible choices.
func (s *search) plainest(ctx context.Context, a *isolate.Arithmetic) (*isolate.Arithmetic, error) {
	p, err := s.of(a.Rewrites)
	if err != nil {
		return nil, err
	}
	tables := tableSites(p)
	for _, sites := range choicesOf(p, tables) {
		if _, ok := a.At[sites[0]]; !ok {
			continue
		}
		b := a.Without(sites...)
		holds, err := s.explains(ctx, b)
		if err != nil {
			return nil, err
		}
		if holds {
			b.Preset = a.Preset
			a = b
		}
	}
	return nearestTables(ctx, s, a, tables)
}
