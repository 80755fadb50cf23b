package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const skillPage = "docs/skill/SKILL.md"

// The commands that the skill shows with their output print that output, and the fields that it names are in the reports that they write. Each
// other command that it names is one, with flags that it has.
func TestSkill(t *testing.T) {
	root := sources(t)
	checkPage(t, root, skillPage, 5) // in a folder of its own, where the reports are left
	var reports []any
	found, err := filepath.Glob("*.json")
	must(t, err)
	for _, path := range found {
		data, err := os.ReadFile(path)
		must(t, err)
		var report any
		must(t, json.Unmarshal(data, &report))
		reports = append(reports, report)
	}
	text := readPage(t, root, skillPage)
	fields := regexp.MustCompile("(?m)^\\| `(\\.[^`]+)` \\|").FindAllStringSubmatch(text, -1)
	if len(reports) != 3 || len(fields) < 12 {
		t.Fatalf("%d reports, %d fields", len(reports), len(fields))
	}
	for _, m := range fields {
		if !slices.ContainsFunc(reports, func(r any) bool { return hasField(r, strings.Split(m[1], ".")[1:]) }) {
			t.Errorf("no report has %s", m[1])
		}
	}
	app := newApp(nil, io.Discard, io.Discard)
	named := regexp.MustCompile("`tracediff ([^`]+)`").FindAllStringSubmatch(text, -1)
	for _, m := range named {
		typed := fieldsOf(m[1])
		c := app.Command(typed[0])
		if c == nil {
			t.Errorf("there is no command %q", m[1])
			continue
		}
		var known []string
		for _, f := range c.Flags {
			known = append(known, f.Names()...)
		}
		for _, word := range typed[1:] {
			if name, ok := strings.CutPrefix(word, "--"); ok && !slices.Contains(known, name) {
				t.Errorf("%q: there is no --%s", m[1], name)
			}
		}
	}
	if len(named) < 10 {
		t.Errorf("%d commands", len(named))
	}
	if !strings.HasPrefix(text, "---\nname: tracediff\ndescription: ") {
		t.Error("the page has no head by which an agent finds it")
	}
}

// hasField reports whether a value has a field, by the names on the way to it: one that ends in [] has elements, of which any counts.
func hasField(value any, names []string) bool {
	if len(names) == 0 {
		return value != nil
	}
	name, many := strings.CutSuffix(names[0], "[]")
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	inner, ok := object[name]
	if !ok || !many {
		return ok && hasField(inner, names[1:])
	}
	list, _ := inner.([]any)
	return slices.ContainsFunc(list, func(v any) bool { return hasField(v, names[1:]) })
}
