package words_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	verb     = regexp.MustCompile(`%[-+#*.0-9]*[a-zA-Z]`)
	sentence = regexp.MustCompile(`[[:alnum:]]\S* +\S*[[:alnum:]]\S* +\S*[[:alnum:]]`) // three words
)

// literals are the strings in the files of a package, without tests, imports and tags of fields, by their places. A verb of fmt is the word "x".
func literals(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || paths == nil {
		t.Fatalf("%s: no files (%v)", pattern, err)
	}
	all := map[string][]string{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				n.Tag = nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					text = verb.ReplaceAllString(text, "x")
					all[text] = append(all[text], set.Position(n.Pos()).String())
				}
			}
			return true
		})
	}
	return all
}

// A renderer chooses what it shows of a document and how the document looks: it has no sentence of its own.
func TestSentencesStandInWords(t *testing.T) {
	exceptions := map[string]string{
		"default-src 'none'; style-src 'x'; script-src 'x'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'": "the policy of a page, read by browsers",
		"x x noise floor":     "read, from the source of a limit",
		"writing the page: x": "an error of the writer", "writing the tables: x": "an error of the writer",
	}
	for _, pattern := range []string{"../*.go", "../github/*.go", "../html/*.go", "../junit/*.go", "../sarif/*.go", "../text/*.go"} {
		for text, at := range literals(t, pattern) {
			if !sentence.MatchString(text) {
				continue
			}
			if exceptions[text] == "" {
				t.Errorf("%s: the sentence %q belongs to compare/report/words", at[0], text)
			}
			delete(exceptions, text)
		}
	}
	for text := range exceptions {
		t.Errorf("no renderer has %q", text)
	}
}

// A sentence that several parts of a document need is a constant or a function.
func TestSentencesStandOnce(t *testing.T) {
	places := map[string][]string{}
	for text, at := range literals(t, "*.go") {
		if sentence.MatchString(text) {
			text = strings.Trim(text, " ,;:.\n")
			places[text] = append(places[text], at...)
		}
	}
	for text, at := range places {
		if len(at) > 1 {
			t.Errorf("%q stands at %s", text, strings.Join(at, " and "))
		}
	}
}
