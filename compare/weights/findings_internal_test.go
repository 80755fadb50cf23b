package weights

import (
	"fmt"
	"strings"
	"testing"
)

// TestOneKindIsOneFinding: in 32 layers, with the numbers of each tensor, and in several modules.
func TestOneKindIsOneFinding(t *testing.T) {
	var rows []Row
	add := func(name string, class Class, kind Kind, format string, args ...any) {
		row := Row{Name: name, Relative: float64(len(rows)), At: &Element{Row: len(rows)}}
		row.wrong(class, kind, format, args...)
		rows = append(rows, row)
	}
	for layer := range 32 {
		module := func(name string) string { return fmt.Sprintf("model.layers.%d.mlp.%s.weight", layer, name) }
		add(module("up_proj"), Unidentified, LargeErrors, "the errors of %s are larger than usual, the first in row %d", count(layer+1, "group", "groups"), layer)
		add(module("down_proj"), Unidentified, LargeErrors, "its root mean square error is %s times that of rounding", number(3.1+float64(layer)/100))
		add(module("gate_proj"), Mistake, ShiftedRows, "row %d is the original's row %d", layer, layer+1)
		add(module("norm"), Different, Unrelated, "the values have nothing to do with the original's: cosine %.2f", float64(layer-16)/100)
		add(module("a"), Mistake, OtherTensor, "it is the original's %s", module("b"))
	}
	for _, name := range []string{"norm.weight", "head.weight", "x.weight", "y.weight"} {
		add(name, Missing, Absent, "the port has no such tensor")
	}
	want := []Finding{
		{Class: Missing, Kind: Absent, What: "the port has no such tensor"},
		{Class: Different, Kind: Unrelated, What: "the values have nothing to do with the original's: cosine -0.16" + ofFirst},
		{Class: Mistake, Kind: OtherTensor, What: "it is the original's model.layers.*.mlp.b.weight"},
		{Class: Mistake, Kind: ShiftedRows, What: "row 0 is the original's row 1" + ofFirst},
		{Class: Unidentified, Kind: LargeErrors, What: "in model.layers.{0-31}.mlp.up_proj.weight (32 tensors): the errors of 1 group are larger than usual, the first in row 0" + ofFirst +
			"; in model.layers.{0-31}.mlp.down_proj.weight (32 tensors): its root mean square error is 3.1 times that of rounding" + ofFirst},
	}
	names := []string{
		"norm.weight, head.weight, x.weight, ... (4 tensors)", "model.layers.{0-31}.mlp.norm.weight (32 tensors)", "model.layers.{0-31}.mlp.a.weight (32 tensors)",
		"model.layers.{0-31}.mlp.gate_proj.weight (32 tensors)", "model.layers.{0-31}.mlp.up_proj.weight, model.layers.{0-31}.mlp.down_proj.weight (64 tensors)",
	}
	got := findings(rows)
	if len(got) != len(want) {
		t.Fatalf("%d findings: %+v", len(got), got)
	}
	for i, f := range got {
		if w := want[i]; f.Class != w.Class || f.Kind != w.Kind || f.What != w.What || f.Name() != names[i] || f.At == nil {
			t.Errorf("%s %s\n%s\n%s\nwant %s %s\n%s\n%s", f.Class, f.Kind, f.Name(), f.What, w.Class, w.Kind, names[i], w.What)
		}
	}
}

// TestLayersOfAnotherNumberAreOneFinding says which layer has which, of the first of them.
func TestLayersOfAnotherNumberAreOneFinding(t *testing.T) {
	var rows []Row
	for layer := 1; layer < 8; layer++ {
		row := Row{Name: fmt.Sprintf("layers.%d.w", layer), Other: fmt.Sprintf("layers.%d.w", layer-1)}
		row.wrong(Mistake, OtherLayer, "layer %d has the tensor of layer %d", layer, layer-1)
		rows = append(rows, row)
	}
	got := findings(rows)
	if len(got) != 1 || len(got[0].Also) != 6 {
		t.Fatalf("%+v", got)
	}
	const want = "in layers.1.w: layer 1 has the weights of layer 0; in layers.2.w: layer 2 has the weights of layer 1; in layers.3.w: layer 3 has the weights of layer 2; and 4 other sentences"
	if !strings.HasPrefix(got[0].What, want) {
		t.Errorf("%s\nwant %s", got[0].What, want)
	}
}

