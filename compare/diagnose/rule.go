package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// finding puts the outcome together. The name is the most plausible match, and matches with the same values are its aliases. If a match has other
// values, the data do not decide between the matches: the finding lists all matches and has no name.
func (s *search) finding() (*Finding, error) {
	f := tallied(s)
	if len(s.found) == 0 {
		return f, sayNearest(s, f)
	}
	if err := sortFound(s); err != nil {
		return nil, err
	}
	best := s.found[0]
	name, err := ofLayer(s, s.name(best.hypothesis))
	if err != nil {
		return nil, err
	}
	f.Name, f.Class, f.Shown = ofAllLayers(s, name), best.class.String(), best.shown
	o, err := otherNames(s, best, f.Name)
	if err != nil {
		return nil, err
	}
	f.Aliases = o.aliases
	beyond, err := limitless(s, best, o.numbers)
	switch {
	case err != nil:
		return nil, err
	case beyond.What != "" && len(o.differ) == 0:
		f.Name, f.Class, f.Aliases = beyond, edit.LeftOut.String(), nil
	case undetermined(best.number, o.numbers) && !oneSided(best, o.numbers): // the data do not decide
		for _, v := range o.numbers {
			m := f.Mistake
			m.X = some(v)
			o.differ = append(o.differ, OtherName{m.name()})
		}
	default:
		f.values(best.number, o.numbers)
	}
	if len(o.differ) > 0 {
		f.Undecided = append([]OtherName{{f.Name}}, o.differ[:min(len(o.differ), maxAliases)]...)
		f.Name, f.Class, f.Aliases = Name{}, "", nil
		return f, nil
	}
	f.Page = pageOf(s, f.Name)
	if f.Where, f.RightIn, err = s.where(best); err != nil {
		return nil, err
	}
	for k := range f.Aliases {
		f.Aliases[k].inLayer(f.Where)
	}
	return f, nil
}

// tallied is a finding without a name: what was tried in which entries.
func tallied(s *search) *Finding {
	f := &Finding{Entries: len(s.entries), Tried: s.tried, Stopped: s.stopped, Times: s.m.times(), Looked: classesTried(s)}
	for _, stage := range s.unended {
		f.stoppedIn(stage.what)
	}
	for _, e := range s.entries {
		f.Elements += e.elements()
	}
	return f
}

// sortFound sorts what was found, the most plausible match first.
func sortFound(s *search) error {
	// If an edit leaves out an added number, such as an epsilon, the number is 0: one of the values that the number may have.
	for k, o := range s.found {
		if at, ok := addendLeftOut(s, o); ok {
			s.found[k].class, s.found[k].addend, s.found[k].at = edit.Constant, true, at
		}
	}
	// A thin hypothesis with the values of a match is a name of the match: the bounds of the hypothesis are too wide to show as much. A number that was not solved
	// is the simpler name.
	thin := s.thin
	if o := s.found[0]; o.class == edit.Constant && o.solved == 0 {
		thin = nil
	}
	for _, o := range thin {
		if same, err := s.equal(s.found[0], o); err != nil {
			return err
		} else if same {
			o.shown = s.found[0].shown
			s.found = append(s.found, o)
		}
	}
	if err := withoutMirrored(s); err != nil {
		return err
	}
	doubt(s)
	slices.SortStableFunc(s.found, survivor.compare)
	return nil
}

// others are the matches after the best match: further numbers in its place, names with the same values, and names with different values.
type others struct {
	numbers         []float64
	aliases, differ []OtherName
}

// otherNames sorts the matches after the best match. name is the name of the best match.
func otherNames(s *search, best survivor, name Name) (all others, err error) {
	said := []Name{name}
	for _, o := range s.found[1:] {
		if o.class == edit.Constant && best.class == edit.Constant && o.at == best.at {
			all.numbers = append(all.numbers, o.number)
			continue
		}
		name := s.name(o.hypothesis)
		if o.of == "" || o.of != best.of {
			if same, err := s.equal(best, o); err != nil {
				return all, err
			} else if !same {
				all.differ = append(all.differ, OtherName{name})
				continue
			}
		}
		if o.class > best.class && (rewords(o.class) || o.class == edit.Constant) || o.weak && !best.weak {
			continue
		}
		if !slices.ContainsFunc(said, name.reads) && len(all.aliases) < maxAliases {
			said = append(said, name)
			all.aliases = append(all.aliases, OtherName{name})
		}
	}
	return all, nil
}

