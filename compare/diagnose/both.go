package diagnose

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// An operation may have two mistakes. Neither of them gives the elements, so the search for one mistake ends without a name. It has then tried the first
// mistake, and this mistake brings the values nearer to the trace. The search for the second mistake starts from the program with the first.

const (
	// mostFirst is the largest number of mistakes that are tried as the first of two.
	mostFirst = 6
	// leastNearer is how much nearer to the trace the first mistake has to bring the values.
	leastNearer = 0.995
)

// Earlier is the first of two mistakes of an operation, as JSON; empty for none. The second mistake is made in the program with the first.
type Earlier string

// MarshalJSON writes the mistake.
func (m Earlier) MarshalJSON() ([]byte, error) { return []byte(m), nil }

// UnmarshalJSON reads the mistake. The error reports a text that is no mistake, or a mistake with an earlier one.
func (m *Earlier) UnmarshalJSON(data []byte) error {
	var text bytes.Buffer
	if err := json.Compact(&text, data); err != nil {
		return err
	}
	if bytes.Contains(text.Bytes(), []byte(`"first":`)) {
		return errThree
	}
	*m = Earlier(text.String())
	return json.Unmarshal(data, &Mistake{})
}

// earlier makes the text of a mistake.
func earlier(m Mistake) Earlier {
	text, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return Earlier(text)
}

// mistake is the mistake of the text; the zero value for a text that is no mistake.
func (m Earlier) mistake() (first Mistake) {
	if json.Unmarshal([]byte(m), &first) != nil {
		return Mistake{}
	}
	return first
}

// after returns an entry whose own program has the earlier mistake. It is nil if the mistake does not fit the entry, or needs inputs of its own.
func (s *subject) after(m Earlier, e *Entry) *Entry {
	if old, known := e.edits[m]; known {
		return old
	}
	if e.edits == nil {
		e.edits = map[Earlier]*Entry{}
	}
	e.edits[m] = nil
	d := s.apply(m.mistake(), e)
	if d == nil || len(d.In)+len(d.W) > 0 {
		return nil
	}
	other := *e
	other.remembered, other.from = remembered{}, d.From
	other.Program, other.Call = d.Whole(e.Call)
	judge := withMistake{Judge: e.Judge, small: &other}
	if small := e.Small(); small != e { // a large entry keeps the elements that the right program does not give: to compute them all takes long
		if judge.small = s.after(m, small); judge.small == nil {
			return nil
		}
	} else {
		var err error
		if other.Left, other.Few, err = s.m.leavesOf(&other); err != nil {
			s.failed(outside(err))
			return nil
		}
	}
	other.Judge = judge
	e.edits[m] = &other
	return &other
}

// leavesOf lists the elements that an entry's own program does not give, of all tokens and of the few.
func (m *Model) leavesOf(e *Entry) (left []int, few *Few, err error) {
	k, err := m.values(e)
	if err != nil {
		return nil, nil, err
	}
	x, err := k.Own()
	if err != nil {
		return nil, nil, err
	}
	if left, err = e.Leaves(x, e.elements()); e.Few == nil || err != nil {
		return left, nil, err
	}
	some := *e.Few
	if x, err = k.OwnSome(&some.Some); err != nil {
		return nil, nil, err
	}
	y, _ := some.Target()
	some.Left, err = some.Leaves(x, len(y))
	return left, &some, err
}

// withMistake judges an entry whose own program has a mistake.
type withMistake struct {
	Judge
	small *Entry
}

// Small is the small entry, with the mistake.
func (j withMistake) Small() *Entry { return j.small }

// applyBoth makes the edit of a mistake with an earlier one.
func (s *subject) applyBoth(m Mistake, e *Entry) *program.Edited {
	with := s.after(m.First, e)
	if with == nil {
		return nil
	}
	m.First = ""
	d := s.apply(m, with)
	if d == nil {
		return nil
	}
	both := *d
	both.From = make([]int, len(d.From))
	for i, from := range d.From {
		if both.From[i] = from; from >= 0 {
			both.From[i] = with.from[from]
		}
	}
	return &both
}

// firsts are mistakes without solved numbers that may be the first of two: mistakes of steps, and other mistakes.
type firsts struct{ steps, others closest }

// take takes in a hypothesis.
func (f *firsts) take(h hypothesis, far float64) {
	switch {
	case h.statement != nil || h.solved > 0 || h.weak || h.is.First != "":
	case slices.Contains(firstClasses, h.class):
		f.steps.add(h, far)
	default:
		f.others.add(h, far)
	}
}

