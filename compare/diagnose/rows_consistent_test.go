package diagnose

import (
	"reflect"
	"slices"
	"testing"
)

// A row can only come after kinds that there are, not after itself, and has no effect on an edit of steps, whose class is that of the edit.
func TestRowsComeAfterOthers(t *testing.T) {
	var follow func(k Kind, seen []Kind)
	follow = func(k Kind, seen []Kind) {
		if slices.Contains(seen, k) {
			t.Fatalf("%s comes after itself: %s", k, seen)
		}
		row := catalogue()[k]
		if row == nil {
			t.Fatalf("%s comes after %s, which is no kind", seen[len(seen)-1], k)
		}
		for _, before := range row.After {
			follow(before, append(slices.Clone(seen), k))
		}
	}
	for kind, row := range catalogue() {
		if follow(kind, nil); len(row.After) > 0 && row.Apply == nil {
			t.Errorf("%s is an edit of steps, and comes after %s", kind, row.After)
		}
	}
}

// Each kind of masks by a rule has its rule, and each rule is of a kind.
func TestMasksHaveRules(t *testing.T) {
	byRule := map[Kind]bool{}
	pointer := func(f apply) uintptr { return reflect.ValueOf(f).Pointer() }
	for kind, row := range catalogue() {
		if f := pointer(row.Apply); f == pointer(otherSight) || f == pointer(otherEdge) {
			byRule[kind] = true
			if maskRules[kind] == nil {
				t.Errorf("%s has no rule in mask_rules.go", kind)
			}
		}
	}
	for kind := range maskRules {
		if !byRule[kind] {
			t.Errorf("the rule of %s is of no kind that is a mask by a rule", kind)
		}
	}
}

// Counts in a text are no reason to take memory for them.
func TestHostileNumbers(t *testing.T) {
	for _, text := range []Numbers{"1*9223372036854775807", "1,1*9223372036854775807", "1*1048577", "1*-1"} {
		if all := text.list(); all != nil {
			t.Errorf("%s: %d numbers", text, len(all))
		}
	}
	if all := Numbers("1*3,0.5").list(); len(all) != 4 || all[3] != 0.5 {
		t.Errorf("%v", all)
	}
}

// A number within an error of 0 is 0, and no number of many digits near it.
func TestShortestNumbers(t *testing.T) {
	for _, c := range []struct{ low, high, want float64 }{{-2e-9, 1e-9, 0}, {0.2499, 0.2501, 0.25}, {-1.3, -1.2, -1.2}, {0.9, 1.2, 1}} {
		if got := shortest(c.low, c.high); got != c.want {
			t.Errorf("between %g and %g: %g, want %g", c.low, c.high, got, c.want)
		}
	}
}
