package words

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
)

// traces names the traces, their differences, and the map of the local trace.
func traces(doc *Document, r *compare.Result) {
	if r.Alone {
		doc.head("reference", "none; every entry is computed from the trace's own inputs")
		doc.head("trace", "%s", SideOf(r.Local))
	} else {
		first, second := r.Reference, r.Local
		if r.AB {
			first, second = second, first
		}
		doc.head(first.Name.Label, "%s", SideOf(first))
		doc.head(second.Name.Label, "%s", SideOf(second))
	}
	for _, d := range r.Differences {
		doc.head("differs", "%s", d)
	}
	mapped(doc, r.Map)
}

// mapped says by which map the local side was read; the short view has a part of what it changed.
func mapped(doc *Document, m *compare.Map) {
	if m == nil {
		return
	}
	if m.File == "" {
		doc.head("map", "%s", withoutMap(m))
		return
	}
	doc.head("map", "%s, %s", m.File, count(m.Patterns, "pattern", "patterns"))
	for _, text := range unmapped(m) {
		doc.head("", "%s", text)
	}
	for k, c := range m.Changes {
		doc.only(Either(k < maxShort, Any, Whole), func() { doc.head("", "%s", c) })
	}
	if n := len(m.Changes) - maxShort; n > 0 {
		doc.only(Brief, func() { doc.head("", verboseHas, strconv.Itoa(n)) })
	}
}

// unmapped says what a map leaves open, and what to do.
func unmapped(m *compare.Map) (texts []string) {
	if m.Open > 0 {
		texts = append(texts, openTensors(m)+haveNoLine(m)+": not compared; give each a line, or leave it out with to = []")
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(m.Absent)) {
		if line := m.Absent[name]; !slices.Contains(lines, line) {
			lines = append(lines, line)
			texts = append(texts, line+" matches no tensor of the dump: its entries are MISSING")
		}
	}
	return texts
}

// withoutMap says that a dump in names of its own needs a map.
func withoutMap(m *compare.Map) string {
	return "none; the order does not know " + openTensors(m) + ": not compared; tracediff map LOCAL REFERENCE proposes a map, and --map reads the dump with it"
}

// openTensors are the tensors of the dump that have no line: how many there are, and the names of some.
func openTensors(m *compare.Map) string {
	var quoted []string
	for _, name := range m.Examples {
		quoted = append(quoted, fmt.Sprintf("%.80q", name))
	}
	text := ofDump(m)
	switch {
	case len(quoted) == 0:
	case len(quoted) == m.Open:
		text += " (" + strings.Join(quoted, ", ") + ")"
	default:
		text += " (such as " + strings.Join(quoted, ", ") + ")"
	}
	return text
}

func ofDump(m *compare.Map) string { return count(m.Open, "tensor", "tensors") + " of the dump" }

func haveNoLine(m *compare.Map) string { return Either(m.Open == 1, " has", " have") + " no line" }

// MapText is a map and all that it changed, in one text.
func MapText(m *compare.Map) string {
	if m.File == "" {
		return withoutMap(m)
	}
	text := strings.Join(append([]string{m.File + ", " + count(m.Patterns, "pattern", "patterns")}, unmapped(m)...), "; ")
	if len(m.Changes) > 0 {
		text += ": " + strings.Join(m.Changes, "; ")
	}
	return text
}

// scope says what limited the comparison.
func scope(doc *Document, r *compare.Result) { doc.head("scope", "%s", scopes(r)) }

// SideOf names a trace by its producer, or by its file if the manifest has no producer.
func SideOf(s compare.Side) string {
	name := strings.TrimSpace(s.Producer.Name + " " + s.Producer.Version)
	if name == "" {
		name = s.Path
	}
	if s.DType != "" {
		name += ", " + s.DType
	}
	if s.Model != "" {
		name += ", " + s.Model
	}
	if s.Label != "" {
		name += " (" + s.Label + ")"
	}
	return name
}

// scopes says what limited the comparison. Equal limits of both traces are written once.
func scopes(r *compare.Result) string {
	l, ref, typed := LimitsOf(r.Local.Scope), LimitsOf(r.Reference.Scope), LimitsOf(r.Typed)
	text := r.Local.Name.Label + " " + l + "; " + r.Reference.Name.Label + " " + ref
	if l == ref || r.Alone {
		text = l
	}
	if typed != "undeclared" {
		text += "; asked for: " + typed
	}
	return text
}

// LimitsOf returns the limits of a scope, separated by commas: the level, the ranges of layers, passes and positions (numbers from 0), and
// the patterns of tensors. LimitsOf returns "undeclared" for a scope without limits.
func LimitsOf(s capture.Scope) string {
	var parts []string
	if s.Level > 0 {
		parts = append(parts, fmt.Sprintf("level %d", s.Level))
	}
	for _, part := range []struct {
		name   string
		ranges capture.Ranges
	}{{"layers", s.Layers}, {"passes", s.Passes}, {"positions", s.Positions}} {
		if len(part.ranges) > 0 {
			parts = append(parts, part.name+" "+part.ranges.String())
		}
	}
	if len(s.Tensors) > 0 {
		parts = append(parts, "tensors "+strings.Join(s.Tensors, " "))
	}
	if parts == nil {
		return "undeclared"
	}
	return strings.Join(parts, ", ")
}

// Key is a key in a trace, from a name that may have its firing already.
func Key(pass int, name string) string { return capture.Key(pass, name, 0) }

// narrowScope says what limited the comparison, where that is less than a level of the whole model.
func narrowScope(doc *Document, r *compare.Result) {
	if narrowed(r) {
		scope(doc, r)
	}
}

// narrowed reports whether less was asked for, or captured, than some level of the whole model.
func narrowed(r *compare.Result) bool {
	return slices.ContainsFunc([]capture.Scope{r.Local.Scope, r.Reference.Scope, r.Typed}, narrow)
}

// narrow reports whether a scope has less than a level.
func narrow(s capture.Scope) bool {
	return len(s.Layers)+len(s.Passes)+len(s.Positions)+len(s.Tensors) > 0
}
