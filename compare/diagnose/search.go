package diagnose

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

const (
	// A name has to give shownElements elements in shownRows rows that the operation itself does not give, and one more element for each solved
	// number.
	shownElements = 8
	shownRows     = 2
	// A mask has the same elements in any arithmetic, so a mistake of a mask has to give one such element. A statement lists the wrong elements, and
	// has to give shownOfMask.
	shownOfMask = 4
)

// survivor is a hypothesis that gives every element.
type survivor struct {
	hypothesis
	shown, rows int
}

// search is one call of [Find].
type search struct {
	*subject
	ctx      context.Context // of the call: a generator takes only the search, and the search asks the context at every mistake
	entries  []*Entry        // in the order in which the entries are judged
	first    *Entry          // the first of entries, in its small form: edits are made from it
	cautious bool            // the outcome decides whether something is wrong
	looked   map[edit.Class]bool
	survivors
	progress
	approach
	describing
}

// stage is a step of the search: kinds of mistakes that are looked at together.
type stage struct {
	what  string // the kinds, in words
	reach reach
	look  func(s *search) error
}

// A reach says how far from the formula of an operation a mistake lies: a nearer mistake is the simpler explanation. Within a reach the stages come
// in the order of their cost. A search ends with the first stage that has a match, and does not see a match of a later stage in the same reach.
// TestMistakesOfAllKindsAreFound checks whether another order gives another name, see [Study.Drawn].
type reach int

const (
	inTensor    reach = iota // what the tensor itself shows
	inFormula                // the steps, numbers, masks and positions of the formula
	inReads                  // what the operation reads: weights, inputs, caches, their scale and their order
	besides                  // channels and rows from elsewhere, steps outside the formula, values and formulas of other operations
	inPrecision              // results and inputs in fewer bits
	inParts                  // some channels, rows or inputs; numbers that are solved from the elements; two edits at once
	inNumbers                // what a description of the difference proposes
)

func newSearch(ctx context.Context, m *Model, entries []*Entry) *search {
	s := &search{subject: newSubject(m), ctx: ctx, entries: slices.Clone(entries), progress: progress{tried: m.tried}, looked: map[edit.Class]bool{}}
	// Entries with enough unexplained elements come first, the small before the large: a small entry costs least and refuses most.
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
	return s
}

// find looks at stages until a stage has a match. A search in a drawn order looks at all stages of the reach of the first match.
func (s *search) find(stages []stage) (*Finding, error) {
	m := s.m
	defer s.begun()()
	stages = drawnStages(m, stages)
	for k, stage := range stages {
		if err := cmp.Or(stage.look(s), s.err); err != nil {
			return nil, err
		}
		if s.stopped {
			s.unended = stages[k:]
			break
		}
		if len(s.found) > 0 && (m.Drawn == 0 || k+1 == len(stages) || stages[k+1].reach != stage.reach) {
			break
		}
	}
	if err := askPeers(s); err != nil {
		return nil, err
	}
	m.work, m.tried = s.work(), s.tried
	return s.finding()
}

