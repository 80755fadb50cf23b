package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// finish counts what was compared and what was not, and says why a comparison is incomplete.
func (w *walker) finish() {
	done := map[string]bool{}
	for i := range w.res.Rows {
		r := &w.res.Rows[i]
		done[capture.Key(r.Pass, r.Name, 0)] = true
		if r.Tested && r.Allowed == "" {
			w.res.Coverage.Tested++
		}
	}
	w.coverage(done)
	w.missing()
	w.unknown()
	w.noteLayers()
	w.noteLayouts()
	w.isolation()
	w.weaker()
	w.unmet()
	w.baseline()
	w.incomplete(done)
	w.same()
	w.res.Stopped, w.res.Decided = w.stopped, w.decided()
}

// coverage counts entries and layers, over the passes of both sides.
func (w *walker) coverage(done map[string]bool) {
	c := &w.res.Coverage
	c.Passes = w.plan.passes
	complete := map[int]bool{}
	for i, e := range w.plan.entries {
		derived := w.plan.derived(i)
		if _, seen := complete[e.Layer]; !seen && e.Layer >= 0 {
			complete[e.Layer] = true
		}
		for pass := range w.plan.passes {
			compared := done[capture.Key(pass, e.Name, 0)]
			switch {
			case derived && compared:
				c.Derived++
			case compared:
				c.Compared++
			case !derived && e.Layer >= 0:
				complete[e.Layer] = false
			}
			if derived {
				c.DerivedEntries++
			} else {
				c.Entries++
			}
		}
	}
	c.Layers = len(complete)
	for _, whole := range complete {
		if whole {
			c.LayersComplete++
		}
	}
}

// missing lists, over all passes that both sides have, the entries in scope that a side promised and does not have. The
// walk may have stopped before them: that they are missing is known all the same.
func (w *walker) missing() {
	for _, pass := range w.plan.common() {
		for i := range w.plan.entries {
			if w.plan.covered(i) && !w.plan.derived(i) && !w.plan.rowless(i, pass) {
				w.missingFirings(i, pass)
			}
		}
	}
	w.missingUnknown()
}

// missingUnknown lists the names that a side declares, that the order does not know, and that nothing fired: a manifest promises
// what nobody can look for. Where entries were asked for by name, or by a narrower scope, only those are promised.
func (w *walker) missingUnknown() {
	if w.plan.asked && w.o.Order != nil || len(w.o.Scope.Tensors)+len(w.o.Scope.Layers) > 0 {
		return
	}
	known := map[string]bool{}
	for i := range w.plan.entries {
		known[w.plan.entries[i].Name] = true
	}
	for side, s := range w.traces() {
		fired := map[string]bool{}
		for _, r := range s.trace.Records() {
			fired[r.Name] = true
		}
		for _, name := range s.m.Entries {
			if !known[name] && !fired[name] {
				w.res.Missing = append(w.res.Missing, Missing{Name: name, Side: w.names[side].Label})
			}
		}
	}
}

// takesNone reports whether an entry is the positions, and the sides that lack them were recorded from models that take none: what
// their operations make of positions is a part of what is compared.
func (w *walker) takesNone(name string, has [2]bool) bool {
	for side, s := range w.traces() {
		if !has[side] && (name != order.PositionIDs || s.m.Program == "" || slices.Contains(s.m.Entries, name)) {
			return false
		}
	}
	return true
}

// missingFirings lists one entry: when a side does not have it at all, or not as often as the other.
func (w *walker) missingFirings(i, pass int) {
	name := w.plan.entries[i].Name
	for n := 0; ; n++ {
		var has [2]bool
		for side := range has {
			_, has[side] = w.sides[side].trace.LookupFiring(pass, name, n)
		}
		if n > 0 && has[local] == has[reference] {
			if !has[local] {
				return
			}
			continue
		}
		if !has[local] && !has[reference] && w.none(name, pass) {
			return
		}
		key := name
		if n > 0 {
			key = capture.Key(0, name, n)
		}
		if side := w.plan.missing(i, has); side == "" || w.takesNone(name, has) {
		} else if line := w.o.Limits.Allows(name, pass, gate.Absent); line >= 0 {
			w.res.Allowed[line].Keys = append(w.res.Allowed[line].Keys, capture.Key(pass, key, 0))
		} else {
			w.res.Missing = append(w.res.Missing, Missing{Pass: pass, Name: key, Side: side})
		}
		if !has[local] || !has[reference] {
			return
		}
	}
}

