package weights

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// sides is a tensor of the port and a view of an original, with a reader for both.
type sides struct {
	r     *reader
	local *Tensor
	view  view
}

// besides pairs a tensor of the port with the whole of an original.
func besides(r *reader, local, original *Tensor) *sides {
	return &sides{r, local, view{t: original}}
}

// pair compares a tensor of the port with the original of the same name.
func (c *comparison) pair(ctx context.Context, r *reader, local, original *Tensor) (Row, error) {
	row := newRow(local, original)
	for _, side := range []*Tensor{original, local} {
		if err := side.check(); err != nil {
			row.wrong(Different, Unread, "%s cannot be read: %v", side.key(), err)
			return row, nil
		}
	}
	if !slices.Equal(local.Shape, original.Shape) {
		if !slices.Equal(squeezed(local.Shape), squeezed(original.Shape)) {
			return c.misshapen(ctx, r, row, local, original)
		}
		local = shaped(local, original.Shape)
		row.note("shape %v, of the original %v", row.Local.Shape, original.Shape)
	}
	s := besides(r, local, original)
	if right, err := s.quickly(ctx, &row); right || err != nil {
		return row, err
	}
	t, q, err := s.agrees(ctx)
	if err != nil {
		return row, err
	}
	if local.otherwise() && (t.bad > 0 || t.codes.Often()) && t.spreads() {
		s.local = moving(local)
		row.note("the codes are not the nearest to the numbers in nearly every row: the writer moved errors between them, as GPTQ and AWQ do")
		if t, q, err = s.agrees(ctx); err != nil {
			return row, err
		}
	}
	if t.bad == 0 {
		row = right(row, s.local, q, t)
		switch {
		case row.Class != Quantised:
		case s.local.Coding.Moves():
			err = s.columns(ctx, &row)
		case s.coder() != nil:
			err = s.cost(ctx, &row)
		}
		return row, err
	}
	return c.named(ctx, s, row, q, t)
}

// quickly reports whether a tensor is right, by ways that keep no account of what is wrong.
func (s *sides) quickly(ctx context.Context, row *Row) (bool, error) {
	if s.local.elements() == 0 {
		row.Class = Equal
		return true, nil
	}
	if is, err := s.identical(ctx); err != nil || is {
		row.Class = Equal
		return is, err
	}
	t, is, err := s.quickCodes(ctx)
	if err != nil || !is {
		return false, err
	}
	found := right(*row, s.local, plainRule(0, rounding{}), t)
	if !found.Class.Right() {
		return false, nil
	}
	if *row = found; t.doubts.any() {
		err = s.cost(ctx, row)
	}
	return true, err
}

// named looks for the name of what is wrong. Where the nearest codes give none, and some writers of the format move errors, it looks by the rules
// of those: by the others no relation gives every code of theirs.
func (c *comparison) named(ctx context.Context, s *sides, row Row, q rule, t *tally) (Row, error) {
	given := row
	row, err := newPair(c, s, q, t).name(ctx, row)
	if err != nil || !s.local.otherwise() || row.Class != Different {
		return row, err
	}
	moved := *s
	moved.local = moving(s.local)
	if t, q, err = moved.agrees(ctx); err != nil || t.bad == 0 {
		return row, err
	}
	if named, err := newPair(c, &moved, q, t).name(ctx, given); err != nil || named.Class == Mistake {
		return named, err
	}
	return row, nil
}

