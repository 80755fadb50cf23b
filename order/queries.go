package order

import (
	"context"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Scores and probabilities have a number for each head, query and key. Of a long prompt they are larger than all else that a layer computes. A query of a head
// has its own row of them, which only the next step reads. So attention is computed head by head, some queries at a time, each from all keys: the rows then
// come in the order in which they stand in the tensor.

// heads is the attention of one layer that is computed in pieces.
type heads struct {
	*run
	steps           []Node
	q, keys, values program.Value // [1,h,T,D] and [1,h,S,D]; no values where the steps end before the context
	queries, cached int           // T, S
	context         program.Value // [1,T,h·D]; empty without values
}

// queries computes a chain of scores and the steps after the scores. If the last step is the context, queries returns the context.
func (r *run) queries(ctx context.Context, c *chain) (program.Value, error) {
	shape := r.list.Size(c.steps[0], r.env.Passes)
	h := heads{run: r, steps: c.steps, queries: shape[2], cached: shape[3]}
	read := []Node{r.list.parents(c.steps[0])[0], r.list.parents(c.steps[0])[1]}
	into := []*program.Value{&h.q, &h.keys}
	if c.kind == attentionRows {
		read, into = append(read, r.list.parents(c.last())[1]), append(into, &h.values)
		h.context.Shape = r.list.Size(c.last(), r.env.Passes)
		h.context.Data = make([]float64, size(h.context.Shape))
	}
	for k, n := range read {
		v, err := r.input(n)
		if err != nil {
			return v, err
		}
		*into[k] = v
	}
	// The rows of all steps and of a mask are in memory at one time.
	at := max(r.env.Rows.Elements/max(h.cached*(len(c.steps)+1), 1), 1)
	for head := range shape[1] {
		for from := 0; from < h.queries; from += at {
			if err := ctx.Err(); err != nil {
				return h.context, err
			}
			to := min(from+at, h.queries)
			if err := h.piece(head, from, to, head == shape[1]-1 && to == h.queries); err != nil {
				return h.context, err
			}
		}
	}
	if c.kind == attentionRows {
		r.env.Round(h.context, r.list.At(c.last()).DTypeOf(r.env.DType))
	}
	return h.context, nil
}

// piece computes some queries of a head.
func (h *heads) piece(head, from, to int, last bool) error {
	width := h.q.Shape[3]
	v := part(h.q, (head*h.queries+from)*width, 1, 1, to-from, width)
	for _, n := range h.steps {
		inputs := []program.Value{v}
		switch h.list.At(n).Op.(type) {
		case op.Scores:
			inputs = append(inputs, h.of(h.keys, head))
		case op.Add:
			mask, err := h.masked(h.list.parents(n)[1], from, to)
			if err != nil {
				return err
			}
			inputs = append(inputs, mask)
		case op.Context:
			return h.mix(n, head, from, v)
		}
		var err error
		if v, err = h.some(n, []int{1, 1, to - from, h.cached}, last, inputs...); err != nil {
			return err
		}
	}
	return nil
}

// of are the keys or values that a head reads: several heads may have the same.
func (h *heads) of(cached program.Value, head int) program.Value {
	own := head / (h.q.Shape[1] / cached.Shape[1])
	return part(cached, own*h.cached*cached.Shape[3], 1, 1, h.cached, cached.Shape[3])
}

// mix computes a head's part of the context of some queries from their probabilities.
func (h *heads) mix(n Node, head, from int, probs program.Value) error {
	values := h.of(h.values, head)
	rows, width := probs.Shape[2], values.Shape[3]
	v, err := h.compute(n, []int{1, rows, width}, []program.Value{probs, values}, nil)
	if err != nil {
		return err
	}
	all := h.context.Shape[2]
	for k := range rows {
		copy(h.context.Data[(from+k)*all+head*width:], v.Data[k*width:][:width])
	}
	return nil
}

// masked is some rows of a mask.
func (h *heads) masked(n Node, from, to int) (program.Value, error) {
	if h.large[n] != nil {
		return h.maskOf(n, from, to)
	}
	v, err := h.input(n)
	if err != nil {
		return v, err
	}
	return part(v, from*h.cached, 1, 1, to-from, h.cached), nil
}

// mask shows a large mask, some rows at a time.
func (r *run) mask(ctx context.Context, n Node) error {
	shape := r.list.Size(n, r.env.Passes)
	queries, at := shape[2], max(r.env.Rows.Elements/shape[3], 1)
	for from := 0; from < queries; from += at {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+at, queries)
		v, err := r.maskOf(n, from, to)
		if err != nil {
			return err
		}
		if err := r.env.Rows.Visit(n, v, to == queries); err != nil {
			return err
		}
	}
	return nil
}

// maskOf computes some rows of a mask from the positions.
func (r *run) maskOf(n Node, from, to int) (program.Value, error) {
	positions, err := r.input(r.list.parents(n)[0])
	if err != nil {
		return positions, err
	}
	rows := program.Some{Axis: 2}
	for k := from; k < to; k++ {
		rows.Keep = append(rows.Keep, k)
	}
	v, err := r.compute(n, r.list.Size(n, r.env.Passes), []program.Value{positions}, &rows)
	if err == nil {
		r.env.Round(v, r.list.At(n).DTypeOf(r.env.DType))
	}
	return v, err
}
