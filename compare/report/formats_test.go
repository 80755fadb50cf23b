package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/text"
)

// documents are those of all cases, one of several runs of which one could not be compared, and an empty one.
func documents(t *testing.T) map[string]*report.Document {
	all := map[string]*report.Document{"none": report.NewDocument("1")}
	failed := report.Run{Name: "other", Exit: 2, Error: "no trace of <transformers>\x1b[31m", Hint: "make one"}
	for name, c := range cases(t) {
		res := c.run(t)
		run := report.Run{Exit: res.ExitCode(), Result: res}
		all[name] = report.NewDocument("1", run)
		run.Name = "first"
		all[name+", several"] = report.NewDocument("1", run, failed)
	}
	return all
}

func document(t *testing.T, write func(io.Writer, *report.Document) error, d *report.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, d); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

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
	for name, d := range documents(t) {
		written := document(t, report.JSON, d)
		if err := validate(t, s, written); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var back report.Document
		if err := json.Unmarshal(written, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(written), string(document(t, report.JSON, &back))); diff != "" {
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
	var b bytes.Buffer
	if r == nil {
		return ""
	}
	if err := text.Write(&b, r, text.NewStyle(false).WithView(v).WithPower()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The schema holds a document to something: one that is spoilt is refused.
func TestSchemaRefuses(t *testing.T) {
	s := schema(t, "report-2.json")
	text := string(document(t, report.JSON, documents(t)["divergence"]))
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
	for name, d := range documents(t) {
		var back []report.Run
		var open report.Run // whose rows and inputs have come
		open.Result = &compare.Result{}
		lines := strings.Split(strings.TrimSuffix(string(document(t, report.JSONLines, d)), "\n"), "\n")
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
		want, got := document(t, report.JSON, d), document(t, report.JSON, report.NewDocument("1", back...))
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: the records are not the document: %s", name, diff)
		}
	}
}

// suite is an element of JUnit XML as a CI reads it.
type suite struct {
	Name  string `xml:"name,attr"`
	Cases []struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Failure *struct{} `xml:"failure"`
		Error   *struct{} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	} `xml:"testcase"`
}

// A suite fails if and only if its run does, and the counts are those of the cases.
func TestJUnit(t *testing.T) {
	for name, d := range documents(t) {
		text := document(t, junit.Write, d)
		if bytes.ContainsRune(text, 0x1b) {
			t.Errorf("%s: a control character in the report", name)
		}
		var got struct {
			Tests    int     `xml:"tests,attr"`
			Failures int     `xml:"failures,attr"`
			Errors   int     `xml:"errors,attr"`
			Skipped  int     `xml:"skipped,attr"`
			Suites   []suite `xml:"testsuite"`
		}
		if err := xml.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var tests, failures, failed, skipped int
		for i, s := range got.Suites {
			bad := 0
			for _, c := range s.Cases {
				tests++
				switch {
				case c.Failure != nil:
					failures, bad = failures+1, bad+1
				case c.Error != nil:
					failed, bad = failed+1, bad+1
				case c.Skipped != nil:
					skipped++
				}
				if c.Class != s.Name || c.Name == "" {
					t.Errorf("%s: case %q of class %q in suite %q", name, c.Name, c.Class, s.Name)
				}
			}
			if (bad > 0) != (d.Runs[i].Exit != 0) {
				t.Errorf("%s: run %d exits with %d and has %d failures", name, i, d.Runs[i].Exit, bad)
			}
		}
		if len(got.Suites) != len(d.Runs) || tests != got.Tests || failures != got.Failures || failed != got.Errors || skipped != got.Skipped {
			t.Errorf("%s: %d suites, %d tests, %d failures, %d errors, %d skipped; it says %+v", name, len(got.Suites), tests, failures, failed, skipped, got)
		}
	}
}

// What a pass rests on is said where somebody reads of it: one without certificates is a weaker one.
func TestMatchWithoutCertificatesIsMarked(t *testing.T) {
	d := documents(t)["uncertified"]
	for name, write := range map[string]func(io.Writer, *report.Document) error{"JUnit": junit.Write, "JSON": report.JSON, "JSON Lines": report.JSONLines} {
		text := string(document(t, write, d))
		if !strings.Contains(text, "the order has names and no operations") || !strings.Contains(text, "uncertified") && !strings.Contains(text, "nothing was certified: ") {
			t.Errorf("%s does not say that nothing was certified:\n%s", name, text)
		}
	}
}

// The XML of one comparison as it looks.
func TestJUnitLooks(t *testing.T) {
	got := document(t, junit.Write, documents(t)["divergence"])
	const path = "testdata/divergence.xml"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// Formats that cannot be written are the error of the writer.
func TestFormatsReportErrors(t *testing.T) {
	d := documents(t)["match"]
	for name, write := range map[string]func(io.Writer, *report.Document) error{"json": report.JSON, "jsonl": report.JSONLines, "junit": junit.Write} {
		if err := write(brokenPipe{}, d); !errors.Is(err, errPipe) {
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
		"weights.phrase.text":            "as Row.said",
		"weights.phrase.form":            "as Row.said",
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
