package op_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// page is the reference of operations: what stands above the mark is written by hand, what is below by this test.
const page, mark = "../../docs/results/operations.md", "<!-- below: go test ./order/op -run Page -update -->\n"

// The page has every operation with the steps of the code.
func TestPage(t *testing.T) {
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, below, ok := strings.Cut(string(have), mark)
	if !ok {
		t.Fatalf("%s has no line %q", page, mark)
	}
	var b bytes.Buffer
	kinds := map[string]bool{}
	docs := comments(t)
	for _, o := range operations {
		if _, given := o.(op.Given); given {
			continue
		}
		if !kinds[o.Kind()] {
			kinds[o.Kind()] = true
			fmt.Fprintf(&b, "## %s\n\n%s\n", o.Kind(), docs[strings.TrimPrefix(fmt.Sprintf("%T", o), "op.")])
		}
		writeSteps(t, &b, o)
		fmt.Fprintln(&b)
	}
	below = strings.TrimRight(below, "\n")
	made := strings.TrimRight(b.String(), "\n")
	made = "\n" + made
	below = "\n" + strings.TrimLeft(below, "\n")
	if *update {
		if err := os.WriteFile(page, []byte(head+mark+made+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if below != made {
		t.Errorf("%s does not have what the code has. Read what has changed, then run go test ./order/op -run Page -update. The code has\n%s", page, made)
	}
}

// comments are the doc comments of the package's types, as Markdown.
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]string{}
	for _, name := range files {
		for _, d := range parse(t, name).Decls {
			if d, is := d.(*ast.GenDecl); is && d.Doc != nil {
				for _, s := range d.Specs {
					if s, is := s.(*ast.TypeSpec); is {
						docs[s.Name.Name] = markdown(d.Doc.Text())
					}
				}
			}
		}
	}
	return docs
}

// markdown is a doc comment whose indented lines are code.
func markdown(text string) string {
	var b strings.Builder
	code := false
	for line := range strings.Lines(text) {
		if indented := strings.HasPrefix(line, "\t"); strings.TrimSpace(line) != "" && indented != code {
			b.WriteString("```\n")
			code = indented
		}
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if code {
		b.WriteString("```\n")
	}
	return strings.NewReplacer("<", "&lt;", "[Rescale]", "rescale").Replace(b.String())
}

// writeSteps writes the table of one form of an operation.
func writeSteps(t *testing.T, b *bytes.Buffer, o op.Op) {
	t.Helper()
	p := sampleProgram(t, sized(o))
	lines := p.Listing(strconv.Itoa, func(*program.Step) string { return "" })
	fmt.Fprintf(b, "`%s`", op.Form(o))
	computed := slices.DeleteFunc(slices.Clone(lines), func(l program.Line) bool {
		return l.Prim == program.Input.String() || l.Prim == program.Weight.String() || l.Prim == program.Matrix.String()
	})
	fmt.Fprint(b, "\n\n| step | | rounded to | other ways |\n|---|---|---|---|\n")
	constants := fields(t, o)
	for _, l := range computed {
		text := strings.TrimSpace(l.Prim + " " + strings.Join(l.Args, ", "))
		if l.Prim == program.Number.String() && constants[l.Name] {
			text = "a constant of the model"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", cell(l.Name), cell(text), roundedTo(o, l), otherWays(p, l))
	}
}

// fields are the constants of an operation, by their names in JSON.
func fields(t *testing.T, o op.Op) map[string]bool {
	t.Helper()
	raw, err := op.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name := range all {
		names[name] = true
	}
	return names
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// roundedTo is what a listing leaves out where it is usual. The result has the dtype of its tensor.
func roundedTo(o op.Op, l program.Line) string {
	_, exact := o.(op.Exact)
	_, softmax := o.(op.Softmax)
	_, cast := o.(op.Cast)
	switch {
	case l.Round != "":
		return l.Round
	case l.Name == "result" && softmax:
		return "float32"
	case l.Name == "result" && (!exact || cast):
		return "R"
	case !l.Site || l.Prim == program.Copy.String():
		return ""
	}
	return "float32"
}

// otherWays are those of a step, in the words of reports.
func otherWays(p *program.Program, l program.Line) string {
	i := slices.IndexFunc(p.Steps, func(s program.Step) bool { return l.Site && s.Name == l.Name })
	if i < 0 {
		return ""
	}
	s := &p.Steps[i]
	switch {
	case s.Ways() == 1:
		return ""
	case s.Prim == program.Sum, s.Prim == program.Dot, s.Prim == program.Affine && len(s.Args) == 2:
		return "in parts"
	}
	var words []string
	for way := 1; way < s.Ways(); way++ {
		words = append(words, strings.ReplaceAll(s.WayWords(uint8(way), hooks.BF16), hooks.BF16.String(), "R"))
	}
	return strings.Join(words, "; ")
}

// sampleProgram is the program of an operation for its sample.
func sampleProgram(t *testing.T, o op.Op) *program.Program {
	t.Helper()
	c := sample(o)
	in, w := make([][]int, len(c.In)), make([][2]int, len(c.W))
	for k, v := range c.In {
		in[k] = v.Shape
	}
	for k, m := range c.W {
		w[k][0], w[k][1] = m.Size()
	}
	if o, linear := o.(op.Linear); linear && !o.Bias {
		w = w[:1]
	}
	p, err := program.Of(o, op.Form, 0, c.Shape, in, w)
	if err != nil {
		t.Fatalf("%s: %v", op.Form(o), err)
	}
	return p
}
