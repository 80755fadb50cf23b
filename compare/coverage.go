package compare

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/plan"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// account summarizes a finished walk: the compared and the uncompared entries, and the reasons for an incomplete
// comparison. Its steps write into the result: first coverage, then the missing and the unknown tensors, and last
// the reasons, derived from the rest.
type account struct {
	plan    *plan.Plan
	o       *Options
	decided *decided
	res     *Result
	done    map[string]bool // the entries with a row, by the key of their first firing
}

func newAccount(w *walk) *account {
	a := &account{plan: w.plan, o: w.o, decided: w.decided, res: w.res, done: map[string]bool{}}
	for i := range w.res.Rows {
		r := &w.res.Rows[i]
		a.done[capture.Key(r.Pass, r.Name, 0)] = true
	}
	return a
}

// coverage counts entries and layers, over the passes of both sides.
func (a *account) coverage() {
	c := &a.res.Coverage
	for i := range a.res.Rows {
		if r := &a.res.Rows[i]; r.Tested && r.Allowed == "" {
			c.Tested++
		}
	}
	c.Passes = a.plan.Passes
	complete := map[int]bool{}
	for i, e := range a.plan.Entries {
		derived := a.plan.Derived(i)
		if _, seen := complete[e.Layer]; !seen && e.Layer >= 0 {
			complete[e.Layer] = true
		}
		for pass := range a.plan.Passes {
			compared := a.done[capture.Key(pass, e.Name, 0)]
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

// unknown counts the tensors without an entry in the order. They are not compared. Two kinds make the comparison
// incomplete: tensors declared among a trace's entries, and tensors of a later pass in a file without declared pass
// keys.
func (a *account) unknown() {
	names := make(map[string]bool, len(a.plan.Entries))
	for i := range a.plan.Entries {
		names[a.plan.Entries[i].Name] = true
	}
	for side, s := range a.plan.Each() {
		other := unknowns{}
		for _, r := range s.Trace.Records() {
			if !names[r.Name] {
				other.add(r.Name, names, s.Entries)
			}
		}
		a.res.Coverage.Unknown += other.all
		text := func(what string, n int, example string) string {
			return fmt.Sprintf("the order does not know %s of %s%s, such as %.80q: not compared", amount.Of(n, "tensor"), a.plan.Names[side].Trace, what, example)
		}
		switch {
		case other.all == 0:
		case other.passes > 0:
			a.res.Incomplete = append(a.res.Incomplete, text(" with keys of a later pass, in a file that does not say that its keys have passes", other.passes, other.pass))
		case other.declared > 0 && !a.plan.Asked():
			a.res.Incomplete = append(a.res.Incomplete, text(" that it declares", other.declared, other.name))
		case a.plan.Mode == sides.AB && len(a.res.Differences) > 0: // what only one of two configurations has is what they differ in
			a.res.Incomplete = append(a.res.Incomplete, text("", other.all, other.example))
		case side == local && a.res.Map != nil: // the report begins with it
			a.res.Map.Open, a.res.Map.Examples = other.all, other.examples
		case side == local && s.Trace.Status() == "" && 2*other.all > len(s.Trace.Records()): // a dump in names of its own
			a.res.Map = &Map{Open: other.all, Examples: other.examples}
		default:
			a.res.Notes = append(a.res.Notes, text("", other.all, other.example))
		}
	}
}

// noteLayers notes a layer that the reference has tensors of and a dump has none of: a port may leave a layer out. It notes nothing if a person asked for some layers.
func (a *account) noteLayers() {
	if a.plan.Mode == sides.Alone || a.plan.Sides[local].Trace.Status() != "" || len(a.o.Scope.Layers)+len(a.o.Scope.Tensors) > 0 {
		return
	}
	of := map[string]int{}
	for i := range a.plan.Entries {
		if e := &a.plan.Entries[i]; e.Layer >= 0 {
			of[e.Name] = e.Layer
		}
	}
	var has [2]map[int]bool
	for side := range has {
		has[side] = map[int]bool{}
		for _, r := range a.plan.Sides[side].Trace.Records() {
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
		a.res.Notes = append([]string{a.plan.Names[local].Trace + " has no tensor of layer " + capture.RangesOf(without).String()}, a.res.Notes...)
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
	if rest, ok := tracekey.AfterPass(name); ok && known[rest] {
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

// missing lists, over all passes of both sides, the entries in scope that a side promised but does not have,
// including the entries after the end of the walk.
func (a *account) missing() {
	for _, pass := range a.plan.Common() {
		for i := range a.plan.Entries {
			if !a.plan.Derived(i) && a.plan.Walked(i, pass) {
				a.missingFirings(i, pass)
			}
		}
	}
	a.missingUnknown()
}

// missingUnknown lists the names that a side declares, that the order does not know, and that nothing fired: a manifest promises
// what nobody can look for. Where entries were asked for by name, or by a narrower scope, only those are promised.
func (a *account) missingUnknown() {
	if a.plan.Asked() && a.o.Order != nil || len(a.o.Scope.Tensors)+len(a.o.Scope.Layers) > 0 {
		return
	}
	known := map[string]bool{}
	for i := range a.plan.Entries {
		known[a.plan.Entries[i].Name] = true
	}
	for side, s := range a.plan.Each() {
		fired := map[string]bool{}
		for _, r := range s.Trace.Records() {
			fired[r.Name] = true
		}
		for _, name := range s.Manifest.Entries {
			if !known[name] && !fired[name] {
				a.res.Missing = append(a.res.Missing, Missing{Name: name, Side: a.plan.Names[side].Label})
			}
		}
	}
}

// takesNone reports whether an entry is position_ids, and every side without position_ids is a recording of a model
// without such an input. The recorded operations make the positions, and are compared.
func (a *account) takesNone(name string, has [2]bool) bool {
	for side, s := range a.plan.Each() {
		if !has[side] && (name != order.PositionIDs || s.Manifest.Program == "" || slices.Contains(s.Manifest.Entries, name)) {
			return false
		}
	}
	return true
}

// missingFirings lists the missing firings of one entry: every firing, or the firings beyond the number on the
// other side.
func (a *account) missingFirings(i, pass int) {
	name := a.plan.Entries[i].Name
	for n := 0; ; n++ {
		var has [2]bool
		for side := range has {
			_, has[side] = a.plan.Sides[side].Trace.LookupFiring(pass, name, n)
		}
		if n > 0 && has[local] == has[reference] {
			if !has[local] {
				return
			}
			continue
		}
		if !has[local] && !has[reference] && a.plan.None(name, pass) {
			return
		}
		key := name
		if n > 0 {
			key = capture.Key(0, name, n)
		}
		if side := a.plan.Missing(i, has); side == "" || a.takesNone(name, has) {
		} else if line := a.o.Limits.Allows(name, pass, gate.Absent); line >= 0 {
			a.res.Allowed[line].Keys = append(a.res.Allowed[line].Keys, capture.Key(pass, key, 0))
		} else {
			a.res.Missing = append(a.res.Missing, Missing{Pass: pass, Name: key, Side: side})
		}
		if !has[local] || !has[reference] {
			return
		}
	}
}
