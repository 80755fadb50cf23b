package report_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

func inspectGolden(t *testing.T, name string) (*capture.Trace, *order.List) {
	t.Helper()
	tr := testengine.OpenGolden(t, "golden/"+name)
	config, err := order.ParseCanonical(tr.Manifest().Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return tr, list
}

// Whatever is looked at, the JSON is as the schema says, and the text of one tensor fits a terminal.
func TestInspections(t *testing.T) {
	s := schema(t, "inspect-1.json")
	a, list := inspectGolden(t, "gemma2-tiny/prefill.float32.safetensors")
	b, _ := inspectGolden(t, "gemma2-tiny/prefill.bfloat16.safetensors")
	check := func(what string, r *inspect.Result, err error) string {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var j bytes.Buffer
		if err := report.InspectionJSON(&j, "1", r); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if err := validate(t, s, j.Bytes()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var b bytes.Buffer
		if err := text.Inspection(&b, r); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return b.String()
	}
	r, err := inspect.Run(context.Background(), a, inspect.Options{Order: list})
	check("list", r, err)
	for _, rec := range a.Records() {
		o := inspect.Options{Name: rec.Name, Order: list, TokenText: func(int) string { return "x" }}
		r, err := inspect.Run(context.Background(), a, o)
		for line := range strings.Lines(check(rec.Name, r, err)) {
			if n := utf8.RuneCountInString(line); n > 81 && !strings.HasPrefix(line, "file:") && r.Tensors[0].Values == nil {
				t.Errorf("%s: %d columns: %s", rec.Name, n, line)
			}
		}
		r, err = inspect.Pair(context.Background(), a, b, o)
		check(rec.Name+" of both", r, err)
	}
}
