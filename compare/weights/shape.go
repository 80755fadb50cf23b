package weights

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/spelling"
)

// misshapen says what a tensor of another shape is.
func (c *comparison) misshapen(ctx context.Context, r *reader, row Row, local, original *Tensor) (Row, error) {
	a := newPair(c, besides(r, local, original), plainRule(local.Add, rounding{}), nil)
	a.row = &row
	if is, err := transposed(ctx, a); is || err != nil {
		row.Unequal = row.Elements
		return row, err
	}
	if local.elements() == original.elements() && local.elements() > 0 {
		turned := shaped(local, original.Shape)
		t, q, err := besides(r, turned, original).agrees(ctx)
		if err != nil {
			return row, err
		}
		if t.bad == 0 && right(row, turned, q, t).Class.Right() {
			row.wrong(Mistake, Shape, "shape %v, and the original's is %v; the elements are the same, row by row", local.Shape, original.Shape)
			return row, nil
		}
	}
	if err := a.longer(ctx); err != nil || row.Class != "" {
		return row, err
	}
	row.wrong(Different, Shape, "shape %v, and the original's is %v", local.Shape, original.Shape)
	row.Relative = finite(1)
	return row, nil
}

// vocabulary are the tensors that have a row for each token, and may have more.
var vocabulary = regexp.MustCompile(`(?:^|\.)(?:` + strings.Join(spelling.Endings(spelling.Weight, spelling.Words, "embed_tokens", "embed_tokens_per_layer", "lm_head"), "|") + `)\.weight$`)

// padded marks an embedding and a head that have as many rows in the original, and not in the port.
func (c *comparison) padded(rows []Row) {
	embedding, head := c.byName[embeddingName], c.byName[headName]
	if embedding == nil || head == nil || len(embedding.Shape) == 0 || len(head.Shape) == 0 || embedding.Shape[0] != head.Shape[0] {
		return
	}
	var both []*Row
	for i := range rows {
		r := &rows[i]
		if r.Class.Right() && r.Local != nil && r.Original != nil && len(r.Local.Shape) > 0 && (r.Original.Key == embedding.key() || r.Original.Key == head.key()) {
			both = append(both, r)
		}
	}
	for _, r := range both {
		for _, o := range both {
			if n, m := r.Local.Shape[0], o.Local.Shape[0]; n > m && n > embedding.Shape[0] {
				r.wrong(Mistake, Padded, "%s behind the original's %d, and %s has %d rows: embedding and head have as many", count(n-embedding.Shape[0], "row", "rows"), embedding.Shape[0], o.Name, m)
				break
			}
		}
	}
}

// longer looks for rows that are missing at the end, or that were added: padding of a vocabulary is right where it is zero.
func (a *pair) longer(ctx context.Context) error {
	l, o := a.local, a.original
	if len(l.Shape) < 2 || len(l.Shape) != len(o.Shape) || !slices.Equal(l.Shape[1:], o.Shape[1:]) || l.elements() == 0 || o.elements() == 0 {
		return nil
	}
	n := min(l.Shape[0], o.Shape[0])
	mine, theirs := rowsOf(l, l.Name, 0, n), rowsOf(o, o.Name, 0, n)
	t, q, err := besides(a.r, mine, theirs).agrees(ctx)
	if err != nil || t.bad > 0 {
		return err
	}
	whole := right(*a.row, mine, q, t)
	if !whole.Class.Right() {
		return nil
	}
	if n == l.Shape[0] {
		a.row.wrong(Mistake, Truncated, "it has the first %d of the original's %d rows, which are right; the others are missing", n, o.Shape[0])
		return nil
	}
	rest := rowsOf(l, l.Name, n, l.Shape[0]-n)
	zero, err := besides(a.r, rest, rest).explains(ctx, rule{})
	if err != nil {
		return err
	}
	if zero && vocabulary.MatchString(o.key()) {
		*a.row = whole
		a.row.note("%s of zeros behind the original's %d", count(l.Shape[0]-n, "row", "rows"), n)
		return nil
	}
	if zero {
		a.row.wrong(Mistake, Padded, "the original's %d rows, which are right, and %s of zeros behind them, which are right in an embedding and a head alone", n, count(l.Shape[0]-n, "row", "rows"))
		return nil
	}
	a.row.wrong(Mistake, Padded, "the original's %d rows, which are right, and %s behind them that %s not zero", n, count(l.Shape[0]-n, "row", "rows"), either(l.Shape[0]-n == 1, "is", "are"))
	return nil
}
