package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// side is one trace with what a walk looks up in it.
type side struct {
	trace   *capture.Trace
	m       capture.Manifest
	entries map[string]bool // declared names; nil when undeclared
	derived map[string]bool
	unmade  map[string]bool // what a fused kernel of this side keeps to itself: see [order.List.Unmade]
	passes  int
}

func newSideIndex(t *capture.Trace) side {
	s := side{trace: t, m: t.Manifest(), passes: Passes(t)}
	if s.m.Entries != nil {
		s.entries = set(s.m.Entries)
	}
	s.derived = set(s.m.Derived)
	return s
}

// plan is what is to be compared: the entries in the order of the walk, and which of them are in scope.
type plan struct {
	entries []order.Entry
	asked   bool // the entries were asked for by name: who does not have one misses it
	mapped  *Map // the local side was read by it; nil for none
	foreign bool // the local side is another program than the reference's, recorded as it ran
	sides   *[2]side
	names   sideNames
	scopes  [3]capture.Scope   // that limit the comparison: the two traces' and its own
	chosen  [3]map[string]bool // the names that each of them selects
	before  int                // entries before the first layer, as far as the order knows more than names
	last    int                // the last entry of the layers; −1 without layers
	passes  int                // of the side that has more
	past    []int              // tokens before each pass; as long as the passes whose input ids are known
	tokens  []int              // tokens of each of those passes
	window  int                // of sliding layers; −1 where the order does not say which shapes its entries have
}

func newPlan(sides *[2]side, o Options) (*plan, error) {
	p := &plan{sides: sides, names: o.names(), passes: max(sides[0].passes, sides[1].passes)}
	list := o.Order
	if list == nil {
		var err error
		if list, err = orderOf(sides[reference].trace); err != nil {
			return nil, err
		}
	}
	held := len(sides[local].trace.Records()) + len(sides[reference].trace.Records())
	if err := walkable(p.passes, len(list.Entries), held); err != nil {
		return nil, err
	}
	for n := range sides {
		fused := sides[n].m.Fused
		if n == local || o.Alone {
			fused = append(slices.Clone(fused), o.Fused...)
		}
		sides[n].unmade = list.Unmade(fused)
	}
	p.asked, p.mapped = o.Named || list.Config == nil, o.Map
	l, r := &sides[local].m, &sides[reference].m
	p.foreign = l.Program != "" && l.Program != r.Program && (l.Producer.Name == "torch" || o.Map != nil)
	p.entries = slices.Clone(list.Entries)
	p.scopes = [3]capture.Scope{sides[local].m.Scope, sides[reference].m.Scope, o.Scope}
	for n, s := range p.scopes {
		p.chosen[n] = selected(s, list)
	}
	p.inputsFirst()
	if first := slices.IndexFunc(p.entries, func(e order.Entry) bool { return e.Layer >= 0 }); first >= 0 && list.Config != nil {
		p.before = first
	}
	p.last = -1
	for i := range p.entries {
		if p.entries[i].Layer >= 0 {
			p.last = i
		}
	}
	if p.window = -1; list.Config != nil {
		p.window = list.Config.SlidingWindow
	}
	p.countTokens()
	return p, nil
}

// orderOf makes an order of the names of a trace, as they were first fired.
func orderOf(t *capture.Trace) (*order.List, error) {
	if !t.Sequence() {
		return nil, &UnsuitableError{
			What: "sequence", Reason: fmt.Sprintf("nothing says in which order the tensors of %s were computed", t.Path()),
			Hint: "name the model that both are of, --model DIR, or give the order with --order FILE, one tensor name a line",
		}
	}
	var names strings.Builder
	seen := map[string]bool{}
	for _, r := range t.Records() {
		if !seen[r.Name] {
			seen[r.Name] = true
			names.WriteString(r.Name + "\n")
		}
	}
	list, err := order.ReadNames(strings.NewReader(names.String()))
	if err != nil {
		return nil, fmt.Errorf("the names of %s as an order: %w", t.Path(), err)
	}
	return list, nil
}

// selected returns the names that a scope selects; one without a level, which is undeclared, limits nothing by it.
func selected(s capture.Scope, list *order.List) map[string]bool {
	if s.Level == 0 {
		s.Level = 3
	}
	names := map[string]bool{order.InputIDs: true}
	for _, e := range s.Select(list) {
		names[e.Name] = true
	}
	return names
}

