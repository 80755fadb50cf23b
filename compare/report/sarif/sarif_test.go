package sarif_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/sarif"
	"github.com/tracediff/tracediff/compare/weights"
)

type sarifFile struct {
	Runs []struct {
		Tool struct {
			Driver struct {
				Rules []struct {
					ID   string
					Help struct{ Text string }
				}
			}
		}
		Invocations []struct {
			ExecutionSuccessful        bool
			ToolExecutionNotifications []struct{ Message struct{ Text string } }
		}
		Results []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Message   struct{ Text string }
			Locations []sarifPlace
			Related   []sarifPlace `json:"relatedLocations"`
		}
	}
}

type sarifPlace struct {
	PhysicalLocation struct {
		ArtifactLocation struct{ URI string }
		Region           struct{ StartLine int }
	}
	LogicalLocations []struct{ FullyQualifiedName string }
}

func sarifOf(t *testing.T, d *report.Document) sarifFile {
	t.Helper()
	var f sarifFile
	if err := json.Unmarshal(reporttest.Shown(t, sarif.Write, d), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// A report has a result for each run that does not match, its rule is listed, and a run that was not compared is said.
func TestSARIFHasEveryFailure(t *testing.T) {
	for name, d := range reporttest.Documents(t) {
		run := sarifOf(t, d).Runs[0]
		failing, lost := 0, 0
		for i := range d.Runs {
			switch r := &d.Runs[i]; {
			case r.Result == nil:
				lost++
			case r.Exit != 0:
				failing++
				if at := r.Result.Divergence; at != nil && !strings.Contains(run.Results[failing-1].Message.Text+run.Results[len(run.Results)-1].Message.Text, at.Row.Key()) {
					t.Errorf("%s: no result names %s", name, at.Row.Key())
				}
			}
		}
		if d.Weights == nil && (len(run.Results) < failing || failing == 0 && len(run.Results) > 0) {
			t.Errorf("%s: %d results of %d runs that fail", name, len(run.Results), failing)
		}
		if got := len(run.Invocations[0].ToolExecutionNotifications); got != lost || run.Invocations[0].ExecutionSuccessful != (lost == 0) {
			t.Errorf("%s: %d notifications of %d runs that were not compared", name, got, lost)
		}
		for _, r := range run.Results {
			if r.Level != "error" || run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

// GitHub refuses a whole report where one result has no file. The file of the gate comes before that of a trace, which no repository has, and a line of source
// before both.
func TestSARIFHasAFileForEveryResult(t *testing.T) {
	row := compare.Row{Name: "layers.0.mlp.act_fn", Verdict: compare.Mismatch, Class: "VALUE"}
	at := compare.Divergence{Row: row}
	recorded := at
	recorded.Code = &compare.Code{Local: "model.py:41"}
	wrong := &weights.Result{Local: weights.Place{Path: "model.gguf"}, Counts: weights.Counts{Wrong: 1}}
	result := func(path string, d *compare.Divergence) report.Run {
		return report.Run{Exit: 1, Result: &compare.Result{Local: compare.Side{Path: path}, Rows: []compare.Row{row}, Divergence: d}}
	}
	for name, c := range map[string]struct {
		document *report.Document
		about    string
		want     []string
	}{
		"a gate":              {report.NewDocument("v1", result("local.st", &at), result("local.st", nil)).WithWeights(wrong), "ci/tracediff.toml", []string{"ci/tracediff.toml", "ci/tracediff.toml", "ci/tracediff.toml"}},
		"two traces":          {report.NewDocument("v1", result("local.st", &at)).WithWeights(wrong), "", []string{"local.st", "model.gguf"}},
		"a line of source":    {report.NewDocument("v1", result("local.st", &recorded)), "ci/tracediff.toml", []string{"model.py"}},
		"no file, incomplete": {report.NewDocument("v1", result("", nil)), "", []string{"."}},
	} {
		c.document.About = c.about
		var files []string
		for _, r := range sarifOf(t, c.document).Runs[0].Results {
			for _, place := range r.Locations {
				files = append(files, place.PhysicalLocation.ArtifactLocation.URI)
			}
		}
		if !slices.Equal(files, c.want) {
			t.Errorf("%s: the files are %q, want %q", name, files, c.want)
		}
	}
}

// Where both sides were recorded, a result stands at the line of source of the local side, with that of the reference; a rule is the mistake
// with its fix.
func TestSARIFHasTheLinesOfBothSides(t *testing.T) {
	row := compare.Row{Name: "layers.0.mlp.act_fn", Verdict: compare.Mismatch, Class: "VALUE"}
	res := &compare.Result{Rows: []compare.Row{row}, Divergence: &compare.Divergence{Row: row, Code: &compare.Code{Local: "my port/model.py:41", Reference: "/site/modeling_qwen3.py:213"}}}
	got := sarifOf(t, report.NewDocument("v1", report.Run{Exit: 1, Result: res})).Runs[0].Results[0]
	if p := got.Locations[0]; p.PhysicalLocation.ArtifactLocation.URI != "my%20port/model.py" || p.PhysicalLocation.Region.StartLine != 41 || p.LogicalLocations[0].FullyQualifiedName != row.Name {
		t.Errorf("%+v", p)
	}
	if p := got.Related[0].PhysicalLocation; p.ArtifactLocation.URI != "file:///site/modeling_qwen3.py" || p.Region.StartLine != 213 {
		t.Errorf("%+v", p)
	}
	if got.RuleID != "value" {
		t.Errorf("the rule is %q", got.RuleID)
	}
}

// Every report is valid by the schema of the standard, whatever was found. TRACEDIFF_SARIF is the schema.
func TestSARIFIsValid(t *testing.T) {
	path := os.Getenv("TRACEDIFF_SARIF")
	if path == "" {
		t.Skip("needs TRACEDIFF_SARIF: the schema of SARIF 2.1.0, which .ci/run finds")
	}
	text, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	parsed, err := jsonschema.UnmarshalJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range reporttest.Documents(t) {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(reporttest.Shown(t, sarif.Write, d))))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
