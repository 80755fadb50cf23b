package compare

import "github.com/tracediff/tracediff/order/op"

// fewAhead is how many entries are certified ahead of the walk at first, mostAhead at most: about those of two layers.
const fewAhead, mostAhead = 8, 64

// lookahead is how far entries are certified ahead of the walk, on all cores. The distance grows as the walk goes on, so that a walk that ends at an
// early divergence has certified few entries after the divergence.
type lookahead struct {
	first   int         // the pass that the walk begins with
	from    map[int]int // the first entry of a pass that was not certified ahead
	entries int         // how many are next
	passes  int         // how many passes are next, of those whose entries are certified together
}

// certifyAhead certifies the next entries of the walk, from entry i on, and the same entries of the next passes, as long as these have no more tokens
// together than this pass: a product reads its weight once for several passes. Later passes are certified whole, twice as many each time.
func (w *walker) certifyAhead(i int, passes []int) {
	a := &w.ahead
	if w.chain == nil || i < a.from[passes[0]] {
		return
	}
	some, n := passes[:w.plan.shorter(passes)], a.entries
	if passes[0] != a.first {
		some, n = passes[:min(a.passes, len(passes))], len(w.plan.entries)
		a.passes *= 2
	} else {
		a.entries = min(2*n, mostAhead)
	}
	all := map[int][]string{}
	for _, pass := range some {
		from := max(i, a.from[pass])
		if all[pass] = w.plan.isolable(pass, from, i+n); len(all[pass]) == 0 {
			delete(all, pass)
		}
		a.from[pass] = max(from, i+n)
	}
	w.chain.Prepare(w.ctx, all, !w.o.All)
}

// isolable are the names of the entries of a pass from one to another that both sides have and that have an operation.
func (p *plan) isolable(pass, from, to int) []string {
	var names []string
	for i := from; i < min(to, len(p.entries)); i++ {
		e := &p.entries[i]
		_, argument := e.Op.(op.Given)
		if e.Op == nil || argument || !p.covered(i) || p.rowless(i, pass) {
			continue
		}
		_, hasL := p.sides[local].trace.Lookup(pass, e.Name)
		if _, hasR := p.sides[reference].trace.Lookup(pass, e.Name); hasL && hasR {
			names = append(names, e.Name)
		}
	}
	return names
}

// shorter is how many of some passes, the first among them, have no more tokens behind the first than it has.
func (p *plan) shorter(passes []int) int {
	tokens := 0
	for n, pass := range passes[1:] {
		if pass >= len(p.tokens) || passes[0] >= len(p.tokens) {
			return n + 1
		}
		if tokens += p.tokens[pass]; tokens > p.tokens[passes[0]] {
			return n + 1
		}
	}
	return len(passes)
}

// logits is the entry of which the most likely tokens are compared too.
const logits = "logits"

// readAhead has the tensors measured that the walk comes to after entry i of a pass, until enough are on their way. Those
// that it will not measure, because their shapes differ, are left out. An error is left to the walk, which meets it where
// it matters.
func (w *walker) readAhead(i, pass int) {
	for w.next = max(w.next, i+1); w.next < len(w.plan.entries) && !w.meter.Full(); w.next++ {
		if !w.plan.covered(w.next) || w.plan.rowless(w.next, pass) {
			continue
		}
		e := &w.plan.entries[w.next]
		l, hasL := w.sides[local].trace.Lookup(pass, e.Name)
		r, hasR := w.sides[reference].trace.Lookup(pass, e.Name)
		if !hasL || !hasR {
			continue
		}
		p, err := w.pair(w.next, pass, l, r)
		if err == nil && p.seen == SeenWithin {
			w.meter.Prepare(p.l, p.r, e.Compare, e.Name == logits)
		}
	}
}