// inputsFirst moves the token ids to the front, wherever the order has them, or puts them there where both traces have
// them and the order does not.
func (p *plan) inputsFirst() {
	ids := order.Entry{Name: order.InputIDs, Layer: -1, Level: 1}
	i := slices.IndexFunc(p.entries, func(e order.Entry) bool { return e.Name == order.InputIDs })
	if i >= 0 {
		ids = p.entries[i]
		p.entries = slices.Delete(p.entries, i, i+1)
	} else if !p.hasInputs(local) || !p.hasInputs(reference) {
		return
	}
	p.entries = slices.Insert(p.entries, 0, ids)
}

func (p *plan) hasInputs(side int) bool {
	return slices.ContainsFunc(p.sides[side].trace.Records(), func(r capture.Record) bool { return r.Name == order.InputIDs })
}

// countTokens learns from the input ids, which are never cut, where in the sequence each pass starts.
func (p *plan) countTokens() {
	past := 0
	for pass := range p.passes {
		rec, ok := p.sides[reference].trace.Lookup(pass, order.InputIDs)
		if !ok {
			rec, ok = p.sides[local].trace.Lookup(pass, order.InputIDs)
		}
		n := measure.Elements(rec.Shape)
		if !ok || n > maxIDs {
			return
		}
		p.past, p.tokens = append(p.past, past), append(p.tokens, n)
		past += n
	}
}

// covered reports whether every scope selects an entry.
func (p *plan) covered(i int) bool {
	name := p.entries[i].Name
	return p.chosen[0][name] && p.chosen[1][name] && p.chosen[2][name]
}

// passCovered reports whether every scope includes a pass.
func (p *plan) passCovered(pass int) bool {
	return p.scopes[0].Passes.Has(pass) && p.scopes[1].Passes.Has(pass) && p.scopes[2].Passes.Has(pass)
}

// common returns the passes that both sides have and every scope includes.
func (p *plan) common() []int {
	var passes []int
	for pass := range min(p.sides[local].passes, p.sides[reference].passes) {
		if p.passCovered(pass) {
			passes = append(passes, pass)
		}
	}
	return passes
}

// rowless reports whether the scopes leave no row of an entry in a pass: it has a token axis, and none of the pass's
// positions is wanted by all of them.
func (p *plan) rowless(i, pass int) bool {
	e := &p.entries[i]
	if e.Name == order.InputIDs || !strings.ContainsRune(e.Axes, order.AxisToken) || pass >= len(p.past) {
		return false
	}
	for t := range p.tokens[pass] {
		at := p.past[pass] + t
		if p.scopes[0].Positions.Has(at) && p.scopes[1].Positions.Has(at) && p.scopes[2].Positions.Has(at) {
			return false
		}
	}
	return true
}

// derived reports whether an entry is recomputed by the capturing side and shown by no engine: the order says so, or for
// an order of names alone the reference does. What a trace claims beyond that excuses it from nothing.
func (p *plan) derived(i int) bool {
	e := &p.entries[i]
	if e.Op != nil {
		return e.Derived()
	}
	return p.sides[reference].derived[e.Name]
}

// Walkable reports a trace that claims more passes of the entries of a list than a comparison walks, given how many
// tensors it holds. [Run] says the same; a caller that has to run a model first can say it before.
func Walkable(t *capture.Trace, list *order.List) error {
	return walkable(Passes(t), len(list.Entries), len(t.Records()))
}

func walkable(passes, entries, held int) error {
	if passes > maxPasses {
		return fmt.Errorf("comparing: a trace of %d passes, more than the %d that are walked", passes, maxPasses)
	}
	if passes*entries > maxEmpty+64*held {
		return fmt.Errorf("comparing: %d passes of %d entries are claimed, and %d tensors are there", passes, entries, held)
	}
	return nil
}

// promised reports whether a side should have an entry that every scope selects: it declares a scope, or lists the name,
// or the name was asked for. A port with fewer hooks declares its names and no scope. One that was recorded in a script of its own has
// what its modules show, in its own names: its level says nothing of the entries of the reference.
func (p *plan) promised(side, i int) bool {
	s := &p.sides[side]
	switch {
	case side == local && p.mapped != nil && p.mapped.Absent[p.entries[i].Name] != "":
		return true
	case s.unmade[p.entries[i].Name]:
		return false
	case s.m.Scope.Level > 0 && !(side == local && p.foreign):
		return true
	case s.entries != nil:
		return s.entries[p.entries[i].Name]
	}
	return p.asked
}

