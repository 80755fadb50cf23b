package certify

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// The logits of a long prompt are hundreds of millions of numbers, each of which takes some 40 bytes where an entry is certified whole. Their
// rows have nothing to do with each other. So a large entry of rows is certified some tokens at a time: each element is computed from the
// same numbers in the same order as among all, and what is said of all is summed up in their order, so that the certificate is the same to
// the bit. An entry of which something is left is looked at whole.

// blockElements is how many elements of an entry are certified at one time, where that can be: those of one token at least.
const blockElements = 1 << 22

// block is how many tokens of an entry are certified at one time; 0 for all of them.
func (t *trial) block() int {
	i, tokens := t.i, t.i.env.Passes[t.node.Pass].Tokens
	elements := size(i.list.Size(t.node, i.env.Passes))
	if elements <= i.block || !t.inParts() {
		return 0
	}
	return min(max(i.block/(elements/tokens), 1), tokens)
}

// queries is how many tokens of attention are computed at one time, from all of its operands, where the largest of its steps has more than blockElements elements:
// scores of a long prompt. It is 0 for all of them, and for an entry that has no row a token or nothing of keys.
func (t *trial) queries() int {
	i, tokens, most, keys := t.i, t.i.env.Passes[t.node.Pass].Tokens, 0, false
	for _, n := range t.cut.Steps {
		most = max(most, size(i.list.Size(n, i.env.Passes)))
		keys = keys || strings.ContainsRune(i.list.At(n).Axes, order.AxisKey)
	}
	rec, _ := i.trace.Lookup(t.node.Pass, t.entry.Name)
	at := tokenAxis(t.entry)
	if most <= i.block || !keys || tokens < 2 || t.last || t.chooses() || t.entry.Compare != order.All || at < 0 || at >= len(rec.Shape)-1 || rec.Shape[at] != tokens ||
		rec.LastRow || rec.Sums() || i.assumed(t.node) {
		return 0
	}
	return max(i.block/(most/tokens), 1)
}

// pieces is how many tokens of an entry are certified at one time: of a block, or of queries; 0 for all of them.
func (t *trial) pieces() int {
	if n := t.block(); n > 0 {
		return n
	}
	return t.queries()
}

// inParts reports whether the rows of some of several tokens can be certified without the others. The rows of tokens then follow each other in the trace.
func (t *trial) inParts() bool {
	i := t.i
	if i.env.Passes[t.node.Pass].Tokens < 2 || t.last || t.chooses() || !i.byRows(t.node, t.cut) || !i.rowAfterRow(t.node) {
		return false
	}
	one := slices.Clone(i.env.Passes)
	one[t.node.Pass].Tokens = 1
	return !slices.ContainsFunc(slices.Concat(t.cut.Leaves, t.cut.Steps), func(n order.Node) bool {
		e := i.list.At(n)
		if shape, at := i.list.Size(n, one), tokenAxis(e); at >= len(shape) || shape[at] != 1 { // it is of one length alone
			return true
		}
		rec, ok := i.trace.Lookup(n.Pass, e.Name)
		return ok && rec.Sums()
	})
}

// beginning is a trial of the first tokens of an entry of which nothing was read, so many at most. It is one of all tokens if most is 0, and if the
// tokens have no rows of their own.
func (t *trial) beginning(most int) (*trial, error) {
	if tokens := t.i.env.Passes[t.node.Pass].Tokens; most <= 0 || most >= tokens || !t.inParts() {
		whole := *t
		return &whole, whole.readAll()
	}
	return t.of(upTo(0, most))
}

// rowAfterRow reports whether the rows of a captured entry's tokens follow each other, as they are in the trace.
func (i *Isolator) rowAfterRow(n order.Node) bool {
	e := i.list.At(n)
	rec, ok := i.trace.Lookup(n.Pass, e.Name)
	at := tokenAxis(e)
	return ok && !rec.LastRow && !rec.Sums() && e.Compare == order.All && at >= 0 && at < len(rec.Shape) && size(rec.Shape[:at]) == 1
}

// rows reads some tokens' rows of a captured entry.
func (i *Isolator) rows(n order.Node, keep []int) (program.Value, error) {
	e := i.list.At(n)
	at := tokenAxis(e)
	if !i.rowAfterRow(n) || i.assumed(n) {
		v, _, err := i.value(n)
		if err != nil {
			return v, err
		}
		return rowsOf(v, at, keep), nil
	}
	rec, _ := i.trace.Lookup(n.Pass, e.Name)
	v := program.Value{Shape: slices.Clone(rec.Shape)}
	v.Shape[at] = len(keep)
	row := size(rec.Shape[at+1:])
	for from := 0; from < len(keep); {
		to := from + 1
		for to < len(keep) && keep[to] == keep[to-1]+1 {
			to++
		}
		part, err := i.trace.Part(n.Pass, e.Name, keep[from]*row, (to-from)*row)
		if err != nil {
			return v, err
		}
		if v.Data == nil && to == len(keep) {
			v.Data = part.Data
		} else {
			v.Data = append(v.Data, part.Data...)
		}
		from = to
	}
	return v, nil
}

// keptRows reads the rows of what a trial of some tokens is computed from.
func (t *trial) keptRows(read func(order.Node) (program.Value, error)) func(order.Node) (program.Value, error) {
	return func(n order.Node) (program.Value, error) {
		if t.i.has(n) {
			v, err := t.i.rows(n, t.kept)
			return t.i.withLost(n, v), err
		}
		v, err := read(n)
		if err != nil {
			return v, err
		}
		return rowsOf(v, tokenAxis(t.i.list.At(n)), t.kept), nil
	}
}

