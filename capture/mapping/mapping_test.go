package mapping_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/hooks"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// applied applies a map, whose lines are those of [tensors], to tensors.
func applied(t mappingtest.TB, lines string, sources ...capture.Source) *mapping.Applied {
	t.Helper()
	m, err := mapping.Parse("map.toml", []byte("[tensors]\n"+lines))
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Apply(mappingtest.Assembled(t, sources...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Whatever its axes are called and however they are arranged, each element is where its indexes say.
func TestLayoutsMoveElements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "axes")
		all := []string{"a", "b", "c", "f", "g"}[:n]
		sizes := map[string]int{}
		left, shape := []string{}, []int{}
		for i := 0; i < n; {
			k := rapid.IntRange(1, min(2, n-i)).Draw(t, "factors")
			size, words := 1, []string{}
			for j, name := range all[i : i+k] {
				sizes[name] = rapid.IntRange(1, 4).Draw(t, name)
				size *= sizes[name]
				if j > 0 {
					name = fmt.Sprintf("%s:%d", name, sizes[name])
				}
				words = append(words, name)
			}
			left, shape = append(left, "("+strings.Join(words, " ")+")"), append(shape, size)
			i += k
		}
		to := rapid.Permutation(all).Draw(t, "to")
		a := applied(t, fmt.Sprintf("x = { to = 'y', axes = '%s -> 1 %s' }", strings.Join(left, " "), strings.Join(to, " ")), mappingtest.Counted("x", 0, 0, shape...))
		got, values := mappingtest.Elements(t, a.Trace, 0, "y")
		want := []int{1}
		for _, name := range to {
			want = append(want, sizes[name])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("shape %v, want %v", got, want)
		}
		for number, v := range values {
			index, rest := map[string]int{}, number
			for _, name := range slices.Backward(to) {
				index[name], rest = rest%sizes[name], rest/sizes[name]
			}
			at := 0
			for _, name := range all { // row-major in the order of the left side, whatever is one axis there
				at = at*sizes[name] + index[name]
			}
			if v != float32(at) {
				t.Fatalf("%v of %v -> %v: %v, want %d", index, left, to, v, at)
			}
		}
	})
}

