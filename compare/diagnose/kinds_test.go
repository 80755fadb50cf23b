package diagnose_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// knowing are the functions of a search, of what is said of it and of edits that look at the kind of an operation: by its name in a
// text, by the form of a step, or by order/op.
var knowing = []string{
	// The table of activations, by operation.
	"compare/diagnose/activation_numbers.go numberedActivations: .Kind()",
	"compare/diagnose/activation_regions.go beyondLimits: .Kind()",
	"compare/diagnose/activations.go activationCalled: .Kind(), op.Op",
	"compare/diagnose/activations.go kindOf: .Form",
	"compare/diagnose/activations.go otherActivations: .Kind(), op.Activations",
	"compare/diagnose/activations.go var: op.Activations",
	"compare/diagnose/activations.go var: op.Activations, op.ReLUSquared, op.Tanh",
	"compare/diagnose/softmaxes.go Kind: \"softmax\"",
	"compare/diagnose/variants.go Kind: \"silu\"",
	"compare/diagnose/variants.go activationVariants: .Kind()",
	"compare/diagnose/variants.go var: op.Activations",
	// Words: what a step is a part of, and what recognisers call their own.
	"compare/diagnose/masks.go var: \"mask\"",
	"compare/diagnose/fields.go var: \"softcap\"",
	`compare/diagnose/catalogue_pages.go var: "rope"`,
	`compare/diagnose/catalogue_pages.go var: "scores"`,
	"compare/diagnose/catalogue_numbers.go ofTanh: \"tanh\"",
	"compare/diagnose/catalogue_numbers.go oneGELU: \"gelu\", \"gelu_tanh\"",
	"compare/diagnose/catalogue_numbers.go var: \"scores\"",
	"compare/diagnose/catalogue_numbers.go numberRows: \"scores\"",
	"compare/diagnose/catalogue_rotary.go var: \"scores\"",
	"compare/diagnose/catalogue_scales.go scaleNoun: \"scale\"",
	"compare/diagnose/cached.go var: \"cache\"",
	"compare/diagnose/words.go leftOutMistake: .Form",
	"compare/diagnose/words.go site: .Form",
	"compare/diagnose/code.go newSourced: .Kind()",
	"compare/diagnose/describe_curve.go functionTerm: .Kind()",
	"compare/diagnose/catalogue_names.go var: \"rope\", \"scores\", \"tanh\"",
	"compare/diagnose/catalogue_reads.go isMask: \"mask\"",
	"compare/diagnose/catalogue_reads.go var: \"scores\"",
	// The usual mistakes: which activation is usual, the entries by the form of their operation, and names of steps.
	`compare/diagnose/catalogue_usual.go var: "gelu", "gelu_tanh", "silu"`,
	`compare/diagnose/catalogue_usual_attention.go var: "scale"`,
	`compare/diagnose/catalogue_usual_gemma3n.go var: "mean"`,
	"compare/diagnose/usual.go matches: .Form, op.Form",
	"compare/diagnose/usual_steps.go activationIs: .Kind()",
	// An operation of the order, whichever it is, that is applied where it does not belong: its name is said.
	"compare/diagnose/applied.go taken: .Kind()",
	"compare/diagnose/applied.go partOf: .Kind()",
	"compare/diagnose/mistake.go operationTerm: .Kind()",
	// What rows were handed on past, in words.
	"compare/diagnose/relations.go operationsSince: .Kind()",
	// Inputs of the model, where masks and rotary tables are opened.
	"compare/isolate/tensors.go Given: op.Given",
	"compare/diagnose/solve.go places: op.Given",
	`compare/diagnose/describe_values.go var: "gelu", "silu", "tanh"`,
	"compare/diagnose/describe_whole.go wholeInputs: op.Given",
	// Roles with the same operation of the same inputs, such as cosines and sines.
	"compare/naming/together.go together: .Kind()",
	// A class of edits, and no operation.
	"order/program/edit/edit.go var: \"part\"",
	// Signatures: the same step of the same operation in other layers.
	"order/program/edit/step_index.go NewStepIndex: .Form",
	// The last step of the same operation.
	"order/program/edit/step_index.go Last: .Form",
	// The form of the steps of an activation that takes another's place.
	"order/program/edit/editor.go Insert: .Form, .Kind()",
	// A search has the values of one evaluation, whose rounding is chosen by form.
	"order/program/search.go Eval: .Form",
}