// unknown counts the tensors that the order does not know. They are not compared. Those that a trace declares among its entries,
// and those of a later pass in a file that does not say that its keys have passes, make the comparison incomplete.
func (w *walker) unknown() {
	names := make(map[string]bool, len(w.plan.entries))
	for i := range w.plan.entries {
		names[w.plan.entries[i].Name] = true
	}
	for side, s := range w.traces() {
		other := unknowns{}
		for _, r := range s.trace.Records() {
			if !names[r.Name] {
				other.add(r.Name, names, s.entries)
			}
		}
		w.res.Coverage.Unknown += other.all
		text := func(what string, n int, example string) string {
			return fmt.Sprintf("the order does not know %s of %s%s, such as %.80q: not compared", count(n, "tensor"), w.names[side].Trace, what, example)
		}
		switch {
		case other.all == 0:
		case other.passes > 0:
			w.res.Incomplete = append(w.res.Incomplete, text(" with keys of a later pass, in a file that does not say that its keys have passes", other.passes, other.pass))
		case other.declared > 0 && !w.plan.asked:
			w.res.Incomplete = append(w.res.Incomplete, text(" that it declares", other.declared, other.name))
		case w.o.AB && len(w.res.Differences) > 0: // what only one of two configurations has is what they differ in
			w.res.Incomplete = append(w.res.Incomplete, text("", other.all, other.example))
		case side == local && w.res.Map != nil: // the report begins with it
			w.res.Map.Open, w.res.Map.Examples = other.all, other.examples
		case side == local && s.trace.Status() == "" && 2*other.all > len(s.trace.Records()): // a dump in names of its own
			w.res.Map = &Map{Open: other.all, Examples: other.examples}
		default:
			w.res.Notes = append(w.res.Notes, text("", other.all, other.example))
		}
	}
}

// noteLayers notes a layer that the reference has tensors of and a dump has none of: a port may leave a layer out. It notes nothing if a person asked for some layers.
func (w *walker) noteLayers() {
	if w.o.Alone || w.sides[local].trace.Status() != "" || len(w.o.Scope.Layers)+len(w.o.Scope.Tensors) > 0 {
		return
	}
	of := map[string]int{}
	for i := range w.plan.entries {
		if e := &w.plan.entries[i]; e.Layer >= 0 {
			of[e.Name] = e.Layer
		}
	}
	var has [2]map[int]bool
	for side := range has {
		has[side] = map[int]bool{}
		for _, r := range w.sides[side].trace.Records() {
			if layer, ok := of[r.Name]; ok {
				has[side][layer] = true
			}
		}
	}
	var without []int
	for layer := range has[reference] {
		if !has[local][layer] {
			without = append(without, layer)
		}
	}
	if len(without) > 0 && len(has[local]) > 0 {
		w.res.Notes = append([]string{w.names[local].Trace + " has no tensor of layer " + capture.RangesOf(without).String()}, w.res.Notes...)
	}
}

// unknowns counts the tensors of one trace that the order does not know, with the first of each sort.
type unknowns struct {
	all, passes, declared int
	example, pass, name   string
	examples              []string // names that differ in more than numbers
}

// mostExamples bounds the names that stand for all that have no line.
const mostExamples = 3

// numerals are the numbers in a name, such as that of its layer.
var numerals = regexp.MustCompile(`[0-9]+`)

func (u *unknowns) add(name string, known, declared map[string]bool) {
	if u.all++; u.all == 1 {
		u.example = name
	}
	alike := func(o string) bool { return numerals.ReplaceAllString(o, "") == numerals.ReplaceAllString(name, "") }
	if len(u.examples) < mostExamples && !slices.ContainsFunc(u.examples, alike) {
		u.examples = append(u.examples, name)
	}
	if prefix, rest, ok := strings.Cut(name, "/"); ok && known[rest] && strings.HasPrefix(prefix, "pass") {
		if u.passes++; u.passes == 1 {
			u.pass = name
		}
	}
	if declared[name] {
		if u.declared++; u.declared == 1 {
			u.name = name
		}
	}
}

// AskedFor begins a note of a result about what the scope that was asked for leaves out.
const AskedFor = "as asked for, "

