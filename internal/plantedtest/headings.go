package plantedtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
)

// pyDefinition is a fault of half 1 in a module of fixtures/faults: its heading in docs/mistakes.md, and the function under its decorator.
var pyDefinition = regexp.MustCompile(`(?m)^@fault\(\s*"([^"]+)",(?:[^@]*?)\bhalf=1\b(?s:.*?)^def (\w+)\(`)

// Headings are the faults of half 1 by the heading of docs/mistakes.md that they stand under, in the order of fixtures/faults/order.txt.
func Headings(t testing.TB) map[string][]string {
	t.Helper()
	folder := filepath.Join(ondisk.Dir(), "faults")
	files, err := filepath.Glob(filepath.Join(folder, "*.py"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	read := func(path string) string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	headings := map[string]string{}
	for _, file := range files {
		text := read(file)
		found := pyDefinition.FindAllStringSubmatch(text, -1)
		if len(found) != strings.Count(text, "half=1,")+strings.Count(text, "half=1)") {
			t.Fatalf("%s: a fault without a heading", file)
		}
		for _, m := range found {
			headings[strings.ReplaceAll(m[2], "_", "-")] = m[1]
		}
	}
	faults := map[string][]string{}
	for _, name := range strings.Fields(read(filepath.Join(folder, "order.txt"))) {
		if heading, ok := headings[name]; ok {
			faults[heading] = append(faults[heading], name)
		}
	}
	return faults
}