// operationKinds are those of order/op.
func operationKinds(t *testing.T) (kinds []string) {
	t.Helper()
	for _, file := range sources(t, "../../order/op/*.go") {
		ast.Inspect(file.tree, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			if !ok || f.Name.Name != "Kind" {
				return true
			}
			for _, s := range f.Body.List {
				if r, ok := s.(*ast.ReturnStmt); ok {
					if text, ok := literal(r.Results[0]); ok {
						kinds = append(kinds, text)
					}
				}
			}
			return false
		})
	}
	if len(kinds) < 30 {
		t.Fatalf("order/op has the kinds %q", kinds)
	}
	return kinds
}

type source struct {
	name string
	tree *ast.File
}

// sources are the files of patterns, tests apart.
func sources(t *testing.T, patterns ...string) (all []source) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, source{filepath.ToSlash(filepath.Join("compare/diagnose", name)), tree})
		}
	}
	return all
}

// searched are the files of the search, of its words and of edits.
func searched(t *testing.T) []source {
	t.Helper()
	files := []string{"*.go", "../naming/name.go", "../naming/together.go", "../isolate/tensors.go"}
	for _, name := range []string{"edit/edit", "edit/editor", "edit/generators", "edit/map", "edit/step_index", "search"} {
		files = append(files, "../../order/program/"+name+".go")
	}
	return sources(t, files...)
}

func literal(e ast.Node) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

func isOperations(i *ast.ImportSpec) bool { return strings.HasSuffix(i.Path.Value, `/order/op"`) }

// TestOperationsHaveNoSearchOfTheirOwn lists where a search looks at the kind of an operation, or at an operation itself: nowhere but in
// the table of activations and in what words are made of. Masks, softmaxes, norms and caches are known by their steps, whatever
// operation these are of; the package of edits cannot know operations.
func TestOperationsHaveNoSearchOfTheirOwn(t *testing.T) {
	kinds := operationKinds(t)
	var found []string
	for _, s := range searched(t) {
		if strings.HasPrefix(s.name, "order/program/") && slices.ContainsFunc(s.tree.Imports, isOperations) {
			t.Errorf("%s imports order/op", s.name)
		}
		for _, d := range s.tree.Decls {
			var why []string
			name := "var"
			switch d := d.(type) {
			case *ast.FuncDecl:
				name = d.Name.Name
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
			}
			note := func(text string) {
				if !slices.Contains(why, text) {
					why = append(why, text)
				}
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if text, ok := literal(n); ok && slices.Contains(kinds, text) {
					note(strconv.Quote(text))
				}
				if c, ok := n.(*ast.CallExpr); ok {
					if x, ok := c.Fun.(*ast.SelectorExpr); ok && x.Sel.Name == "Kind" {
						note(".Kind()")
					}
				}
				if x, ok := n.(*ast.SelectorExpr); ok {
					if x.Sel.Name == "Form" {
						note(".Form")
					}
					if id, ok := x.X.(*ast.Ident); ok && id.Name == "op" {
						note("op." + x.Sel.Name)
					}
				}
				return true
			})
			if len(why) > 0 {
				slices.Sort(why)
				found = append(found, fmt.Sprintf("%s %s: %s", s.name, name, strings.Join(why, ", ")))
			}
		}
	}
	slices.Sort(found)
	known := slices.Sorted(slices.Values(knowing))
	if diff := cmp.Diff(known, found); diff != "" {
		t.Errorf("where operations are told apart (-known +found):\n%s", diff)
	}
}
