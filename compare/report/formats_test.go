package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
)

func schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join(schemaFolder, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return s.Validate(v)
}

// A document is what its schema says, and read again it is the document.
func TestJSON(t *testing.T) {
	s := schema(t, "report-2.json")
	for name, d := range reporttest.Documents(t) {
		written := reporttest.Write(t, report.JSON, d)
		if err := validate(t, s, written); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var back report.Document
		if err := json.Unmarshal(written, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(written), string(reporttest.Write(t, report.JSON, &back))); diff != "" {
			t.Errorf("%s: read and written again it is another: %s", name, diff)
		}
		for i, r := range d.Runs { // tracediff merge prints what it has read
			for _, v := range []text.View{text.Short, text.Evidence, text.Everything, text.VerdictOnly} {
				if diff := cmp.Diff(pageOf(t, r.Result, v), pageOf(t, back.Runs[i].Result, v)); diff != "" {
					t.Errorf("%s: read again its text is another: %s", name, diff)
				}
			}
		}
	}
}

func pageOf(t *testing.T, r *compare.Result, v text.View) string {
	if r == nil {
		return ""
	}
	return reporttest.Text(t, r, text.NewStyle(false).WithView(v).WithPower())
}

// The schema holds a document to something: one that is spoilt is refused.
func TestSchemaRefuses(t *testing.T) {
	s := schema(t, "report-2.json")
	text := string(reporttest.Write(t, report.JSON, reporttest.Documents(t)["divergence"]))
	for _, c := range []struct{ from, to string }{
		{`"verdict": "MATCH"`, `"verdict": "match"`},
		{`"exit": 1`, `"exit": "1"`},
		{`"runs"`, `"results"`},
		{`"mismatches"`, `"mismatched"`},
		{`"rel_l2": 0`, `"rel_l2": "zero"`},
		{`"class": "VALUE"`, `"class": "VALUES"`},
	} {
		if !strings.Contains(text, c.from) {
			t.Fatalf("%s is not in the report", c.from)
		}
		if validate(t, s, []byte(strings.Replace(text, c.from, c.to, 1))) == nil {
			t.Errorf("%s in place of %s is accepted", c.to, c.from)
		}
	}
}

// Records are what their schema says, begin and end as they should, and together are the document.
func TestJSONLines(t *testing.T) {
	s := schema(t, "records-2.json")
	for name, d := range reporttest.Documents(t) {
		var back []report.Run
		var open report.Run // whose rows and inputs have come
		open.Result = &compare.Result{}
		lines := strings.Split(strings.TrimSuffix(string(reporttest.Write(t, report.JSONLines, d)), "\n"), "\n")
		for i, line := range lines {
			if err := validate(t, s, []byte(line)); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
			var r report.Record
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if (r.Type == "report") != (i == 0) || (r.Type == "end") != (i == len(lines)-1) {
				t.Errorf("%s: line %d of %d is %s", name, i+1, len(lines), r.Type)
			}
			switch r.Type {
			case "input":
				open.Result.Inputs = append(open.Result.Inputs, *r.Input)
			case "row":
				open.Result.Rows = append(open.Result.Rows, *r.Row)
			case "result":
				r.Result.Inputs, r.Result.Rows = open.Result.Inputs, open.Result.Rows
				back, open.Result = append(back, report.Run{Name: r.Run, Exit: *r.Exit, Result: r.Result}), &compare.Result{}
			case "error":
				back = append(back, report.Run{Name: r.Run, Exit: *r.Exit, Error: r.Error, Hint: r.Hint})
			case "end":
				if *r.Exit != d.Exit {
					t.Errorf("%s: ends with %d, want %d", name, *r.Exit, d.Exit)
				}
			}
		}
		want, got := reporttest.Write(t, report.JSON, d), reporttest.Write(t, report.JSON, report.NewDocument("1", back...))
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: the records are not the document: %s", name, diff)
		}
	}
}

func junitOf(w io.Writer, d *report.Document) error { return junit.Write(w, words.New(d)) }

// What a pass rests on is said where somebody reads of it: one without certificates is a weaker one.
func TestMatchWithoutCertificatesIsMarked(t *testing.T) {
	d := reporttest.Documents(t)["uncertified"]
	for name, write := range map[string]func(io.Writer, *report.Document) error{"JUnit": junitOf, "JSON": report.JSON, "JSON Lines": report.JSONLines} {
		text := string(reporttest.Write(t, write, d))
		if !strings.Contains(text, "the order has names and no operations") || !strings.Contains(text, "uncertified") && !strings.Contains(text, "nothing was certified: ") {
			t.Errorf("%s does not say that nothing was certified:\n%s", name, text)
		}
	}
}

// Formats that cannot be written are the error of the writer.
func TestFormatsReportErrors(t *testing.T) {
	d := reporttest.Documents(t)["match"]
	for name, write := range map[string]func(io.Writer, *report.Document) error{"json": report.JSON, "jsonl": report.JSONLines, "junit": junitOf} {
		if err := write(reporttest.BrokenPipe{}, d); !errors.Is(err, reporttest.ErrPipe) {
			t.Errorf("%s: error %v, want that of the writer", name, err)
		}
	}
}

// What a report does not write, nothing that prints a report may need: tracediff merge prints what it has read. Each field that is not
// written is named here with what uses it.
func TestNothingUnwrittenIsPrinted(t *testing.T) {
	unwritten := map[string]string{
		"report.Document.About":          "a view of code, for which every command names it, merge too",
		"report.Run.Since":               "compare alone has it",
		"report.Run.Pictures":            "HTML, which says that a merged report has none",
		"compare.Side.Manifest":          "as Pictures",
		"picture.Set.tensors":            "as Pictures",
		"picture.Set.waiting":            "as Pictures",
		"picture.Set.odd":                "as Pictures",
		"picture.Set.left":               "as Pictures",
		"compare.KnownLine.line":         "judging a row by the baseline",
		"compare.Finding.roles":          "collecting findings",
		"isolate.Certificate.Unverified": "judging a row",
		"isolate.Certificate.Found":      "telling a row its finding, which is written",
		"isolate.Certificate.FirstToken": "telling padding from a wrong row, before anything is reported",
		"measure.AxisError.Elements":     "limits",
		"measure.Metrics.OneRow":         "limits",
		"measure.Pattern.At":             "finding why a mask differs",
		"weights.Result.ownHead":         "reading the weights of a port",
		"weights.Row.said":               "collecting findings, which are written",
		"weights.phrase.kind":            "as Row.said",
		"weights.phrase.words":           "as Row.said",
		"weights.phrase.args":            "as Row.said",
	}
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				f := typ.Field(i)
				if name := typ.String() + "." + f.Name; f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
					if unwritten[name] == "" {
						t.Errorf("%s is not written: does printing a report need it?", name)
					}
					delete(unwritten, name)
				}
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[report.Document]())
	for name := range unwritten {
		t.Errorf("%s is not there, or is written", name)
	}
}
