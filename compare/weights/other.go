package weights

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/spelling"
)

// others yields the originals of a different name that a sample of the tensor is like: first in the layout of its own name, then in the layout of
// each candidate's name.
func others(ctx context.Context, a *pair) iter.Seq2[reading, error] {
	return func(yield func(reading, error) bool) {
		for _, o := range a.c.originals {
			if !a.other(ctx, a, o, yield) {
				return
			}
		}
		made := map[*Tensor]*pair{}
		for _, o := range a.c.originals {
			if a.local.Instead == nil {
				return
			}
			t := a.local.Instead(o.key())
			if t == nil {
				continue
			}
			b, known := made[t]
			if !known {
				var err error
				if b, err = a.instead(ctx, t); err != nil {
					yield(reading{}, err)
					return
				}
				made[t] = b
			}
			if b != nil && !a.other(ctx, b, o, yield) {
				return
			}
		}
	}
}

// other yields the reading of o, if the sample of b, which is a in some layout, is like it.
func (a *pair) other(ctx context.Context, b *pair, o *Tensor, yield func(reading, error) bool) bool {
	if o == b.original || !besides(b.r, b.local, o).fit() || o.check() != nil {
		return true
	}
	for _, x := range roundingsOf(b.local, o) {
		q := plainRule(b.local.Add, x)
		if like, err := b.like(o, q); err != nil {
			return yield(reading{}, err)
		} else if like {
			return yield(reading{view: view{t: o}, rule: q, of: b, said: func(rule) phrase { return a.another(o) }}, nil)
		}
	}
	return true
}

// instead is the tensor in another layout, for the same row of the result. It is nil if the tensor then has the values of its own name: that is
// an order of rows.
func (a *pair) instead(ctx context.Context, local *Tensor) (*pair, error) {
	if !slices.Equal(local.Shape, a.original.Shape) {
		return nil, nil
	}
	if a.moves() && local.Coding != nil {
		local = moving(local)
	}
	s := besides(a.r, local, a.original)
	t, q, err := s.agrees(ctx)
	if err != nil || t.bad == 0 {
		return nil, err
	}
	b := newPair(a.c, s, q, t)
	b.row = a.row
	return b, b.sampled(ctx)
}

// like compares the sample with the same places of another tensor of the original. The other tensor is read once.
func (a *pair) like(o *Tensor, q rule) (bool, error) {
	type of struct {
		t     *Tensor
		group int
	}
	key := of{o, groupOf(a.local.Coding)}
	held, ok := a.c.samples.Load(key)
	if !ok {
		var values [][]float64
		for _, b := range a.sample {
			into := make([]float64, b.size())
			if err := a.r.values(into, o, b.part); err != nil {
				return false, inTensor(o, err)
			}
			values = append(values, into)
		}
		held, _ = a.c.samples.LoadOrStore(key, values)
	}
	if a.moves() {
		return a.likeSpread(held.([][]float64), q), nil
	}
	for i, b := range a.sample {
		b.original = held.([][]float64)[i]
		bad := make([]bool, b.size())
		q.judge(&b, bad)
		if slices.Contains(bad, true) {
			return false, nil
		}
	}
	return true, nil
}

// layerOf is the layer in a name, and the name without its number; −1 for none.
func layerOf(name string) (layer int, rest string) {
	layer, from, to := spelling.Layer(name)
	if layer < 0 {
		return -1, name
	}
	return layer, name[:from] + "*" + name[to:]
}

// another says which tensor of the original the port's has the values of.
func (a *pair) another(o *Tensor) phrase {
	a.row.Other = o.key()
	mine, pattern := layerOf(a.original.key())
	theirs, other := layerOf(o.key())
	head := strings.HasSuffix(a.original.key(), spelling.Head)
	switch {
	case mine >= 0 && theirs >= 0 && mine != theirs && pattern == other:
		return say(OtherLayer, "layer %d has the tensor of layer %d", mine, theirs)
	case head && strings.HasSuffix(o.key(), spelling.Embedding):
		return say(Tied, "it is %s: the head was tied to the embedding, and the original has two tensors", o.key())
	}
	return say(OtherTensor, "it is the original's %s", o.key())
}
