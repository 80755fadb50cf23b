package diagnose_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/internal/pagetest"
)

// inPlainLoops are the tests that make mistakes by hand or in plain loops.
var inPlainLoops = []string{
	"again_made_test.go", "blocks_made_test.go", "cached_test.go", "describe_angles_test.go", "describe_another_test.go", "fitted_mixed_test.go", "fitted_test.go", "functions_made_test.go", "heads_made_test.go", "inputs_test.go",
	"mask_edges_test.go", "mask_rows_made_test.go", "masks_test.go", "number_rows_made_test.go", "orders_made_test.go", "parts_made_test.go", "relations_last_test.go", "results_test.go",
	"rotary_test.go", "rows_applied_test.go", "rows_made_test.go", "scales_made_test.go", "softmaxes_test.go", "statistic_rows_made_test.go", "step_rows_made_test.go", "steps_made_test.go", "unrelated_test.go",
	"narrow_made_test.go", "rotary_test.go", "rows_applied_test.go", "rows_made_test.go", "softmaxes_test.go", "stored_steps_test.go", "statistic_rows_made_test.go", "step_rows_made_test.go", "steps_made_test.go", "unrelated_test.go",
	"weight_rows_made_test.go", "weights_test.go", "../naming/planted_functions_test.go", "../naming/planted_rows_test.go",
}

// plainLoops says of each kind which of these tests make it, or that the machine test alone does.
const plainLoops = "testdata/plain-loops.txt"

// Each kind of mistakes is made in plain loops, or it is known that it is not: the machine test alone makes it then, by the function that is tested.
func TestKindsThatAreMadeInPlainLoops(t *testing.T) {
	in := map[string][]string{}
	for _, name := range inPlainLoops {
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if text, ok := literal(n); ok {
				kind, _, _ := strings.Cut(text, "(")
				if !slices.Contains(in[kind], name) {
					in[kind] = append(in[kind], name)
				}
			}
			return true
		})
	}
	kinds := map[string]string{}
	for _, row := range diagnose.Catalogue() {
		if kind := string(row.Kind); !strings.HasPrefix(kind, "described.") {
			kinds[kind] = fmt.Sprintf("%s: %s\n", kind, strings.Join(in[kind], ", "))
			if in[kind] == nil {
				kinds[kind] = kind + ": machine\n"
			}
		}
	}
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		text.WriteString(kinds[kind])
	}
	if pagetest.Update() {
		if err := os.WriteFile(plainLoops, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(plainLoops)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("kinds in plain loops (-known +found); go test -update writes them:\n%s", diff)
	}
}
