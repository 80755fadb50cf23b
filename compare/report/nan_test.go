package report_test

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/compare/report/html"
	"github.com/tracediff/tracediff/compare/report/junit"
	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/compare/report/words"
	"github.com/tracediff/tracediff/hooks"
)

// An element that is NaN on one side alone is not an error of 0, in whatever is written.
func TestNaNIsNoErrorOfZero(t *testing.T) {
	c := reporttest.Case{Local: []hooks.Event{reporttest.IDs, reporttest.Tensor(0, "x", []int{2}, 1, math.NaN())}, Reference: []hooks.Event{reporttest.IDs, reporttest.Tensor(0, "x", []int{2}, 1, 2)}}
	c.Options = compare.Options{Order: reporttest.Names(t, "input_ids", "x")}
	res := c.Run(t)
	d := report.NewDocument("test", report.Run{Exit: res.ExitCode(), Result: res})
	var xml, page bytes.Buffer
	if err := errors.Join(junit.Write(&xml, words.New(d)), html.Write(&page, words.New(d))); err != nil {
		t.Fatal(err)
	}
	short := reporttest.Text(t, res, text.NewStyle(false))
	for _, c := range []struct{ name, text, want string }{
		{"page", short, `MISMATCH +x +NaN +\S+`},
		{"evidence", reporttest.Text(t, res, text.NewStyle(false).WithView(text.Evidence)), `relative L2 of the tensor: NaN, limit`},
		{"table", reporttest.Text(t, res, text.NewStyle(false).WithView(text.Everything)), `MISMATCH NONFINITE +x +2 +float32 +NaN +NaN `},
		{"junit", xml.String(), `tensor: error NaN, limit`},
		{"html", page.String(), `First mismatch: x, error NaN, limit`},
		{"html rows", page.String(), `"e":"NaN"`},
	} {
		if !regexp.MustCompile(c.want).MatchString(c.text) {
			t.Errorf("%s has no %q:\n%.4000s", c.name, c.want, c.text)
		}
	}
}
