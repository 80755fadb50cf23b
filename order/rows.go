package order

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// The logits of a long prompt and a large vocabulary do not fit into memory as numbers of 8 bytes, nor do the scores of a long prompt. Each row of such a
// tensor is computed from one row of the tensor before. So a plan may compute them some rows at a time.

// Rows is how a plan computes steps that are too large to be in memory as a whole.
type Rows struct {
	Elements int               // a step with more elements is computed some rows at a time: so many elements at once, or one row
	Whole    func(n Node) bool // reports whether a step is computed as a whole even if it is large; nil: no large step is
	// Visit sees some rows of a large step, rounded, then the next, until the last. Of large steps that are computed from one another it sees some rows of
	// each, then the next of each. The rows of attention are those of all queries for each head in turn.
	Visit func(n Node, v program.Value, last bool) error
}

// chain is some large steps in a plan. Each row of a step is computed from the same row of the step before, and nothing else reads the step before.
type chain struct {
	kind  chainKind
	steps []Node
}

type chainKind uint8

const (
	tokenRows     chainKind = iota // one row a token: the head and what follows it
	queryRows                      // one row a head and query: scores and what follows them
	attentionRows                  // scores to context; the context is in memory as a whole
	maskRows                       // a mask that only attention reads: each piece of attention computes the mask's rows again
)

func (c *chain) last() Node { return c.steps[len(c.steps)-1] }

// chains finds the large steps, and the chain of each. A plan with bounds has none.
func (p *Plan) chains(env Env) map[Node]*chain {
	if env.Rows == nil || env.Bounds || p.list.IsRecorded() {
		return nil
	}
	f := finder{Plan: p, env: env, readers: map[Node]int{}, of: map[Node]*chain{}}
	for _, n := range p.Steps {
		for _, in := range p.list.parents(n) {
			f.readers[in]++
		}
	}
	for _, n := range p.Steps {
		if !f.extends(n) && f.large(n) {
			f.begin(n)
		}
	}
	for _, c := range f.of { // what another step reads is computed as a whole
		if c.kind != attentionRows && f.readers[c.last()] > 0 {
			for _, n := range c.steps {
				delete(f.of, n)
			}
		}
	}
	f.masks()
	return f.of
}

// finder finds the chains of a plan.
type finder struct {
	*Plan
	env     Env
	readers map[Node]int // how many times steps read a node
	of      map[Node]*chain
}

// large reports whether a step is too large to be in memory as a whole, and nobody wants it as a whole.
func (f *finder) large(n Node) bool {
	return program.Size(f.list.Size(n, f.env.Passes)) > f.env.Rows.Elements && (f.env.Rows.Whole == nil || !f.env.Rows.Whole(n))
}

// reads reports whether a step has this number of inputs, and each input is a whole entry of the step's own pass.
func (f *finder) reads(n Node, inputs int) bool {
	e := f.list.At(n)
	return len(e.Inputs) == inputs && !slices.ContainsFunc(e.Inputs, func(r Ref) bool { return r.Index != nil || r.Prev })
}

// begin makes a large step the first of a chain, if its rows can be computed apart.
func (f *finder) begin(n Node) {
	e := f.list.At(n)
	if o, scores := e.Op.(op.Scores); scores && !o.Merged && e.Axes == "bhts" && f.reads(n, 2) {
		q, keys := f.input(n, 0), f.input(n, 1)
		if q.Axes == "bhtc" && keys.Axes == "bhsc" && q.Shape[0] == 1 && q.Shape[1]%max(keys.Shape[1], 1) == 0 {
			f.of[n] = &chain{queryRows, []Node{n}}
		}
		return
	}
	if f.ofToken(n) {
		f.of[n] = &chain{tokenRows, []Node{n}}
	}
}

// input is an entry that a step reads.
func (f *finder) input(n Node, k int) *Entry { return f.list.At(f.list.parents(n)[k]) }

// ofToken reports whether a step has one row for each token, and computes the row from the same token's row of its input.
func (f *finder) ofToken(n Node) bool {
	e := f.list.At(n)
	return ofRows(e.Op) && f.reads(n, 1) && rowAxis(e) >= 0 && rowAxis(f.input(n, 0)) >= 0
}

