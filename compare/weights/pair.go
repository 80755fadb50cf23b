package weights

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/hooks"
)

// comparison is one run over two checkpoints.
type comparison struct {
	o         *Options
	originals []*Tensor
	byName    map[string]*Tensor
	samples   sync.Map // of originals, by tensor
	fused     []fused
	ownHead   string // of the port, where the original has one tensor for the head and the embedding
}

// pair compares a tensor of the port with the one of the original that it is called like.
func (c *comparison) pair(ctx context.Context, r *reader, local, original *Tensor) (Row, error) {
	row := newRow(local, original)
	for _, side := range []*Tensor{original, local} {
		if err := side.check(); err != nil {
			row.Class, row.Kind, row.What = Different, Unread, fmt.Sprintf("%s cannot be read: %v", side.key(), err)
			return row, nil
		}
	}
	if !slices.Equal(local.Shape, original.Shape) {
		if !slices.Equal(squeezed(local.Shape), squeezed(original.Shape)) {
			return c.misshapen(ctx, r, row, local, original)
		}
		turned := *local
		turned.Shape = original.Shape
		local = &turned
		row.note("shape %v, of the original %v", row.Local.Shape, original.Shape)
	}
	if local.elements() == 0 {
		row.Class = Equal
		return row, nil
	}
	if is, err := c.identical(ctx, r, local, original); err != nil || is {
		row.Class = Equal
		return row, err
	}
	if t, right, err := c.quickCodes(ctx, r, local, view{t: original}); err != nil {
		return row, err
	} else if right {
		if row := c.right(row, local, plainRule(0, rounding{}), t); row.Class.Right() {
			if t.doubts.any() {
				err = c.cost(ctx, r, &row, local, view{t: original})
			}
			return row, err
		}
	}
	found, q, err := c.agrees(ctx, r, local, view{t: original})
	if err != nil {
		return row, err
	}
	if g := local.Coding; g != nil && g.Mixed && !g.Moves && (found.bad > 0 || found.codes.beside*worstBeside > found.codes.n) && found.spreads() {
		local = moving(local)
		row.note("the codes are not the nearest to the numbers in nearly every row: the writer moved errors between them, as GPTQ and AWQ do")
		if found, q, err = c.agrees(ctx, r, local, view{t: original}); err != nil {
			return row, err
		}
	}
	if found.bad == 0 {
		row = c.right(row, local, q, found)
		switch {
		case row.Class != Quantised:
		case local.Coding.Moves:
			err = c.columns(ctx, r, &row, local, original)
		case newCoder(r, local, view{t: original}) != nil:
			err = c.cost(ctx, r, &row, local, view{t: original})
		}
		return row, err
	}
	given := row
	a := &attempt{comparison: c, r: r, local: local, original: original, q: q, t: found}
	row, err = a.name(ctx, row)
	if g := local.Coding; err != nil || g == nil || !g.Mixed || g.Moves || row.Class != Different {
		return row, err
	}
	moved := moving(local) // by the rules of the nearest codes no relation gives every code of a writer that moves errors
	if found, q, err = c.agrees(ctx, r, moved, view{t: original}); err != nil || found.bad == 0 {
		return row, err
	}
	a = &attempt{comparison: c, r: r, local: moved, original: original, q: q, t: found}
	if named, err := a.name(ctx, given); err != nil || named.Class == Mistake {
		return named, err
	}
	return row, nil
}

