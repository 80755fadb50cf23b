package diagnose

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// Needs is what a run must have to show a usual mistake.
type Needs struct {
	Tokens int    // in one pass
	Total  int    // in all passes together
	Before int    // in the passes before the last
	Steps  int    // passes after the first
	ID     int    // a token id that is at least this
	Never  string // a property that a checkpoint needs, whatever the run
}

// Ran is the part of a run that decides which mistakes the run can show.
type Ran struct {
	Passes []order.Pass
	IDs    [][]int
	DType  hooks.DType
}

// Lacks names a need of a mistake that the run does not meet; empty if the run meets all needs.
func (n Needs) Lacks(r Ran) string {
	longest, total, id := 0, 0, -1
	for k, p := range r.Passes {
		longest, total = max(longest, p.Tokens), total+p.Tokens
		if k < len(r.IDs) {
			id = max(id, slices.Max(append(slices.Clone(r.IDs[k]), -1)))
		}
	}
	before := 0
	if last := len(r.Passes) - 1; last >= 0 {
		before = total - r.Passes[last].Tokens
	}
	steps := len(r.Passes) - 1
	switch {
	case n.Never != "":
		return "a checkpoint with " + n.Never
	case longest < n.Tokens:
		return fmt.Sprintf("a prompt of at least %d tokens", n.Tokens)
	case total < n.Total:
		return fmt.Sprintf("a prompt of at least %d tokens", n.Total)
	case steps < n.Steps && n.Before > 0:
		return fmt.Sprintf("%s after a prompt of at least %d tokens", steppings(n.Steps), n.Before)
	case steps < n.Steps:
		return steppings(n.Steps)
	case before < n.Before:
		return fmt.Sprintf("a decode step after at least %d tokens", n.Before)
	case id < n.ID:
		return fmt.Sprintf("a token id of at least %d", n.ID)
	}
	return ""
}

func steppings(n int) string {
	if n == 1 {
		return "a decode step"
	}
	return fmt.Sprintf("%d decode steps", n)
}

// need returns the needs of a mistake for a configuration.
type need func(*order.Config) Needs

func tokens(n int) need {
	return func(*order.Config) Needs { return Needs{Tokens: n} }
}

func aStep(*order.Config) Needs { return Needs{Steps: 1} }

// aWindow is a prompt of as many tokens as the window has keys, and some more.
func aWindow(more int) need {
	return func(c *order.Config) Needs { return Needs{Tokens: c.SlidingWindow + more} }
}

// pastWindow is a pass in which full layers see more keys than a window has.
func pastWindow(c *order.Config) Needs { return Needs{Total: c.SlidingWindow + 1} }

// fullWindow is a decode step of a cache that is full.
func fullWindow(c *order.Config) Needs { return Needs{Before: c.SlidingWindow, Steps: 1} }

func twoKeyHeads(c *order.Config) Needs {
	if c.NumKVHeads < 2 {
		return Needs{Never: "more than one KV head"}
	}
	return Needs{}
}

// exactPositions is the end of the range in which bfloat16 has every whole number.
const exactPositions = 256
