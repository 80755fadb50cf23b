package isolate

import (
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// The logits of a long prompt are hundreds of millions of numbers, and certifying a whole entry takes some 40 bytes
// a number. The rows of the logits are independent. So a large entry with independent rows is certified a few
// tokens at a time: each element is computed from the same numbers in the same order as in the whole, and sums over
// all elements are taken in the same order, so the certificate is equal to the bit. An entry with unexplained
// elements is certified as a whole.

// BlockElements is the number of elements in a block of an entry certified in blocks; a block has at least one
// token.
const BlockElements = 1 << 22

// Block returns the number of tokens in a block of the entry, or 0 if the entry is certified as a whole.
func (t *Trial) Block() int {
	i, tokens := t.Isolator, t.Isolator.env.Passes[t.Node.Pass].Tokens
	elements := program.Size(i.list.Size(t.Node, i.env.Passes))
	if elements <= i.Block || !InParts(t) {
		return 0
	}
	return min(max(i.Block/(elements/tokens), 1), tokens)
}

// Queries returns the number of attention queries to compute at one time, from all keys, if the largest step has
// more than Block elements, such as the scores of a long prompt. It is 0 for all queries at once, and for an entry
// without rows per token or without keys.
func (t *Trial) Queries() int {
	i, tokens, most, keys := t.Isolator, t.Isolator.env.Passes[t.Node.Pass].Tokens, 0, false
	for _, n := range t.Cut.Steps {
		most = max(most, program.Size(i.list.Size(n, i.env.Passes)))
		keys = keys || strings.ContainsRune(i.list.At(n).Axes, order.AxisKey)
	}
	rec, _ := i.trace.Lookup(t.Node.Pass, t.Entry.Name)
	at := TokenAxis(t.Entry)
	if most <= i.Block || !keys || tokens < 2 || t.lastOnly || t.Chooses() || t.Entry.Compare != order.All || at < 0 || at >= len(rec.Shape)-1 || rec.Shape[at] != tokens ||
		rec.LastRow || rec.Sums() || i.assumed(t.Node) {
		return 0
	}
	return max(i.Block/(most/tokens), 1)
}

// Pieces is how many tokens of an entry are certified at one time: of a block, or of queries; 0 for all of them.
func (t *Trial) Pieces() int {
	if n := t.Block(); n > 0 {
		return n
	}
	return t.Queries()
}

// InParts reports whether the rows of some of several tokens can be certified without the others. The rows of tokens then follow each other in the trace.
func InParts(t *Trial) bool {
	i := t.Isolator
	if i.env.Passes[t.Node.Pass].Tokens < 2 || t.lastOnly || t.Chooses() || !byRows(i, t.Node, t.Cut) || !RowAfterRow(i, t.Node) {
		return false
	}
	one := slices.Clone(i.env.Passes)
	one[t.Node.Pass].Tokens = 1
	return !slices.ContainsFunc(slices.Concat(t.Cut.Leaves, t.Cut.Steps), func(n order.Node) bool {
		e := i.list.At(n)
		if shape, at := i.list.Size(n, one), TokenAxis(e); at >= len(shape) || shape[at] != 1 { // it has one length only
			return true
		}
		rec, ok := i.trace.Lookup(n.Pass, e.Name)
		return ok && rec.Sums()
	})
}

// Beginning returns a trial of an entry's first tokens, at most most. t must not have read its tensors. The trial
// covers all tokens if most is 0, or if the tokens do not have independent rows.
func Beginning(t *Trial, most int) (*Trial, error) {
	if tokens := t.Isolator.env.Passes[t.Node.Pass].Tokens; most <= 0 || most >= tokens || !InParts(t) {
		whole := *t
		return &whole, whole.ReadAll()
	}
	return t.Of(UpTo(0, most))
}

// RowAfterRow reports whether the trace stores the rows of a captured entry's tokens one after another.
func RowAfterRow(i *Isolator, n order.Node) bool {
	e := i.list.At(n)
	rec, ok := i.trace.Lookup(n.Pass, e.Name)
	at := TokenAxis(e)
	return ok && !rec.LastRow && !rec.Sums() && e.Compare == order.All && at >= 0 && at < len(rec.Shape) && program.Size(rec.Shape[:at]) == 1
}

// readRowsOf reads some tokens' rows of a captured entry.
func readRowsOf(i *Isolator, n order.Node, keep []int) (program.Value, error) {
	e := i.list.At(n)
	at := TokenAxis(e)
	if !RowAfterRow(i, n) || i.assumed(n) {
		v, _, err := i.Value(n)
		if err != nil {
			return v, err
		}
		return rowsOf(v, at, keep), nil
	}
	rec, _ := i.trace.Lookup(n.Pass, e.Name)
	v := program.Value{Shape: slices.Clone(rec.Shape)}
	v.Shape[at] = len(keep)
	row := program.Size(rec.Shape[at+1:])
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

// Of returns a trial of some tokens' rows. t must not have read its tensors.
func (t *Trial) Of(keep []int) (*Trial, error) {
	part := *t
	if t.Block() > 0 || t.Queries() == 0 {
		part.part.rows = keep
	} else {
		part.Call.Some = &program.Some{Axis: TokenAxis(t.Entry), Keep: keep}
	}
	return &part, readRows(&part, keep)
}

// readRows reads some tokens' rows of the entry.
func readRows(t *Trial, keep []int) error {
	rec, _ := t.Isolator.trace.Lookup(t.Node.Pass, t.Entry.Name)
	y, err := readRowsOf(t.Isolator, t.Node, keep)
	holdTo(t, y, rec.DType)
	return err
}

// InBlocks certifies an entry in blocks. t must have blocks, and must not have read its tensors. InBlocks returns
// nil if the entry needs to be certified as a whole; a second call for the same entry then returns nil at once.
func InBlocks(ctx context.Context, t *Trial) (*Certificate, error) {
	t.Isolator.mu.Lock()
	unsettled := t.Isolator.unsettled[t.Node]
	t.Isolator.mu.Unlock()
	if unsettled {
		return nil, nil
	}
	some := *t // the whole is prepared otherwise
	c, err := fromBlocks(ctx, &some)
	if c == nil && err == nil {
		t.Isolator.mu.Lock()
		t.Isolator.unsettled[t.Node] = true
		t.Isolator.mu.Unlock()
	}
	t.Formula = some.Formula
	return c, err
}

// fromBlocks implements InBlocks. It modifies the trial. Attention with a known kernel is computed in the kernel.
func fromBlocks(ctx context.Context, t *Trial) (_ *Certificate, err error) {
	own := &Arithmetic{}
	if t.Block() == 0 {
		own, err = usualArithmetic(ctx, t)
	} else if t.Formula, err = t.Cut.Formula(t.Isolator.env.Passes, t.Isolator.env.DType); err != nil { // it comes again
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, held := range []bool{true, false} { // see first
		b := blocks{Looked: Looked{weighed: newWeighed()}}
		if right, err := eachBlockIn(ctx, t, own, held, b.add); !right || err != nil {
			return nil, err
		}
		c := b.certificate(t)
		if c == nil {
			continue
		}
		c.Form, c.Arithmetic = op.Form(t.Entry.Op), string(Strict)
		if !own.Strict() {
			p, err := t.Rewritten(own.Rewrites)
			if err != nil {
				return nil, err
			}
			c.Arithmetic, c.Where = own.Words(p, t.Isolator.env.DType), own.Where(p, t)
			if c.Outcome == Exact { // see settle
				c.Outcome = Rounding
			}
		}
		return c, Verify(ctx, t, c)
	}
	return nil, nil
}

// usualArithmetic is the fused kernel of the form of attention, where one is known; else transformers' arithmetic.
func usualArithmetic(ctx context.Context, t *Trial) (*Arithmetic, error) {
	if err := t.Prepare(ctx); err != nil || t.Formula == nil {
		return &Arithmetic{}, err
	}
	if t.Isolator.engine != nil && rewrite.Fuses(t.Formula.Program) {
		if own, err := t.Isolator.engine.Kernel(ctx, t.Isolator.FormOf(t.Cut, t.Node)); own != nil || err != nil {
			return own, err
		}
	}
	return &Arithmetic{}, nil
}

// EachBlock evaluates an entry in transformers' arithmetic some tokens at a time, and ends where do reports false. Held: with bounds where they
// decide something.
func EachBlock(ctx context.Context, t *Trial, held bool, do func(part *Trial, j *Judgement) (bool, error)) (all bool, err error) {
	return eachBlockIn(ctx, t, &Arithmetic{}, held, do)
}

// eachBlockIn is eachBlock in another arithmetic.
func eachBlockIn(ctx context.Context, t *Trial, a *Arithmetic, held bool, do func(part *Trial, j *Judgement) (bool, error)) (all bool, err error) {
	n, tokens := t.Pieces(), t.Isolator.env.Passes[t.Node.Pass].Tokens
	if t.Block() == 0 { // all queries read the same operands
		some := *t
		if t = &some; t.Prepare(ctx) != nil || t.Formula == nil { // an error comes again
			return false, nil
		}
	}
	for from := 0; from < tokens; from += n {
		part, err := t.Of(UpTo(from, min(from+n, tokens)))
		if err != nil {
			return false, err
		}
		j, err := part.Evaluate(ctx, Evaluation{Arithmetic: a, Held: held})
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
func rightInQueries(ctx context.Context, t *Trial) (bool, error) {
	if t.Queries() == 0 {
		return false, nil
	}
	return EachBlock(ctx, t, false, func(_ *Trial, j *Judgement) (bool, error) { return len(j.Outside()) == 0, nil })
}

// blocks sums up what is said of an entry whose rows are looked at some at a time.
type blocks struct {
	Looked
	followed     int
	whole, parts bool // some had all bounds, some a sample of them
}

// add takes some tokens in, if none of their elements is outside.
func (b *blocks) add(_ *Trial, j *Judgement) (bool, error) {
	if b.Looked.add(j); len(b.outside) > 0 {
		return false, nil
	}
	b.whole, b.parts = b.whole || j.X.Columns == 0, b.parts || j.X.Columns > 0
	b.followed += j.X.Followed
	return true, nil
}

// certificate sums up the blocks. It returns nil if the certificate needs the bounds of all elements.
func (b *blocks) certificate(t *Trial) *Certificate {
	c, ceiling := b.Looked.certificate()
	if b.parts && (b.whole || !c.settled(ceiling, t)) {
		return nil
	}
	c.Unequal += int64(b.followed)
	b.say(c)
	c.Outcome = c.without(b.guessed)
	return c
}