// try judges a hypothesis.
func (s *search) try(h hypothesis) error {
	if s.stopped || declined(s, h) {
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if s.spent() {
		return nil
	}
	s.tried++
	s.hears(h)
	s.looked[h.class] = true
	may, err := mayGiveAll(s, h)
	if !may || err != nil {
		return err
	}
	given, shown, rows, err := gives(s, h)
	if !given || err != nil {
		return outside(err)
	}
	s.take(h, shown, rows)
	return nil
}

// mayGiveAll reports whether a hypothesis gives a few tokens of all entries, or nearly.
func mayGiveAll(s *search, h hypothesis) (bool, error) {
	for k, e := range s.entries {
		may, err := s.may(h, e.Small())
		if err := cmp.Or(err, s.err); err != nil {
			return false, err
		}
		if k == 0 {
			s.closer.take(h, s.far)
			s.firsts.take(h, s.far)
		}
		if may {
			continue
		}
		if s.nearly(h, k); k == 0 {
			s.close.add(h, s.far)
		}
		return false, nil
	}
	return true, nil
}

// gives reports whether a hypothesis gives every element of all entries, and how many elements in how many rows the right operation does not give.
func gives(s *search, h hypothesis) (all bool, shown, rows int, err error) {
	programs, calls := make([]*program.Program, len(s.entries)), make([]program.Call, len(s.entries))
	for k, e := range s.entries { // few tokens of all entries cost less than all tokens of one
		d := s.edited(h, e)
		if d == nil {
			return false, 0, 0, nil
		}
		programs[k], calls[k] = d.Whole(e.Call)
		if refused, err := e.Refuses(programs[k], calls[k]); err != nil {
			return false, 0, 0, err
		} else if refused {
			s.nearly(h, k)
			return false, 0, 0, nil
		}
	}
	for k, e := range s.entries {
		s.whole(programs[k])
		all, n, r, err := e.Explains(programs[k], calls[k])
		if err != nil {
			return false, 0, 0, err
		}
		if !all {
			s.nearly(h, len(s.entries)-1)
			return false, 0, 0, nil
		}
		shown, rows = shown+n, rows+r
	}
	return true, shown, rows, nil
}

// take takes in a hypothesis that gives every element. The hypothesis is a match if the right operation misses enough elements.
func (s *search) take(h hypothesis, shown, rows int) {
	need := shownElements
	if s.first.exact() {
		if need = 1; h.statement != nil {
			need = shownOfMask
		}
	}
	if h.exact {
		rows = max(rows, min(shown, shownRows))
	}
	o := survivor{h, shown, rows}
	if shown >= need+h.solved && rows >= min(shownRows, need) {
		s.found = append(s.found, o)
		return
	}
	if h.class == edit.Twice {
		s.thin = append(s.thin, o)
	}
	if shown > 0 {
		s.little = append(s.little, o)
	}
}

// outside returns the error of an evaluation. It is nil if an edit takes an index outside of a table: such an edit explains nothing.
func outside(err error) error {
	if errors.Is(err, program.ErrIndex) {
		return nil
	}
	return err
}

// nearly notes a hypothesis that gives the first entries, and does not give the next entry.
func (s *search) nearly(h hypothesis, entries int) {
	if entries > s.nearest.entries {
		s.nearest = near{h, entries}
	}
}

// exact reports whether the entry is a mask. A mask has the same elements in any arithmetic.
func (e *Entry) exact() bool {
	return len(masksOf(e)) > 0 && !slices.ContainsFunc(e.Program.Steps, func(s program.Step) bool { return s.Prim.Computes() || s.Prim == program.Angle })
}

// may reports whether a hypothesis gives at least seven eighths of an entry's unexplained elements; of a few tokens if the entry is large. Orders of
// summation may give the rest.
func (s *search) may(h hypothesis, e *Entry) (bool, error) {
	s.far = math.NaN()
	d := s.edited(h, e)
	if d == nil {
		return false, nil
	}
	k, err := s.m.values(e)
	if err != nil {
		return false, err
	}
	if f := e.Few; f != nil && len(f.Left) > 0 {
		x, err := k.EvalSome(d, &f.Some)
		if err != nil {
			return false, outside(err)
		}
		s.far = f.Far(x)
		most := len(f.Left) / 8
		left, err := f.Leaves(x, most+1)
		return len(left) <= most, err
	}
	x, err := k.Eval(d)
	if err != nil {
		return false, outside(err)
	}
	s.far = e.Far(x)
	most := len(e.Left) / 8
	left, err := e.Leaves(x, most+1)
	return len(left) <= most, err
}

// refused reports whether the few elements of a large entry refuse a hypothesis. The function computes the value of these elements, before all elements are
// computed to make the edit.
func refused(x *subject, e *Entry, of func(*program.Some) (program.Value, error)) bool {
	f := e.Few
	if f == nil || len(f.Left) == 0 || x.measured {
		return false
	}
	v, err := of(&f.Some)
	if err != nil {
		return x.failed(outside(err))
	}
	most := len(f.Left) / 8
	left, err := f.Leaves(v, most+1)
	return x.failed(err) || len(left) > most
}

// steps looks at the steps of the program: what single steps do and read, the numbers, and the known structures that several steps form.
func (s *search) steps() error {
	return cmp.Or(s.from(structure, otherParts, productsLast, again, otherActivations, otherTanhs, otherIDs, heldSlots, windows, softmaxVariants, normVariants, tiledHeads, softmaxParts, sights, maskedScores,
		maskedLate, softmaxesElsewhere, cachedSlots, writtenChannels, grownCaches, meansOfParts, rotary), withSolved(solvedBase, solvedBases)(s), s.from(positions, otherNumbers, unroundedNumbers, literals, functionsOfNumbers))
}

// edits yields edits of steps. An edit gets words when a search finds it.
func edits(lists ...func() []edit.Edit) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, list := range lists {
			for _, d := range list() {
				if !yield(Mistake{Edit: d.Text()}) {
					return
				}
			}
		}
	}
}

