package weights

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
)

// pair is a tensor that is not the original's, whose mistake has no name yet.
type pair struct {
	sides    // where each element is meant to be
	c        *comparison
	original *Tensor
	row      *Row
	q        rule   // by which most of a sample is right
	t        *tally // by that rule; nil where it is not known

	sample []block // of the port, with the original's elements
	spots  []part  // of wrong elements: what explains the tensor explains them

	two  *reader    // for what is held against a block of the first
	far  []float64  // of the original, from elsewhere
	rows *catalogue // of the original's rows; nil until it is needed
	mine []print    // of the port's
}

func newPair(c *comparison, s *sides, q rule, t *tally) *pair {
	return &pair{sides: *s, c: c, original: s.view.t, row: &Row{}, q: q, t: t}
}

// relation is one possible mistake of a converter: its kind, where it may be, and readings of the original that would make the port right.
// A mistake that is no reading of the whole tensor has a search, which names the tensor if it explains every element.
type relation struct {
	kind   Kind             // of all that it finds; "": what it finds has a kind of its own
	where  func(*pair) bool // nil: everywhere
	views  func(context.Context, *pair) iter.Seq2[reading, error]
	search func(context.Context, *pair) (bool, error)
}

// turned is the relation of a tensor whose rows are columns, in the two last axes.
var turned = relation{kind: Transposed, where: turnable, views: transposed}

// relations are tried in this order. The first that explains every element gives the name.
var relations = []relation{
	{kind: CutOff, where: roundedToNearest, search: cutOff},
	{kind: ZeroPoint, where: meansOfRows, search: zeroPoints},
	{kind: Folded, where: unfolded, views: byRule(rule{scale: 1, add: 1}, "1+w, where the original has w and no line of a map says folded")},
	{kind: Unfolded, where: folded, views: byRule(rule{scale: 1}, "w, where 1+w is meant")},
	{kind: FoldedTwice, where: (*pair).float, views: foldedTwice},
	{kind: Unfolded, where: (*pair).float, views: byRule(rule{scale: 1, add: -1}, "w%+d, where the original has w: 1 was subtracted", -1)},
	{kind: Negated, where: (*pair).float, views: byRule(rule{scale: -1}, "-w: every sign is flipped")},
	{kind: Misread, where: plain, views: misread},
	{kind: Rounded, where: plain, views: roundedTwice},
	{kind: Scaled, where: floating, views: scaled},
	{kind: Zero, where: zero, views: byRule(rule{}, "every element is zero")},
	{kind: Constant, where: loaded, views: constant},
	turned,
	{views: others},                   // OtherTensor, OtherLayer, Tied
	{where: countable, views: orders}, // these three: RowOrder, ColumnOrder, and the orders that have a name
	{where: (*pair).coded, views: ordersOfCodes},
	{where: printed, views: ordersByPrints},
	{kind: ColumnOrder, where: (*pair).moves, search: otherColumns},
	{kind: Shifted, where: long, search: shifted},
	{search: inParts}, // of each wrong row
	{kind: ScaledColumn, where: tall, search: byColumn},
}

// Where relations apply.
func (a *pair) coded() bool         { return a.local.Coding != nil }
func (a *pair) moves() bool         { return a.coded() && a.local.Coding.Moves() }
func (a *pair) float() bool         { return a.local.DType.Float() }
func roundedToNearest(a *pair) bool { return a.coded() && !a.moves() }
func floating(a *pair) bool         { return a.float() && a.original.DType.Float() }
func plain(a *pair) bool            { return !a.coded() && floating(a) }
func folded(a *pair) bool           { return a.float() && a.local.Add == 1 }
func unfolded(a *pair) bool         { return a.float() && a.local.Add != 1 }
func zero(a *pair) bool             { return a.t.elements >= 2 && a.t.first.local == 0 }
func loaded(a *pair) bool           { return a.t.elements >= 2 && math.Abs(a.t.first.local) > 0 }
func countable(a *pair) bool {
	return !a.coded() && (a.float() || a.local.DType == a.original.DType) && !a.single()
}

func meansOfRows(a *pair) bool {
	rows, columns := a.local.flat()
	return a.moves() && rows >= minRows && columns >= quant.MinMean
}

func printed(a *pair) bool {
	rows, columns := a.local.flat()
	return a.coded() && min(rows, columns) >= minPrint
}

func tall(a *pair) bool {
	rows, _ := a.local.flat()
	return !a.coded() && a.float() && rows >= 4 && a.q.add == 0
}

func long(a *pair) bool {
	n, group := a.t.elements, groupOf(a.local.Coding)
	_, columns := a.local.flat()
	return n >= 4*max(maxMove, group) && a.local.Add == 0 && columns%group == 0
}

