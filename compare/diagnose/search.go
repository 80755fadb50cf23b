package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

const (
	// A name has to give shownElements elements in shownRows rows that the operation itself does not give, and one more for each
	// number that was solved from them. A mask is judged bit by bit: half of that is as much.
	shownElements = 8
	shownRows     = 2
	// maxTried and maxWork bound a search: hypotheses, and the elements and products that they compute. Both are the same on any
	// machine. 2³¹ take about ten seconds.
	maxTried = 3000
	maxWork  = 1 << 31
)

// hypothesis is one edit that may be the mistake.
type hypothesis struct {
	class  program.Class
	rank   int                            // among those of its class
	solved int                            // numbers that were solved from the elements
	make   func(e *Entry) *program.Edited // nil where it does not apply
	say    func(e *Entry) Name            // in words, about an entry
	edit   *program.Edit                  // what it is as data, where it is
	at     program.Place                  // of its number
	number float64
	weak   bool // it is said only where nothing else gives the same
}

// survivor is a hypothesis that gives everything.
type survivor struct {
	hypothesis
	shown, rows int
}

type search struct {
	ctx      context.Context
	m        *Model
	entries  []*Entry // the first are looked at first
	first    *Entry   // what edits are made from, small
	numbers  []number // of the configuration
	tried    int
	found    []survivor
	stopped  bool
	cautious bool // what is found decides whether something is wrong
}

// stage is a step of the search: the classes that are looked at together.
type stage func(s *search) error

// Find looks for the edit with which the programs give every element of all entries; nil where there is none. The error is that of
// reading the trace or the weights.
func Find(ctx context.Context, m *Model, entries []*Entry) (*Finding, error) {
	return find(ctx, m, entries, []stage{(*search).steps, (*search).leaves, (*search).maps, (*search).parts, (*search).clamped, (*search).solved, (*search).addends})
}

// FindNumber is Find among the few edits that may move elements by as little as roundings do, and that ports are known to have: a
// count that is one off, an activation for another of the families', a number that is 0 or off by powers of ten. What it finds
// makes an entry a BUG that some choice of roundings may give, so that it tries no more than these.
func FindNumber(ctx context.Context, m *Model, entries []*Entry) (*Finding, error) {
	return find(ctx, m, entries, []stage{(*search).few})
}

// few looks at the edits of [FindNumber].
func (s *search) few() error {
	s.cautious = true
	for _, look := range []func() error{s.counts, s.activations, s.constants} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

func find(ctx context.Context, m *Model, entries []*Entry, stages []stage) (*Finding, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	s := &search{ctx: ctx, m: m, entries: slices.Clone(entries), numbers: numbersOf(m.List.Config)}
	// What shows enough by itself and is small comes first: it costs least, and refuses most.
	slices.SortStableFunc(s.entries, func(a, b *Entry) int {
		if x, y := len(a.Left) >= shownElements, len(b.Left) >= shownElements; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Program.Work(), b.Program.Work())
	})
	s.first = s.entries[0].Small()
	defer s.begun()()
	for _, look := range stages {
		if err := look(s); err != nil {
			return nil, err
		}
		if len(s.found) > 0 || s.stopped {
			break
		}
	}
	return s.finding()
}

