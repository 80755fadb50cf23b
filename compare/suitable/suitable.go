package suitable

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// maxDifferences is how many differences an error lists; the first is what matters.
const maxDifferences = 8

// Options say what is asked of two traces.
type Options struct {
	Order   *order.List // of the model; nil: nothing is held to it
	Mode    sides.Mode
	Partial bool // traces that are not complete are taken
}

// Check returns an [*sides.UnsuitableError] unless the traces are of one model and may be compared. What only one side
// declares is no difference. An A/B comparison is made of different configurations and orders too, and they are returned.
func Check(traces [2]*capture.Trace, o Options) (differences []string, err error) {
	names := sides.NamesOf(o.Mode)
	for i, t := range traces {
		if why := t.Unfinished(); why != "" && !o.Partial {
			return nil, &sides.UnsuitableError{
				What: "status", Reason: fmt.Sprintf("%s is not complete: %s", names[i].Trace, why),
				Hint: "capture it again, or add --partial to compare the tensors that it has",
			}
		}
	}
	l, r := traces[sides.Local].Manifest(), traces[sides.Reference].Manifest()
	if capture.OtherWeights(l.Weights, r.Weights) {
		return nil, &sides.UnsuitableError{
			What: "weights", Reason: "the two traces are of different weights",
			Differences: []string{names.Pair(fmt.Sprintf("%.40q", l.Weights), fmt.Sprintf("%.40q", r.Weights))},
			Hint:        "capture both sides from the same checkpoint",
		}
	}
	if err := oneSequence(traces, o); err != nil {
		return nil, err
	}
	config, err := configDifferences(names, l.Config, r.Config)
	if err != nil {
		return nil, err
	}
	orders := orderDifferences(names, l, r, o.Order)
	if err := contradictions(traces, o, len(config)+len(orders) > 0); err != nil {
		return nil, err
	}
	for _, d := range []sides.UnsuitableError{
		{What: "config", Reason: "the two traces are of different configurations", Differences: config, Hint: "capture both sides from the same checkpoint, or add --ab if they should differ"},
		{What: "order", Reason: "the two traces were captured by different orders", Differences: orders, Hint: "capture both sides with the same version of tracediff and the same --order, or add --ab if they should differ"},
	} {
		if len(d.Differences) == 0 {
			continue
		}
		d.Differences = first(d.Differences)
		if o.Mode != sides.AB {
			return nil, &d
		}
		for _, line := range d.Differences {
			differences = append(differences, d.What+": "+line)
		}
	}
	return differences, nil
}

func first(diffs []string) []string {
	if len(diffs) <= maxDifferences {
		return diffs
	}
	return append(diffs[:maxDifferences:maxDifferences], fmt.Sprintf("and %d more", len(diffs)-maxDifferences))
}

// configDifferences lists the keys with different values in two JSON configurations. Numbers are compared as
// float64, so their spelling does not matter. An undeclared configuration has no differences.
func configDifferences(n sides.Names, l, r json.RawMessage) ([]string, error) {
	if len(l) == 0 || len(r) == 0 {
		return nil, nil
	}
	var a, b any
	if err := json.Unmarshal(l, &a); err != nil {
		return nil, fmt.Errorf("config of %s: %w", n[sides.Local].Trace, err)
	}
	if err := json.Unmarshal(r, &b); err != nil {
		return nil, fmt.Errorf("config of %s: %w", n[sides.Reference].Trace, err)
	}
	var diffs []string
	jsonDifferences(n, "", a, b, &diffs)
	return diffs, nil
}

func jsonDifferences(n sides.Names, path string, a, b any, diffs *[]string) {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			for _, key := range unionKeys(x, y) {
				u, inX := x[key]
				v, inY := y[key]
				if inX && inY {
					jsonDifferences(n, path+key+".", u, v, diffs)
				} else {
					*diffs = append(*diffs, path+key+": "+n.Pair(text(u, inX), text(v, inY)))
				}
			}
			return
		}
	}
	if u, v := text(a, true), text(b, true); u != v {
		*diffs = append(*diffs, strings.TrimSuffix(path, ".")+": "+n.Pair(u, v))
	}
}

func unionKeys(x, y map[string]any) []string {
	var keys []string
	for k := range x {
		keys = append(keys, k)
	}
	for k := range y {
		if _, both := x[k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// text is a value as canonical JSON.
func text(v any, there bool) string {
	if !there {
		return "absent"
	}
	b, err := json.Marshal(v)
	if err != nil { // v came out of JSON
		panic(err)
	}
	return string(b)
}

// orderDifferences lists contradictions between the names declared by the two sides. A side may declare fewer
// names, because of a narrower scope or fewer hooks. But the common names, other than inputs, must be in the same
// order. And if each side declares names that are in the scope of the other side but absent there, the sides have
// different orders.
func orderDifferences(n sides.Names, l, r capture.Manifest, list *order.List) []string {
	if l.Entries == nil || r.Entries == nil {
		return nil
	}
	inL, inR := sides.Set(l.Entries), sides.Set(r.Entries)
	both := func(in map[string]bool) func(string) bool { return func(s string) bool { return !in[s] || isInput(s) } }
	a, b := slices.DeleteFunc(slices.Clone(l.Entries), both(inR)), slices.DeleteFunc(slices.Clone(r.Entries), both(inL))
	if list != nil && (list.IsRecorded() || l.Program != "" || r.Program != "") { // a recording run writes a tensor when it knows its name, which is not where the order has it
		byPlace := func(x, y string) int { return cmp.Compare(list.Index(x), list.Index(y)) }
		slices.SortStableFunc(a, byPlace)
		slices.SortStableFunc(b, byPlace)
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return []string{fmt.Sprintf("number %d of the common names: %s", i+1, n.Pair(strconv.Quote(a[i]), strconv.Quote(b[i])))}
		}
	}
	onlyL, onlyR := unshared(l.Entries, inR, r.Scope, list), unshared(r.Entries, inL, l.Scope, list)
	if len(onlyL) == 0 || len(onlyR) == 0 {
		return nil
	}
	var diffs []string
	for i := range max(len(onlyL), len(onlyR)) {
		if i < len(onlyL) {
			diffs = append(diffs, fmt.Sprintf("only %s declares %q", n[sides.Local].Side, onlyL[i]))
		}
		if i < len(onlyR) {
			diffs = append(diffs, fmt.Sprintf("only %s declares %q", n[sides.Reference].Side, onlyR[i]))
		}
	}
	return diffs
}

// unshared lists the names within a side's scope but absent from its names. For a name unknown to the order, only
// an unlimited scope includes it.
func unshared(names []string, others map[string]bool, scope capture.Scope, list *order.List) []string {
	whole := !scope.Narrow() && scope.Level != 1 && scope.Level != 2
	var chosen map[string]bool
	if list != nil {
		chosen = sides.Selected(scope, list)
	}
	var only []string
	for _, name := range names {
		known := list != nil && list.Index(name) >= 0
		if !others[name] && (known && chosen[name] || !known && whole) {
			only = append(only, name)
		}
	}
	return only
}
