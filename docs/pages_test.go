package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// opening is the first paragraph of a page: for whom the page is, and what the reader has, knows or can do after it.
var opening = regexp.MustCompile(`\A# [^\n]+\n\nFor \S(?:[^\n]|\n[^\n])*\. After this page (?:you (?:have|know|can) |a gate runs |` + "`compare` reads )")

// The first paragraph of a page names its reader and what the reader gains.
func TestPagesBeginWithTheirReader(t *testing.T) {
	pages := 0
	for _, pattern := range []string{"*.md", "results/*.md", "../CONTRIBUTING.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			pages++
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !opening.Match(data) {
				t.Errorf("%s begins with %.200q", path, data)
			}
		}
	}
	if pages < 27 {
		t.Errorf("%d pages", pages)
	}
}

// What the pages say about half 8 in prose is what the table of the bench has.
func TestFiguresOfTheBenchAgree(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(data)), " ")
	}
	bench, evidence := read("results/bench.md"), read("evidence.md")
	share := func(level, dtype string) string {
		m := regexp.MustCompile(`\| 8 \| named at level ` + level + `, ` + dtype + ` \|[^|]*\| [^|]*\(([0-9.]+ %)\) \|`).FindStringSubmatch(bench)
		if m == nil {
			t.Fatalf("no goal of level %s in %s", level, dtype)
		}
		return m[1]
	}
	at3 := "named at level 3: " + share("3", "float32") + " in float32, " + share("3", "bfloat16") + " in bfloat16"
	for _, want := range []string{at3, "at level 2: " + share("2", "float32") + " and " + share("2", "bfloat16")} {
		if !strings.Contains(bench, want) {
			t.Errorf("bench.md does not say %q", want)
		}
	}
	if !strings.Contains(evidence, at3) {
		t.Errorf("evidence.md does not say %q", at3)
	}
}
