package isolate

import (
	"cmp"
	"context"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// ofParts certifies a large entry that transformers' arithmetic does not explain: some tokens at a time, each part in the arithmetic of the form. Nothing
// of the entry was read. The certificate is nil if the parts are right in several arithmetics, which no engine has: then the entry has to be
// read whole.
func ofParts(ctx context.Context, t *Trial) (*Certificate, error) {
	whole, err := t.Cut.Formula(t.Isolator.env.Passes, t.Isolator.env.DType)
	if err != nil { // it comes again
		return nil, nil
	}
	shape, tokens, n := t.Isolator.list.Size(t.Node, t.Isolator.env.Passes), t.Isolator.env.Passes[t.Node.Pass].Tokens, t.Block()
	p := partial{set: newOutsiders(shape), strictly: Looked{weighed: newWeighed()}, said: Looked{weighed: newWeighed()}, first: -1}
	var mistake Follower = NoFollower{}
	for from := 0; from < tokens; from += n {
		t.Isolator.Says(t.Node, ", token %d of %d", from, tokens)
		part, err := t.Of(UpTo(from, min(from+n, tokens)))
		if err != nil {
			return nil, err
		}
		if err := mistake.Look(ctx, part); err != nil {
			return nil, err
		}
		c, err := certifyTrial(ctx, part)
		if c == nil || err != nil {
			return nil, err
		}
		p.add(part, c, from, program.Size(shape)/tokens)
		if from == 0 && tokens > n && c.Outcome == Bug && t.Isolator.engine != nil {
			if mistake, err = t.Isolator.engine.Follow(ctx, part, c); err != nil {
				return nil, err
			}
		}
	}
	mistake.End(t)
	t.Formula = whole
	return p.certificate(t), nil
}

// UpTo lists the numbers from one to another, without that.
func UpTo(from, to int) []int {
	var all []int
	for k := from; k < to; k++ {
		all = append(all, k)
	}
	return all
}

// partial sums up the certificates of the parts of an entry.
type partial struct {
	strictly, said Looked
	set            *outsiders
	worst          *Certificate // of the part with the worst outcome
	unequal        int64
	first          int // the first token with something left; −1 for none
	mixed          bool
	most           Certificate // what is largest of the parts
}

// badness orders outcomes.
var badness = map[Outcome]int{Exact: 0, Rounding: 1, Unidentified: 2, NotCertified: 3, Bug: 4}

func (p *partial) add(t *Trial, c *Certificate, from, row int) {
	for _, l := range []struct{ all, part *Looked }{{&p.strictly, t.strictly}, {&p.said, t.said}} {
		part := *l.part
		part.outside = nil // there may be as many as elements
		l.all.join(&part)
		l.all.Elements, l.all.sampled = l.all.Elements+part.Elements, l.all.sampled || part.sampled
	}
	p.set.add(t.remaining, from*row)
	p.unequal += c.Unequal
	p.most.Worst = max(p.most.Worst, c.Worst)
	p.most.Summation = cmp.Or(p.most.Summation, c.Summation)
	if c.Outcome == Bug && p.first < 0 && c.FirstToken >= 0 {
		p.first = from + c.FirstToken
	}
	p.mixed = p.mixed || p.worst != nil && p.worst.Arithmetic != c.Arithmetic
	if p.worst == nil || badness[c.Outcome] > badness[p.worst.Outcome] {
		p.worst = c
	}
}

// certificate is that of all of the entry.
func (p *partial) certificate(t *Trial) *Certificate {
	if p.mixed && p.worst.Good() {
		return nil
	}
	c := p.strictly.Certificate()
	p.said.say(c)
	c.Outcome, c.Arithmetic, c.Where, c.Summation = p.worst.Outcome, p.worst.Arithmetic, p.worst.Where, p.most.Summation
	c.Mistake, c.Found, c.Unverified = p.worst.Mistake, p.worst.Found, p.worst.Unverified
	c.Unequal, c.Outside, c.Worst, c.Form = p.unequal, int64(p.set.count), p.most.Worst, op.Form(t.Entry.Op)
	if c.Set = p.set.words(t.Entry.Axes); c.Outcome == Bug {
		c.FirstToken = p.first
	}
	return c
}

// partOf is a trial of a few tokens of a large entry, for a search: those with the most elements left in the first parts with something left. It is nil
// for an entry that is not large.
func partOf(ctx context.Context, i *Isolator, n order.Node) (*Trial, error) {
	t, err := i.Unread(n, i.Has)
	if err != nil || t.Block() == 0 {
		return nil, err
	}
	i.mu.Lock()
	keep := i.few[n]
	i.mu.Unlock()
	if keep != nil {
		return t.Of(keep)
	}
	_, err = EachBlock(ctx, t, true, func(part *Trial, j *Judgement) (bool, error) {
		if left := j.Outside(); len(left) > 0 {
			for _, k := range MostLeft(left, part.Y.Shape, TokenAxis(t.Entry), FocusTokens-len(keep)) {
				keep = append(keep, part.part.rows[k])
			}
		}
		return len(keep) < FocusTokens, nil
	})
	if err != nil {
		return nil, err
	}
	if len(keep) == 0 {
		keep = UpTo(0, min(FocusTokens, i.env.Passes[n.Pass].Tokens))
	}
	i.mu.Lock()
	i.few[n] = keep
	i.mu.Unlock()
	return t.Of(keep)
}