func TestTransforms(t *testing.T) {
	type want struct {
		pass   int
		name   string
		shape  []int
		values []float32
	}
	for _, c := range []struct {
		name    string
		lines   string
		sources []capture.Source
		want    []want
	}{
		{
			"a name with a layer", `"blk.{L}.n" = "layers.{L}.norm"`,
			[]capture.Source{mappingtest.Counted("blk.1.n", 0, 0, 2), mappingtest.Counted("other", 0, 7, 1)},
			[]want{{0, "layers.1.norm", []int{2}, []float32{0, 1}}, {0, "other", []int{1}, []float32{7}}},
		},
		{
			"fused in blocks", `qkv = { to = ["q", "k", "v"], axes = "t c -> 1 t c", split = "c: 2*2 | 1 | 1" }`,
			[]capture.Source{mappingtest.Counted("qkv", 0, 0, 2, 6)},
			[]want{{0, "q", []int{1, 2, 4}, []float32{0, 1, 2, 3, 6, 7, 8, 9}}, {0, "k", []int{1, 2, 1}, []float32{4, 10}}, {0, "v", []int{1, 2, 1}, []float32{5, 11}}},
		},
		{
			"fused by key heads", `qkv = { to = ["q", "k"], axes = "t (g s:3 w:2) -> t (g s w)", split = "s: 2 | 1" }`,
			[]capture.Source{mappingtest.Counted("qkv", 0, 0, 1, 12)},
			[]want{{0, "q", []int{1, 8}, []float32{0, 1, 2, 3, 6, 7, 8, 9}}, {0, "k", []int{1, 4}, []float32{4, 5, 10, 11}}},
		},
		{
			"gate and up by turns", `gu = { to = ["gate", "up"], axes = "t (f s:2) -> t f", split = "s: 1 | 1" }`,
			[]capture.Source{mappingtest.Counted("gu", 0, 0, 1, 6)},
			[]want{{0, "gate", []int{1, 3}, []float32{0, 2, 4}}, {0, "up", []int{1, 3}, []float32{1, 3, 5}}},
		},
		{
			"interleaved pairs", `q = { to = "r", axes = "t (p r:2) -> t (r p)" }`,
			[]capture.Source{mappingtest.Counted("q", 0, 0, 1, 6)},
			[]want{{0, "r", []int{1, 6}, []float32{0, 2, 4, 1, 3, 5}}},
		},
		{
			"the layout of convolutions", `x = { to = "y", axes = "b c 1 t -> b t c" }`,
			[]capture.Source{mappingtest.Counted("x", 0, 0, 1, 2, 1, 3)},
			[]want{{0, "y", []int{1, 3, 2}, []float32{0, 3, 1, 4, 2, 5}}},
		},
		{
			"ranks along heads", `"rank{R}/q" = { to = "q", axes = "t (h:2 d) -> 1 t (h d)", join = "h" }`,
			[]capture.Source{mappingtest.Counted("rank1/q", 0, 100, 2, 4), mappingtest.Counted("rank0/q", 0, 0, 2, 4)},
			[]want{{0, "q", []int{1, 2, 8}, []float32{0, 1, 2, 3, 100, 101, 102, 103, 4, 5, 6, 7, 104, 105, 106, 107}}},
		},
		{
			"ranks of a fused product", `"rank{R}/qk" = { to = ["q", "k"], axes = "t c -> t c", split = "c: 2 | 1", join = "c" }`,
			[]capture.Source{mappingtest.Counted("rank0/qk", 0, 0, 1, 3), mappingtest.Counted("rank1/qk", 0, 10, 1, 3)},
			[]want{{0, "q", []int{1, 4}, []float32{0, 1, 10, 11}}, {0, "k", []int{1, 2}, []float32{2, 12}}},
		},
		{
			"experts, one in each tensor", `"experts.{X}" = { to = "experts", axes = "(x:1 t) c -> x t c", join = "x" }`,
			[]capture.Source{mappingtest.Counted("experts.1", 0, 100, 2, 2), mappingtest.Counted("experts.0", 0, 0, 2, 2)},
			[]want{{0, "experts", []int{2, 2, 2}, []float32{0, 1, 2, 3, 100, 101, 102, 103}}},
		},
		{
			"partial sums", `"rank{R}/o" = { to = "o", join = "sum" }`,
			[]capture.Source{mappingtest.Counted("rank0/o", 0, 1, 3), mappingtest.Counted("rank1/o", 0, 10, 3)},
			[]want{{0, "o", []int{3}, []float32{11, 13, 15}}},
		},
		{
			"the same on all ranks", `"rank{R}/n" = { to = "n", join = "same" }`,
			[]capture.Source{mappingtest.Counted("rank0/n", 0, 1, 3), mappingtest.Counted("rank1/n", 0, 1, 3)},
			[]want{{0, "n", []int{3}, []float32{1, 2, 3}}},
		},
		{
			"stages of a pipeline", `"stage{P}.layers.{L}" = "layers.{L+2*P}"`,
			[]capture.Source{mappingtest.Counted("stage0.layers.1", 0, 1, 1), mappingtest.Counted("stage1.layers.0", 0, 2, 1)},
			[]want{{0, "layers.1", []int{1}, []float32{1}}, {0, "layers.2", []int{1}, []float32{2}}},
		},
		{
			"passes in names", `"step{S}/x" = { to = "x", pass = "S-1" }`,
			[]capture.Source{mappingtest.Counted("step1/x", 0, 1, 1), mappingtest.Counted("step02/x", 0, 2, 1)},
			[]want{{0, "x", []int{1}, []float32{1}}, {1, "x", []int{1}, []float32{2}}},
		},
		{
			"keys of a ring", `k = { to = "keys", axes = "s d -> 1 s d", ring = "s" }`,
			[]capture.Source{mappingtest.IDs(0, 2), mappingtest.IDs(1, 1), mappingtest.Counted("k", 0, 0, 2, 2), mappingtest.Counted("k", 1, 0, 2, 2)},
			[]want{{0, "keys", []int{1, 2, 2}, []float32{0, 1, 2, 3}}, {1, "keys", []int{1, 2, 2}, []float32{2, 3, 0, 1}}},
		},
		{"braces of a name", `"a{{b}}{L}" = "x.{L}"`, []capture.Source{mappingtest.Counted("a{b}3", 0, 5, 1)}, []want{{0, "x.3", []int{1}, []float32{5}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := applied(t, c.lines, c.sources...)
			for _, w := range c.want {
				shape, values := mappingtest.Elements(t, a.Trace, w.pass, w.name)
				if !slices.Equal(shape, w.shape) || !slices.Equal(values, w.values) {
					t.Errorf("pass %d, %s: %v %v, want %v %v", w.pass, w.name, shape, values, w.shape, w.values)
				}
			}
			if len(a.Differ) > 0 {
				t.Error(a.Differ)
			}
			if a.File != "map.toml" || a.Patterns != strings.Count(strings.TrimSpace(c.lines), "\n")+1 {
				t.Errorf("%d patterns of %s", a.Patterns, a.File)
			}
		})
	}
}

// One firing of several of a name is picked, and rows of the last token are marked.
func TestFiringsAndRows(t *testing.T) {
	first, second := mappingtest.Counted("q", 0, 0, 1), mappingtest.Counted("q", 0, 5, 1)
	second.Firing = 1
	a := applied(t, "'q#0' = 'q_proj'\n'q#last' = { to = 'q_rope', rows = 'last' }", first, second)
	if _, v := mappingtest.Elements(t, a.Trace, 0, "q_proj"); v[0] != 0 {
		t.Error(v)
	}
	r, ok := a.Trace.Lookup(0, "q_rope")
	if _, v := mappingtest.Elements(t, a.Trace, 0, "q_rope"); !ok || v[0] != 5 || !r.LastRow {
		t.Error(v, r)
	}
}

// A port can have a name that the order has for something else. A line without targets leaves that tensor out, and says so; what gets
// the name then is another one.
func TestLeftOut(t *testing.T) {
	a := applied(t, `"norm" = { to = [] }
"result_norm" = "norm"
"rest-{L}" = { to = [] }`, mappingtest.Counted("norm", 0, 0, 2), mappingtest.Counted("result_norm", 0, 7, 2), mappingtest.Counted("rest-1", 0, 0, 2), mappingtest.Counted("kept", 0, 3, 1))
	if _, values := mappingtest.Elements(t, a.Trace, 0, "norm"); !slices.Equal(values, []float32{7, 8}) || len(a.Trace.Records()) != 2 {
		t.Errorf("norm is %v, of %d tensors", values, len(a.Trace.Records()))
	}
	if want := []string{"norm left out", "rest-* left out"}; !slices.Equal(a.Changes, want) {
		t.Errorf("it changed %q", a.Changes)
	}
}

// Ranks that differ are a finding, and the first is taken.
func TestRanksThatDiffer(t *testing.T) {
	a := applied(t, `"rank{R}/n" = { to = "n", join = "same" }`, mappingtest.Counted("rank0/n", 0, 1, 2, 2), mappingtest.Counted("rank1/n", 0, 2, 2, 2))
	want := "n is not the same on all ranks: R 0 and R 1 differ in 4 of 4 elements, first at [0 0]"
	if _, v := mappingtest.Elements(t, a.Trace, 0, "n"); len(a.Differ) != 1 || a.Differ[0] != want || v[0] != 1 {
		t.Errorf("%q, %v", a.Differ, v)
	}
}

// A table without lines leaves a dump as it is; a file without a table is what a command that failed leaves behind.
func TestEmptyMaps(t *testing.T) {
	if a := applied(t, "# nothing to do", mappingtest.Counted("a", 0, 0, 2)); len(a.Trace.Records()) != 1 || a.Patterns != 0 {
		t.Error(a.Trace.Records())
	}
	for _, text := range []string{"", "# a comment\n", "[settings]\n"} {
		if _, err := mapping.Parse("map.toml", []byte(text)); err == nil {
			t.Errorf("%q is a map", text)
		}
	}
}

// What is wrong with a map, or does not fit the tensors, is said with the line.
func TestErrors(t *testing.T) {
	x := []capture.Source{mappingtest.Counted("blk.0.x", 0, 0, 2, 6), mappingtest.Counted("blk.1.x", 0, 0, 2, 6)}
	for _, c := range []struct{ lines, want string }{
		{`# "a" = "b" # shape`, "all lines of the map are comments"},
		{`blk.x = "y"`, `map.toml: line 2, "blk": "x" is unknown: want to,`},
		{`"a" = 3`, `map.toml: line 2, "a": want a name, or a table`},
		{`"a{L" = "y"`, "a brace without its counterpart"},
		{`"a{9}" = "y"`, "{9} is not a capture"},
		{`"blk.{L}.x" = "y.{M}"`, "{M} is in the target, and the pattern has no {M}"},
		{`"blk.{L}.x" = "y"`, `{L} is in no target: join = "same", "sum" or an axis`},
		{`"blk.{L}.x" = { to = "y.{L}", join = "sum" }`, "every capture is in a target"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t c -> c" }`, "t is on the left only"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t c -> t c e" }`, "e is on the right only"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t t -> t t" }`, "t is twice on one side"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t (c -> t c" }`, "parentheses do not fit together"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t (c:0 d) -> t c d" }`, "want a size of 1 or more"},
		{`"blk.{L}.x" = { to = ["y.{L}", "z.{L}"] }`, "2 names for 1 parts"},
		{`"x" = { to = [], axes = "t c -> 1 t c" }`, "leaves a tensor out: the line can have no other key"},
		{`"blk.{L}.x" = { to = ["y.{L}", "z.{L}"], split = "c: 1|1" }`, "no axis is called c"},
		{`"blk.{L}.x" = { to = "y.{L}", rows = "first" }`, `rows is "first", want last`},
		{`"blk.{L}.x" = { to = "y.{L}", pass = "S" }`, "the pattern has no number {S}"},
		{`"blk.{L}.x" = { to = "y.{L}", sclae = "2" }`, `"sclae" is unknown`},
		{`"none.{L}" = "y.{L}"`, `map.toml: line 2, "none.{L}": it matches no tensor of dump`},
		{"\"blk.{L}.x\" = \"y.{L}\"\n\"blk.0.{n}\" = \"z.{n}\"", `map.toml: line 3, "blk.0.{n}": it matches "blk.0.x", and so does line 2`},
		{`"blk.{L}.x" = { to = "y", join = "c", axes = "t c -> t c", pass = "L" }`, "every capture is in a target"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t (a b) -> t a b" }`, "the sizes of a and b do not follow"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "t (a:4 b) -> t a b" }`, "an axis of size 6 is not (a b): a is 4"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "b t c -> b t c" }`, "has 2 axes"},
		{`"blk.{L}.x" = { to = ["y.{L}", "z.{L}"], axes = "t c -> t c", split = "c: 2 | 2" }`, "the parts of c add up to 4, and its size is 6"},
		{`"blk.{L}.x" = { to = ["y.{L}", "z.{L}"], axes = "t c -> t", split = "c: 3 | 3" }`, "c is 3 wide and on the left only"},
		{`"blk.{L}.x" = { to = "y.{L}", axes = "s c -> s c", ring = "s" }`, "the trace has no input_ids of pass 0"},
		{`"blk.{L}.x" = { to = "y", pass = "L*70000" }`, `pass: "L*70000" is 70000 for "blk.1.x": want 0 to 65535`},
		{`"blk.{L}.x" = { to = "y", pass = "L-1" }`, `pass: "L-1" is -1 for "blk.0.x": want 0 to 65535`},
		{`"blk.{L}.x" = "y.{L*999999999*999999999}"`, "too large a number"},
		{`"blk.{L}.x" = { to = "y.{L}", folded = "1+w" }`, `map.toml: line 2, "blk.{L}.x": folded is for [weights]: the result of a norm is the same whether a file has 1+w or w`},
		{"\"blk.{L}.x\" = \"y.{L}\"\n[weights]\n'blk.{L}.w' = { to = 'y.{L}', folded = 'w' }", `map.toml: line 4, "blk.{L}.w": folded is "w", want 1+w`},
	} {
		m, err := mapping.Parse("map.toml", []byte("[tensors]\n"+c.lines))
		if err == nil {
			_, err = m.Apply(mappingtest.Assembled(t, x...), nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %q", c.lines, err, c.want)
		}
	}
}