// extends adds a step to the chain of the step that it is computed from, if nothing else reads that step.
func (f *finder) extends(n Node) bool {
	e, parents := f.list.At(n), f.list.parents(n)
	if len(parents) == 0 || f.of[parents[0]] == nil || f.of[parents[0]].last() != parents[0] || f.readers[parents[0]] > 1 {
		return false
	}
	c := f.of[parents[0]]
	switch {
	case c.kind == tokenRows:
		if !f.large(n) || !f.ofToken(n) {
			return false
		}
	case c.kind != queryRows:
		return false
	default:
		_, context := e.Op.(op.Context)
		switch {
		case context && f.reads(n, 2) && e.Axes == "btc" && f.input(n, 1).Axes == "bhsc":
			c.kind = attentionRows
		case !f.large(n) || e.Axes != "bhts" || !f.ofQuery(n):
			return false
		}
	}
	c.steps, f.of[n] = append(c.steps, n), c
	return true
}

// ofQuery reports whether a step after the scores computes the row of a query from the same row before it, and from the query's row of a mask.
func (f *finder) ofQuery(n Node) bool {
	switch f.list.At(n).Op.(type) {
	case op.Softcap, op.Softmax, op.Cast, op.Identity:
		return f.reads(n, 1)
	case op.Add:
		return f.reads(n, 2) && f.input(n, 1).Axes == "bhts" && f.input(n, 1).Shape[1] == 1
	}
	return false
}

// masks makes chains of the large masks that nothing but attention reads.
func (f *finder) masks() {
	in := map[Node]int{} // how many times attention reads a mask
	for n := range f.of {
		if _, masked := f.list.At(n).Op.(op.Add); masked {
			in[f.list.parents(n)[1]]++
		}
	}
	for _, n := range f.Steps {
		if _, mask := f.list.At(n).Op.(op.Mask); mask && in[n] == f.readers[n] && f.large(n) && f.list.At(n).Axes == "bhts" {
			f.of[n] = &chain{maskRows, []Node{n}}
		}
	}
}

// ofRows reports whether an operation computes a row from a row.
func ofRows(o op.Op) bool {
	switch o := o.(type) {
	case op.Linear:
		return !o.Heads
	case op.Softcap, op.Identity:
		return true
	}
	return false
}

// rowAxis returns the token axis of a tensor with a single row per token, if every axis before the token axis has
// size 1; −1 for any other tensor.
func rowAxis(e *Entry) int {
	axes := strings.ReplaceAll(e.Axes, " ", "")
	at := strings.IndexRune(axes, AxisToken)
	if strings.Count(axes, string(AxisToken)) != 1 || strings.ContainsRune(axes, AxisKey) || slices.ContainsFunc(e.Shape[:max(at, 0)], func(d Dim) bool { return d != 1 }) {
		return -1
	}
	return at
}

// chain computes the steps of a chain, and returns the value of the last step where that is in memory as a whole.
func (r *run) chain(ctx context.Context, c *chain) (program.Value, error) {
	switch c.kind {
	case tokenRows:
		return program.Value{}, r.tokens(ctx, c)
	case maskRows:
		return program.Value{}, r.mask(ctx, c.last())
	}
	return r.queries(ctx, c)
}

// tokens computes a chain of steps with one row a token.
func (r *run) tokens(ctx context.Context, c *chain) error {
	first := r.list.parents(c.steps[0])[0]
	x, err := r.input(first)
	if err != nil {
		return err
	}
	tokens, widest := r.env.Passes[first.Pass].Tokens, 1
	for _, n := range c.steps {
		widest = max(widest, program.Size(r.list.Size(n, r.env.Passes))/tokens)
	}
	for from, some := 0, max(r.env.Rows.Elements/widest, 1); from < tokens; from += some {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+some, tokens)
		shape := slices.Clone(x.Shape)
		shape[rowAxis(r.list.At(first))] = to - from
		v := part(x, from*len(x.Data)/tokens, shape...)
		for _, n := range c.steps {
			shape := r.list.Size(n, r.env.Passes)
			shape[rowAxis(r.list.At(n))] = to - from
			if v, err = r.some(n, shape, to == tokens, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// some computes some rows of a step from its inputs, and shows them.
func (r *run) some(n Node, shape []int, last bool, inputs ...program.Value) (program.Value, error) {
	v, err := r.compute(n, shape, inputs, nil)
	if err != nil {
		return v, err
	}
	r.env.Round(v, r.list.At(n).DTypeOf(r.env.DType))
	return v, r.env.Rows.Visit(n, v, last)
}

// part is the elements of a value from one on, in a shape.
func part(v program.Value, from int, shape ...int) program.Value {
	return program.Value{Shape: shape, Data: v.Data[from:][:program.Size(shape)]}
}

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
		h.context.Data = make([]float64, program.Size(h.context.Shape))
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