// try judges a hypothesis.
func (s *search) try(h hypothesis) error {
	if s.stopped || s.declined(h) {
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	work := 0
	for _, e := range s.entries {
		if k := e.Small().kept; k != nil {
			work += k.Work
		}
	}
	if s.tried >= maxTried || work >= maxWork {
		s.stopped = true
		return nil
	}
	s.tried++
	for _, e := range s.entries {
		if may, err := s.may(h, e.Small()); !may || err != nil {
			return err
		}
	}
	shown, rows := 0, 0
	for _, e := range s.entries {
		d := h.make(e)
		if d == nil {
			return nil
		}
		p, c := d.Whole(e.Call)
		all, n, r, err := e.Explains(p, c)
		if !all || err != nil {
			return err
		}
		shown, rows = shown+n, rows+r
	}
	need := shownElements
	if s.first.exact() {
		need /= 2
	}
	if shown >= need+h.solved && rows >= min(shownRows, need) {
		s.found = append(s.found, survivor{h, shown, rows})
	}
	return nil
}

// exact reports whether the entry is a mask, whose elements are what they are in any arithmetic.
func (e *Entry) exact() bool {
	return len(e.Program.Of(program.Mask)) > 0 && !slices.ContainsFunc(e.Program.Steps, func(s program.Step) bool { return s.Prim.Computes() || s.Prim == program.Angle })
}

// may reports whether a hypothesis gives an entry, or nearly: orders of summation may give the rest.
func (s *search) may(h hypothesis, e *Entry) (bool, error) {
	d := h.make(e)
	if d == nil {
		return false, nil
	}
	k, err := e.values()
	if err != nil {
		return false, err
	}
	x, err := k.Eval(d)
	if err != nil {
		return false, nil // such as an index out of range
	}
	most := len(e.Left) / 8
	left, err := e.Leaves(x, most+1)
	return len(left) <= most, err
}

// edits tries edits that are data.
func (s *search) edits(all []program.Edit) error {
	for rank, d := range all {
		h := hypothesis{
			class: d.Class, rank: rank, edit: &d,
			make: func(e *Entry) *program.Edited { return d.Apply(e.signed(s.m)) },
			say:  func(e *Entry) Name { return s.words(e, d) },
		}
		if err := s.try(h); err != nil {
			return err
		}
	}
	return nil
}

// steps looks at the steps of the program by themselves: what they do and read, their numbers, and what is known of them together.
func (s *search) steps() error {
	for _, look := range []func() error{s.structure, s.recognised, s.constants} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// structure looks at what steps do and read.
func (s *search) structure() error {
	t := s.first.signed(s.m)
	for _, all := range [][]program.Edit{t.LeftOut(), t.Exchanged(), t.Swapped(), t.Twice(), t.Wholes(), t.Axes(), t.Operands(), t.Counts()} {
		if err := s.edits(all); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) counts() error { return s.edits(s.first.signed(s.m).Counts()) }

// maps looks at the order of elements.
func (s *search) maps() error {
	var blocks []int
	c := s.m.List.Config
	for _, n := range []int{c.HeadDim, c.NumHeads, c.NumKVHeads, c.NumLayers} {
		if n > 1 && !slices.Contains(blocks, n) {
			blocks = append(blocks, n)
		}
	}
	return s.edits(s.first.signed(s.m).Maps(blocks))
}

// finding puts what was found together: the name of the first class, and the others as its aliases.
func (s *search) finding() (*Finding, error) {
	if len(s.found) == 0 {
		return nil, nil
	}
	// A number that is added, as an epsilon is, and is left out is 0: one of the values that it may have.
	for k, o := range s.found {
		if at, ok := s.addend(o); ok {
			s.found[k].class, s.found[k].rank, s.found[k].at = program.Constant, math.MaxInt, at
		}
	}
	slices.SortStableFunc(s.found, func(a, b survivor) int {
		return cmp.Or(cmp.Compare(a.place(), b.place()), cmp.Compare(a.rank, b.rank))
	})
	best := s.found[0]
	f := &Finding{Name: best.say(s.first), Class: best.class.String(), Entries: len(s.entries), Shown: best.shown, Tried: s.tried, Stopped: s.stopped}
	for _, e := range s.entries {
		f.Elements += e.elements()
	}
	said := []string{f.Text()}
	var less []float64
	for _, o := range s.found[1:] {
		if o.class == program.Constant && best.class == program.Constant && o.at == best.at {
			less = append(less, o.number)
			continue
		}
		if o.class > best.class && (rewords(o.class) || o.class == program.Constant) || o.weak && !best.weak {
			continue
		}
		n := o.say(s.first)
		if text := n.Text(); !slices.Contains(said, text) && len(f.Aliases) < maxAliases {
			said = append(said, text)
			f.Aliases = append(f.Aliases, text)
		}
	}
	f.values(best.number, less)
	return f, nil
}

// place is where a name comes among others: those of its class that are weak come last, and a solved number counts half a class.
func (s survivor) place() int {
	n := 4*int(s.class) + 2*min(s.solved, 1)
	if s.weak {
		n++
	}
	return n
}

// rewords reports whether edits of a class say the same as others in words that nobody would use: a step that reads another value
// is as if those between were left out.
func rewords(c program.Class) bool {
	return c == program.Operand || c == program.Swapped || c == program.Exchanged || c == program.Axis || c == program.Mapped
}

// values says which values a number may have beside the first that was found.
func (f *Finding) values(first float64, others []float64) {
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	others = slices.Compact(others)
	f.Value = nil
	if others[0] == 0 && first > 0 && others[len(others)-1] < first {
		f.What += " or less"
		return
	}
	var words []string
	for _, v := range others[:min(len(others), maxAliases)] {
		words = append(words, short(v))
	}
	f.What += " (or " + strings.Join(words, ", ") + ")"
}

// addend is the place of the number that an edit leaves out of a sum.
func (s *search) addend(o survivor) (at program.Place, ok bool) {
	if o.class != program.LeftOut || o.edit == nil || o.edit.At[0].Arg >= 0 {
		return at, false
	}
	t := s.first.signed(s.m)
	st := &t.Steps[t.Copies(o.edit.At[0])[0]]
	if st.Prim != program.Add || len(st.Args) != 2 {
		return at, false
	}
	for k, a := range st.Args {
		if n := t.Source(a); t.Steps[n].Prim == program.Number && slices.Contains(t.Numbers(), n) && t.Source(st.Args[1-k]) == t.Source(t.At(o.edit.From)) {
			return t.Of(n), true
		}
	}
	return at, false
}

// elements counts those of the entry.
func (e *Entry) elements() int {
	n := 1
	for _, d := range e.Program.Out.Shape() {
		n *= d
	}
	return n
}

// maxAliases is how many names of the same values are said beside the first.
const maxAliases = 3

// String is the finding for a sentence.
func (f *Finding) String() string {
	text := f.Text()
	for k, a := range f.Aliases {
		if k == 0 {
			text += " (the same here: " + a
		} else {
			text += "; " + a
		}
	}
	if len(f.Aliases) > 0 {
		text += ")"
	}
	return fmt.Sprintf("%s; it gives all %d elements of %d entries, %d of which the right operation does not give", text, f.Elements, f.Entries, f.Shown)
}
