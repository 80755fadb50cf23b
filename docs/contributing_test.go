package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The lines of code that the contributor's page shows of a kind of mistakes stand in the code.
func TestTheWorkedExampleIsInTheCode(t *testing.T) {
	page, err := os.ReadFile("../CONTRIBUTING.md")
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

// Each package has a sentence in the page of packages: a row of a table begins with its path.
func TestEveryPackageHasASentence(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/tracediff/tracediff/"
	out, err := exec.Command("go", "list", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, path := range strings.Fields(string(out)) {
		path = strings.TrimPrefix(path, module)
		listed[path] = true
		if !strings.Contains(string(page), "`"+path+"`") {
			t.Errorf("%s has no sentence", path)
		}
	}
	_, tables, _ := strings.Cut(string(page), "| floor | package |")
	tables, _, _ = strings.Cut(tables, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\|[^|]*\\| `([^`]+)`").FindAllStringSubmatch(tables, -1) {
		if !listed[m[1]] {
			t.Errorf("there is no package %s", m[1])
		}
	}
	if len(listed) < 10 {
		t.Errorf("go list names %d packages", len(listed))
	}
}
