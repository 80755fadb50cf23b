package weights

import (
	"context"
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
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

// relation is one possible mistake of a converter. It has readings of the original that would make the port right, or a search for a
// mistake beyond readings of whole tensors. A search names the tensor if it explains every element.
type relation struct {
	applies  func(*pair) bool // nil: always
	readings func(context.Context, *pair) iter.Seq2[reading, error]
	search   func(context.Context, *pair) (bool, error)
}

// relations are tried in this order. The first that explains every element gives the name.
var relations = []relation{
	{applies: roundedToNearest, search: cutOff},
	{applies: (*pair).moves, search: zeroPoints},
	{applies: (*pair).float, readings: added},
	{applies: plain, readings: misread},
	{applies: plain, readings: roundedTwice},
	{applies: floating, readings: scaled},
	{readings: constant},
	{search: transposed},
	{search: others},
	{applies: countable, readings: orders},
	{applies: (*pair).coded, readings: ordersOfCodes},
	{applies: (*pair).coded, readings: ordersByPrints},
	{applies: (*pair).moves, search: otherColumns},
	{search: shifted},
	{search: inParts},
	{search: byColumn},
}

// What relations apply to.
func (a *pair) coded() bool         { return a.local.Coding != nil }
func (a *pair) moves() bool         { return a.coded() && a.local.Coding.Moves() }
func (a *pair) float() bool         { return a.local.DType.Float() }
func roundedToNearest(a *pair) bool { return a.coded() && !a.moves() }
func floating(a *pair) bool         { return a.float() && a.original.DType.Float() }
func plain(a *pair) bool            { return !a.coded() && floating(a) }
func countable(a *pair) bool {
	return !a.coded() && (a.float() || a.local.DType == a.original.DType) && !a.single()
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
	near float64 // so many steps of the port's numbers are allowed; 0: none is
	say  func(row *Row, q rule)
}

// name finds what explains every element.
func (a *pair) name(ctx context.Context, row Row) (Row, error) {
	a.row = &row
	row.at(a.t, a.local, a.original)
	if err := a.sampled(ctx); err != nil {
		return row, err
	}
	for _, x := range relations {
		if x.applies != nil && !x.applies(a) {
			continue
		}
		search := x.search
		if search == nil {
			search = func(ctx context.Context, a *pair) (bool, error) { return a.any(ctx, x.readings(ctx, a)) }
		}
		if named, err := search(ctx, a); named || err != nil {
			return row, err
		}
	}
	a.unexplained()
	return row, nil
}

// any names the tensor by the first reading that explains it.
func (a *pair) any(ctx context.Context, readings iter.Seq2[reading, error]) (bool, error) {
	for x, err := range readings {
		if err != nil {
			return false, err
		}
		if is, q, err := a.is(ctx, x); err != nil {
			return false, err
		} else if is {
			x.say(a.row, q)
			return true, nil
		}
	}
	return false, nil
}

// is reports whether a reading explains the tensor, and with which rounding.
func (a *pair) is(ctx context.Context, x reading) (bool, rule, error) { return a.isOf(ctx, a.local, x) }

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
func (a *pair) says(q rule, near float64, kind Kind, format string, args ...any) reading {
	return reading{a.view, q, near, func(row *Row, _ rule) { row.wrong(Mistake, kind, format, args...) }}
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

// added is the 1 of the weights of norms, and other signs.
func added(_ context.Context, a *pair) iter.Seq2[reading, error] {
	one := a.says(rule{scale: 1, add: 1}, 0, Folded, "1+w, where the original has w and no line of a map says folded")
	two := "2+w, where the original has w: 1 was added twice"
	if a.local.Add == 1 {
		one = a.says(rule{scale: 1}, 0, Unfolded, "w, where 1+w is meant")
		two = "2+w, where 1+w is meant: 1 was added twice"
	}
	return readingsOf(one, a.says(rule{scale: 1, add: 2}, 0, FoldedTwice, "%s", two),
		a.says(rule{scale: 1, add: -1}, 0, Unfolded, "w-1, where the original has w: 1 was subtracted"),
		a.says(rule{scale: -1}, 0, Negated, "-w: every sign is flipped"))
}

// misread are bits of another format.
func misread(_ context.Context, a *pair) iter.Seq2[reading, error] {
	var list []reading
	for _, m := range misreadings {
		if a.original.DType == m.written {
			list = append(list, a.says(rule{scale: 1, misread: m}, 0, Misread, "%s", m.String()))
		}
	}
	return readingsOf(list...)
}

// roundedTwice explains numbers next to the nearest ones.
func roundedTwice(_ context.Context, a *pair) iter.Seq2[reading, error] {
	return readingsOf(reading{a.view, plainRule(a.local.Add, rounding{}), 1, func(row *Row, q rule) {
		row.wrong(Mistake, Rounded, "every number is at most one step of %s from the nearest to the original's, and %s not the nearest: %s",
			q.near, count(a.t.bad, "is", "are"), either(a.t.bad*100 < a.t.elements, "a bit was changed, or these were rounded in another way", "it was rounded more than once, or not to nearest even"))
	}})
}

// constant is a tensor that is one number.
func constant(_ context.Context, a *pair) iter.Seq2[reading, error] {
	value := a.t.first.local
	switch q := (rule{add: value}); {
	case value != value || a.t.elements < 2:
		return readingsOf()
	case value == 0:
		return readingsOf(a.says(q, 0, Zero, "every element is zero"))
	default:
		return readingsOf(a.says(q, 0, Constant, "every element is %s, as in a tensor that was not loaded", number(value)))
	}
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
	return readingsOf(a.says(rule{scale: factor}, 1, Scaled, "%s times the original, in every element", factors.called(factor)))
}

// transposed looks for rows that are columns, in the two last axes. A shape that is the original's does not tell.
func transposed(ctx context.Context, a *pair) (bool, error) {
	mine, theirs := matrices(a.local), matrices(a.original)
	if len(mine) == 0 || len(mine) != len(theirs) {
		return false, nil
	}
	for i := range mine {
		if !slices.Equal(mine[i].Shape, []int{theirs[i].Shape[1], theirs[i].Shape[0]}) || min(mine[i].Shape[0], mine[i].Shape[1]) < 2 {
			return false, nil
		}
		x := reading{view: view{t: theirs[i], transposed: true}, rule: plainRule(a.local.Add, rounding{})}
		if ok, _, err := a.isOf(ctx, mine[i], x); !ok || err != nil {
			return false, err
		}
	}
	a.row.wrong(Mistake, Transposed, "transposed: element [i, j] is the original's [j, i]")
	return true, nil
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
		a.row.wrong(Different, Unrelated, "the values have nothing to do with the original's: cosine %.2f. Was the tensor loaded at all?", cosine)
		return
	}
	a.row.wrong(Different, Values, "%s of %d differ, relative L2 distance %.2g; no known relation explains all of them", count(a.t.bad, "element", "elements"), a.t.elements, a.t.relative())
}
