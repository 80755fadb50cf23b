package floors_test

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readers are the files and folders that know how names and keys are written: a layer in the order, a key of a trace, and the words of engines.
var readers = []string{"order/name.go", "internal/tracekey/", "internal/spelling/"}

// cuts are the literals by which a call of a package cuts a name or a key by hand: the list of layers, or the prefix of a pass. The literals
// under "" cut a name in any place.
var cuts = map[string]*regexp.Regexp{
	"":        regexp.MustCompile(`(^|\.)(layers|blocks|blk)\.$|^pass(%d)?/|^grad/$`),
	"fmt":     regexp.MustCompile(`(^|[./])((layers|blocks|blk|h)\.%|pass%d/)`),
	"regexp":  regexp.MustCompile(`(?i)layers?\b|blocks?\b|\bblk\b|\bpass`),
	"strings": regexp.MustCompile(`(^|\.)(layers|blocks|blk|h)\.|^\.?(layers|blk)$|^pass([^a-z]|$)`),
}

// ownCuts are further cuts, by file and literal, with the reason.
var ownCuts = map[string]string{
	`capture/foreign/schemes.go ^(?:(.+)/)?Pass(\d{5})\.pt$`:                                                                  "a file of SGLang's hooks, not a key",
	`capture/mapping/mappingtest/mappingtest.go layers.`:                                                                      "makes names of an engine that nobody knows",
	`cmd/tracediff/demo_lines.go ^ +part +entries|^(MATCH|MISMATCH) +(input|output|layers?) `:                                 "lines of a report, not names",
	`internal/bench/weights/make.go blk.%d.ffn_up.weight`:                                                                     "writes a GGUF file for a benchmark",
	`internal/bench/weights/make.go "model.layers.%d.mlp.up_proj.weight":{"dtype":%q,"shape":[%d,%d],"data_offsets":[%d,%d]}`: "writes a checkpoint for a benchmark",
	`internal/dump/dumptest/corpus.go layers.%d.npy`:                                                                          "writes a dump for tests",
}

// Names are cut in one place each, so that a new engine is one change: a file asks package order for the layer in a name of the order, internal/tracekey
// for the parts of a key, and internal/spelling for the words of engines.
func TestNamesAreCutInOnePlace(t *testing.T) {
	found := map[string]string{}
	eachFile(t, "../..", func(_ string, set *token.FileSet, file *ast.File) {
		path, err := filepath.Rel("../..", set.Position(file.Pos()).Filename)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.ToSlash(path)
		if slices.ContainsFunc(readers, func(r string) bool { return strings.HasPrefix(path, r) }) {
			return
		}
		note := func(pkg string, literals []*ast.BasicLit) {
			for _, l := range literals {
				if text, err := strconv.Unquote(l.Value); err == nil && cuts[pkg].MatchString(text) {
					found[path+" "+text] = set.Position(l.Pos()).String()
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				note("", literalsOf(n))
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				if pkg, ok := sel.X.(*ast.Ident); ok && cuts[pkg.Name] != nil {
					for _, arg := range n.Args {
						note(pkg.Name, literalsOf(arg))
					}
				}
			}
			return true
		})
	})
	for _, cut := range slices.Sorted(maps.Keys(found)) {
		if ownCuts[cut] == "" {
			t.Errorf("%s: %q cuts a name by hand: ask order.Name, internal/tracekey or internal/spelling", found[cut], strings.SplitN(cut, " ", 2)[1])
		}
	}
	for cut := range ownCuts {
		if found[cut] == "" {
			t.Errorf("%s is listed and cuts no name", cut)
		}
	}
}

// literalsOf are the string literals of which an expression is the sum.
func literalsOf(e ast.Expr) []*ast.BasicLit {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return []*ast.BasicLit{e}
		}
	case *ast.BinaryExpr:
		return append(literalsOf(e.X), literalsOf(e.Y)...)
	case *ast.ParenExpr:
		return literalsOf(e.X)
	}
	return nil
}