// incomplete collects the reasons for which a comparison without a mismatch is still no success.
func (w *walker) incomplete(done map[string]bool) {
	reasons := &w.res.Incomplete
	asked, unasked := w.plan.narrowings()
	for _, n := range asked {
		w.res.Notes = append(w.res.Notes, AskedFor+n)
	}
	*reasons = append(*reasons, unasked...)
	for side, s := range w.traces() {
		if why := s.trace.Unfinished(); why != "" {
			*reasons = append(*reasons, fmt.Sprintf("%s is not complete: %s", w.names[side].Trace, why))
		}
		for _, n := range s.trace.Notes() {
			w.res.Notes = append(w.res.Notes, w.names[side].Trace+": "+n)
		}
	}
	*reasons = append(*reasons, w.o.Flaws...)
	w.res.Notes = append(w.res.Notes, w.o.Remarks...)
	if _, assumed := w.assumed(local, 0); assumed {
		w.res.Notes = append(w.res.Notes, w.names[local].Trace+" has no "+order.PositionIDs+": its tokens count as positions 0, 1, 2 and so on, pass by pass")
	}
	w.onlyOneSide()
	if n := len(w.res.Unverified); n > 0 {
		*reasons = append(*reasons, fmt.Sprintf("%s not judged, the first is %s: the walk has not reproduced these operations of transformers, so a difference does not show a bug",
			countOf(n, "entry was", "entries were"), w.res.Unverified[0]))
	}
	w.required()
	if w.stopped {
		return // at a divergence: what comes after it is not expected to have been compared
	}
	w.reach(done)
	if n := len(w.nanBoth); n > 0 {
		*reasons = append(*reasons, fmt.Sprintf("NaN or overflow%s in %s, the first is %s: nothing is tested there", w.names.both(), count(n, "tensor"), w.nanBoth[0]))
	}
	if n := len(w.res.Untested); n > 0 {
		*reasons = append(*reasons, fmt.Sprintf("%s untested, the first is %s: %s; capture what it is computed from, or take a prompt that makes it vary", countOf(n, "entry is", "entries are"), w.res.Untested[0], w.untested))
	}
	if w.o.Alone {
		w.uncertified()
	}
	switch c := w.res.Coverage; {
	case c.Compared == 0:
		*reasons = append(*reasons, "no entry was compared")
	case c.Tested == 0 && !slices.ContainsFunc(w.res.Rows, func(r Row) bool { return r.Facts.Policy.Printed }):
		*reasons = append(*reasons, "nothing was tested: the entries compared are the token ids, or constant, zero or empty in "+w.names[reference].Side)
	}
}

// onlyOneSide reports the passes that one side does not have.
func (w *walker) onlyOneSide() {
	less, more := local, reference
	if w.sides[local].passes > w.sides[reference].passes {
		less, more = reference, local
	}
	n := 0
	for pass := w.sides[less].passes; pass < w.sides[more].passes; pass++ {
		if w.plan.passCovered(pass) {
			n++
		}
	}
	if n > 0 {
		w.res.Incomplete = append(w.res.Incomplete, fmt.Sprintf("pass counts differ: %s has %d more, from pass %d on", w.names[more].Trace, n, w.sides[less].passes))
		if len(w.res.Rows) > 0 { // else nothing is compared with them either
			w.res.CommonPasses = rangesOf(w.plan.common()).String()
		}
	}
}

// rangesOf are ranges of numbers that ascend.
func rangesOf(numbers []int) capture.Ranges {
	var all capture.Ranges
	for _, n := range numbers {
		if last := len(all) - 1; last >= 0 && all[last].To == n-1 {
			all[last].To = n
		} else {
			all = append(all, capture.Range{From: n, To: n})
		}
	}
	return all
}

// uncertified reports the entries of a trace alone of which nothing can be said.
func (w *walker) uncertified() {
	n, first := 0, ""
	for i := range w.res.Rows {
		if r := &w.res.Rows[i]; r.NotIsolated != "" && !r.Derived {
			if n == 0 {
				first = fmt.Sprintf("%s: %s", r.Key(), r.NotIsolated)
			}
			n++
		}
	}
	if n > 0 {
		w.res.Incomplete = append(w.res.Incomplete, fmt.Sprintf("%s not certified, the first is %s", countOf(n, "entry is", "entries are"), first))
	}
}

// countOf is a number of things in words, of which one and many are called otherwise.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// reach reports the passes in which the comparison does not show both ends of the way from the input to the logits: the first
// of them, and how many more there are.
func (w *walker) reach(done map[string]bool) {
	text, more := "", 0
	for _, pass := range w.plan.common() {
		first, last := w.plan.ends(pass)
		if first < 0 {
			continue
		}
		for _, i := range []int{first, last} {
			if name := w.plan.entries[i].Name; !shown(w.plan.entries, i, pass, done) {
				if text != "" {
					more++
				} else {
					text = fmt.Sprintf("pass %d does not reach from the input to the output: %s was not compared", pass, name)
				}
				break
			}
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and %s likewise", countOf(more, "pass more", "passes more"))
	}
	if text != "" {
		w.res.Incomplete = append(w.res.Incomplete, text)
	}
}

// shown reports whether an entry was compared in a pass, or what it is a copy of: without a soft cap the logits are what lm_head returns.
func shown(entries []order.Entry, at, pass int, done map[string]bool) bool {
	for at >= 0 {
		e := &entries[at]
		if done[capture.Key(pass, e.Name, 0)] {
			return true
		}
		_, same := e.Op.(op.Identity)
		if !same || len(e.Inputs) != 1 || e.Inputs[0].Index != nil || e.Inputs[0].Prev {
			return false
		}
		at = slices.IndexFunc(entries[:at], func(in order.Entry) bool { return in.Name == e.Inputs[0].Name })
	}
	return false
}