// identical reports whether both have the same bytes of the same dtype.
func (c *comparison) identical(ctx context.Context, r *reader, local, original *Tensor) (bool, error) {
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
		r.done.Add(2 * n)
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// agrees goes over the whole tensor with each rounding that all elements of a sample allow, until one leaves no element. Where none
// does, it counts by that one of those which most of the sample allows that leaves the fewest: float16 has most numbers of a bfloat16
// tensor as they are, so that a sample of them may not tell it from no rounding.
func (c *comparison) agrees(ctx context.Context, r *reader, local *Tensor, v view) (*tally, rule, error) {
	list, err := c.voted(ctx, r, local, v)
	if err != nil {
		return nil, rule{}, err
	}
	var wrong []part // an element that each of those that were tried does not give
	for _, x := range list {
		if !x.all || local.Coding != nil || local.Add != 0 {
			break
		}
		q := plainRule(local.Add, x.round)
		if ok, err := c.every(ctx, r, local, v, q, slices.Values(wrong)); err != nil {
			return nil, q, err
		} else if !ok {
			continue
		}
		t, bad, err := c.quick(ctx, r, local, v, x.round)
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
		q := plainRule(local.Add, x.round)
		t, err := c.pass(ctx, r, local, v, q)
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

// voted sorts the roundings by a sample: those that give most of it first.
func (c *comparison) voted(ctx context.Context, r *reader, local *Tensor, v view) ([]vote, error) {
	list := roundingsOf(local, v.t)
	votes := make([]vote, len(list))
	for i := range list {
		votes[i] = vote{round: list[i], all: true}
	}
	for _, p := range samplesOf(local) {
		b, err := r.read(ctx, local, v, p)
		if err != nil {
			return nil, err
		}
		bad := make([]bool, p.size())
		for i := range votes {
			q := plainRule(local.Add, votes[i].round)
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

// pass goes over the whole tensor.
func (c *comparison) pass(ctx context.Context, r *reader, local *Tensor, v view, q rule) (*tally, error) {
	t := newTally(local.flat())
	var bad []bool
	for p := range v.parts {
		b, err := r.read(ctx, local, v, p)
		if err != nil {
			return nil, err
		}
		if cap(bad) < p.size() {
			bad = make([]bool, p.size())
		}
		q.judge(&b, bad[:p.size()])
		t.add(&b, &q, bad)
	}
	return t, nil
}

// explains reports whether a relation gives every element, after a look at a sample.
func (c *comparison) explains(ctx context.Context, r *reader, local *Tensor, v view, q rule) (bool, error) {
	rows, columns := v.size()
	if lr, lc := local.flat(); lr != rows || lc != columns {
		return false, nil
	}
	if ok, err := c.every(ctx, r, local, v, q, slices.Values(samplesOf(local))); !ok {
		return false, err
	}
	return c.every(ctx, r, local, v, q, v.parts)
}

// every reports whether a rule gives every element of some rectangles.
func (c *comparison) every(ctx context.Context, r *reader, local *Tensor, v view, q rule, parts func(func(part) bool)) (bool, error) {
	var bad []bool
	for p := range parts {
		b, err := r.read(ctx, local, v, p)
		if err != nil {
			return false, err
		}
		if cap(bad) < p.size() {
			bad = make([]bool, p.size())
		}
		q.judge(&b, bad[:p.size()])
		if slices.Contains(bad[:p.size()], true) {
			return false, nil
		}
	}
	return true, nil
}

// sampleParts is how many rectangles a sample has, at most.
const sampleParts = 24

// samplesOf are rectangles of a tensor, spread over it: the same for all tensors of a shape. Those of codes are whole groups.
func samplesOf(t *Tensor) []part {
	rows, columns := t.flat()
	wide := 16
	if t.Coding != nil {
		wide = max(wide, t.Coding.Group)
	}
	wide = min(wide, columns)
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

// right is the row of a tensor of which no element is wrong.
func (c *comparison) right(row Row, local *Tensor, q rule, t *tally) Row {
	row.Relative = finite(t.relative())
	if local.Add != 0 {
		row.note("the file has %s+w", number(local.Add))
	}
	switch {
	case local.Coding != nil:
		row.coded(local.Coding, local.Format, t)
		if slope := t.both / t.whole; row.Class.Right() && t.both != 0 && t.elements >= minSlope && math.Abs(slope-1) > slopeNote+3*t.relative()/math.Sqrt(float64(t.elements)) {
			row.note("its numbers are %s times the original's on average: its scales are not the best", number(slope))
		}
		return row
	case q.round.dtype == 0, local.Add != 0 && !q.round.cut && q.round.dtype == local.DType && local.DType == hooks.F32:
		row.Class = Equal
		return row
	case !t.values.varies && t.given.varies && (q.round.dtype != local.DType || t.values.first == 0):
		row.wrong(Mistake, Constant, "every element is %s, and the original's are not: %s leaves no more of them, and so does a tensor that was not loaded", number(t.values.first), q.round.dtype)
		if row.Unequal = t.elements; t.values.first == 0 {
			row.Kind = Zero
		}
		return row
	case t.beyond > 0:
		row.Class, row.Kind, row.Unequal = Mistake, Overflow, t.beyond
		row.What = fmt.Sprintf("%s beyond %s of %s: %s", count(t.beyond, "element lies", "elements lie"), number(largestOf(q.round)), q.round.dtype, "they are no longer the original's")
		return row
	case q.round.via != 0:
		row.wrong(Mistake, Rounded, "rounded to %s first, and then to %s: it has lost the bits that either of them lacks", q.round.via, q.round.dtype)
		row.Rounding, row.Unequal = q.round.String(), t.elements
		return row
	case q.round.cut:
		row.Class, row.Kind, row.Rounding = Mistake, CutOff, q.round.String()
		row.What = fmt.Sprintf("rounded to %s toward zero: the low bits were cut off, where nearest even is meant", q.round.dtype)
		row.Unequal = t.elements
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
