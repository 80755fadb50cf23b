// Package pagetest holds the pages of docs to what tests measure. A page has a measured part between two comments,
// <!-- NAME --> and <!-- end of NAME -->. The test that measures it fails if the page has another text; with -update it
// writes the page.
//
// Only tests import the package.
package pagetest

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what was measured in place of what is expected")

// Update reports whether the test was run with -update, and writes expected files.
func Update() bool { return *update }

// Text reads a file.
func Text(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Write writes a file.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Section returns the page with text between the two comments of a name. Without -update the test fails if the page has
// another text there. path is for messages.
func Section(t testing.TB, path, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for %s", path, name)
	}
	text += "\n"
	if text != old && !*update {
		t.Errorf("%s: what it says about %s is not what was measured now; run with -update:\n%s", path, name, text)
	}
	return before + begin + text + end + after
}

// Samples is how many random samples a test takes: few, or as many as an environment variable says.
func Samples(t testing.TB, variable string, few int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, want a number", variable, text)
	}
	return n
}
