package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// UnsuitableError says why two traces cannot be compared at all.
type UnsuitableError struct {
	What        string   // "config", "order", "weights", "status", "sequence", "rows" or "manifest"
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

// maxDifferences is how many differences an error lists; the first is what matters.
const maxDifferences = 8

// suitable returns an [*UnsuitableError] unless the traces are of one model and may be compared. What only one side
// declares is no difference. An A/B comparison is made of different configurations and orders too, and they are returned.
func suitable(l, r *capture.Trace, o Options) (differences []string, err error) {
	names := o.names()
	for i, t := range []*capture.Trace{l, r} {
		if why := t.Unfinished(); why != "" && !o.Partial {
			return nil, &UnsuitableError{
				What: "status", Reason: fmt.Sprintf("%s is not complete: %s", names[i].Trace, why),
				Hint: "capture it again, or add --partial to compare what is there",
			}
		}
	}
	lm, rm := l.Manifest(), r.Manifest()
	if capture.OtherWeights(lm.Weights, rm.Weights) {
		return nil, &UnsuitableError{
			What: "weights", Reason: "the two traces are of different weights",
			Differences: []string{names.pair(fmt.Sprintf("%.40q", lm.Weights), fmt.Sprintf("%.40q", rm.Weights))},
			Hint:        "capture both sides from the same checkpoint",
		}
	}
	if err := oneSequence([2]*capture.Trace{l, r}, o); err != nil {
		return nil, err
	}
	config, err := names.configDifferences(lm.Config, rm.Config)
	if err != nil {
		return nil, err
	}
	orders := names.orderDifferences(lm, rm, o.Order)
	if err := contradictions([2]*capture.Trace{l, r}, o, len(config)+len(orders) > 0); err != nil {
		return nil, err
	}
	for _, d := range []UnsuitableError{
		{"config", "the two traces are of different configurations", config, "capture both sides from the same checkpoint, or add --ab if they are to differ"},
		{"order", "the two traces were captured by different orders", orders, "capture both sides with the same version of tracediff and the same --order, or add --ab if they are to differ"},
	} {
		if len(d.Differences) == 0 {
			continue
		}
		d.Differences = first(d.Differences)
		if !o.AB {
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

// configDifferences lists the keys in which two JSON values differ. Numbers are equal when they are the same float64,
// however they are written. A configuration that is not declared differs from none.
func (n sideNames) configDifferences(l, r json.RawMessage) ([]string, error) {
	if len(l) == 0 || len(r) == 0 {
		return nil, nil
	}
	var a, b any
	if err := json.Unmarshal(l, &a); err != nil {
		return nil, fmt.Errorf("config of %s: %w", n[local].Trace, err)
	}
	if err := json.Unmarshal(r, &b); err != nil {
		return nil, fmt.Errorf("config of %s: %w", n[reference].Trace, err)
	}
	var diffs []string
	n.jsonDifferences("", a, b, &diffs)
	return diffs, nil
}

func (n sideNames) jsonDifferences(path string, a, b any, diffs *[]string) {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			for _, key := range unionKeys(x, y) {
				u, inX := x[key]
				v, inY := y[key]
				if inX && inY {
					n.jsonDifferences(path+key+".", u, v, diffs)
				} else {
					*diffs = append(*diffs, path+key+": "+n.pair(text(u, inX), text(v, inY)))
				}
			}
			return
		}
	}
	if u, v := text(a, true), text(b, true); u != v {
		*diffs = append(*diffs, strings.TrimSuffix(path, ".")+": "+n.pair(u, v))
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

// orderDifferences lists where the names that both sides declare contradict each other. A side may well declare fewer
// names than the other, because its scope is narrower or because it has fewer hooks. But names that both have stand in
// one order, those of inputs apart; and where each side's scope covers names that only the other one has, the two were not made from one order.
func (n sideNames) orderDifferences(l, r capture.Manifest, list *order.List) []string {
	if l.Entries == nil || r.Entries == nil {
		return nil
	}
	inL, inR := set(l.Entries), set(r.Entries)
	both := func(in map[string]bool) func(string) bool { return func(s string) bool { return !in[s] || isInput(s) } }
	a, b := slices.DeleteFunc(slices.Clone(l.Entries), both(inR)), slices.DeleteFunc(slices.Clone(r.Entries), both(inL))
	if list != nil && (list.IsRecorded() || l.Program != "" || r.Program != "") { // a recording run writes a tensor when it knows its name, which is not where the order has it
		byPlace := func(x, y string) int { return cmp.Compare(list.Index(x), list.Index(y)) }
		slices.SortStableFunc(a, byPlace)
		slices.SortStableFunc(b, byPlace)
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return []string{fmt.Sprintf("number %d of the common names: %s", i+1, n.pair(strconv.Quote(a[i]), strconv.Quote(b[i])))}
		}
	}
	onlyL, onlyR := unshared(l.Entries, inR, r.Scope, list), unshared(r.Entries, inL, l.Scope, list)
	if len(onlyL) == 0 || len(onlyR) == 0 {
		return nil
	}
	var diffs []string
	for i := range max(len(onlyL), len(onlyR)) {
		if i < len(onlyL) {
			diffs = append(diffs, fmt.Sprintf("only %s declares %q", n[local].Side, onlyL[i]))
		}
		if i < len(onlyR) {
			diffs = append(diffs, fmt.Sprintf("only %s declares %q", n[reference].Side, onlyR[i]))
		}
	}
	return diffs
}

// unshared lists the names that are not among another side's, although its scope selects them. Of a name that the order
// does not know nothing is known: only a scope without limits selects it.
func unshared(names []string, others map[string]bool, scope capture.Scope, list *order.List) []string {
	whole := !scope.Narrow() && scope.Level != 1 && scope.Level != 2
	var chosen map[string]bool
	if list != nil {
		chosen = selected(scope, list)
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

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