// structure yields edits of what steps do and read.
func structure(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	all := t.Edits()
	leftOut := func() []edit.Edit { return wholeFirst(t, all.LeftOut()) }
	return edits(leftOut, all.Exchanged, all.Swapped, all.Twice, all.Wholes, all.Axes, all.Along, all.Wider, all.AllWider, all.Apart, all.Indexes, all.Behind, all.Alone, all.Counts, all.Fewer, all.Turns)
}

// wholeFirst sorts edits that leave something out: first a single step, then the whole operation, then other runs of steps. The first edits say most.
func wholeFirst(t *edit.StepIndex, all []edit.Edit) []edit.Edit {
	out := t.PlaceOf(t.Out.Step)
	place := func(d edit.Edit) int {
		if d.At[0].Arg >= 0 { // a bias
			return 0
		}
		from := t.At(d.From).Step
		switch {
		case len(between(t.Program, from, t.Copies(d.At[0])[0])) < 2:
			return 0
		case d.At[0] == out && t.Steps[from].Prim == program.Input:
			return 1
		}
		return 2
	}
	var places [3][]edit.Edit
	for _, d := range all {
		k := place(d)
		places[k] = append(places[k], d)
	}
	return slices.Concat(places[:]...)
}

// productsLast yields products of the program that the port applies to the result.
func productsLast(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		t := s.first.signed(s.m)
		for _, i := range t.Firsts() {
			st := &t.Steps[i]
			if st.Prim != program.Mul || i == t.Out.Step || len(st.Args) != 2 {
				continue
			}
			for k := range st.Args {
				at := edit.Place{Step: t.PlaceOf(i).Step, Arg: 1 - k}
				if v := t.At(at); t.Steps[v.Step].Prim == program.Number || program.Size(v.Shape) != program.Size(t.Out.Shape) {
					continue
				}
				if !yield(Mistake{Kind: "order.product-last", Place: s.site(s.first, i), Of: s.value(s.first, t.At(at)), Edit: placed(at)}) {
					return
				}
			}
		}
	}
}

// productLast applies a product to the result.
func productLast(s *subject, e *Entry, m Mistake) *program.Edited {
	return edit.ProductLast(e.signed(s.m), s.place(m))
}

// operands yields, for each operand, other values of the program in its place.
func operands(s *search) iter.Seq[Mistake] { return edits(s.first.signed(s.m).Edits().Operands) }

// shiftedSteps yields steps that are applied to another value, earlier or later, and parts that are read in exchanged places.
func shiftedSteps(s *search) iter.Seq[Mistake] {
	t := s.first.signed(s.m)
	all := t.Edits()
	return edits(all.Shifted, all.Crossed)
}

// counts yields sums that are divided by another number of terms.
func counts(s *search) iter.Seq[Mistake] { return edits(s.first.signed(s.m).Edits().Counts) }

// mostBlocks is how many sizes of parts of a row are tried.
const mostBlocks = 6

// orders yields other orders of elements.
func orders(s *search) iter.Seq[Mistake] {
	var blocks []int
	c := s.m.List.Config
	for _, n := range []int{c.HeadDim, c.NumHeads, c.NumKVHeads, c.NumLayers} {
		if n > 1 && !slices.Contains(blocks, n) {
			blocks = append(blocks, n)
		}
	}
	t := s.first.signed(s.m)
	for i := range t.Steps { // sizes in which the program reads rows itself
		for _, v := range t.Steps[i].Args {
			if n := v.Last(); len(v.Shape) > 1 && n > 1 && n < t.Result(v.Step).Last() && len(blocks) < mostBlocks && !slices.Contains(blocks, n) {
				blocks = append(blocks, n)
			}
		}
	}
	all := t.Edits()
	return edits(all.Repeated, all.IndexesOfOne, func() []edit.Edit { return all.Maps(blocks) })
}

// elements is the number of elements of the entry.
func (e *Entry) elements() int { return program.Size(e.Program.Out.Shape) }
