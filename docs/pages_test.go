package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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

// What the pages say about half 6 and about all runs in prose is what the tables of the bench have.
func TestFiguresOfTheBenchAgree(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(data)), " ")
	}
	bench, evidence, readme := read("results/bench.md"), read("evidence.md"), read("../README.md")
	_, half, _ := strings.Cut(bench, "## Half 6 In transformers' own arithmetic:")
	named := func(dtype string) string { // of runs, located, named
		m := regexp.MustCompile(`\| ` + dtype + ` \| 3 \|[^|]*\|[^|]*\| [^|(]*\(([0-9.]+ %)\) \|`).FindStringSubmatch(half)
		if m == nil {
			t.Fatalf("half 6 has no row of %s at level 3", dtype)
		}
		return m[1]
	}
	if at3 := "named at level 3: " + named("float32") + " in float32, " + named("bfloat16") + " in bfloat16"; !strings.Contains(evidence, at3) {
		t.Errorf("evidence.md does not say %q", at3)
	}
	located, runs := 0, 0
	for _, m := range regexp.MustCompile(`located, or shown to be what roundings give \|[^|]*\| (\d+) of (\d+) `).FindAllStringSubmatch(bench, -1) {
		n, _ := strconv.Atoi(m[1])
		of, _ := strconv.Atoi(m[2])
		located, runs = located+n, runs+of
	}
	sum := fmt.Sprintf("%d,%03d of %d,%03d", located/1000, located%1000, runs/1000, runs%1000)
	for path, text := range map[string]string{"evidence.md": evidence, "README.md": readme} {
		if !strings.Contains(text, sum) {
			t.Errorf("%s does not say %q", path, sum)
		}
	}
}
