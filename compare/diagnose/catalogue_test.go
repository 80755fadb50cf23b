package diagnose_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/pagetest"
)

// sentences has an example of each sentence of the catalogue, with the pages on which it is explained.
const sentences = "testdata/sentences.txt"

var hole = regexp.MustCompile(`\{([^}]*)\}`)

// sentence is an example of the words of a row.
func sentence(row diagnose.Row) string {
	if !strings.HasPrefix(string(row.Kind), "described.") {
		return example(row).String()
	}
	d := diagnose.Description{
		Kind: row.Kind, Of: diagnose.Term{Kind: diagnose.Tensor, Name: "layers.*.self_attn.q_proj"}, By: "channel, layer", Same: "token", Values: []float64{1.5, 2, 0.25}, Numbers: 16, Wrong: 12,
		Called: "1/√head_dim", Like: diagnose.Term{Kind: diagnose.Weight, Name: "layers.*.input_layernorm.weight"}, Explained: 960, Elements: 1024,
		Cases: []string{"head 0 is head 1"}, Right: "layers.0",
	}
	return d.String()
}

// example is a mistake of a row with a value for each hole of the row's words.
func example(row diagnose.Row) diagnose.Mistake {
	m := diagnose.Mistake{Kind: row.Kind}
	for _, h := range hole.FindAllStringSubmatch(row.Words, -1) {
		switch name, _, _ := strings.Cut(h[1], " "); name {
		case "of":
			m.Of = diagnose.Term{Kind: diagnose.Tensor, Name: "layers.*.self_attn.q_proj"}
		case "by":
			m.By = diagnose.Term{Kind: diagnose.Tensor, Name: "layers.*.mlp.up_proj"}
		case "for":
			m.For = diagnose.Term{Kind: diagnose.Literal, X: 0.5}
		case "x", "+x":
			m.X = diagnose.Number{Value: 1e-05, Has: true}
		case "right":
			m.Right = diagnose.Number{Value: 1e-06, Has: true}
		case "times":
			m.Times = diagnose.Number{Value: 2, Has: true}
		case "place":
			m.Place = "rms_norm.eps"
		case "formula":
			m.By, m.Other = diagnose.Term{Kind: diagnose.Tensor, Name: "layers.*.mlp.up_proj"}, "root"
		case "numbers":
			m.Numbers, m.Axis = "1,0.5,2,0.5", "heads" // in whatever order the holes are
		case "axis":
			if m.Axis == "" {
				m.Axis = "heads"
			}
		case "other":
			m.Other = "tokens"
		case "its":
			m.Axis, m.Other = "heads", "tokens"
		case "dtype":
			m.DType = hooks.BF16
		case "coding":
			m.Coding = diagnose.Coding{Numbers: diagnose.Int8, Scales: diagnose.ByRow}
		case "called":
			m.Called = "rms_norm_eps"
		case "runs", "pieces", "order":
			m.Runs = "0-3=4;7=-"
		default:
			m.N, m.M, m.K = 8, 2, 3
		}
	}
	return m
}

// Every sentence of the catalogue is in one file, as it reads.
func TestSentencesOfTheCatalogue(t *testing.T) {
	var out strings.Builder
	for _, row := range diagnose.Catalogue() {
		text := sentence(row)
		if strings.ContainsAny(text, "{}") || text == string(row.Kind) {
			t.Errorf("%s: %q", row.Kind, text)
		}
		var pages []string
		for _, p := range row.Pages {
			if at := p.Anchor; !slices.Contains(pages, at) {
				pages = append(pages, at)
			}
		}
		fmt.Fprintf(&out, "%s: %s [%s]\n", row.Kind, text, strings.Join(pages, ", "))
	}
	if pagetest.Update() {
		if err := os.WriteFile(sentences, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(sentences)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", sentences, diff)
	}
}

// A mistake that was written as JSON and read again is the same value, with the same sentence and key; two kinds have two keys.
func TestMistakesAreValues(t *testing.T) {
	keys := map[string]diagnose.Kind{}
	for _, row := range diagnose.Catalogue() {
		m := example(row)
		m.Tokens = diagnose.Tokens{Some: true, From: diagnose.Number{Value: 9, Has: true}, Called: "vocab_size"}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("%s: %v", row.Kind, err)
		}
		var again diagnose.Mistake
		if err := json.Unmarshal(data, &again); err != nil || again != m {
			t.Errorf("%s: %s is read as %+v, want %+v (%v)", row.Kind, data, again, m, err)
		}
		if other := keys[m.Key()]; other != "" {
			t.Errorf("%s and %s have the key %s", row.Kind, other, m.Key())
		}
		keys[m.Key()] = row.Kind
	}
	if len(keys) < 100 {
		t.Errorf("%d kinds", len(keys))
	}
}

