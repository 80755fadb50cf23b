// Package sides holds the facts about the two traces of a comparison: their names in sentences, the declarations of
// each manifest as sets for fast lookup, the token ids and positions of each pass as integers, and the error for
// traces unsuitable for a comparison. If only one trace is judged, it serves as both sides.
package sides

import (
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// The two sides, as indexes.
const (
	Local = iota
	Reference
)

// Mode is what two traces are to each other.
type Mode int

// The modes.
const (
	Parity Mode = iota // the reference is right
	Alone              // both are one and the same: nothing but its certificates is tested
	AB                 // neither is the one that is right
)

// Side is one trace with what a walk looks up in it.
type Side struct {
	Trace    *capture.Trace
	Manifest capture.Manifest
	Entries  map[string]bool // declared names; nil when undeclared
	Derived  map[string]bool
	Passes   int
}

// Pair is the two sides of a comparison.
type Pair struct {
	Sides [2]Side
	Names Names
	Mode  Mode
}

// New returns the pair of two traces. In mode [Alone], both arguments are the same trace.
func New(local, reference *capture.Trace, mode Mode) *Pair {
	return &Pair{Sides: [2]Side{newSide(local), newSide(reference)}, Names: NamesOf(mode), Mode: mode}
}

func newSide(t *capture.Trace) Side {
	s := Side{Trace: t, Manifest: t.Manifest(), Passes: Passes(t)}
	if s.Manifest.Entries != nil {
		s.Entries = Set(s.Manifest.Entries)
	}
	s.Derived = Set(s.Manifest.Derived)
	return s
}

// Each returns the sides: one if both are one trace.
func (p *Pair) Each() []Side {
	if p.Mode == Alone {
		return p.Sides[:1]
	}
	return p.Sides[:]
}

// Lookup finds the tensor of an entry in a pass on both sides.
func (p *Pair) Lookup(pass int, name string) (l, r capture.Record, both bool) {
	return p.LookupFiring(pass, name, 0)
}

// LookupFiring finds the n-th tensor of an entry in a pass on both sides.
func (p *Pair) LookupFiring(pass int, name string, n int) (l, r capture.Record, both bool) {
	l, hasL := p.Sides[Local].Trace.LookupFiring(pass, name, n)
	r, hasR := p.Sides[Reference].Trace.LookupFiring(pass, name, n)
	return l, r, hasL && hasR
}

// Passes returns the number of forward calls in a trace: the declared number, or the number of recorded passes if
// it is larger.
func Passes(t *capture.Trace) int {
	n := max(t.Manifest().Passes, 1)
	for _, r := range t.Records() {
		n = max(n, r.Pass+1)
	}
	return n
}

// MaxIDs bounds the token ids, or positions, of a pass that are read into memory: far more than any context has.
const MaxIDs = 1 << 24

// Integers reads a whole tensor as int64s. The result is false if the tensor has a float dtype, or more than
// [MaxIDs] elements.
func Integers(t *capture.Trace, pass int, name string) ([]int64, bool, error) {
	rec, ok := t.Lookup(pass, name)
	if !ok || rec.DType.Float() || measure.Elements(rec.Shape) > MaxIDs {
		return nil, false, nil
	}
	data, err := t.Read(rec)
	if err != nil {
		return nil, false, err
	}
	values := make([]float64, measure.Elements(rec.Shape))
	if err := floats.Decode(values, rec.DType, data.Data); err != nil {
		return nil, false, err
	}
	ids := make([]int64, len(values))
	for i, v := range values {
		// No id or position reaches 2^53, where float64 stops being exact; a wild one only has to differ.
		ids[i] = int64(max(-1<<53, min(v, 1<<53)))
	}
	return ids, true, nil
}

// Selected returns the names in a scope. A scope with level 0 is undeclared, and includes every level.
func Selected(s capture.Scope, list *order.List) map[string]bool {
	if s.Level == 0 {
		s.Level = 3
	}
	names := map[string]bool{order.InputIDs: true}
	for _, e := range s.Select(list) {
		names[e.Name] = true
	}
	return names
}

// Set returns names as a set.
func Set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// UnsuitableError says why two traces cannot be compared at all.
type UnsuitableError struct {
	What        string   // "config", "order", "weights", "status", "sequence", "rows", "manifest" or "tolerances"
	Reason      string   // in words
	Differences []string // the first few, a line each
	Hint        string   // what to do about it
}

// Error is the reason and the differences on one line.
func (e *UnsuitableError) Error() string {
	if len(e.Differences) == 0 {
		return e.Reason
	}
	return e.Reason + ": " + strings.Join(e.Differences, "; ")
}
