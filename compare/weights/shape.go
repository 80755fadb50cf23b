package weights

import (
	"context"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/permute"
	"github.com/tracediff/tracediff/internal/spelling"
)

// misshapen says what a tensor of another shape is.
func (c *comparison) misshapen(ctx context.Context, r *reader, row Row, local, original *Tensor) (Row, error) {
	a := newPair(c, besides(r, local, original), plainRule(local.Add, rounding{}), nil)
	a.row = &row
	if is, err := a.may(ctx, turned); is || err != nil {
		row.Unequal = row.Elements
		return row, err
	}
	if local.elements() == original.elements() && local.elements() > 0 {
		same := shaped(local, original.Shape)
		t, q, err := besides(r, same, original).agrees(ctx)
		if err != nil {
			return row, err
		}
		if t.bad == 0 && right(row, same, q, t).Class.Right() {
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
	embedding, head := c.byName[spelling.Embedding], c.byName[spelling.Head]
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
				r.wrong(Mistake, Padded, "%s after the original's %d, and %s has %d rows: the embedding and the head need the same number", count(n-embedding.Shape[0], "row", "rows"), embedding.Shape[0], o.Name, m)
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
		a.row.note("%s of zeros after the original's %d", count(l.Shape[0]-n, "row", "rows"), n)
		return nil
	}
	if zero {
		a.row.wrong(Mistake, Padded, "the original's %d rows, which are right, and %s of zeros after them, which are right only in an embedding and a head", n, count(l.Shape[0]-n, "row", "rows"))
		return nil
	}
	a.row.wrong(Mistake, Padded, "the original's %d rows, which are right, and %s after them that %s not zero", n, count(l.Shape[0]-n, "row", "rows"), either(l.Shape[0]-n == 1, "is", "are"))
	return nil
}

// fused is a tensor of the port that the original has as several.
type fused struct {
	whole *Tensor
	parts []*Tensor // the originals, in the order in which their rows are meant
}

// fusedLike returns the originals that a tensor is fused of, by its name; nil if the name is no fusion, or the original lacks one.
func (c *comparison) fusedLike(t *Tensor) []*Tensor {
	for _, name := range candidates(t.Name) {
		var parts []*Tensor
		for _, p := range spelling.FusedParts(name) {
			if o := c.byName[p]; o != nil && o.check() == nil {
				parts = append(parts, o)
			}
		}
		if n := len(parts); n > 0 && n == len(spelling.FusedParts(name)) {
			return parts
		}
	}
	return nil
}

// turned reports whether the fused tensor has the transposed shape of its concatenated parts.
func (f *fused) turned() bool {
	o := joined(f.parts)
	s := f.whole.Shape
	return o != nil && len(s) == 2 && len(o.Shape) == 2 && s[0] == o.Shape[1] && s[1] == o.Shape[0] && f.whole.check() == nil
}

// joinedData has the elements of tensors, concatenated.
type joinedData []*Tensor

// ReadAt reads from the parts that the bytes lie in.
func (j joinedData) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for _, t := range j {
		n := int(min(bytesOf(t)-off, int64(len(p)-done)))
		if off -= bytesOf(t); n <= 0 {
			continue
		}
		got, err := t.Data.ReadAt(p[done:done+n], off+bytesOf(t))
		if done += got; got < n {
			return done, err
		}
		off = 0
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

// joined concatenates tensors along the first axis; nil if their shapes do not fit.
func joined(parts []*Tensor) *Tensor {
	t := *parts[0]
	t.Name, t.Key, t.Data, t.part, t.Place, t.Instead = "", "", joinedData(parts), partOf{}, nil, nil
	if len(t.Shape) == 0 {
		return nil
	}
	t.Shape = append([]int{0}, t.Shape[1:]...)
	for _, p := range parts {
		if p.DType != t.DType || len(p.Shape) != len(t.Shape) || !slices.Equal(p.Shape[1:], t.Shape[1:]) {
			return nil
		}
		t.Shape[0] += p.Shape[0]
	}
	if _, ok := hooks.Elements(t.Shape); !ok {
		return nil
	}
	return &t
}

// refuse checks fused tensors with a wrong part: the layout of the parts may explain the errors.
func (c *comparison) refuse(ctx context.Context, jobs []*job, rows []Row) error {
	r := &reader{}
	for _, f := range c.fused {
		var wrong []*Row
		for i, j := range jobs {
			if slices.Contains(f.parts, j.original) && !rows[i].Class.Right() {
				wrong = append(wrong, &rows[i])
			}
		}
		if len(wrong) == 0 {
			continue
		}
		what, err := c.howFused(ctx, r, f)
		if err != nil {
			return err
		}
		for _, row := range wrong {
			switch {
			case what.kind != "":
				row.is(Mistake, what)
			case row.Class == Missing: // it is transposed by its shape
				row.wrong(Different, Shape, "it is a part of %s, whose shape is %v", f.whole.key(), f.whole.Shape)
			default:
				continue
			}
			if row.Local == nil {
				row.Local, row.Unequal = stored(f.whole), row.Elements
			}
		}
	}
	return nil
}

// turnedParts is said of a fused tensor that is transposed, after its name.
const turnedParts = " is transposed: element [i, j] is the [j, i] of its concatenated parts"

// howFused names the layout of a fused tensor, if it differs from the meant one and explains every element.
func (c *comparison) howFused(ctx context.Context, r *reader, f fused) (phrase, error) {
	o := joined(f.parts)
	if o == nil {
		return phrase{}, nil
	}
	s := besides(r, f.whole, o)
	if f.turned() {
		if ok, err := newPair(c, s, plainRule(f.whole.Add, rounding{}), nil).may(ctx, turned); ok || err != nil {
			return say(Transposed, "%s"+turnedParts, f.whole.key()), err
		}
	}
	if !slices.Equal(f.whole.Shape, o.Shape) {
		return phrase{}, nil
	}
	t, q, err := s.agrees(ctx)
	if err != nil || t.bad == 0 {
		return phrase{}, err
	}
	a := newPair(c, s, q, t)
	if err := a.sampled(ctx); err != nil {
		return phrase{}, err
	}
	_, err = a.may(ctx, relation{kind: FusedOrder, views: f.orders})
	return a.row.said, err
}

// orders lists how ports order the parts: whole, in each permutation, and interleaved, some rows of each in turn.
func (f *fused) orders(_ context.Context, a *pair) iter.Seq2[reading, error] {
	var all []reading
	starts, rows := make([]int, len(f.parts)), 0
	least := f.parts[0].Shape[0]
	names := make([]string, len(f.parts))
	for i, p := range f.parts {
		starts[i] = rows
		rows += p.Shape[0]
		least = min(least, p.Shape[0])
		names[i] = lastWord(p.key())
	}
	meant := strings.Join(names, ", ")
	for perm := range permute.All(len(f.parts)) {
		for pieces := 1; pieces <= least; pieces++ {
			if slices.ContainsFunc(f.parts, func(p *Tensor) bool { return p.Shape[0]%pieces != 0 }) || pieces == 1 && slices.IsSorted(perm) {
				continue
			}
			order := make([]int32, 0, rows)
			for s := range pieces {
				for _, p := range perm {
					n := f.parts[p].Shape[0] / pieces
					for i := range n {
						order = append(order, int32(starts[p]+s*n+i))
					}
				}
			}
			var list, turns []string
			for _, p := range perm {
				list = append(list, names[p])
				turns = append(turns, fmt.Sprintf("%d of %s", f.parts[p].Shape[0]/pieces, names[p]))
			}
			what := say("", "%s has its parts in the order %s; expected: %s", f.whole.key(), strings.Join(list, ", "), meant)
			if pieces > 1 {
				what = say("", "%s has the rows of its parts interleaved: %s, repeated; expected: %s, one part after the other", f.whole.key(), strings.Join(turns, ", "), meant)
			}
			v := view{t: a.original, rows: order}
			if len(a.original.Shape) == 1 {
				v = view{t: a.original, columns: order}
			}
			all = append(all, reading{view: v, rule: plainRule(f.whole.Add, rounding{}), said: what.always})
		}
	}
	return readingsOf(all...)
}

// lastWord is the module of a weight: "q_proj" of "model.layers.0.self_attn.q_proj.weight".
func lastWord(name string) string {
	words := strings.Split(name, ".")
	return words[max(0, len(words)-2)]
}