// below lists the hypotheses below a distance: the nearest first, and of equally near hypotheses the most plausible first.
func (c *closest) below(distance float64) []hypothesis {
	order := make([]int, 0, len(c.all))
	for k, far := range c.far {
		if far < distance {
			order = append(order, k)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(c.far[x], c.far[y]), cmp.Compare(plausible(c.all[x].class, c.all[x].is.Kind), plausible(c.all[y].class, c.all[y].is.Kind)), cmp.Compare(y, x))
	})
	all := make([]hypothesis, len(order))
	for k, at := range order {
		all[k] = c.all[at]
	}
	return all
}

// firstClasses are the classes of mistakes of steps that may be the first of two.
var firstClasses = []edit.Class{edit.LeftOut, edit.Exchanged, edit.Swapped, edit.Twice, edit.Count, edit.Axis, edit.Constant}

// twoMistakes looks for a second mistake in programs that have a first one, which is a mistake of steps. The second may be any mistake of the whole result. If
// the second brings the values nearer to the trace, but not the first, then the second is tried with each step left out. The search may double the work.
func twoMistakes(s *search) error {
	right, _, err := s.first.distance()
	if err != nil {
		return outside(err)
	}
	limit := 2 * s.work()
	if s.spent() {
		return nil
	}
	for _, h := range most(s.firsts.steps.below(leastNearer * right)) {
		if err := second(s, h); err != nil || s.stopped || s.work() > limit {
			return err
		}
	}
	if len(s.found) > 0 {
		return nil
	}
	var leftOut []Earlier
	for _, d := range s.first.signed(s.m).Edits().LeftOut() {
		leftOut = append(leftOut, earlier(spelt(s, s.hypothesis(Mistake{Edit: d.Text()}))))
	}
	for _, h := range most(s.firsts.others.below(leastNearer * right)) {
		for _, first := range leftOut {
			m := h.is
			m.First = first
			if err := s.try(s.hypothesis(m)); err != nil || s.stopped || s.work() > limit {
				return err
			}
		}
	}
	return nil
}

// most are the nearest of some hypotheses.
func most(all []hypothesis) []hypothesis { return all[:min(len(all), mostFirst)] }

// secondStages are the stages in which a second mistake is looked for.
func secondStages() []stage {
	all := stages()
	return append(all[:slices.IndexFunc(all, func(s stage) bool { return s.reach >= inParts })], inSolved)
}

// second searches the second mistake, with a first one that fits all entries.
func second(s *search, first hypothesis) error {
	m := spelt(s, first)
	key := earlier(m)
	var entries []*Entry
	for _, e := range s.entries {
		with := s.after(key, e)
		if with == nil {
			return s.err
		}
		entries = append(entries, with)
	}
	s.m.work, s.m.tried = s.m.work+HypothesisWork*(s.tried-s.m.tried), s.tried
	again := newSearch(s.ctx, s.m, entries)
	for _, stage := range secondStages() {
		if err := cmp.Or(stage.look(again), again.err); err != nil {
			return err
		}
		if again.stopped || len(again.found) > 0 {
			break
		}
	}
	s.m.work += HypothesisWork * (again.tried - s.m.tried)
	for _, e := range again.entries {
		s.m.work += e.Small().work()
	}
	s.m.tried, s.tried = again.tried, again.tried
	for _, o := range again.found {
		if o.statement != nil {
			continue
		}
		// The second mistake may be the only one: of two numbers of a step, the second replaces the first.
		found := len(s.found)
		for _, earlier := range []Earlier{"", key} {
			then := spelt(again, o.hypothesis)
			if d, ok := s.edit(then); ok && earlier == "" && d.Class == edit.Constant { // the right number is that of the right program
				t := s.first.signed(s.m)
				then = otherConstant(s.subject, s.first, t.Copies(d.At[0])[0], number{value: d.Value}, d.At...)
			}
			then.First = earlier
			h := s.hypothesis(then)
			h.solved = max(h.solved, o.solved)
			if err := s.try(h); err != nil {
				return err
			}
			if len(s.found) > found {
				break
			}
		}
	}
	return nil
}

// spelt is the mistake of a hypothesis, with its kind if it is an edit of steps.
func spelt(s *search, h hypothesis) Mistake {
	m := h.is
	if d, ok := s.edit(m); ok && m.Kind == "" {
		said := editMistake(s.subject, s.first, d)
		said.Edit, said.Tokens, said.Only = m.Edit, m.Tokens, m.Only
		return said
	}
	return m
}
