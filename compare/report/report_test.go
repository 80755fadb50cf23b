package report_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

var update = flag.Bool("update", false, "write the reports in testdata anew")

// tensor is one firing of float32s, or of int64s for the token ids.
func tensor(pass int, name string, shape []int, values ...float64) hooks.Event {
	d := hooks.F32
	var data []byte
	for _, v := range values {
		if name == "input_ids" || name == "position_ids" {
			d, data = hooks.I64, binary.LittleEndian.AppendUint64(data, uint64(v))
		} else {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
		}
	}
	return hooks.Event{Name: name, Pass: pass, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: data}}
}

// trace writes a trace of an engine and opens it.
func trace(t *testing.T, m capture.Manifest, events ...hooks.Event) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.safetensors")
	w, err := capture.Create(path, m, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func localManifest() capture.Manifest {
	return capture.Manifest{
		Side: "local", Producer: capture.Producer{Name: "tracediff", Version: "0.1.0"}, DType: hooks.F32, Model: "gemma3n-tiny",
		Scope: capture.Scope{Level: 3}, Passes: 1,
	}
}

func referenceManifest() capture.Manifest {
	m := localManifest()
	m.Side, m.Producer, m.Model = "reference", capture.Producer{Name: "transformers", Version: "5.23.0"}, ""
	return m
}

func tiny(t *testing.T) *order.List {
	t.Helper()
	data, err := os.ReadFile("../../order/testdata/gemma3n-tiny.config.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func names(t *testing.T, lines ...string) *order.List {
	t.Helper()
	list, err := order.ReadNames(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var (
	ids    = tensor(0, "input_ids", []int{1, 3}, 2, 500, 501)
	places = tensor(0, "position_ids", []int{1, 3}, 0, 1, 2)
	embed  = tensor(0, "embed_tokens", []int{1, 3, 32}, cycled(96, 1, -2, 3, -4, 5, -6)...)
	eight  = []float64{1, -2, 3, -4, 5, -6, 7, -8}
)

// cycled repeats values until there are n.
func cycled(n int, values ...float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = values[i%len(values)]
	}
	return out
}

func times(by float64, values []float64) []float64 {
	out := make([]float64, len(values))
	for i := range values {
		out[i] = by * values[i]
	}
	return out
}

// result is one comparison to be reported.
type result struct {
	l, r []hooks.Event
	lm   func(*capture.Manifest)
	rm   func(*capture.Manifest)
	o    compare.Options
	ab   bool
}

func (c result) run(t *testing.T) *compare.Result {
	t.Helper()
	lm, rm := localManifest(), referenceManifest()
	if c.lm != nil {
		c.lm(&lm)
	}
	if c.rm != nil {
		c.rm(&rm)
	}
	compared := compare.Traces
	if c.ab {
		compared = compare.AB
	}
	res, err := compared(context.Background(), trace(t, lm, c.l...), trace(t, rm, c.r...), c.o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func texts() (func(id int) string, error) {
	return func(id int) string { return fmt.Sprintf("▁t%d", id) }, nil
}

// cases are the reports in testdata.
func cases(t *testing.T) map[string]result {
	mlp := func(by float64) []hooks.Event {
		return []hooks.Event{
			ids, embed, tensor(0, "layers.0.mlp.gated", []int{1, 3, 64}, cycled(192, eight...)...),
			tensor(0, "layers.0.mlp.down_proj", []int{1, 3, 32}, cycled(96, times(by, eight)...)...),
		}
	}
	undeclared := func(m *capture.Manifest) { m.Scope = capture.Scope{} }
	const low = -math.MaxFloat32
	scores := func(v ...float64) []hooks.Event {
		return []hooks.Event{ids, tensor(0, "layers.0.self_attn.scores_masked", []int{1, 4, 3, 3}, cycled(36, v...)...)}
	}
	decode := func(last float64) []hooks.Event {
		return []hooks.Event{
			ids, tensor(0, "logits", []int{1, 3, 2}, 1, 2, 3, 4, 5, 6),
			tensor(1, "input_ids", []int{1, 1}, 7), tensor(1, "logits", []int{1, 1, 2}, 9, last),
		}
	}
	two := func(m *capture.Manifest) { m.Passes = 2 }
	vocabulary := func(v ...float64) []hooks.Event {
		return []hooks.Event{ids, places, tensor(0, "logits", []int{1, 3, 6}, v...)}
	}
	window := func(size string) func(*capture.Manifest) {
		return func(m *capture.Manifest) { m.Scope, m.Config = capture.Scope{}, json.RawMessage(`{"window":`+size+`}`) }
	}
	return map[string]result{
		"match": {l: mlp(1)[:2], r: mlp(1)[:2], o: compare.Options{Order: names(t, "input_ids", "embed_tokens"), Reporting: compare.Reporting{ReferenceLabel: "golden", TokenTexts: texts}}},
		"divergence": {
			l: mlp(2), r: mlp(1), lm: undeclared, rm: undeclared,
			o: compare.Options{Order: tiny(t), Reporting: compare.Reporting{ReferenceLabel: "golden", TokenTexts: texts}},
		},
		"tokens": {
			l: []hooks.Event{tensor(0, "input_ids", []int{1, 3}, 500, 501, 9)}, r: []hooks.Event{ids},
			o: compare.Options{Order: names(t, "input_ids", "x"), Reporting: compare.Reporting{TokenTexts: texts}},
		},
		"uncertified": {l: mlp(1)[:2], r: mlp(1)[:2], o: compare.Options{Order: names(t, "input_ids", "embed_tokens"), Certification: compare.Certification{NotIsolated: "the order has names and no operations"}}},
		"missing":     {l: mlp(1)[:2], r: mlp(1), o: compare.Options{Order: names(t, "input_ids", "embed_tokens", "layers.0.mlp.gated", "layers.0.mlp.down_proj")}},
		"decode":      {l: decode(10.5), r: decode(10), lm: two, rm: two, o: compare.Options{Order: names(t, "input_ids", "logits"), All: true}},
		"mask": {
			l: scores(1, low, low, 3, 4, low), r: scores(1, 2, low, 3, 4, 5), lm: undeclared, rm: undeclared, o: compare.Options{Order: tiny(t)},
		},
		"shape": {
			l: []hooks.Event{ids, tensor(0, "x", []int{4, 2}, eight...)}, r: []hooks.Event{ids, tensor(0, "x", []int{2, 4}, eight...)},
			o: compare.Options{Order: names(t, "input_ids", "x")},
		},
		"tie": {
			l: vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 2, 1, 2, 8.001, 4, 8, -9),
			r: vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1, 1, 2, 8, 4, 8.001, -9),
			o: compare.Options{
				Order:     names(t, "input_ids", "position_ids", "logits"),
				Reporting: compare.Reporting{TokenTexts: texts},
				Judging: compare.Judging{Noise: &gate.NoiseFloor{
					DType: "float32", Entries: map[string]gate.Noise{"logits": {RelL2: 1e-4}},
				}},
				All: true,
			},
		},
		"ab": {
			l: mlp(2), r: mlp(1), lm: window("4"), rm: window("8"),
			ab: true,
			o:  compare.Options{Order: tiny(t), Reporting: compare.Reporting{LocalLabel: "off.safetensors", ReferenceLabel: "on.safetensors", TokenTexts: texts}},
		},
		"expected": {
			l:  append(mlp(2), vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 2, 1, 2, 8, 4, 7, -9)[2]),
			r:  append(mlp(1), vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 2, 1, 2, 8, 4, 7, -9)[2]),
			ab: true,
			o: compare.Options{
				Order:     names(t, "input_ids", "embed_tokens", "layers.0.mlp.gated", "layers.0.mlp.down_proj", "logits"),
				Judging:   compare.Judging{Different: []string{"*.down_proj", "*.gated"}},
				Reporting: compare.Reporting{TokenTexts: texts},
			},
		},
		"notes": {
			l: []hooks.Event{ids, tensor(0, "zero", []int{2}, 0, 0), tensor(0, "x", []int{2}, 1, math.NaN()), tensor(0, "other", []int{1}, 1)},
			r: []hooks.Event{ids, tensor(0, "zero", []int{2}, 0, 0), tensor(0, "x", []int{2}, 1, math.NaN())},
			o: compare.Options{Order: names(t, "input_ids", "zero", "x"), Scope: capture.Scope{Level: 2, Passes: capture.Ranges{{From: 0, To: 0}}}},
		},
	}
}

// views are those with more than the verdict, by the end of the file that has them.
var views = map[string]text.View{".txt": text.Short, ".table.txt": text.Everything}

func written(t *testing.T, res *compare.Result, s text.Style) string {
	t.Helper()
	var b strings.Builder
	if err := text.Write(&b, res, s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReports(t *testing.T) {
	for name, c := range cases(t) {
		res := c.run(t)
		for end, v := range views {
			golden(t, name+end, written(t, res, text.Style{}.WithView(v)))
		}
	}
}

// golden compares a text with the file of testdata that has it, or writes that.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s:\n%s", name, diff)
	}
}

// TestFirstAndLastLine has what scripts and people rely on, whatever else a report says: the first line names what a comparison is
// with, and the last one of every view is the verdict.
func TestFirstAndLastLine(t *testing.T) {
	for name, c := range cases(t) {
		res := c.run(t)
		word := "MISMATCH: "
		switch {
		case res.ExitCode() == 0:
			word = "MATCH: "
		case res.Mismatches == 0 && len(res.Incomplete) > 0:
			word = "INCOMPLETE: "
		case res.Mismatches == 0:
			word = "NOT DIFFERENT: "
		}
		alone := strings.TrimSuffix(written(t, res, text.Style{}.WithView(text.VerdictOnly)), "\n")
		if !strings.HasPrefix(alone, word) || strings.Contains(alone, "\n") {
			t.Errorf("%s: the verdict alone is %q, want %s", name, alone, word)
		}
		for _, v := range []text.View{text.Short, text.Evidence, text.Everything} {
			lines := strings.Split(strings.TrimSuffix(written(t, res, text.NewStyle(false).WithView(v)), "\n"), "\n")
			want := "reference: transformers 5.23.0, float32"
			if c.ab {
				want = "A:         tracediff 0.1.0, float32"
			}
			if !strings.HasPrefix(lines[0], want) {
				t.Errorf("%s: first line %q", name, lines[0])
			}
			if last := lines[len(lines)-1]; !strings.HasPrefix(alone, last) {
				t.Errorf("%s: last line %q, and the verdict alone is %q", name, last, alone)
			}
			for i, line := range lines {
				if line != strings.TrimRight(line, " ") {
					t.Errorf("%s: line %d ends in spaces: %q", name, i+1, line)
				}
			}
		}
	}
}

// Between A and B neither is the reference, and no line says so, whatever it is about.
func TestABHasNoReference(t *testing.T) {
	word := regexp.MustCompile(`(?i)\b(local|reference)\b`)
	for name, c := range cases(t) {
		c.ab, c.o.ReferenceLabel = true, ""
		res := c.run(t)
		for _, v := range views {
			text := written(t, res, text.Style{}.WithView(v))
			if line := word.FindString(text); line != "" {
				t.Errorf("%s: %q in\n%s", name, line, text)
			}
		}
	}
}

func TestColourAddsNothing(t *testing.T) {
	res := cases(t)["divergence"].run(t)
	var plain, coloured, disabled bytes.Buffer
	for _, c := range []struct {
		w     *bytes.Buffer
		style text.Style
	}{{&plain, text.Style{}}, {&coloured, text.NewStyle(true)}, {&disabled, text.NewStyle(false)}} {
		if err := text.Write(c.w, res, c.style); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(plain.String(), disabled.String()); diff != "" {
		t.Errorf("colour switched off\n%s", diff)
	}
	if !strings.Contains(coloured.String(), "\x1b[32mMATCH\x1b[0m") {
		t.Error("no green MATCH with colour switched on")
	}
	if diff := cmp.Diff(plain.String(), strip(coloured.String())); diff != "" {
		t.Errorf("without its escapes the coloured report is another\n%s", diff)
	}
}

// strip removes the escapes that set colours.
func strip(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "m")
	}
}