// identical reports whether both have the same bytes of the same dtype.
func (s *sides) identical(ctx context.Context) (bool, error) {
	local, original := s.local, s.view.t
	if local.DType != original.DType || local.Coding != nil || local.Add != 0 {
		return false, nil
	}
	const most = 1 << 20
	size := int64(local.elements()) * int64(local.DType.Size())
	a, b := make([]byte, min(size, most)), make([]byte, min(size, most))
	for at := int64(0); at < size; at += most {
		n := min(most, size-at)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for _, side := range []struct {
			t    *Tensor
			into []byte
		}{{local, a[:n]}, {original, b[:n]}} {
			if err := fill(side.into, side.t.Data, at); err != nil {
				return false, inTensor(side.t, err)
			}
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// agrees checks the whole tensor with each rounding that a sample allows, until a rounding leaves no wrong element. If every rounding
// leaves wrong elements, agrees counts by the rounding with the fewest wrong elements, among the roundings that most of the sample allows:
// float16 holds most numbers of a bfloat16 tensor exactly, so a sample may not tell float16 from no rounding.
func (s *sides) agrees(ctx context.Context) (*tally, rule, error) {
	list, err := s.voted(ctx)
	if err != nil {
		return nil, rule{}, err
	}
	add := s.local.Add
	var wrong []part // an element that each of those that were tried does not give
	for _, x := range list {
		if !x.all || s.local.Coding != nil || add != 0 {
			break
		}
		q := plainRule(add, x.round)
		if ok, err := s.every(ctx, q, slices.Values(wrong)); err != nil {
			return nil, q, err
		} else if !ok {
			continue
		}
		t, bad, err := s.quick(ctx, x.round)
		if bad == nil || err != nil {
			return t, q, err
		}
		wrong = append(wrong, *bad)
	}
	var first *tally
	var most rule
	for _, x := range list {
		if x.votes < list[0].votes {
			break
		}
		q := plainRule(add, x.round)
		t, err := s.pass(ctx, q)
		if err != nil {
			return nil, q, err
		}
		if first == nil || t.bad < first.bad {
			first, most = t, q
		}
		if t.bad == 0 {
			break
		}
	}
	return first, most, nil
}

// vote is a rounding, and how many elements of a sample it gives.
type vote struct {
	round rounding
	votes int
	all   bool
}

// voted sorts the roundings by how much of a sample each explains, best first.
func (s *sides) voted(ctx context.Context) ([]vote, error) {
	list := roundingsOf(s.local, s.view.t)
	votes := make([]vote, len(list))
	for i := range list {
		votes[i] = vote{round: list[i], all: true}
	}
	for _, p := range samplesOf(s.local) {
		b, err := s.read(ctx, p)
		if err != nil {
			return nil, err
		}
		bad := make([]bool, p.size())
		for i := range votes {
			q := plainRule(s.local.Add, votes[i].round)
			q.judge(&b, bad)
			for _, wrong := range bad {
				if wrong {
					votes[i].all = false
				} else {
					votes[i].votes++
				}
			}
		}
	}
	slices.SortStableFunc(votes, func(a, b vote) int { return b.votes - a.votes })
	return votes, nil
}

// roundingsOf are the roundings that can lie between two tensors. What was added to is a number of no format.
func roundingsOf(local, original *Tensor) []rounding {
	switch {
	case local.Coding != nil:
		return []rounding{{}}
	case local.Add != 0:
		return roundings(hooks.F64, local.DType)
	}
	return roundings(original.DType, local.DType)
}

// blocks visits every rectangle of both sides, as long as visit goes on.
func (s *sides) blocks(ctx context.Context, visit func(b *block) bool) error {
	return s.some(ctx, s.view.parts, visit)
}

// some visits some rectangles.
func (s *sides) some(ctx context.Context, parts iter.Seq[part], visit func(b *block) bool) error {
	for p := range parts {
		b, err := s.read(ctx, p)
		if err != nil {
			return err
		}
		if !visit(&b) {
			return nil
		}
	}
	return nil
}

// read reads a rectangle.
func (s *sides) read(ctx context.Context, p part) (block, error) {
	return s.r.read(ctx, s.local, s.view, p)
}

// pass goes over the whole tensor.
func (s *sides) pass(ctx context.Context, q rule) (*tally, error) {
	rows, _ := s.local.flat()
	t := newTally(rows)
	var bad []bool
	err := s.blocks(ctx, func(b *block) bool {
		bad = room(&bad, b.size())
		q.judge(b, bad)
		t.add(b, &q, bad)
		return true
	})
	return t, err
}

// fit reports whether both sides have as many rows and columns.
func (s *sides) fit() bool {
	rows, columns := s.view.size()
	lr, lc := s.local.flat()
	return lr == rows && lc == columns
}

// explains reports whether a rule gives every element: those of a sample first, which most rules do not give.
func (s *sides) explains(ctx context.Context, q rule) (bool, error) {
	if !s.fit() {
		return false, nil
	}
	if ok, err := s.every(ctx, q, slices.Values(samplesOf(s.local))); !ok {
		return false, err
	}
	return s.every(ctx, q, s.view.parts)
}

// every reports whether a rule gives every element of some rectangles.
func (s *sides) every(ctx context.Context, q rule, parts iter.Seq[part]) (bool, error) {
	var bad []bool
	all := true
	err := s.some(ctx, parts, func(b *block) bool {
		bad = room(&bad, b.size())
		q.judge(b, bad)
		all = !slices.Contains(bad, true)
		return all
	})
	return all && err == nil, err
}

// sampleParts is how many rectangles a sample has, at most.
const sampleParts = 24

// samplesOf are rectangles of a tensor, spread over it: the same for all tensors of a shape. Those of codes are whole groups.
func samplesOf(t *Tensor) []part {
	rows, columns := t.flat()
	wide := min(max(16, groupOf(t.Coding)), columns)
	n := sampleParts
	if rows*columns <= n*wide {
		return slices.Collect(view{t: t}.parts)
	}
	slots := (columns + wide - 1) / wide
	var list []part
	state := uint64(1)
	for i := range n {
		state = state*6364136223846793005 + 1442695040888963407
		r := i * (rows - 1) / (n - 1)
		s := int(state>>33) % slots
		list = append(list, part{r, r + 1, s * wide, min((s+1)*wide, columns)})
	}
	return list
}

// A tensor of so many codes whose numbers are another multiple of the original's, by so much and three standard errors, has scales that are
// not the best. ggml's own are up to 0.0033 off, in Q4_0.
const (
	minSlope  = 1024
	slopeNote = 0.005
)

// right returns the row of a tensor without wrong elements.
func right(row Row, local *Tensor, q rule, t *tally) Row {
	row.Relative = finite(t.relative())
	if local.Add != 0 {
		row.note("the file has %s+w", number(local.Add))
	}
	switch {
	case local.Coding != nil:
		row.coded(local.Coding, t)
		if slope := t.both / t.whole; row.Class.Right() && t.both != 0 && t.elements >= minSlope && math.Abs(slope-1) > slopeNote+3*t.relative()/math.Sqrt(float64(t.elements)) {
			row.note("its numbers are %s times the original's on average: its scales are not the best", number(slope))
		}
		return row
	case q.round.dtype == 0, local.Add != 0 && !q.round.cut && q.round.dtype == local.DType && local.DType == hooks.F32:
		row.Class = Equal
		return row
	case !t.values.varies && t.given.varies && (q.round.dtype != local.DType || t.values.first == 0):
		kind := Constant
		if row.Unequal = t.elements; t.values.first == 0 {
			kind = Zero
		}
		row.wrong(Mistake, kind, "every element is %s, but not in the original: rounding to %s can do this, and so can a tensor that was not loaded", number(t.values.first), q.round.dtype)
		return row
	case t.beyond > 0:
		row.wrong(Mistake, Overflow, "%s beyond %s of %s: they are no longer the original's", count(t.beyond, "element lies", "elements lie"), number(largestOf(q.round)), q.round.dtype)
		row.Unequal = t.beyond
		return row
	case q.round.via != 0:
		row.wrong(Mistake, Rounded, "rounded to %s first, and then to %s: it has lost the bits that either dtype lacks", q.round.via, q.round.dtype)
		row.Rounding, row.Unequal = q.round.String(), t.elements
		return row
	case q.round.cut:
		row.wrong(Mistake, CutOff, "rounded to %s toward zero: the low bits were cut off, where nearest even is meant", q.round.dtype)
		row.Rounding, row.Unequal = q.round.String(), t.elements
		return row
	}
	row.Class, row.Rounding = Cast, q.round.String()
	if t.vanished > 0 {
		row.note("%s too small for %s and became zero", count(t.vanished, "number is", "numbers are"), q.round.dtype)
	}
	return row
}

// finite is x, or the largest number: JSON has no infinity.
func finite(x float64) float64 {
	if math.IsInf(x, 0) || x != x {
		return math.MaxFloat64
	}
	return x
}

func inTensor(t *Tensor, err error) error { return fmt.Errorf("reading %s: %w", t.key(), err) }
