package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
)

// flagged is a result with everything in it that a result can have; its texts are hostile.
func flagged() *redflag.Result {
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

// The document of a check is what its schema says, and read again it is the result.
func TestCheckJSON(t *testing.T) {
	for name, r := range map[string]*redflag.Result{"flags": flagged(), "none": {Trace: "x", Flags: []redflag.Flag{}, Looked: []redflag.Looked{}}} {
		var b bytes.Buffer
		if err := report.CheckJSON(&b, "1", r); err != nil {
			t.Fatal(err)
		}
		if err := validate(t, schema(t, "check-1.json"), b.Bytes()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var d report.CheckDocument
		if err := json.Unmarshal(b.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, d.Result, cmp.Comparer(func(a, b measure.Number) bool { return a == b || a != a && b != b })); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
		if d.Exit != min(len(r.Flags), 1) {
			t.Errorf("%s: exit %d", name, d.Exit)
		}
	}
	spoilt := bytes.Buffer{}
	if err := report.CheckJSON(&spoilt, "1", flagged()); err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema(t, "check-1.json"), bytes.Replace(spoilt.Bytes(), []byte(`"zero"`), []byte(`"nought"`), 1)); err == nil {
		t.Error("the schema takes a kind that there is not")
	}
}

// The text names every flag, says what was not looked for, and writes nothing to the terminal that a file has put there.
func TestCheckText(t *testing.T) {
	var b bytes.Buffer
	if err := text.Check(&b, flagged(), text.Style{}); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"trace:  a\ufffd[31m.safetensors, 3 tensors of 1 pass", "",
		"RED FLAG zero: layers.0\ufffd.out, pass 0", "  found  all 4 elements are 0", "  also   a, b, c, d and 2 more", "  means  m", "  try    t", "",
		"note: the trace is not complete", "skipped: constant", "nothing to look at for rotary-zero", "1 red flag: 1 of 3 kinds were looked for", "",
	}, "\n")
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
