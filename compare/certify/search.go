package certify

import (
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// search looks for the definite arithmetic of some entries. What it tries follows from their program and their elements
// alone, so that the same entries have the same arithmetic, whoever asks.
type search struct {
	left    []*evidence // entries that transformers' arithmetic leaves something of
	entries []*evidence // all that are to be explained
	target  *evidence   // the one that arithmetics are tried on first
	open    bool        // results have more digits than the order gives them
	dtype   hooks.DType
	tried   int

	program *program.Program
	engine  *program.Search
	seen    map[string]bool
	best    []ranked
	given   []ranked // arithmetics that explain the target, and how many entries they explain
}

// ranked is an arithmetic with what it leaves of the target, or, of those that explain it, what it explains of all.
type ranked struct {
	*arithmetic
	left  int
	holds []*evidence
}

const (
	// maxTried bounds the arithmetics of a search, and maxCost the elements that they compute, steps times elements.
	maxTried = 6000
	maxCost  = 1 << 29
	// maxDescent is how many sites a descent changes, and descents how many arithmetics it starts from.
	maxDescent = 6
	descents   = 4
)

func newSearch(left, entries []*evidence) *search {
	s := &search{left: left, entries: entries, seen: map[string]bool{}}
	// The target shows as much as any: of those that show enough alone the smallest, else the one that shows most.
	enough := func(e *evidence) bool { return len(e.left) >= proofElements && e.rowsIn(e.left) >= proofRows }
	for _, e := range left {
		switch {
		case s.target == nil,
			enough(e) && (!enough(s.target) || len(e.y.Data) < len(s.target.y.Data)),
			!enough(e) && !enough(s.target) && len(e.left) > len(s.target.left):
			s.target = e
		}
	}
	s.dtype = s.target.i.env.DType
	s.program = s.target.formula.Program
	s.open = slices.ContainsFunc(left, func(e *evidence) bool { return e.wider() })
	return s
}

// find returns an arithmetic that leaves nothing of any entry, said in as few words as it can be; nil for none.
func (s *search) find() (*arithmetic, error) {
	call := s.target.call
	call.Arith = s.target.i.env.Arith
	var err error
	if s.engine, err = s.program.Search(call); err != nil {
		return nil, err
	}
	starts := presets(s.program, s.dtype)
	if s.open {
		for _, a := range starts {
			a.open = true
		}
	}
	for _, step := range []func([]*arithmetic) (*arithmetic, error){s.each, s.flips, s.descend} {
		if found, err := step(starts); found != nil || err != nil {
			if err == nil {
				found, err = s.plainest(found)
			}
			return found, err
		}
	}
	return nil, nil
}

// each tries some arithmetics, and returns the first that explains all entries.
func (s *search) each(all []*arithmetic) (*arithmetic, error) {
	for _, a := range all {
		if done, err := s.try(a); done || err != nil {
			return a, err
		}
	}
	return nil, nil
}

// try reports whether an arithmetic explains all entries: the target first.
func (s *search) try(a *arithmetic) (bool, error) {
	key := a.key(s.program)
	if s.seen[key] || s.tried >= maxTried || s.tried*len(s.target.y.Data)*len(s.program.Steps) > maxCost {
		return false, nil
	}
	s.seen[key] = true
	s.tried++
	left, err := s.leaves(a)
	if err != nil {
		return false, err
	}
	s.rank(ranked{arithmetic: a, left: left})
	if left > 0 {
		return false, nil
	}
	held, err := s.holds(a)
	if err != nil {
		return false, err
	}
	s.given = append(s.given, ranked{a, 0, held})
	return len(held) == len(s.entries), nil
}

// leaves counts what an arithmetic leaves of the target.
func (s *search) leaves(a *arithmetic) (int, error) {
	c := a.choices(s.program)
	if c == nil {
		c = s.program.Own()
	}
	x, err := s.engine.Eval(c)
	if err != nil {
		return 0, err
	}
	if !a.open && s.target.wider() { // what is shared is not written to
		x = program.Value{Shape: x.Shape, Data: slices.Clone(x.Data), Bound: slices.Clone(x.Bound)}
	}
	j, err := s.target.judge(x, a, false)
	if err != nil {
		return 0, err
	}
	left := j.outside()
	if n := len(left); n > 0 && 8*n < len(s.target.left) { // perhaps only an order of summation
		if left, _, err = s.target.replay(j, a, left); err != nil {
			return 0, err
		}
	}
	return len(left), nil
}

// rank keeps the arithmetics that leave least of the target.
func (s *search) rank(r ranked) {
	at := len(s.best)
	for at > 0 && r.left < s.best[at-1].left {
		at--
	}
	if s.best = slices.Insert(s.best, at, r); len(s.best) > descents {
		s.best = s.best[:descents]
	}
}

// holds lists the entries that an arithmetic explains.
func (s *search) holds(a *arithmetic) (held []*evidence, err error) {
	for _, e := range s.entries {
		if e == s.target {
			held = append(held, e)
			continue
		}
		_, rest, _, err := e.strict(a)
		if err != nil {
			return nil, err
		}
		if len(rest) == 0 {
			held = append(held, e)
		}
	}
	return held, nil
}

// most is the arithmetic that explains most entries, transformers' included, and those that it does not explain.
func (s *search) most() (*arithmetic, []*evidence) {
	own := &arithmetic{}
	suspects := s.left
	for _, g := range s.given {
		if len(s.entries)-len(g.holds) < len(suspects) {
			own, suspects = g.arithmetic, nil
			for _, e := range s.entries {
				if !slices.Contains(g.holds, e) {
					suspects = append(suspects, e)
				}
			}
		}
	}
	return own, suspects
}

// flips tries each start with another choice at one site.
func (s *search) flips(starts []*arithmetic) (*arithmetic, error) {
	for _, a := range starts {
		if found, err := s.each(s.neighbours(a)); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// descend goes on from the arithmetics that left least of the target, one site at a time, as long as that leaves less.
func (s *search) descend([]*arithmetic) (*arithmetic, error) {
	for _, from := range slices.Clone(s.best) {
		at := from
		for range maxDescent {
			s.best = nil
			found, err := s.each(s.neighbours(at.arithmetic))
			if found != nil || err != nil {
				return found, err
			}
			if len(s.best) == 0 || s.best[0].left >= at.left {
				break
			}
			at = s.best[0]
		}
	}
	return nil, nil
}

// neighbours are an arithmetic with another choice at one site, for each site and choice.
func (s *search) neighbours(a *arithmetic) []*arithmetic {
	var all []*arithmetic
	sites, steps := s.program.Sites()
	for _, at := range sites {
		st := &s.program.Steps[steps[at][0]]
		now, ok := a.at[at]
		if !ok {
			now = program.Choice{Round: st.Round}
		}
		for _, c := range alternatives(st, s.dtype) {
			if c != now {
				all = append(all, a.with(at, c))
			}
		}
	}
	return all
}

// alternatives are the choices at a site.
func alternatives(s *program.Step, d hooks.DType) []program.Choice {
	if s.Prim == program.Copy {
		return []program.Choice{{Round: program.Plain}, {Round: program.Half}, {Round: program.Table}}
	}
	rounds := []program.Rounding{program.Plain, program.Model}
	if d == hooks.F32 || s.Prim == program.Number {
		rounds = []program.Rounding{program.Plain, program.None}
		if d != hooks.F32 {
			rounds = append(rounds, program.Model)
		}
	}
	if !slices.Contains(rounds, s.Round) {
		rounds = append(rounds, s.Round)
	}
	var all []program.Choice
	for way := range s.Ways() {
		for _, r := range rounds {
			all = append(all, program.Choice{Way: uint8(way), Round: r})
		}
	}
	return all
}

// plainest takes back each choice without which an arithmetic explains the entries as well: what is said is what shows.
func (s *search) plainest(a *arithmetic) (*arithmetic, error) {
	sites, _ := s.program.Sites()
	for _, at := range sites {
		if _, ok := a.at[at]; !ok {
			continue
		}
		b := a.without(at)
		left, err := s.leaves(b)
		if err != nil {
			return nil, err
		}
		if left > 0 {
			continue
		}
		held, err := s.holds(b)
		if err != nil {
			return nil, err
		}
		if len(held) == len(s.entries) {
			a = b
		}
	}
	return a, nil
}
