package compare_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
)

func TestUnsuitable(t *testing.T) {
	list := tiny(t)
	config := func(s string) func(*capture.Manifest) {
		return func(m *capture.Manifest) { m.Config = json.RawMessage(s) }
	}
	weights := func(s string) func(*capture.Manifest) { return func(m *capture.Manifest) { m.Weights = s } }
	entries := func(names ...string) func(*capture.Manifest) {
		return func(m *capture.Manifest) { m.Entries = names }
	}
	swapped := func(m *capture.Manifest) {
		m.Entries = slices.Clone(m.Entries)
		m.Entries[3], m.Entries[4] = m.Entries[4], m.Entries[3]
	}
	tests := []struct {
		why  string
		l, r func(*capture.Manifest)
		what string // empty: suitable
		says string
	}{
		{"the same config in other words", config(`{"a":1.0,"b":[1,2]}`), config(`{"b":[1,2],"a":1}`), "", ""},
		{"an epsilon", config(`{"eps":1e-6,"n":1}`), config(`{"eps":1e-5,"n":1}`), "config", "eps: local 0.000001, reference 0.00001"},
		{"a nested key", config(`{"rope":{"full":{"theta":10000}}}`), config(`{"rope":{"full":{"theta":1000000}}}`), "config", "rope.full.theta: local 10000, reference 1000000"},
		{"a key on one side", config(`{"a":1}`), config(`{"a":1,"window":512}`), "config", "window: local absent, reference 512"},
		{"null is not absent", config(`{"a":null}`), config(`{}`), "config", "a: local null, reference absent"},
		{"an object against a number", config(`{"a":{"b":1}}`), config(`{"a":1}`), "config", `a: local {"b":1}, reference 1`},
		{"undeclared is no difference", config(``), config(`{"a":1}`), "", ""},
		{"other weights", weights("sha256:aa"), weights("sha256:bb"), "weights", `"sha256:aa"`},
		{"the same weights", weights("sha256:aa"), weights("sha256:aa"), "", ""},
		{"unknown weights never gate", weights("unknown"), weights("sha256:bb"), "", ""},
		{"undeclared weights neither", weights(""), weights("sha256:bb"), "", ""},
		{"names in another order", swapped, nil, "order", "number 2 of the common names"},
		{"fewer names on one side", entries("input_ids", "logits"), nil, "", ""},
		{"a renamed entry", entries("input_ids", "embed_token", "logits"), nil, "order", `only your port declares "embed_token"`},
		{"names that nobody declares", entries(), entries(), "", ""},
	}
	for _, tt := range tests {
		l, r := model{list: list, edit: tt.l}.trace(t, "local"), model{list: list, edit: tt.r}.trace(t, "reference")
		_, err := compare.Traces(context.Background(), l, r, compare.Options{Order: list})
		var u *compare.UnsuitableError
		switch {
		case tt.what == "" && err != nil:
			t.Errorf("%s: %v", tt.why, err)
		case tt.what == "":
		case !errors.As(err, &u) || u.What != tt.what || !strings.Contains(err.Error(), tt.says) || u.Hint == "":
			t.Errorf("%s: got %v, want an error about the %s that says %q and a hint", tt.why, err, tt.what, tt.says)
		}
	}
}

func TestManyDifferencesAreCut(t *testing.T) {
	big := func(v int) func(*capture.Manifest) {
		config := map[string]int{}
		for c := 'a'; c <= 'z'; c++ {
			config[string(c)] = v
		}
		b, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return func(m *capture.Manifest) { m.Config = b }
	}
	list := tiny(t)
	l, r := model{list: list, edit: big(1)}.trace(t, "local"), model{list: list, edit: big(2)}.trace(t, "reference")
	_, err := compare.Traces(context.Background(), l, r, compare.Options{Order: list})
	if err == nil || !strings.Contains(err.Error(), ": a: local 1, reference 2; b: ") || !strings.Contains(err.Error(), "and 18 more") || len(err.Error()) > 500 {
		t.Errorf("error %v", err)
	}
}