// classesTried are the kinds of edits that were tried, in words.
func classesTried(s *search) []string {
	var all []string
	for c := range edit.Class(len(lookedWords)) {
		if s.looked[c] {
			all = append(all, lookedWords[c])
		}
	}
	return all
}

// sameValue is the largest difference, in distances between two numbers of the dtype, between edits that are equal in exact arithmetic. For example,
// two edits may leave out one factor, before a tiny epsilon and after it.
const sameValue = 1. / 32

// equal reports whether two hypotheses have the same values in all entries. Both hypotheses give the trace, so only the last rounding can hide a
// difference: no element may differ by more than the bounds of the two programs, or, without any rounding, by more than [sameValue]. Two infinities
// of one sign are the same value, and so are two elements that are NaN.
func (s *search) equal(a, b survivor) (bool, error) {
	for _, e := range s.entries {
		k, err := s.m.values(e)
		if err != nil {
			return false, err
		}
		var x, y program.Value
		if x, err = k.Eval(s.edited(a.hypothesis, e)); err == nil {
			y, err = k.Eval(s.edited(b.hypothesis, e))
		}
		if err != nil {
			return false, err
		}
		var exact [2][]float64
		_, half := e.Target()
		for i, v := range x.Data {
			bound := 0.0
			if x.Bound != nil && y.Bound != nil {
				bound = x.Bound[i] + y.Bound[i]
			}
			if bound-bound != 0 { // an infinite bound says nothing
				bound = 0
			}
			if math.Abs(v-y.Data[i]) <= bound || v == y.Data[i] || v != v && y.Data[i] != y.Data[i] {
				continue
			}
			if exact[0] == nil {
				if exact, err = e.unrounded(s.edited(a.hypothesis, e), s.edited(b.hypothesis, e)); err != nil {
					return false, err
				}
			}
			if !(math.Abs(exact[0][i]-exact[1][i]) <= 2*sameValue*half[i]) {
				return false, nil
			}
		}
	}
	return true, nil
}

// beyondAll is the factor by which a number is increased to see whether the result still changes.
const beyondAll = 1 << 20

// limitless names a step as left out if all matching numbers are larger than the right number and much larger numbers give the same values. The name
// is empty if much larger numbers give different values.
func limitless(s *search, best survivor, others []float64) (Name, error) {
	m := best.is
	d, ok := s.edit(m)
	all := append([]float64{best.number}, others...)
	if !ok || best.class != edit.Constant || !m.Right.Has || !(slices.Min(all) > math.Abs(m.Right.Value)) || !undetermined(best.number, others) {
		return Name{}, s.err
	}
	with := func(number float64) survivor {
		d.Value = number
		m = Mistake{Kind: "step.left-out", Place: m.Place, Of: m.Of, Edit: d.Text()}
		return survivor{hypothesis: s.hypothesis(m)}
	}
	further := with(beyondAll * beyondAll * slices.Max(all))
	far := with(beyondAll * slices.Max(all))
	for _, e := range s.entries {
		ed := s.edited(far.hypothesis, e)
		if ed == nil || s.edited(further.hypothesis, e) == nil {
			return Name{}, s.err
		}
		p, call := ed.Whole(e.Call)
		if all, _, _, err := e.Explains(p, call); !all || err != nil {
			return Name{}, outside(err)
		}
	}
	if same, err := s.equal(far, further); !same || err != nil {
		return Name{}, err
	}
	return s.name(far.hypothesis), nil
}

// unrounded returns the values of edited programs without any rounding.
func (e *Entry) unrounded(edits ...*program.Edited) (all [2][]float64, err error) {
	call := e.Call
	call.Emulated, call.Bounds = false, false
	for k, d := range edits {
		p, c := d.Whole(call)
		v, err := p.Eval(c)
		if err != nil {
			return all, err
		}
		all[k] = v.Data
	}
	return all, nil
}

// compare sorts the more plausible of two matches first. Equally plausible matches of one generator keep the order of the generator.
func (s survivor) compare(o survivor) int {
	return cmp.Or(cmp.Compare(s.place(), o.place()), cmp.Compare(s.is.Kind.depth(), o.is.Kind.depth()))
}

// place is the rank of a match. First come mistakes without solved numbers, then mistakes with solved numbers, then relations, which predict nothing.
// Within each of the three, the class decides, with the weak names of a class last. An addend that is left out comes after the numbers that the
// addend may be.
func (s survivor) place() int {
	n := 4 * plausible(s.class, s.is.Kind)
	if s.weak {
		n += 2
	}
	if s.addend {
		n++
	}
	switch most := 4 * len(byPlausibility); {
	case s.statement != nil:
		n += 2 * most
	case s.solved > 0:
		n += most
	}
	return n
}