// declines reports whether a side says that it does not have an entry.
func (p *plan) declines(side, i int) bool {
	s := &p.sides[side]
	return s.m.Scope.Level == 0 && s.entries != nil && !s.entries[p.entries[i].Name]
}

// missing returns the side that should have an entry of a pass and does not: its label, "both", or "" when nobody
// is to blame.
func (p *plan) missing(i int, has [2]bool) string {
	var lacks [2]bool
	for side := range lacks {
		other := 1 - side
		lacks[side] = !has[side] && p.promised(side, i) && (has[other] || !p.declines(other, i))
	}
	switch {
	case lacks[local] && lacks[reference] && !p.names.alone():
		return "both"
	case lacks[local]:
		return p.names[local].Label
	case lacks[reference]:
		return p.names[reference].Label
	}
	return ""
}

// narrowings says in words how the scope that was asked for, and those of the traces beyond it, leave out a part of the
// way from the input to the logits. A level alone does not: it has fewer tensors of the whole way.
func (p *plan) narrowings() (asked, unasked []string) {
	for n, s := range p.scopes {
		if n == reference && p.names.alone() {
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

// request is the index of the scope that was asked for; the traces' are before it.
const request = 2

func (p *plan) scopeName(n int) string {
	if n == request {
		return "this comparison"
	}
	return p.names[n].Trace
}

func (p *plan) narrowing(n int, s capture.Scope) (reasons []string) {
	wanted := p.scopes[request]
	left, all := 0, 0
	for i := range p.entries {
		name := p.entries[i].Name
		wantedLevel := p.levelCovered(i)
		if wanted.Level > 0 { // a level that was asked for is not excused by a trace that has less
			wantedLevel = p.entries[i].Level <= wanted.Level
		}
		if p.derived(i) || !wantedLevel || n != request && !p.chosen[request][name] {
			continue
		}
		all++
		if !p.chosen[n][name] {
			left++
		}
	}
	if left > 0 {
		reasons = append(reasons, fmt.Sprintf("the scope of %s leaves out %d of %d entries (%s)", p.scopeName(n), left, all, choice(s)))
	}
	passes := 0
	for pass := range p.passes {
		if !s.Passes.Has(pass) && (n == request || wanted.Passes.Has(pass)) {
			passes++
		}
	}
	if passes > 0 {
		reasons = append(reasons, fmt.Sprintf("the scope of %s leaves out %d of %d passes (passes %s)", p.scopeName(n), passes, p.passes, s.Passes))
	}
	if p.leavesOutPositions(n, s) {
		reasons = append(reasons, fmt.Sprintf("the scope of %s has positions %s only", p.scopeName(n), s.Positions))
	}
	return reasons
}

// leavesOutPositions reports whether a scope has not all the positions of the sequence, or of those asked for.
func (p *plan) leavesOutPositions(n int, s capture.Scope) bool {
	wanted := p.scopes[request].Positions
	if len(s.Positions) == 0 || slices.Contains(s.Positions, capture.Range{From: 0, To: capture.NoEnd}) {
		return false
	}
	if len(p.past) < p.passes || n == request { // how long the sequence is, is not known or does not matter
		return n == request || s.Positions.String() != wanted.String()
	}
	for at := range p.past[p.passes-1] + p.tokens[p.passes-1] {
		if wanted.Has(at) && !s.Positions.Has(at) {
			return true
		}
	}
	return false
}

// choice is how a scope chooses entries, in words.
func choice(s capture.Scope) string {
	var parts []string
	if s.Level > 0 {
		parts = append(parts, fmt.Sprintf("level %d", s.Level))
	}
	if len(s.Layers) > 0 {
		parts = append(parts, "layers "+s.Layers.String())
	}
	if len(s.Tensors) > 0 {
		parts = append(parts, fmt.Sprintf("tensors %.200q", s.Tensors))
	}
	return strings.Join(parts, ", ")
}

// ends returns the first and the last entry of a pass that a comparison has to show so that it reaches from the input
// to the logits; −1 if there is none. What was asked for moves them, and a level; what a trace leaves out does not.
func (p *plan) ends(pass int) (first, last int) {
	first, last = -1, -1
	for i := range p.entries {
		if p.derived(i) || !p.levelCovered(i) || !p.chosen[request][p.entries[i].Name] || p.rowless(i, pass) {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
	}
	return first, last
}

func (p *plan) levelCovered(i int) bool {
	for _, s := range p.scopes {
		if s.Level > 0 && p.entries[i].Level > s.Level {
			return false
		}
	}
	return true
}