func TestUnfinishedTrace(t *testing.T) {
	list := names(t, "a", "b")
	a := fire("a", hooks.F32, []int{8}, some...)
	full := build(t, manifest("reference", 0), a, fire("b", hooks.F32, []int{8}, some...))
	m := manifest("local", 0)
	m.Entries = []string{"a", "b"}
	cut := unfinished(t, m, a)
	_, err := compare.Traces(context.Background(), cut, full, compare.Options{Order: list})
	var u *compare.UnsuitableError
	if !errors.As(err, &u) || u.What != "status" || !strings.Contains(err.Error(), string(errTest)) || !strings.Contains(u.Hint, "--partial") {
		t.Errorf("without Partial: %v", err)
	}
	res := run(t, cut, full, compare.Options{Order: list, Sides: compare.Sides{Partial: true}})
	if res.ExitCode() != 1 || res.Coverage.Compared != 1 || len(res.Missing) != 1 || res.Missing[0].Name != "b" {
		t.Errorf("with Partial: exit code %d, coverage %+v, missing %v", res.ExitCode(), res.Coverage, res.Missing)
	}
	// Even where all that is asked for is there, half a trace is no success.
	res = run(t, cut, full, compare.Options{Order: names(t, "a"), Sides: compare.Sides{Partial: true}})
	if res.ExitCode() != 1 || len(res.Incomplete) == 0 || !strings.Contains(res.Incomplete[0], "not complete") {
		t.Errorf("exit code %d, incomplete %q", res.ExitCode(), res.Incomplete)
	}
}

// foreign is a safetensors file of another writer: no metadata, one float32 tensor of two elements for each name.
func foreign(t testing.TB, names ...string) *capture.Trace {
	t.Helper()
	var data []byte
	header := map[string]any{}
	for i, name := range names {
		header[name] = map[string]any{"dtype": "F32", "shape": []int{2}, "data_offsets": []int{8 * i, 8*i + 8}}
		data = appendValue(appendValue(data, hooks.F32, 1), hooks.F32, 2)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	file = append(file, data...)
	tr, err := capture.OpenReader("foreign.safetensors", bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestForeignFilesNeedAnOrder(t *testing.T) {
	l, r := foreign(t, "b", "a"), foreign(t, "b", "a")
	_, err := compare.Traces(context.Background(), l, r, compare.Options{})
	var u *compare.UnsuitableError
	if !errors.As(err, &u) || u.What != "sequence" || !strings.Contains(u.Hint, "--order") {
		t.Errorf("without an order: %v", err)
	}
	res := run(t, l, r, compare.Options{Order: names(t, "b", "a")})
	if res.ExitCode() != 0 || len(res.Rows) != 2 || res.Rows[0].Name != "b" {
		t.Errorf("exit code %d, rows %+v", res.ExitCode(), res.Rows)
	}
	if res.Reference.Path != "foreign.safetensors" {
		t.Errorf("reference %+v", res.Reference)
	}
}

// shrinking is a file that becomes shorter after it was opened.
type shrinking struct {
	data []byte
	left int
}

func (s *shrinking) ReadAt(p []byte, off int64) (int, error) {
	s.left--
	if s.left < 0 {
		return 0, io.EOF
	}
	return bytes.NewReader(s.data).ReadAt(p, off)
}

func TestFileThatShrinksIsAnError(t *testing.T) {
	text := `{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	file = append(file, 0, 0, 128, 63, 0, 0, 0, 64)
	s := &shrinking{file, 1 << 30}
	l, err := capture.OpenReader("x", s, int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	s.left = 0
	r := foreign(t, "x")
	for _, sides := range [][2]*capture.Trace{{l, r}, {r, l}} {
		if _, err := compare.Traces(context.Background(), sides[0], sides[1], compare.Options{Order: names(t, "x")}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v", err)
		}
	}
}

func TestHostilePassesAreBounded(t *testing.T) {
	m := manifest("local", 0)
	r := build(t, manifest("reference", 0), fire("x", hooks.F32, []int{8}, some...))
	m.Passes = 1 << 15
	l := build(t, m, fire("x", hooks.F32, []int{8}, some...))
	if _, err := compare.Traces(context.Background(), l, r, compare.Options{Order: tiny(t)}); err == nil || !strings.Contains(err.Error(), "passes") {
		t.Errorf("%d passes: error %v", m.Passes, err)
	}
	header := `{"__metadata__":{"tracediff.version":"1","tracediff.status":"complete","tracediff.passes":"1099511627776"}}`
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	if _, err := capture.OpenReader("x", bytes.NewReader(file), int64(len(file))); err == nil || !strings.Contains(err.Error(), "1099511627776 passes") {
		t.Errorf("more passes than any run has: error %v", err)
	}
}

func TestACancelledComparisonEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x := build(t, manifest("local", 0), fire("x", hooks.F32, []int{8}, some...))
	if _, err := compare.Traces(ctx, x, x, compare.Options{Order: names(t, "x")}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
