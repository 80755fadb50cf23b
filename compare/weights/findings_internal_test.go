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
		add(module("a"), Mistake, OtherTensor, "it is the original's model.layers.%d.mlp.b.weight", layer)
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
