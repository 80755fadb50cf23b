package certify

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/op"
)

// engine is an arithmetic that some engine has.
type engine struct {
	op.Arith
	words string
	ops   func(op.Op) op.Op // what it computes in place of transformers' operations; nil for these
	open  bool              // its result is not rounded to the entry's dtype where the trace has it wider
}

const freeWords = "rounds inside at other steps than transformers"

// strict is transformers' arithmetic, or the free one that was asked for.
func (i *Isolator) strict() engine {
	e := engine{Arith: i.env.Arith, words: string(Strict)}
	switch i.o.Arithmetic {
	case FreeIn:
		e.Inner, e.words = op.Free, string(FreeIn)
	case Float16In:
		e.Inner, e.Narrow, e.words = op.Free, hooks.F16, string(Float16In)
	}
	return e
}

// wider reports whether the trace has more digits of the entry than the order gives it.
func (t *trial) wider() bool {
	own := t.entry.DTypeOf(t.i.env.DType)
	return own.Float() && floats.Precision(own) < floats.Precision(t.d)
}

// engines are the other arithmetics that an entry may come from: the definite ones, and last the one that allows them all. In
// float32 there is none: all its steps are rounded alike.
func (t *trial) engines() []engine {
	a := t.i.env.Arith
	if a.DType == hooks.F32 {
		return nil
	}
	var all []engine
	add := func(inner op.Inner, words string, ops func(op.Op) op.Op) {
		e := engine{Arith: a, words: words, ops: ops, open: t.wider()}
		e.Inner = inner
		all = append(all, e)
	}
	if t.wider() {
		own := t.entry.DTypeOf(a.DType)
		add(op.AsReference, "keeps its result in "+t.d.String()+", transformers rounds it to "+own.String(), nil)
	}
	for _, words := range t.otherwise() {
		add(op.AsReference, words, func(o op.Op) op.Op { return otherwise(o, words) })
	}
	add(op.Wide, "keeps float32 inside, where transformers rounds", nil)
	add(op.Every, "rounds after every step, where transformers keeps float32", nil)
	add(op.Free, freeWords, nil)
	return all
}

// otherwise lists the named roundings that any operation of the cut has.
func (t *trial) otherwise() []string {
	var words []string
	for _, n := range t.cut.Steps {
		for _, r := range op.Otherwise(t.i.list.Entries[n.Entry].Op) {
			if !slices.Contains(words, r.Words) {
				words = append(words, r.Words)
			}
		}
	}
	return words
}

func otherwise(o op.Op, words string) op.Op {
	for _, r := range op.Otherwise(o) {
		if r.Words == words {
			return r.Op
		}
	}
	return o
}

// otherEngines looks for an arithmetic that explains what strict arithmetic does not, and that other entries of the same
// form do not contradict.
func (t *trial) otherEngines(c *Certificate, strict *judged, left []int) (*judged, []int, error) {
	x := newExplanations(t.y)
	x.left[string(Strict)] = left
	for _, e := range t.engines() {
		j, err := t.in(e)
		if err != nil {
			return nil, nil, err
		}
		rest, order := j.outside(), ""
		if e.Inner == op.Free {
			if err := x.free(j, t); err != nil {
				return nil, nil, err
			}
			if len(rest) > 0 {
				if rest, order, err = t.replay(j, rest); err != nil {
					return nil, nil, err
				}
			}
		}
		x.left[e.words] = rest
		if len(rest) > 0 && (e.Inner != op.Free || len(rest) >= len(left)) {
			continue
		}
		of := *c // as it would be
		of.Arithmetic, of.Summation, of.Contradicted = e.words, order, ""
		if err := t.weigh(&of, j, len(rest) == 0); err != nil {
			return nil, nil, err
		}
		if of.ScaleOff && len(rest) == 0 {
			c.Contradicted = fmt.Sprintf("an engine that %s might give each of them, but together they are scaled by %.9g ± %.2g", e.words, of.Scale, of.ScaleError)
			continue
		}
		refuted, why, err := t.contradicted(e, x)
		if err != nil {
			return nil, nil, err
		}
		if refuted == nil {
			*c = of
			return j, rest, nil
		}
		c.Contradicted, left = why, refuted
	}
	return strict, left, nil
}
