package seeds_test

import (
	"flag"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/tracediff/tracediff/internal/seeds"
)

const rapid, seeds = `"pgregory.net/rapid"`, `"github.com/tracediff/tracediff/internal/seeds"`

// Every package whose tests draw cases draws them from the fixed seed.
func TestEveryPackageDrawsFromTheFixedSeed(t *testing.T) {
	draws, fixed := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			draws[filepath.Dir(path)] = draws[filepath.Dir(path)] || i.Path.Value == rapid
			fixed[filepath.Dir(path)] = fixed[filepath.Dir(path)] || i.Path.Value == seeds
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	some := false
	for dir, is := range draws {
		if some = some || is; is && !fixed[dir] {
			t.Errorf("the tests of %s draw from a new seed in each run: import _ %s", dir, seeds)
		}
	}
	if !some {
		t.Error("no test draws anything")
	}
}

// The seed is the fixed one unless another is named.
func TestSeed(t *testing.T) {
	named := os.Getenv("RAPID_SEED")
	if got := flag.Lookup("rapid.seed").Value.String(); named == "" && got != "1" {
		t.Errorf("the seed is %s", got)
	}
}
