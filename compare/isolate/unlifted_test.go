package isolate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
)

// stepsOf are the operations of a named entry from the nearest named ones, with how many inputs and weights they have, in one line.
func stepsOf(list *order.List, n order.Node) string {
	named := func(m order.Node) bool { return list.Entries[m.Entry].Level != recorded.Unnamed }
	cut, err := list.Cut(named, n)
	if err != nil {
		return err.Error()
	}
	var names []string
	weights := map[string]bool{}
	for _, s := range cut.Steps {
		e := list.At(s)
		for _, w := range e.Weights {
			weights[w.Name] = true
		}
		names = append(names, e.Op.Kind())
	}
	var parts []string
	for i := 0; i < len(names); {
		k := i
		for k < len(names) && names[k] == names[i] {
			k++
		}
		if parts = append(parts, names[i]); k-i > 1 {
			parts[len(parts)-1] += fmt.Sprintf("*%d", k-i)
		}
		i = k
	}
	text := strings.Join(parts, " ")
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return fmt.Sprintf("%d inputs, %d weights: %s", len(cut.Leaves), len(weights), text)
}

// most are lines of a count, the largest first, with up to a few of what they were counted in.
func most(counts map[string]int, in map[string][]string, n int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var b strings.Builder
	for _, k := range keys[:min(n, len(keys))] {
		fmt.Fprintf(&b, "%6d  %s  (%s)\n", counts[k], k, strings.Join(in[k][:min(4, len(in[k]))], ", "))
	}
	return b.String()
}
