package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
)

// A map that would cost more than any real one is refused with its line.
func TestMapsHaveBounds(t *testing.T) {
	many := &strings.Builder{}
	for i := range 10_000 {
		fmt.Fprintf(many, "a%d = 'b%d'\n", i, i)
	}
	few := func(name string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%s%d = 'b'\n", name, i)
		}
		return b.String()
	}
	for _, c := range []struct{ name, lines, want string }{
		{"a pattern of a megabyte", `"` + strings.Repeat("x", 1<<20-100) + `" = "y"`, "are allowed"},
		{"a pattern of captures", `"` + strings.Repeat("{a}/", 200) + `" = "y"`, "it has more than 16 captures"},
		{"a target of a megabyte", `x = "` + strings.Repeat("y", 1<<19) + `"`, "are allowed"},
		{"a layout of a megabyte", `x = { to = "y", axes = "` + strings.Repeat("(a ", 1<<17) + `-> a" }`, "axes: a text of"},
		{"an expression of a megabyte", `"x{L}" = { to = "y{L}", pass = "L` + strings.Repeat("+L", 1<<17) + `" }`, "pass: a text of"},
		{"many keys", strings.Repeat("a = 'b'\n", 1<<16), "65536 keys: 12288 are allowed"},
		{"many lines", many.String(), "10000 lines in [tensors]: 4096 are allowed"},
		{"many lines of models", "[model.a.tensors]\n" + few("a", 3000) + "[model.b.tensors]\n" + few("b", 3000), "6000 lines in [tensors] and the tables of models: 4096 are allowed"},
		{"tables in tables", "x = " + strings.Repeat("{ a = ", 2000) + "1" + strings.Repeat(" }", 2000), "map.toml"},
	} {
		_, err := mapping.Parse("map.toml", []byte("[tensors]\n"+c.lines))
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1<<12 {
			t.Errorf("%s: %.300s", c.name, fmt.Sprint(err))
		}
	}
}

// Two tensors that are one rank, or that get one name, are said with the line, not added up or dropped.
func TestClashes(t *testing.T) {
	for _, c := range []struct {
		name, lines, want string
		sources           []capture.Source
	}{
		{
			"one rank twice", `"rank{R}/o" = { to = "o", join = "sum" }`, `map.toml: line 2, "rank{R}/o": "rank1/o" and "rank01/o" are both R 1 of "o"`,
			[]capture.Source{mappingtest.Counted("rank0/o", 0, 1, 2), mappingtest.Counted("rank1/o", 0, 1, 2), mappingtest.Counted("rank01/o", 0, 1, 2)},
		},
		{
			"a name that is there", `a = "b"`, `map.toml: line 2, "a": "a" becomes "b", and a tensor has that name already`,
			[]capture.Source{mappingtest.Counted("a", 0, 1, 2), mappingtest.Counted("b", 0, 1, 2)},
		},
		{
			"one name of two lines", "a = { to = ['x', 'y'], axes = 'c -> c', split = 'c: 1 | 1' }\nb = 'y'", `map.toml: line 3, "b": "a" and "b" both become "y"`,
			[]capture.Source{mappingtest.Counted("a", 0, 1, 2), mappingtest.Counted("b", 0, 1, 2)},
		},
		{"one name twice in a line", "a = { to = ['y', 'y'], axes = 'c -> c', split = 'c: 1 | 1' }", `both become "y"`, []capture.Source{mappingtest.Counted("a", 0, 1, 2)}},
	} {
		m, err := mapping.Parse("map.toml", []byte("[tensors]\n"+c.lines))
		if err == nil {
			_, err = m.Apply(mappingtest.Assembled(t, c.sources...), nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// A # of a name is written twice.
func TestNamesWithHash(t *testing.T) {
	a := applied(t, "'a##b{L}' = 'x.{L}'\n'c##1#0' = 'y'", mappingtest.Counted("a#b3", 0, 5, 1), mappingtest.Counted("c#1", 0, 7, 1))
	if _, v := mappingtest.Elements(t, a.Trace, 0, "x.3"); v[0] != 5 {
		t.Error(v)
	}
	if _, v := mappingtest.Elements(t, a.Trace, 0, "y"); v[0] != 7 {
		t.Error(v)
	}
}

// The ids of a ring's tokens may be named by the map itself.
func TestRingWithMappedIDs(t *testing.T) {
	mine := []capture.Source{mappingtest.IDs(0, 2), mappingtest.IDs(1, 1)}
	for i := range mine {
		mine[i].Name = "my.ids"
	}
	a := applied(t, "'my.ids' = 'input_ids'\nk = { to = 'keys', axes = 's d -> s d', ring = 's' }", append(mine, mappingtest.Counted("k", 0, 0, 2, 2), mappingtest.Counted("k", 1, 0, 2, 2))...)
	if _, v := mappingtest.Elements(t, a.Trace, 1, "keys"); v[0] != 2 || v[2] != 0 {
		t.Error(v)
	}
}
