package propose_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// A port calls what mixes tokens alike in all layers; in the order it is a scan in some and attention in others.
func TestLayersThatDiffer(t *testing.T) {
	list, err := order.ReadNames(strings.NewReader("layers.0.mamba\nlayers.0.out\nlayers.1.self_attn\nlayers.1.out\nlayers.2.mamba\nlayers.2.out\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, lines, want string }{
		{"other names of captures", `"b.{L}.mix" = "layers.{L}.mamba"
"b.{A}.mix" = "layers.{A}.self_attn"`, ""},
		{"a layer by its number", `"b.{L}.mix" = "layers.{L}.mamba"
"b.1.mix" = "layers.1.self_attn"`, ""},
		{"one line alone", `"b.{L}.mix" = "layers.{L}.mamba"`, `"b.1.mix" becomes "layers.1.mamba", which the order does not have`},
		{"neither has an entry", `"b.{L}.mix" = "layers.{L}.mamba"
"b.1.mix" = "layers.1.self_atn"`, `line 3, "b.1.mix": it matches "b.1.mix", and so does line 2`},
		{"both have one", `"b.{L}.mix" = "layers.{L}.out"
"b.{A}.mix" = "layers.{A}.mamba"`, `it matches "b.0.mix", and so does line 2`},
		{"one has no entry in any layer", `"b.{L}.mix" = "layers.{L}.out"
"b.{A}.mix" = "layers.{A}.ssm"`, `line 3, "b.{A}.mix": it matches no tensor`},
		{"left out, or not", `"b.{L}.mix" = "layers.{L}.mamba"
"b.1.mix" = { to = [] }`, `it matches "b.1.mix", and so does line 2`},
		{"a wider pattern", `"b.{L}.mix" = "layers.{L}.mamba"
"b.{L}.{name}" = "layers.{L}.{name}"`, `line 3, "b.{L}.{name}": it matches "b.0.mix", and so does line 2`},
		{"a name where the other has a letter", `"b.{L}.mix" = "layers.{L}.mamba"
"{n}.{A}.mix" = "layers.{A}.{n}"`, `it matches "b.0.mix", and so does line 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := mapping.Parse("map.toml", []byte("[tensors]\n"+c.lines))
			if err != nil {
				t.Fatal(err)
			}
			dump := mappingtest.Assembled(t, mappingtest.Counted("b.0.mix", 0, 1, 2), mappingtest.Counted("b.1.mix", 0, 3, 2), mappingtest.Counted("b.2.mix", 0, 5, 2))
			a, err := m.Apply(dump, list)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v\nwant %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"layers.0.mamba", "layers.1.self_attn", "layers.2.mamba"} {
				if _, ok := a.Trace.Lookup(0, name); !ok {
					t.Errorf("no %s", name)
				}
			}
		})
	}
}
