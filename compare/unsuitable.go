package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// UnsuitableError says why two traces cannot be compared at all.
type UnsuitableError struct {
	What        string   // "config", "order", "weights", "status" or "sequence"
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
// declares is no difference.
func suitable(l, r *capture.Trace, o Options) error {
	for i, t := range []*capture.Trace{l, r} {
		if s := t.Status(); s != "" && s != capture.StatusComplete && !o.Partial {
			return &UnsuitableError{
				What: "status", Reason: fmt.Sprintf("the %s trace is not complete, its status is %q", sideNames[i], s),
				Hint: "capture it again, or add --partial to compare what is there",
			}
		}
	}
	lm, rm := l.Manifest(), r.Manifest()
	if lm.Weights != rm.Weights && known(lm.Weights) && known(rm.Weights) {
		return &UnsuitableError{
			What: "weights", Reason: "the two traces are of different weights",
			Differences: []string{fmt.Sprintf("local %.40q, reference %.40q", lm.Weights, rm.Weights)},
			Hint:        "capture both sides from the same checkpoint",
		}
	}
	if len(lm.Config) > 0 && len(rm.Config) > 0 {
		diffs, err := configDifferences(lm.Config, rm.Config)
		if err != nil {
			return err
		}
		if len(diffs) > 0 {
			return &UnsuitableError{
				What: "config", Reason: "the two traces are of different configurations", Differences: first(diffs),
				Hint: "capture both sides from the same checkpoint",
			}
		}
	}
	if diffs := orderDifferences(lm, rm, o.Order); len(diffs) > 0 {
		return &UnsuitableError{
			What: "order", Reason: "the two traces were captured by different orders", Differences: first(diffs),
			Hint: "capture both sides with the same version of tracediff and the same --order",
		}
	}
	return nil
}

func known(weights string) bool { return weights != "" && weights != "unknown" }

func first(diffs []string) []string {
	if len(diffs) <= maxDifferences {
		return diffs
	}
	return append(diffs[:maxDifferences:maxDifferences], fmt.Sprintf("and %d more", len(diffs)-maxDifferences))
}

// configDifferences lists the keys in which two JSON values differ. Numbers are equal when they are the same float64,
// however they are written.
func configDifferences(l, r json.RawMessage) ([]string, error) {
	var a, b any
	if err := json.Unmarshal(l, &a); err != nil {
		return nil, fmt.Errorf("config of the local trace: %w", err)
	}
	if err := json.Unmarshal(r, &b); err != nil {
		return nil, fmt.Errorf("config of the reference trace: %w", err)
	}
	var diffs []string
	jsonDifferences("", a, b, &diffs)
	return diffs, nil
}

func jsonDifferences(path string, a, b any, diffs *[]string) {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			for _, key := range unionKeys(x, y) {
				u, inX := x[key]
				v, inY := y[key]
				if inX && inY {
					jsonDifferences(path+key+".", u, v, diffs)
				} else {
					*diffs = append(*diffs, fmt.Sprintf("%s%s: local %s, reference %s", path, key, text(u, inX), text(v, inY)))
				}
			}
			return
		}
	}
	if u, v := text(a, true), text(b, true); u != v {
		*diffs = append(*diffs, fmt.Sprintf("%s: local %s, reference %s", strings.TrimSuffix(path, "."), u, v))
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
// one order; and where each side's scope covers names that only the other one has, the two were not made from one order.
func orderDifferences(l, r capture.Manifest, list *order.List) []string {
	if l.Entries == nil || r.Entries == nil {
		return nil
	}
	inL, inR := set(l.Entries), set(r.Entries)
	both := func(in map[string]bool) func(string) bool { return func(s string) bool { return !in[s] } }
	a, b := slices.DeleteFunc(slices.Clone(l.Entries), both(inR)), slices.DeleteFunc(slices.Clone(r.Entries), both(inL))
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return []string{fmt.Sprintf("number %d of the common names: local %q, reference %q", i+1, a[i], b[i])}
		}
	}
	onlyL, onlyR := unshared(l.Entries, inR, r.Scope, list), unshared(r.Entries, inL, l.Scope, list)
	if len(onlyL) == 0 || len(onlyR) == 0 {
		return nil
	}
	var diffs []string
	for i := range max(len(onlyL), len(onlyR)) {
		if i < len(onlyL) {
			diffs = append(diffs, fmt.Sprintf("only local declares %q", onlyL[i]))
		}
		if i < len(onlyR) {
			diffs = append(diffs, fmt.Sprintf("only the reference declares %q", onlyR[i]))
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
