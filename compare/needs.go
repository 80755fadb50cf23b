package compare

import (
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// needs collects what keeps some entries from having been captured, or from having been compared.
type needs struct {
	level                   int
	layers, passes, tensors bool
	hook                    string // an entry that its trace's scope has, and that nobody fired
	entries                 int
}

// of adds an entry of a pass that is not there, as far as these scopes are why.
func (n *needs) of(e *order.Entry, pass int, scopes ...capture.Scope) {
	n.entries++
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

// String says with which flags all of it would have been captured, or which hook is the first that is missing; empty when
// nothing is.
func (n *needs) String() string {
	var flags []string
	if n.level > 0 {
		flags = append(flags, map[int]string{1: "--level 1", 2: "--level 2", 3: "--level 3"}[n.level])
	}
	for _, f := range []struct {
		is   bool
		text string
	}{{n.layers, "no --layers"}, {n.passes, "no --passes"}, {n.tensors, "no --tensors"}} {
		if f.is {
			flags = append(flags, f.text)
		}
	}
	if len(flags) == 0 && n.hook != "" {
		return "a hook that fires " + n.hook
	}
	return strings.Join(flags, " and ")
}
