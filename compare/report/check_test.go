package report_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/redflag"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/reporttest"
)

// The document of a check is what its schema says, and read again it is the result.
func TestCheckJSON(t *testing.T) {
	for name, r := range map[string]*redflag.Result{"flags": reporttest.Flagged(), "none": {Trace: "x", Flags: []redflag.Flag{}, Looked: []redflag.Looked{}}} {
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
	if err := report.CheckJSON(&spoilt, "1", reporttest.Flagged()); err != nil {
		t.Fatal(err)
	}
	if err := validate(t, schema(t, "check-1.json"), bytes.Replace(spoilt.Bytes(), []byte(`"zero"`), []byte(`"nought"`), 1)); err == nil {
		t.Error("the schema takes a kind that there is not")
	}
}