// of is the trial of some tokens' rows alone, of one that nothing was read of.
func (t *trial) of(keep []int) (*trial, error) {
	part := *t
	if t.block() > 0 || t.queries() == 0 {
		part.kept, part.tokens = keep, len(keep)
	} else {
		part.call.Some = &program.Some{Axis: tokenAxis(t.entry), Keep: keep}
	}
	return &part, part.readRows(keep)
}

// readRows reads some tokens' rows of the entry.
func (t *trial) readRows(keep []int) error {
	rec, _ := t.i.trace.Lookup(t.node.Pass, t.entry.Name)
	y, err := t.i.rows(t.node, keep)
	t.hold(y, rec.DType)
	return err
}

// inBlocks certifies an entry of which nothing was read, and which has blocks: nil for one that has to be looked at whole. A second call for the same entry returns nil at once.
func (t *trial) inBlocks(ctx context.Context) (*Certificate, error) {
	t.i.mu.Lock()
	unsettled := t.i.unsettled[t.node]
	t.i.mu.Unlock()
	if unsettled {
		return nil, nil
	}
	some := *t // the whole is prepared otherwise
	c, err := some.fromBlocks(ctx)
	if c == nil && err == nil {
		t.i.mu.Lock()
		t.i.unsettled[t.node] = true
		t.i.mu.Unlock()
	}
	t.formula = some.formula
	return c, err
}

// fromBlocks is inBlocks of a trial that is not used any more. Attention that has a known kernel is computed in it.
func (t *trial) fromBlocks(ctx context.Context) (_ *Certificate, err error) {
	own := &arithmetic{}
	if t.block() == 0 {
		own, err = t.usual(ctx)
	} else if t.formula, err = t.cut.Formula(t.i.env.Passes, t.i.env.DType); err != nil { // it comes again
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, held := range []bool{true, false} { // see [trial.first]
		b := blocks{looked: looked{weighed: newWeighed()}}
		if right, err := t.eachBlockIn(ctx, own, held, b.add); !right || err != nil {
			return nil, err
		}
		c := b.certificate(t)
		if c == nil {
			continue
		}
		c.Form, c.Arithmetic = op.Form(t.entry.Op), string(Strict)
		if !own.strict() {
			p, err := t.rewritten(own.rewrites)
			if err != nil {
				return nil, err
			}
			c.Arithmetic, c.Where = own.words(p, t.i.env.DType), own.where(p, t)
			if c.Outcome == Exact { // see [Certificate.settle]
				c.Outcome = Rounding
			}
		}
		return c, t.verify(c)
	}
	return nil, nil
}

// usual is the fused kernel of the form of attention, where one is known; else transformers' arithmetic.
func (t *trial) usual(ctx context.Context) (*arithmetic, error) {
	if err := t.prepare(ctx); err != nil || t.formula == nil {
		return &arithmetic{}, err
	}
	if t.i.engine != nil && t.formula.Fuses() {
		if own, err := t.i.engine.kernelOf(ctx, t.i.formOf(t.cut, t.node)); own != nil || err != nil {
			return own, err
		}
	}
	return &arithmetic{}, nil
}

// eachBlock evaluates an entry in transformers' arithmetic some tokens at a time, and ends where do reports false. Held: with bounds where they
// decide something.
func (t *trial) eachBlock(ctx context.Context, held bool, do func(part *trial, j *judged) (bool, error)) (all bool, err error) {
	return t.eachBlockIn(ctx, &arithmetic{}, held, do)
}

// eachBlockIn is eachBlock in another arithmetic.
func (t *trial) eachBlockIn(ctx context.Context, a *arithmetic, held bool, do func(part *trial, j *judged) (bool, error)) (all bool, err error) {
	n, tokens := t.pieces(), t.i.env.Passes[t.node.Pass].Tokens
	if t.block() == 0 { // all queries read the same operands
		some := *t
		if t = &some; t.prepare(ctx) != nil || t.formula == nil { // an error comes again
			return false, nil
		}
	}
	for from := 0; from < tokens; from += n {
		part, err := t.of(upTo(from, min(from+n, tokens)))
		if err != nil {
			return false, err
		}
		j, err := part.in(ctx, evaluated{arithmetic: a, held: held})
		if err != nil {
			return false, err
		}
		if ok, err := do(part, j); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// rightInQueries reports whether transformers' arithmetic gives all of attention that is computed some queries at a time.
func (t *trial) rightInQueries(ctx context.Context) (bool, error) {
	if t.queries() == 0 {
		return false, nil
	}
	return t.eachBlock(ctx, false, func(_ *trial, j *judged) (bool, error) { return len(j.outside()) == 0, nil })
}

// blocks sums up what is said of an entry whose rows are looked at some at a time.
type blocks struct {
	looked
	followed     int
	whole, parts bool // some had all bounds, some a sample of them
}

// add takes some tokens in, if none of their elements is outside.
func (b *blocks) add(_ *trial, j *judged) (bool, error) {
	if b.looked.add(j); len(b.outside) > 0 {
		return false, nil
	}
	b.whole, b.parts = b.whole || j.x.Columns == 0, b.parts || j.x.Columns > 0
	b.followed += j.x.Followed
	return true, nil
}

// certificate is that of all of it; nil where all bounds have to be computed.
func (b *blocks) certificate(t *trial) *Certificate {
	c, ceiling := b.looked.certificate()
	if b.parts && (b.whole || !c.settled(ceiling, t)) {
		return nil
	}
	c.Unequal += int64(b.followed)
	b.say(c)
	c.Outcome = c.without(b.guessed)
	return c
}