// rewords reports whether edits of a class describe a mistake of another class in words that nobody would use: a step that reads another value acts
// as if the steps between were left out.
func rewords(c edit.Class) bool {
	return c == edit.Operand || c == edit.Swapped || c == edit.Exchanged || c == edit.Axis || c == edit.Mapped
}

// withoutMirrored drops a number with the wrong sign if the number with the right sign gives the same values: a soft cap of −1 equals a soft cap of
// 1.
func withoutMirrored(s *search) error {
	var kept []survivor
	for _, o := range s.found {
		mirrored := false
		for _, p := range s.found {
			if o.class != edit.Constant || p.class != edit.Constant || p.at != o.at || o.number != -p.number || o.number*o.is.Right.Value >= 0 || mirrored {
				continue
			}
			var err error
			if mirrored, err = s.equal(o, p); err != nil {
				return err
			}
		}
		if !mirrored {
			kept = append(kept, o)
		}
	}
	s.found = kept
	return nil
}

// doubt makes a number weak if other numbers in the same place match, too: a number that the data determine is worth more.
func doubt(s *search) {
	doubted := make([]bool, len(s.found))
	for k, o := range s.found {
		var others []float64
		for j, p := range s.found {
			if j != k && o.class == edit.Constant && p.class == edit.Constant && p.at == o.at {
				others = append(others, p.number)
			}
		}
		doubted[k] = undetermined(o.number, others)
	}
	for k, d := range doubted {
		s.found[k].weak = s.found[k].weak || d
	}
}

// undetermined reports whether the data do not determine a number, because clearly different numbers match, too. A number is determined if the other
// matches are smaller and go down to 0. People choose only the exponent of a power of ten, so a power of ten is not clearly different from a number
// that rounds to the same single digit. The finding then lists both numbers.
func undetermined(first float64, others []float64) bool {
	if len(others) == 0 || slices.Min(others) == 0 && first > 0 && slices.Max(others) < first {
		return false
	}
	return slices.ContainsFunc(others, func(v float64) bool {
		return !(math.Abs(v-first) <= nearOne*math.Abs(first)) && !(powerOfTen(first) && inOneDigit(v) == inOneDigit(first))
	})
}

// oneSided reports whether all numbers are larger than the right number, or all are smaller, and no number is twice another number.
func oneSided(best survivor, others []float64) bool {
	right := best.is.Right
	all := append([]float64{best.number}, others...)
	low, high := slices.Min(all), slices.Max(all)
	return right.Has && (low > right.Value || high < right.Value) && low > 0 && high < 2*low
}

func inOneDigit(x float64) string { return strconv.FormatFloat(x, 'e', 0, 64) }

// values adds the further values that a number may have to the value that was found first.
func (f *Finding) values(first float64, others []float64) {
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	others = slices.Compact(others)
	said := short(first)
	if others = slices.DeleteFunc(others, func(v float64) bool { return short(v) == said }); len(others) == 0 {
		return // the number in the port's code, and its float32 value
	}
	f.Value = nil
	if others[0] == 0 && first > 0 && others[len(others)-1] < first {
		f.or(OtherValues{Less: true})
		return
	}
	var words []string
	for _, v := range others[:min(len(others), maxAliases)] {
		words = append(words, short(v))
	}
	f.or(OtherValues{Values: listed(words)})
}

// or adds further values for the number of a name.
func (f *Finding) or(others OtherValues) {
	f.Mistake.Others = others
	if f.Mistake.Kind == "" {
		f.What += others.String()
		return
	}
	f.What = f.Mistake.String()
}

// addendLeftOut is the place of the number that an edit leaves out of a sum.
func addendLeftOut(s *search, o survivor) (at edit.Place, ok bool) {
	if o.class != edit.LeftOut || o.edit == nil || o.edit.At[0].Arg >= 0 {
		return at, false
	}
	t := s.first.signed(s.m)
	st := &t.Steps[t.Copies(o.edit.At[0])[0]]
	if st.Prim != program.Add || len(st.Args) != 2 {
		return at, false
	}
	for k, a := range st.Args {
		if n := a.Step; t.Steps[n].Prim == program.Number && slices.Contains(t.Numbers(), n) && st.Args[1-k].Step == t.At(o.edit.From).Step {
			return t.PlaceOf(n), true
		}
	}
	return at, false
}
