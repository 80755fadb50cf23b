package plan

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// request is the index of the scope that was asked for; the traces' are before it.
const request = 2

// Scopes are the limits of a comparison: the scopes of the two traces and the requested scope.
type Scopes struct {
	Of     [3]capture.Scope
	chosen [3]map[string]bool // the names that each of them selects
}

// covers reports whether every scope selects a name.
func (s *Scopes) covers(name string) bool {
	return s.chosen[0][name] && s.chosen[1][name] && s.chosen[2][name]
}

// CoverPass reports whether every scope includes a pass.
func (s *Scopes) CoverPass(pass int) bool {
	return s.Of[0].Passes.Has(pass) && s.Of[1].Passes.Has(pass) && s.Of[2].Passes.Has(pass)
}

// coverPosition reports whether every scope includes a position of the sequence.
func (s *Scopes) coverPosition(at int) bool {
	return s.Of[0].Positions.Has(at) && s.Of[1].Positions.Has(at) && s.Of[2].Positions.Has(at)
}

// coverLevel reports whether no scope has a level below that of an entry.
func (s *Scopes) coverLevel(e *order.Entry) bool {
	for _, of := range s.Of {
		if of.Level > 0 && e.Level > of.Level {
			return false
		}
	}
	return true
}

// Narrowings describes the gaps on the way from the input to the logits: asked has the gaps of the requested scope,
// unasked the further gaps of the traces. A lower level is no gap, since it has fewer tensors along the whole way.
func (p *Plan) Narrowings() (asked, unasked []string) {
	for n, s := range p.Scopes.Of {
		if n == sides.Reference && p.Names.Alone() {
			continue
		}
		reasons := p.narrowing(n, s)
		if n == request {
			asked = reasons
		} else {
			unasked = append(unasked, reasons...)
		}
	}
	return asked, unasked
}

// scopeName is whose scope it is, in a sentence.
func scopeName(names sides.Names, n int) string {
	if n == request {
		return "this comparison"
	}
	return names[n].Trace
}

// narrowing says what one scope leaves out.
func (p *Plan) narrowing(n int, s capture.Scope) (reasons []string) {
	wanted := p.Scopes.Of[request]
	left, all := 0, 0
	for i := range p.Entries {
		name := p.Entries[i].Name
		wantedLevel := p.Scopes.coverLevel(&p.Entries[i])
		if wanted.Level > 0 { // a requested level stays required even if a trace has a lower level
			wantedLevel = p.Entries[i].Level <= wanted.Level
		}
		if p.Derived(i) || !wantedLevel || n != request && !p.Scopes.chosen[request][name] {
			continue
		}
		all++
		if !p.Scopes.chosen[n][name] {
			left++
		}
	}
	if left > 0 {
		reasons = append(reasons, fmt.Sprintf("the scope of %s leaves out %d of %d entries (%s)", scopeName(p.Names, n), left, all, sides.Choice(s)))
	}
	passes := 0
	for pass := range p.Passes {
		if !s.Passes.Has(pass) && (n == request || wanted.Passes.Has(pass)) {
			passes++
		}
	}
	if passes > 0 {
		reasons = append(reasons, fmt.Sprintf("the scope of %s leaves out %d of %d passes (passes %s)", scopeName(p.Names, n), passes, p.Passes, s.Passes))
	}
	if p.leavesOutPositions(n, s) {
		reasons = append(reasons, fmt.Sprintf("the scope of %s has positions %s only", scopeName(p.Names, n), s.Positions))
	}
	return reasons
}

// leavesOutPositions reports whether a scope has not all the positions of the sequence, or of those asked for.
func (p *Plan) leavesOutPositions(n int, s capture.Scope) bool {
	wanted := p.Scopes.Of[request].Positions
	if len(s.Positions) == 0 || slices.Contains(s.Positions, capture.Range{From: 0, To: capture.NoEnd}) {
		return false
	}
	if !p.Tokens.Known(p.Passes-1) || n == request { // how long the sequence is, is not known or does not matter
		return n == request || s.Positions.String() != wanted.String()
	}
	for at := range p.Tokens.Past[p.Passes-1] + p.Tokens.In[p.Passes-1] {
		if wanted.Has(at) && !s.Positions.Has(at) {
			return true
		}
	}
	return false
}