// A key tells two mistakes apart that differ in any field but those that are the model's.
func TestKeysTellMistakesApart(t *testing.T) {
	whole := diagnose.Mistake{
		Kind: "number.value", Place: "rms_norm.eps", Of: diagnose.Term{Kind: diagnose.Epsilon}, By: diagnose.Term{Kind: diagnose.Tensor, Name: "a"},
		For: diagnose.Term{Kind: diagnose.Tensor, Name: "b"}, X: diagnose.Number{Value: 1e-5, Has: true}, Times: diagnose.Number{Value: 2, Has: true}, N: 1, M: 2, K: 3,
		Axis: "tokens", Other: "heads", DType: hooks.F16, Coding: diagnose.Coding{Numbers: diagnose.Int4, Scales: 32}, Runs: "1=2", Tokens: diagnose.Tokens{Some: true},
		Others: diagnose.OtherValues{Values: "3"},
	}
	for name, change := range map[string]func(m *diagnose.Mistake){
		"kind": func(m *diagnose.Mistake) { m.Kind = "number.zero" }, "place": func(m *diagnose.Mistake) { m.Place = "" },
		"of": func(m *diagnose.Mistake) { m.Of.Kind = diagnose.SoftCap }, "by": func(m *diagnose.Mistake) { m.By.Name = "c" },
		"by before": func(m *diagnose.Mistake) { m.By.Before = true }, "by's stream": func(m *diagnose.Mistake) { m.By.Item = diagnose.Number{Has: true} },
		"by's sum": func(m *diagnose.Mistake) { m.By.Sum = true }, "by's number": func(m *diagnose.Mistake) { m.By.X = 7 },
		"for": func(m *diagnose.Mistake) { m.For = diagnose.Term{} }, "x": func(m *diagnose.Mistake) { m.X.Value = 1e-4 }, "no x": func(m *diagnose.Mistake) { m.X = diagnose.Number{} },
		"times": func(m *diagnose.Mistake) { m.Times.Value = 4 }, "n": func(m *diagnose.Mistake) { m.N = 2 }, "m": func(m *diagnose.Mistake) { m.M = 1 }, "k": func(m *diagnose.Mistake) { m.K = 0 },
		"axis": func(m *diagnose.Mistake) { m.Axis = "keys" }, "other": func(m *diagnose.Mistake) { m.Other = "keys" }, "dtype": func(m *diagnose.Mistake) { m.DType = hooks.BF16 },
		"coding": func(m *diagnose.Mistake) { m.Coding.Scales = 16 }, "runs": func(m *diagnose.Mistake) { m.Runs = "1=3" },
		"tokens": func(m *diagnose.Mistake) { m.Tokens.From = diagnose.Number{Has: true} }, "others": func(m *diagnose.Mistake) { m.Others = diagnose.OtherValues{Less: true} },
	} {
		other := whole
		change(&other)
		if other.Key() == whole.Key() {
			t.Errorf("%s: another one has the key %s too", name, whole.Key())
		}
	}
	other := whole
	other.Right, other.Called = diagnose.Number{Value: 1, Has: true}, "rms_norm_eps"
	other.Source, other.Rounding, other.Edit, other.Picked = "layers.1.mlp.up_proj.weight", diagnose.EachStep, "2", 3
	if other.Key() != whole.Key() {
		t.Errorf("what is the model's, or may be another in each layer and arithmetic, is in the key %s", other.Key())
	}
}

// The key of long runs is short enough for a line of a baseline, and still tells one run of many from another.
func TestKeysOfLongRunsAreShort(t *testing.T) {
	runs := func(last int) diagnose.Mistake {
		var text strings.Builder
		for row := range 20_000 {
			fmt.Fprintf(&text, "%d=%d;", row, 20_000-row)
		}
		fmt.Fprintf(&text, "20000=%d", last)
		return diagnose.Mistake{Kind: "weight.rows-of", Place: "lm_head.weight", Runs: diagnose.Runs(text.String())}
	}
	if n := len(runs(0).Key()); n > 2<<10 {
		t.Errorf("a key of %d bytes", n)
	}
	if runs(0).Key() == runs(1).Key() {
		t.Error("the key does not tell the last of the runs")
	}
}

// The catalogue is the only place with sentences: no other file of the package has a text with a space in it.
func TestSentencesStandInTheCatalogue(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "catalogue") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		looked++
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && strings.Contains(text, " ") {
					t.Errorf("%s: %s", set.Position(n.Pos()), n.Value)
				}
			}
			return true
		})
	}
	if looked < 20 {
		t.Errorf("%d files", looked)
	}
}

// A mistake of any text as its kind is a sentence: a baseline of another version may have kinds that this version does not know.
func TestMistakesOfAnyKindAreSentences(t *testing.T) {
	for _, row := range diagnose.Catalogue() {
		if text := (diagnose.Mistake{Kind: row.Kind}).String(); text == "" {
			t.Errorf("%s has no sentence", row.Kind)
		}
	}
	if text := (diagnose.Mistake{Kind: "of another version"}).String(); text != "of another version" {
		t.Errorf("%q", text)
	}
}
