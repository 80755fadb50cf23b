package floors_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The sizes up to which a reader keeps an overview, and how many packages and types may be larger. Each that is larger stands below with
// the reason.
const (
	mostFields, mostLargeStructs = 12, 10
	mostParameters               = 6
	mostFiles, mostLargePackages = 25, 5
	mostMethods                  = 25
)

// documents are structs of more than mostFields fields that are written or read as they are, with what they are written to or read from: their
// fields are its format.
var documents = map[string]string{
	"capture.Manifest":                "the metadata of a trace",
	"compare/baseline.accepted":       "a baseline",
	"compare.Isolation":               "isolation in the report in JSON",
	"compare.Result":                  "a run in the report in JSON",
	"compare.Row":                     "a row of the report in JSON",
	"compare/diagnose.Description":    "a finding without a name in the report in JSON",
	"compare/diagnose.Finding":        "a finding in the report in JSON",
	"compare/diagnose.Mistake":        "a mistake in the report in JSON and in a baseline",
	"compare/inspect.Stats":           "tracediff show in JSON",
	"compare/isolate.Certificate":     "a certificate in the report in JSON",
	"compare/measure.Metrics":         "the metrics of a row in the report in JSON",
	"compare/report/html.chart":       "the data of a chart in the report in HTML, read by its template",
	"compare/report/html.dataPicture": "a picture in the report in HTML, read by its script",
	"compare/report/html.dataRow":     "a row of the report in HTML, read by its script",
	"compare/report/html.page":        "the page of the report in HTML, read by its template",
	"compare/report/html.section":     "a section of the report in HTML, read by its template",
	"compare/weights.Row":             "a weight of tracediff weights in JSON",
	"internal/bench.line":             "a line of a golden of the bench",
	"internal/bench.result":           "the outcome of a run of the bench, in its tables",
	"internal/gatefile.config":        "tracediff.toml",
	"internal/settings.Settings":      "the settings of the last capture, in the folder of traces",
	"internal/tokenizer.config":       "tokenizer_config.json",
	"order.object":                    "an order in JSON",
	"order.Config":                    "config.json",
	"order/recorded.file":             "a recorded program",
}

// largeStructs are structs of more than mostFields fields that are no documents, with the reason.
var largeStructs = map[string]string{
	"capture.Record":                 "all that is known of a tensor without its data: its name in its parts, its type and where it lies",
	"compare/diagnose.Row":           "a line of the catalogue: rows leave most fields out",
	"compare/weights.tally":          "one pass over a tensor counts all that later questions need, since the pass is what takes time",
	"internal/kernel/gen.set":        "the instructions of one processor, for a generator",
	"internal/lanes.Fused":           "the state of a hot loop, and the room that it uses again",
	"internal/lanes/gen.pair512":     "the registers of a hot loop, for a generator",
	"internal/testengine.Arithmetic": "one field for each way in which engines differ, all drawn together",
	"order.Entry":                    "a row of TENSOR_ORDER",
}

// contexts are structs that may have a context, with the reason.
var contexts = map[string]string{
	"compare/diagnose.search": "one call of Find: its generators take only the search, and ask the context at every mistake",
}

// manyMethods are types of more than mostMethods methods, with the reason.
var manyMethods = map[string]string{
	"order/program.Builder": "a method for each primitive and view, the words in which formulas are written",
	"order/program.run":     "an evaluation: a method for each primitive, all of which read values and take room from the run",
}

// largePackages are packages of more than mostFiles files, with the reason.
var largePackages = map[string]string{
	"cmd/tracediff":    "a file for each command",
	"compare/diagnose": "a file for each mechanism of mistakes, and for each part of the catalogue",
	"order/op":         "a file for each operation",
}

// The numbers of fields, parameters, files and methods keep to their limits, and no struct keeps a context: a context is of a call.
// Tests, generated files and declarations of assembly are left out.
//
// An exception stands in a list below with its reason, and the comment of the type says it too. A row of a list that is no exception any more fails.
func TestSizes(t *testing.T) {
	structs, files, methods, withContext := map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}
	eachFile(t, "../..", func(dir string, set *token.FileSet, file *ast.File) {
		files[dir]++
		named := map[*ast.StructType]string{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					named[s] = dir + "." + n.Name.Name
				}
			case *ast.StructType:
				name := named[n]
				if name == "" {
					name = set.Position(n.Pos()).String()
				}
				structs[name] = n.Fields.NumFields()
				if slices.ContainsFunc(n.Fields.List, isContext) {
					withContext[name] = true
				}
			case *ast.FuncDecl:
				if n.Body != nil && n.Type.Params.NumFields() > mostParameters {
					t.Errorf("%s: %s has %d parameters", set.Position(n.Pos()), n.Name.Name, n.Type.Params.NumFields())
				}
				if n.Recv != nil {
					methods[dir+"."+receiver(n.Recv.List[0].Type)]++
				}
			}
			return true
		})
	})
	isLarge := func(name string) bool { return documents[name] != "" || largeStructs[name] != "" }
	holds(t, "fields", structs, mostFields, isLarge, slices.Concat(slices.Collect(maps.Keys(documents)), slices.Collect(maps.Keys(largeStructs))))
	holds(t, "files", files, mostFiles, func(dir string) bool { return largePackages[dir] != "" }, slices.Collect(maps.Keys(largePackages)))
	holds(t, "methods", methods, mostMethods, func(name string) bool { return manyMethods[name] != "" }, slices.Collect(maps.Keys(manyMethods)))
	for name := range withContext {
		if contexts[name] == "" {
			t.Errorf("%s has a context", name)
		}
	}
	for name := range contexts {
		if !withContext[name] {
			t.Errorf("%s is listed and has no context", name)
		}
	}
	if len(largeStructs) > mostLargeStructs || len(largePackages) > mostLargePackages {
		t.Errorf("%d large structs and %d large packages are listed", len(largeStructs), len(largePackages))
	}
}

// holds reports what has more of something than most and is not listed, and what is listed and has no more.
func holds(t *testing.T, what string, have map[string]int, most int, listed func(string) bool, list []string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if have[name] > most && !listed(name) {
			t.Errorf("%s has %d %s", name, have[name], what)
		}
	}
	for _, name := range list {
		if have[name] <= most {
			t.Errorf("%s is listed and has %d %s", name, have[name], what)
		}
	}
}

func isContext(f *ast.Field) bool {
	sel, ok := f.Type.(*ast.SelectorExpr)
	return ok && fmt.Sprint(sel.X) == "context" && sel.Sel.Name == "Context"
}

// receiver is the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// eachFile parses the Go files below a folder that are neither tests nor generated.
func eachFile(t *testing.T, root string, do func(dir string, set *token.FileSet, file *ast.File)) {
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		n++
		do(filepath.ToSlash(dir), set, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 500 {
		t.Fatalf("%d files", n)
	}
}
