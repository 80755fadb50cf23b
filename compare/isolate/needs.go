package isolate

import (
	"fmt"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Needs collects what keeps some entries from having been captured, or from having been compared.
type Needs struct {
	Given bool // the trace is a file that a person's own program wrote: no flag captures more

	names                   []string // keys of all entries, as given
	level                   int
	layers, passes, tensors bool
	hook                    string // an entry that its trace's scope has, and that nobody fired
	Entries                 int
}

// Of adds a missing entry of a pass, and finds out whether one of these scopes excludes the entry.
func (n *Needs) Of(e *order.Entry, pass int, scopes ...capture.Scope) {
	n.Entries++
	n.names = append(n.names, capture.Key(pass, e.Name, 0))
	explained := false
	for _, s := range scopes {
		if s.Level == 0 { // undeclared
			continue
		}
		if e.Level > s.Level {
			n.level, explained = max(n.level, e.Level), true
		}
		if e.Layer >= 0 && !s.Layers.Has(e.Layer) {
			n.layers, explained = true, true
		}
		if !s.Passes.Has(pass) {
			n.passes, explained = true, true
		}
		if len(s.Tensors) > 0 {
			n.tensors, explained = true, true
		}
	}
	if !explained && n.hook == "" {
		n.hook = capture.Key(pass, e.Name, 0)
	}
}

// String describes how to capture the missing entries: flags to add or remove, or the first missing hook. It is
// empty if no entry is missing.
func (n *Needs) String() string {
	if n.Given && len(n.names) > 0 {
		text := "dump " + Some(n.names) + " to have it"
		if len(n.names) > 5 { // of which Some leaves names out
			text += " (tracediff order lists them)"
		}
		return text
	}
	text := ""
	if n.level > 0 {
		text = fmt.Sprintf(" with --level %d", n.level)
	}
	var without []string
	for _, f := range []struct {
		is   bool
		flag string
	}{{n.layers, "--layers"}, {n.passes, "--passes"}, {n.tensors, "--tensors"}} {
		if f.is {
			without = append(without, f.flag)
		}
	}
	if without != nil {
		text += " without " + strings.Join(without, " and ")
	}
	switch {
	case text != "":
		return "capture" + text + " to have it"
	case n.hook != "":
		return "add a hook that fires " + n.hook
	}
	return ""
}

// Some are the first of many names.
func Some(names []string) string {
	const most = 4
	if n := len(names) - most; n > 1 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n)
	}
	return strings.Join(names, ", ")
}