// TestHostileNames has escapes wherever a trace puts text into a report.
func TestHostileNames(t *testing.T) {
	const evil = "x\x1b[2J\u202e\a\n\r\b"
	c := result{
		l: []hooks.Event{tensor(0, evil, []int{2}, 1, 2), tensor(0, evil+"2", []int{2}, 1, 2)},
		r: []hooks.Event{tensor(0, evil, []int{2}, 2, 4)},
		lm: func(m *capture.Manifest) {
			m.Producer, m.Model = capture.Producer{Name: evil, Version: evil}, evil
		},
	}
	list := names(t, "input_ids")
	list.Entries[0].Name = evil
	c.o = compare.Options{
		Order: list,
		Reporting: compare.Reporting{TokenTexts: func() (func(int) string, error) {
			return func(int) string { return evil }, nil
		}},
	}
	res := c.run(t)
	for _, v := range []text.View{text.Short, text.Evidence, text.Everything, text.VerdictOnly} {
		got := written(t, res, text.Style{}.WithView(v).WithSince(evil))
		if strings.ContainsAny(got, "\x1b\a\r\b\u202e") || !strings.Contains(got, " x\ufffd[2J") {
			t.Errorf("%q", got)
		}
	}
}

type brokenPipe struct{}

var errPipe = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipe }

func TestWriteErrorIsReturned(t *testing.T) {
	if err := text.Write(brokenPipe{}, cases(t)["match"].run(t), text.Style{}); !errors.Is(err, errPipe) {
		t.Errorf("error %v", err)
	}
}
