package mapping_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
)

// A map that would cost more than any real one is refused with its line.
func TestMapsHaveBounds(t *testing.T) {
	many := &strings.Builder{}
	for i := range 10_000 {
		fmt.Fprintf(many, "a%d = 'b%d'\n", i, i)
	}
	for _, c := range []struct{ name, lines, want string }{
		{"a pattern of a megabyte", `"` + strings.Repeat("x", 1<<20-100) + `" = "y"`, "are allowed"},
		{"a pattern of captures", `"` + strings.Repeat("{a}/", 200) + `" = "y"`, "it has more than 16 captures"},
		{"a target of a megabyte", `x = "` + strings.Repeat("y", 1<<19) + `"`, "are allowed"},
		{"a layout of a megabyte", `x = { to = "y", axes = "` + strings.Repeat("(a ", 1<<17) + `-> a" }`, "axes: a text of"},
		{"an expression of a megabyte", `"x{L}" = { to = "y{L}", pass = "L` + strings.Repeat("+L", 1<<17) + `" }`, "pass: a text of"},
		{"many keys", strings.Repeat("a = 'b'\n", 1<<16), "65536 keys: 12288 are allowed"},
		{"many lines", many.String(), "10000 lines in [tensors]: 4096 are allowed"},
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
			[]capture.Source{counted("rank0/o", 0, 1, 2), counted("rank1/o", 0, 1, 2), counted("rank01/o", 0, 1, 2)},
		},
		{
			"a name that is there", `a = "b"`, `map.toml: line 2, "a": "a" becomes "b", and a tensor has that name already`,
			[]capture.Source{counted("a", 0, 1, 2), counted("b", 0, 1, 2)},
		},
		{
			"one name of two lines", "a = { to = ['x', 'y'], axes = 'c -> c', split = 'c: 1 | 1' }\nb = 'y'", `map.toml: line 3, "b": "a" and "b" both become "y"`,
			[]capture.Source{counted("a", 0, 1, 2), counted("b", 0, 1, 2)},
		},
		{"one name twice in a line", "a = { to = ['y', 'y'], axes = 'c -> c', split = 'c: 1 | 1' }", `both become "y"`, []capture.Source{counted("a", 0, 1, 2)}},
	} {
		m, err := mapping.Parse("map.toml", []byte("[tensors]\n"+c.lines))
		if err == nil {
			_, err = m.Apply(assembled(t, c.sources...), nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// A # of a name is written twice, so that what is proposed for such a name is read again.
func TestNamesWithHash(t *testing.T) {
	a := applied(t, "'a##b{L}' = 'x.{L}'\n'c##1#0' = 'y'", counted("a#b3", 0, 5, 1), counted("c#1", 0, 7, 1))
	if _, v := elements(t, a.Trace, 0, "x.3"); v[0] != 5 {
		t.Error(v)
	}
	if _, v := elements(t, a.Trace, 0, "y"); v[0] != 7 {
		t.Error(v)
	}
	trace, list := golden(t, "llama-tiny/prefill.float32")
	r, data := raw(t, trace, 0, "norm")
	_, text := proposed(t, assembled(t, ids(0, r.Shape[1]), capture.Source{Key: "last#of#all", Name: "last#of#all", DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)}), list, trace)
	if _, err := mapping.Parse("map.toml", []byte(text)); err != nil || !strings.Contains(text, `"last##of##all" = "norm"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// The ids of a ring's tokens may be named by the map itself.
func TestRingWithMappedIDs(t *testing.T) {
	mine := []capture.Source{ids(0, 2), ids(1, 1)}
	for i := range mine {
		mine[i].Name = "my.ids"
	}
	a := applied(t, "'my.ids' = 'input_ids'\nk = { to = 'keys', axes = 's d -> s d', ring = 's' }", append(mine, counted("k", 0, 0, 2, 2), counted("k", 1, 0, 2, 2))...)
	if _, v := elements(t, a.Trace, 1, "keys"); v[0] != 2 || v[2] != 0 {
		t.Error(v)
	}
}

// A proposal for a hostile dump ends, and offers what it can.
func TestProposalsForHostileDumps(t *testing.T) {
	trace, list := golden(t, "llama-tiny/prefill.float32")
	r, same := raw(t, trace, 0, "embed_tokens")
	filled := func(name string, x float32, shape ...int) capture.Source {
		s := counted(name, 0, 0, shape...)
		n, _ := hooks.Elements(shape)
		data := bytes.Repeat([]byte{byte(math.Float32bits(x)), byte(math.Float32bits(x) >> 8), byte(math.Float32bits(x) >> 16), byte(math.Float32bits(x) >> 24)}, n)
		s.Data = bytes.NewReader(data)
		return s
	}
	some := func(n int, each func(i int) capture.Source) []capture.Source {
		list := []capture.Source{ids(0, r.Shape[1])}
		for i := range n {
			list = append(list, each(i))
		}
		return list
	}
	shape := r.Shape[1:]
	for _, c := range []struct {
		name    string
		sources []capture.Source
	}{
		{"the reference's tensor, many times", some(2000, func(i int) capture.Source {
			s := counted(fmt.Sprintf("x%dy", 1000+i), 0, 0, shape...)
			s.Data = bytes.NewReader(same)
			return s
		})},
		{"many tensors of one shape", some(2000, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), 1, shape...) })},
		{"NaN everywhere", some(50, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), float32(math.NaN()), shape...) })},
		{"infinities", some(50, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), float32(math.Inf(1)), shape...) })},
		{"zeros", some(50, func(i int) capture.Source { return filled(fmt.Sprintf("x%dy", 1000+i), 0, shape...) })},
		{"no elements", some(50, func(i int) capture.Source { return counted(fmt.Sprintf("x%d", i), 0, 0, 1, 0, 1<<40) })},
		{"no floats", some(50, func(i int) capture.Source { s := ids(0, 16); s.Name = fmt.Sprintf("x%d", i); return s })},
		{"many axes", some(50, func(i int) capture.Source {
			ones := make([]int, 2000)
			for i := range ones {
				ones[i] = 1
			}
			return filled(fmt.Sprintf("x%d", i), 1, append(ones, shape...)...)
		})},
		{"names of numbers", some(50, func(i int) capture.Source { return filled(strings.Repeat(fmt.Sprintf("%d.", i), 1<<11), 1, shape...) })},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			p, text := proposed(t, assembled(t, c.sources...), list, trace)
			if d := time.Since(start); d > time.Minute { // a second where nothing else runs
				t.Error(d)
			}
			if len(p.Lines) > 0 != strings.HasPrefix(c.name, "the reference's") || len(p.Choices)+len(p.Left) == 0 {
				t.Errorf("%.2000s", text)
			}
			if _, err := mapping.Parse("map.toml", []byte(text+"\nx = 'y'\n")); err != nil {
				t.Errorf("%v\n%.2000s", err, text)
			}
		})
	}
}

// Names that no map has lines for get no proposal.
func TestMoreNamesThanLines(t *testing.T) {
	_, list := golden(t, "llama-tiny/prefill.float32")
	sources := []capture.Source{ids(0, 10)}
	for i := range 5000 {
		sources = append(sources, counted(fmt.Sprintf("x%d", i), 0, 0, 10, 16))
	}
	trace := assembled(t, sources...)
	_, err := mapping.Propose(t.Context(), trace, trace, list, nil, nil)
	if next, _ := hint.Of(err); err == nil || err.Error() != "the names need 5000 lines, and a map has at most 4096" || !strings.Contains(next, "the number of the layer") {
		t.Error(err)
	}
}