// TestLinesOfAMapAreOfOneFinding: a port with names of its own lacks many tensors, and one finding has a line for each.
func TestLinesOfAMapAreOfOneFinding(t *testing.T) {
	var rows []Row
	for layer := range 3 {
		for _, m := range []string{"wq", "wk"} {
			row := Row{Name: fmt.Sprintf("layers.%d.%s", layer, m), Other: fmt.Sprintf("blocks.%d.%s", layer, m)}
			row.wrong(Missing, Absent, "the port has no such name; its %s has the values", row.Other)
			rows = append(rows, row)
		}
	}
	got := findings(rows)
	want := []string{`a line of the map: "blocks.{L}.wq" = "layers.{L}.wq"`, `a line of the map: "blocks.{L}.wk" = "layers.{L}.wk"`}
	if len(got) != 1 || fmt.Sprint(got[0].Steps()) != fmt.Sprint(want) {
		t.Errorf("%+v", got)
	}
}

// TestWordsGroupNothing: findings and their sentences are told apart by kinds and arguments, however they are worded.
func TestWordsGroupNothing(t *testing.T) {
	type said struct {
		kind  Kind
		words string
		args  []any
	}
	for name, tt := range map[string]struct {
		first, second said
		findings      int
		what          string // of the first
	}{
		"another kind in the same words":      {said{Scaled, "it is %d", []any{2}}, said{Negated, "it is %d", []any{2}}, 2, "it is 2"},
		"the same numbers, reworded":          {said{Scaled, "it is %d", []any{2}}, said{Scaled, "times %d", []any{2}}, 1, "it is 2"},
		"other numbers":                       {said{Scaled, "it is %d", []any{2}}, said{Scaled, "it is %d", []any{3}}, 1, "it is 2" + ofFirst},
		"other numbers that are shown alike":  {said{Scaled, "it is %s", []any{number(2)}}, said{Scaled, "it is %s", []any{number(2 + 1e-9)}}, 1, "it is 2"},
		"names in layers":                     {said{OtherTensor, "it is %s", []any{"layers.1.a"}}, said{OtherTensor, "%s is meant", []any{"layers.2.a"}}, 1, "it is layers.*.a"},
		"other names in the same words":       {said{OtherTensor, "it is %s", []any{"layers.1.a"}}, said{OtherTensor, "it is %s", []any{"layers.1.b"}}, 1, "in v: it is layers.1.a; in w: it is layers.1.b"},
		"arguments of other types":            {said{Rounded, "by %v", []any{2}}, said{Rounded, "by %v", []any{"2"}}, 1, "in v: by 2; in w: by 2"},
		"another choice in the same word":     {said{CutOff, "%s", []any{either(true, "down", "")}}, said{CutOff, "%s", []any{either(false, "", "down")}}, 1, "in v: down; in w: down"},
		"parts of another kind":               {said{Several, "%s", []any{say(ZeroRows, "a")}}, said{Several, "%s", []any{say(NotFinite, "a")}}, 1, "in v: a; in w: a"},
		"a number of things, in other nouns":  {said{Values, "%s", []any{count(2, "row", "rows")}}, said{Values, "%s", []any{count(2, "line", "lines")}}, 1, "2 rows"},
		"a number of things, of other number": {said{Values, "%s", []any{count(2, "row", "rows")}}, said{Values, "%s", []any{count(1, "row", "rows")}}, 1, "2 rows" + ofFirst},
	} {
		rows := []Row{{Name: "v"}, {Name: "w"}}
		for i, x := range []said{tt.first, tt.second} {
			rows[i].wrong(Mistake, x.kind, x.words, x.args...)
		}
		if got := findings(rows); len(got) != tt.findings || got[0].What != tt.what {
			t.Errorf("%s: %d findings, %q, want %d, %q", name, len(got), got[0].What, tt.findings, tt.what)
		}
	}
}
