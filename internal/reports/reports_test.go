package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// A field that is another one, that is new or gone, and a list of another length are told with their place.
func TestDifferencesNameFields(t *testing.T) {
	value := func(text string) (x any) {
		if err := json.Unmarshal([]byte(text), &x); err != nil {
			t.Fatal(err)
		}
		return x
	}
	a := value(`{"exit": 0, "rows": [{"name": "q", "reach": 0.5}, {"name": "k"}], "gone": 1, "list": [1]}`)
	b := value(`{"exit": 0, "rows": [{"name": "q", "reach": 0.25}, {"name": "k"}], "new": {"x": 1}, "list": [1, 2]}`)
	want := []string{".gone: null, was 1", ".list: [1,2], was [1]", `.new: {"x":1}, was null`, ".rows[0].reach: 0.25, was 0.5"}
	if got := differences("", a, b); !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	if got := differences("", a, a); got != nil {
		t.Errorf("a report differs from itself: %v", got)
	}
}

// Each comparison has a report of its own name.
func TestCasesHaveNames(t *testing.T) {
	t.Chdir("../..")
	cases, err := allCases("", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.name] || strings.ContainsAny(c.name, "/ ") {
			t.Errorf("two reports are %q, or it is no name", c.name)
		}
		seen[c.name] = true
	}
	if len(cases) < 250 {
		t.Errorf("%d comparisons", len(cases))
	}
}
