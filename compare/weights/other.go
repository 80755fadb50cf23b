package weights

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/spelling"
)

// others looks for an original with a different name and with these values. others reads the tensor in the layout of its own name, then in
// the layout of each candidate's name.
func others(ctx context.Context, a *pair) (bool, error) {
	for _, o := range a.c.originals {
		if is, err := a.isOther(ctx, o); is || err != nil {
			return is, err
		}
	}
	if a.local.Instead == nil {
		return false, nil
	}
	made := map[*Tensor]*pair{}
	for _, o := range a.c.originals {
		t := a.local.Instead(o.key())
		if t == nil {
			continue
		}
		b, known := made[t]
		if !known {
			var err error
			if b, err = a.instead(ctx, t); err != nil {
				return false, err
			}
			made[t] = b
		}
		if b == nil {
			continue
		}
		if is, err := b.isOther(ctx, o); is || err != nil {
			return is, err
		}
	}
	return false, nil
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

// isOther names the tensor if it has the values of o.
func (a *pair) isOther(ctx context.Context, o *Tensor) (bool, error) {
	s := besides(a.r, a.local, o)
	if o == a.original || !s.fit() || o.check() != nil {
		return false, nil
	}
	for _, x := range roundingsOf(a.local, o) {
		q := plainRule(a.local.Add, x)
		ok, err := a.like(o, q)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if ok, err = a.explainedBy(ctx, s, q); err != nil {
			return false, err
		}
		if ok {
			a.another(o)
			return true, nil
		}
	}
	return false, nil
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

// another names the tensor of the original whose values the port's tensor has.
func (a *pair) another(o *Tensor) {
	a.row.Other = o.key()
	mine, pattern := layerOf(a.original.key())
	theirs, other := layerOf(o.key())
	head := strings.HasSuffix(a.original.key(), spelling.Head)
	switch {
	case mine >= 0 && theirs >= 0 && mine != theirs && pattern == other:
		a.row.wrong(Mistake, OtherLayer, "layer %d has the tensor of layer %d", mine, theirs)
	case head && strings.HasSuffix(o.key(), spelling.Embedding):
		a.row.wrong(Mistake, Tied, "it is %s: the head was tied to the embedding, and the original has two tensors", o.key())
	default:
		a.row.wrong(Mistake, OtherTensor, "it is the original's %s", o.key())
	}
}
