package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The lines of code that the contributor's page shows of a kind of mistakes stand in the code.
func TestTheWorkedExampleIsInTheCode(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## A new kind of mistake")
	section, _, _ = strings.Cut(section, "\n## ")
	files, err := filepath.Glob("../compare/diagnose/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code []string
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, oneSpace(string(data)))
	}
	lines := regexp.MustCompile(`(?m)^       (.+)$`).FindAllStringSubmatch(section, -1)
	for _, line := range lines {
		if !slices.ContainsFunc(code, func(text string) bool { return strings.Contains(text, oneSpace(line[1])) }) {
			t.Errorf("no file has the line %q", line[1])
		}
	}
	if len(lines) < 4 {
		t.Errorf("the section has %d lines of code", len(lines))
	}
}

// oneSpace has each run of spaces as one: columns of a table are aligned.
func oneSpace(text string) string { return regexp.MustCompile(` +`).ReplaceAllString(text, " ") }
