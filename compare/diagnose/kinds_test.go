package diagnose_test

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// The edits are the same for all operations: of these the search knows the table of activations, and nothing else. Masks, softmaxes,
// norms and caches are known by their steps, whatever operation these are of.
func TestOperationsHaveNoSearchOfTheirOwn(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "known.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if strings.HasSuffix(i.Path.Value, `/order/op"`) {
				t.Errorf("%s knows operations", name)
			}
		}
	}
}
