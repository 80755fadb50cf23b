package compare

import (
	"context"

	"github.com/tracediff/tracediff/compare/chain"
	"github.com/tracediff/tracediff/compare/plan"
)

// fewAhead is how many entries are certified ahead of the walk at first, mostAhead at most: about those of two layers.
const fewAhead, mostAhead = 8, 64

// lookahead is how far entries are certified ahead of the walk, on all cores. The distance grows as the walk goes on, so that a walk that ends at an
// early divergence has certified few entries after the divergence.
type lookahead struct {
	plan  *plan.Plan
	chain *chain.Chain // nil: nothing is certified
	all   bool         // the walk goes on after the first divergence

	first   int         // the pass that the walk begins with
	from    map[int]int // the first entry of a pass that was not certified ahead
	entries int         // how many are next
	passes  int         // how many passes are next, of those whose entries are certified together
}

// certify certifies the next entries of the walk, from entry i on, and the same entries of the next passes, as long as these have no more tokens
// together than this pass: a product reads its weight once for several passes. Later passes are certified whole, twice as many each time.
func (a *lookahead) certify(ctx context.Context, i int, passes []int) {
	if a.chain == nil || i < a.from[passes[0]] {
		return
	}
	some, n := passes[:a.plan.Tokens.Shorter(passes)], a.entries
	if passes[0] != a.first {
		some, n = passes[:min(a.passes, len(passes))], len(a.plan.Entries)
		a.passes *= 2
	} else {
		a.entries = min(2*n, mostAhead)
	}
	all := map[int][]string{}
	for _, pass := range some {
		from := max(i, a.from[pass])
		if all[pass] = a.plan.Isolable(pass, from, i+n); len(all[pass]) == 0 {
			delete(all, pass)
		}
		a.from[pass] = max(from, i+n)
	}
	a.chain.Prepare(ctx, all, !a.all)
}

// newLookahead prepares a walk through some passes.
func newLookahead(pl *plan.Plan, c *chain.Chain, all bool, passes []int) *lookahead {
	a := &lookahead{plan: pl, chain: c, all: all, from: map[int]int{}, entries: fewAhead, passes: 1}
	if len(passes) > 0 {
		a.first = passes[0]
	}
	return a
}

// logits is the entry whose most likely tokens are also compared.
const logits = "logits"

// readahead measures the tensors of a pass ahead of the walk.
type readahead struct {
	*measurer
	next int // the entry that is to be measured ahead next
}

// measure starts measuring the tensors after entry i of a pass, until enough measurements are in progress. Tensors
// of different shapes are skipped, since the walk does not measure them. Errors are ignored here: the walk meets
// them again.
func (a *readahead) measure(i, pass int) {
	for a.next = max(a.next, i+1); a.next < len(a.plan.Entries) && !a.meter.Full(); a.next++ {
		if !a.plan.Walked(a.next, pass) {
			continue
		}
		e := &a.plan.Entries[a.next]
		l, r, both := a.plan.Lookup(pass, e.Name)
		if !both {
			continue
		}
		p, err := a.pair(a.next, pass, l, r)
		if err == nil && p.seen.what == SeenWithin {
			a.meter.Prepare(p.l, p.r, e.Compare, e.Name == logits)
		}
	}
}