// turnable reports shapes that are each other's, transposed. A shape that is the original's does not tell.
func turnable(a *pair) bool {
	mine, theirs := matrices(a.local), matrices(a.original)
	if len(mine) == 0 || len(mine) != len(theirs) {
		return false
	}
	l, o := mine[0].Shape, theirs[0].Shape
	return l[0] == o[1] && l[1] == o[0] && min(l[0], l[1]) >= 2
}

// single reports that every wrong element is in one row, and in one column: an order moves two of either.
func (a *pair) single() bool {
	rows := a.t.badRows()
	return len(rows) == 1 && a.t.left[rows[0]] == a.t.right[rows[0]]
}

// reading is a way to read the original: a view, and a rule with any of the roundings that can lie between both.
type reading struct {
	view view
	rule rule
	near float64           // so many steps of the port's numbers are allowed; 0: none is
	said func(rule) phrase // of the rule with its rounding
	of   *pair             // the tensor in another layout; nil: as it is
}

// always says the same of every rule.
func (p phrase) always(rule) phrase { return p }

// name finds what explains every element.
func (a *pair) name(ctx context.Context, row Row) (Row, error) {
	a.row = &row
	row.at(a.t, a.local, a.original)
	if err := a.sampled(ctx); err != nil {
		return row, err
	}
	for _, x := range relations {
		if named, err := a.may(ctx, x); named || err != nil {
			return row, err
		}
	}
	a.unexplained()
	return row, nil
}

// may names the tensor by a relation that explains it.
func (a *pair) may(ctx context.Context, x relation) (bool, error) {
	if x.where != nil && !x.where(a) {
		return false, nil
	}
	if x.search != nil {
		return x.search(ctx, a)
	}
	for r, err := range x.views(ctx, a) {
		if err != nil {
			return false, err
		}
		if is, q, err := cmp.Or(r.of, a).is(ctx, r); err != nil {
			return false, err
		} else if is {
			what := r.said(q)
			what.kind = cmp.Or(what.kind, x.kind)
			a.row.is(Mistake, what)
			return true, nil
		}
	}
	return false, nil
}

// is reports whether a reading explains the tensor, and with which rounding. Of a stack of matrices each is transposed.
func (a *pair) is(ctx context.Context, x reading) (ok bool, q rule, err error) {
	if !x.view.transposed {
		return a.isOf(ctx, a.local, x)
	}
	theirs := matrices(a.original)
	for i, part := range matrices(a.local) {
		x.view.t = theirs[i]
		if ok, q, err = a.isOf(ctx, part, x); !ok || err != nil {
			break
		}
	}
	return ok, q, err
}

// isOf is is of a part of the tensor.
func (a *pair) isOf(ctx context.Context, part *Tensor, x reading) (bool, rule, error) {
	list := roundingsOf(a.local, x.view.t)
	if x.rule.add != 0 && !a.coded() {
		list = roundings(hooks.F64, a.local.DType) // a sum is a number of no narrower format
	}
	for _, by := range list {
		q := x.rule
		q.round = by
		if x.near > 0 {
			q = q.nearly(a.local, x.near)
		}
		if ok, err := a.explainedBy(ctx, &sides{a.r, part, x.view}, q); ok || err != nil {
			return ok, q, err
		}
	}
	return false, rule{}, nil
}

// explainedBy reports whether a rule gives every element of a view: those that are known to be wrong first, which most do not give.
func (a *pair) explainedBy(ctx context.Context, s *sides, q rule) (bool, error) {
	if !slices.Equal(s.local.Shape, a.local.Shape) || s.local.Coding != a.local.Coding {
		return s.explains(ctx, q)
	}
	if a.moves() && a.t != nil {
		return a.fits(ctx, s, q)
	}
	if !s.fit() {
		return false, nil
	}
	if ok, err := s.every(ctx, q, slices.Values(a.spots)); !ok {
		return false, err
	}
	if ok, err := s.explains(ctx, q); !ok || err != nil || !a.coded() || a.t == nil || !s.view.moves(a.original) { // a different shape is enough
		return ok, err
	}
	return a.needed(ctx, s.view, q)
}

// sampled reads the sample, and takes the first wrong elements of the first and of the last wrong row, with those that share their steps.
func (a *pair) sampled(ctx context.Context) error {
	err := a.some(ctx, slices.Values(samplesOf(a.local)), func(b *block) bool {
		a.sample = append(a.sample, b.clone())
		return true
	})
	if err != nil {
		return err
	}
	_, columns := a.local.flat()
	wide := groupOf(a.local.Coding)
	rows := a.t.badRows()
	for _, r := range []int{rows[0], rows[len(rows)-1]} {
		c := int(a.t.left[r]) / wide * wide
		a.spots = append(a.spots, part{r, r + 1, c, min(c+wide, columns)})
	}
	return nil
}

