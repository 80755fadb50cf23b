// Package reporttest has what the tests of the renderers share: comparisons of every kind, documents of them, and golden files.
//
// Only tests import the package.
package reporttest

import (
	"bytes"
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/order"
)

// Tensor is one firing of float32s, or of int64s for the token ids.
func Tensor(pass int, name string, shape []int, values ...float64) hooks.Event {
	d := hooks.F32
	if name == "input_ids" || name == "position_ids" {
		d = hooks.I64
	}
	return hooks.Event{Name: name, Pass: pass, Tensor: hooks.Tensor{DType: d, Shape: shape, Data: floats.Append(nil, d, values...)}}
}

// Trace writes a trace and opens it.
func Trace(t *testing.T, m capture.Manifest, events ...hooks.Event) *capture.Trace {
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

// LocalManifest is the manifest of your port.
func LocalManifest() capture.Manifest {
	return capture.Manifest{
		Side: "local", Producer: capture.Producer{Name: "tracediff", Version: "0.1.0"}, DType: hooks.F32, Model: "gemma3n-tiny",
		Scope: capture.Scope{Level: 3}, Passes: 1,
	}
}

// ReferenceManifest is the manifest of the reference.
func ReferenceManifest() capture.Manifest {
	m := LocalManifest()
	m.Side, m.Producer, m.Model = "reference", capture.Producer{Name: "transformers", Version: "5.23.0"}, ""
	return m
}

// Names returns an order that has names only.
func Names(t *testing.T, lines ...string) *order.List {
	t.Helper()
	list, err := order.ReadNames(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Text returns the report of a comparison as text.
func Text(t *testing.T, res *compare.Result, s text.Style) string {
	t.Helper()
	var b strings.Builder
	if err := text.Write(&b, words.Of(res), s); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Golden compares a text with a file of testdata. With -update it writes the file.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if pagetest.Update() {
		pagetest.Write(t, path, got)
	}
	if diff := cmp.Diff(pagetest.Text(t, path), got); diff != "" {
		t.Errorf("%s:\n%s", name, diff)
	}
}

// BrokenPipe is a writer that fails with [ErrPipe].
type BrokenPipe struct{}

// ErrPipe is the error of a [BrokenPipe].
var ErrPipe = errors.New("broken pipe")

func (BrokenPipe) Write([]byte) (int, error) { return 0, ErrPipe }

// Documents has two documents for each case, one with a single run and one with a second run that could not be compared, and an empty document.
func Documents(t *testing.T) map[string]*report.Document {
	all := map[string]*report.Document{"none": report.NewDocument("1")}
	failed := report.Run{Name: "other", Exit: 2, Error: "no trace of <transformers>\x1b[31m", Hint: "make one"}
	for name, c := range Cases(t) {
		res := c.Run(t)
		run := report.Run{Exit: res.ExitCode(), Result: res}
		all[name] = report.NewDocument("1", run)
		run.Name = "first"
		all[name+", several"] = report.NewDocument("1", run, failed)
	}
	return all
}

// Write returns a document in a format.
func Write(t *testing.T, write func(io.Writer, *report.Document) error, d *report.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Shown returns a document as a renderer shows it.
func Shown(t *testing.T, show func(io.Writer, *words.Report) error, d *report.Document) []byte {
	t.Helper()
	return Write(t, func(w io.Writer, d *report.Document) error { return show(w, words.New(d)) }, d)
}

// Flagged is a result that has every field set, with hostile texts.
func Flagged() *redflag.Result {
	return &redflag.Result{
		Trace: "a\x1b[31m.safetensors", Tensors: 3, Passes: 1,
		Flags: []redflag.Flag{{
			Kind: redflag.Zero, Entry: "layers.0\x07.out", What: "all 4 elements are 0", Means: "m", Try: "t",
			Numbers: []redflag.Number{{Name: "elements", Value: 4}, {Name: "largest", Value: measure.Number(math.NaN())}},
			Also:    []string{"a", "b", "c", "d", "e", "f"},
		}},
		Looked: []redflag.Looked{{Kind: redflag.Zero, Tensors: 3}, {Kind: redflag.Constant, Skipped: true}, {Kind: redflag.RotaryZero}},
		Notes:  []string{"the trace is not complete"},
	}
}
