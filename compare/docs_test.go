package compare_test

import (
	"os"
	"strings"
	"testing"
)

// Documents that state what was measured have it between two comments, <!-- NAME --> and <!-- end of NAME -->. The test that
// measures compares, and with -update writes.

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docSection puts what was measured in its place between two comments of a document, and compares it with what was there.
func docSection(t *testing.T, path, docs, name, made string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(docs, begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for %s", path, name)
	}
	made += "\n"
	if made != old && !*update {
		t.Errorf("%s: what it says of %s is not what was measured now; run with -update:\n%s", path, name, made)
	}
	return before + begin + made + end + after
}