// second is a reader for what is held against a block of the first.
func (a *pair) second() *reader {
	if a.two == nil {
		a.two = &reader{}
	}
	return a.two
}

// says returns a reading of the original in its own place, by a rule with a fixed name.
func (a *pair) says(q rule, near float64, words string, args ...any) reading {
	return reading{view: a.view, rule: q, near: near, said: say("", words, args...).always}
}

// readingsOf yields readings that need no search.
func readingsOf(list ...reading) iter.Seq2[reading, error] {
	return func(yield func(reading, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// byRule is a reading in its own place by a fixed rule.
func byRule(q rule, words string, args ...any) func(context.Context, *pair) iter.Seq2[reading, error] {
	return func(_ context.Context, a *pair) iter.Seq2[reading, error] {
		return readingsOf(a.says(q, 0, words, args...))
	}
}

// transposed reads each matrix of the original by its columns.
func transposed(_ context.Context, a *pair) iter.Seq2[reading, error] {
	what := say("", "transposed: element [i, j] is the original's [j, i]")
	return readingsOf(reading{view: view{t: a.original, transposed: true}, rule: plainRule(a.local.Add, rounding{}), said: what.always})
}

// foldedTwice is the 1 of the weights of norms, added twice.
func foldedTwice(_ context.Context, a *pair) iter.Seq2[reading, error] {
	return readingsOf(a.says(rule{scale: 1, add: 2}, 0, "2+w, where %s: 1 was added twice", either(a.local.Add == 1, "1+w is meant", "the original has w")))
}

// misread are bits of another format.
func misread(_ context.Context, a *pair) iter.Seq2[reading, error] {
	var list []reading
	for _, m := range misreadings {
		if a.original.DType == m.written {
			list = append(list, a.says(rule{scale: 1, misread: m}, 0, "%s", m.said()))
		}
	}
	return readingsOf(list...)
}

// roundedTwice explains numbers next to the nearest ones.
func roundedTwice(_ context.Context, a *pair) iter.Seq2[reading, error] {
	return readingsOf(reading{view: a.view, rule: plainRule(a.local.Add, rounding{}), near: 1, said: func(q rule) phrase {
		return say(Rounded, "every number is at most one step of %s from the nearest to the original's, and %s not the nearest: %s",
			q.near, count(a.t.bad, "is", "are"), either(a.t.bad*100 < a.t.elements, "a bit was changed, or these were rounded in another way", "it was rounded more than once, or not to nearest even"))
	}})
}

// constant is a tensor that is one number.
func constant(_ context.Context, a *pair) iter.Seq2[reading, error] {
	value := a.t.first.local
	return readingsOf(a.says(rule{add: value}, 0, "every element is %s, as in a tensor that was not loaded", number(value)))
}

// scaled is one factor, as the sample has it.
func scaled(_ context.Context, a *pair) iter.Seq2[reading, error] {
	var both, whole float64
	n, first, varied := 0, 0.0, false
	for _, b := range a.sample {
		for i, x := range b.original {
			if p := x * b.local[i]; x == 0 || p-p != 0 {
				continue
			}
			if n++; n == 1 {
				first = x
			}
			varied = varied || x != first
			both += x * b.local[i]
			whole += x * x
		}
	}
	if n < minScaled || !varied || whole == 0 || both == 0 || a.local.Add != 0 {
		return readingsOf()
	}
	factors := a.factors()
	factor := factors.near(both / whole)
	if math.Abs(factor-1) <= factors.unit { // codes hide it: what differs is something else
		return readingsOf()
	}
	return readingsOf(a.says(rule{scale: factor}, 1, "%s times the original, in every element", factors.called(factor)))
}

// unexplained says how far apart the two are.
func (a *pair) unexplained() {
	cosine := a.t.cosine()
	if a.moves() && cosine >= unlike {
		a.unidentified()
		return
	}
	const minElements, far = 64, 0.1
	if a.t.elements >= minElements && math.Abs(cosine) < far && a.t.bad*10 >= a.t.elements*9 {
		a.row.wrong(Different, Unrelated, "the values have nothing to do with the original's: cosine %s. Was the tensor loaded at all?", digits(cosine, 'f', 2))
		return
	}
	a.row.wrong(Different, Values, "%s of %d differ, relative L2 distance %s; no known relation explains all of them", count(a.t.bad, "element", "elements"), a.t.elements, digits(a.t.relative(), 'g', 2))
}
