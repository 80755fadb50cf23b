package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```\n?")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	marks   = regexp.MustCompile("[`*]")
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors are those that GitHub gives the headings of a page, without the count of a heading that stands twice.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(string(data), ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(marks.ReplaceAllString(m[1], "")), "")
		anchor := strings.ReplaceAll(strings.TrimSpace(text), " ", "-")
		if all[anchor] {
			t.Errorf("%s has two headings #%s", path, anchor)
		}
		all[anchor] = true
	}
	return all
}

// Every link of the pages to a file of the repository finds the file, and its heading if the link names one. No page has two headings of one
// anchor.
func TestLinks(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"../*.md", "*.md", "results/*.md", "skill/*.md", "../fixtures/*.md", "../fixtures/*/README.md", "../hooks/python/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	if len(pages) < 20 {
		t.Fatalf("%d pages", len(pages))
	}
	headings := map[string]map[string]bool{}
	for _, page := range pages {
		headings[filepath.Clean(page)] = anchors(t, page)
	}
	links := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(data), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			to := filepath.Clean(page)
			if path != "" {
				to = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: a link to %s, which is not there", page, m[1])
				continue
			}
			if has := headings[to]; anchor != "" && has != nil && !has[anchor] {
				t.Errorf("%s: a link to %s, which has no such heading", page, m[1])
			}
		}
	}
	if links < 200 {
		t.Errorf("%d links", links)
	}
}
