package text_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/compare/report/reporttest"
	"github.com/tracediff/tracediff/compare/report/text"
)

// The text names every flag, says what was not looked for, and writes nothing to the terminal that a file has put there.
func TestCheckText(t *testing.T) {
	var b bytes.Buffer
	if err := text.Check(&b, reporttest.Flagged(), text.Style{}); err != nil {
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