// A port that no longer dumps what its map leaves out is compared by the same map.
func TestWhatIsLeftOutMayBeAbsent(t *testing.T) {
	m, err := mapping.Parse("map.toml", []byte("[tensors]\n'blk.{L}.x' = 'y.{L}'\n'blk.{L}' = { to = [] }"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Apply(mappingtest.Assembled(t, mappingtest.Counted("blk.0.x", 0, 0, 2, 6)), nil)
	if err != nil || len(a.Absent) > 0 || a.Trace.Records()[0].Name != "y.0" {
		t.Error(a, err)
	}
}

// A rank that is missing in one place is no smaller tensor.
func TestMissingRank(t *testing.T) {
	m, err := mapping.Parse("map.toml", []byte("[tensors]\n\"rank{R}/{L}\" = { to = \"layers.{L}\", join = \"sum\" }"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Apply(mappingtest.Assembled(t, mappingtest.Counted("rank0/0", 0, 0, 1), mappingtest.Counted("rank1/0", 0, 0, 1), mappingtest.Counted("rank0/0", 2, 0, 1)), nil)
	if err == nil || !strings.Contains(err.Error(), `R 1 of "layers.0" is missing in pass 2`) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[tensors]\n\"blk.{L}.x\" = { to = [\"y.{L}\", \"z.{L}\"], axes = \"t (a:2 b) -> 1 t (a b)\", split = \"b: 1 | 2\" }\n")
	f.Add("[tensors]\n\"rank{R}/x.{L+2*R}#last\" = { to = \"x\", join = \"same\", pass = \"R-1\", ring = \"s\", rows = \"last\" }\n[weights]\na = 'b'")
	sources := []capture.Source{mappingtest.IDs(0, 2), mappingtest.Counted("blk.0.x", 0, 0, 2, 6), mappingtest.Counted("rank0/x", 0, 0, 2), mappingtest.Counted("rank1/x", 0, 0, 2)}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := mapping.Parse("map.toml", []byte(text))
		if err != nil {
			return
		}
		a, err := m.Apply(mappingtest.Assembled(t, sources...), nil)
		if err != nil {
			return
		}
		for _, r := range a.Trace.Records() {
			if n, ok := hooks.Elements(r.Shape); !ok || r.Size > 1<<10 || int64(n*r.DType.Size()) != r.Size {
				t.Fatalf("%+v", r)
			}
			if _, err := a.Trace.ReadAt(r, make([]byte, r.Size), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}
