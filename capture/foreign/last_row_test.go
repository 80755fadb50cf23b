package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// Logits of a trace with a manifest are those of the last token alone in any of three shapes, and of the only token of a decode step. Its other
// tensors stay as they are, and so do logits of which it says what their axes are.
func TestLogitsOfATraceWithAManifest(t *testing.T) {
	list := tiny(t, "gemma3-tiny") // vocabulary 160
	five, one := tensor("input_ids", hooks.U8, 1, 5), tensor("pass1/input_ids", hooks.U8, 1, 1)
	for _, c := range []struct {
		what string
		last capture.Source
		axes string // of the logits, as the manifest says; empty: it says nothing
		want string // the shape of the last tensor; LAST behind the last row alone
		note string // a part of the notes; empty: none
	}{
		{"one axis", tensor("logits", hooks.F32, 160), "", "[1 1 160] LAST", "logits of only the last token in 1 pass: 1 of 5 rows"},
		{"two axes", tensor("logits", hooks.F32, 1, 160), "", "[1 1 160] LAST", "1 of 5 rows"},
		{"three axes", tensor("logits", hooks.F32, 1, 1, 160), "", "[1 1 160] LAST", "1 of 5 rows"},
		{"the product before the soft cap", tensor("lm_head", hooks.F32, 160), "", "[1 1 160] LAST", "1 of 5 rows"},
		{"a decode step", tensor("pass1/logits", hooks.F32, 160), "", "[1 1 160]", "1 tensor without leading axes of size 1"},
		{"all rows", tensor("logits", hooks.F32, 1, 5, 160), "", "[1 5 160]", ""},
		{"two rows", tensor("logits", hooks.F32, 2, 160), "", "[2 160]", ""},
		{"another vocabulary", tensor("logits", hooks.F32, 128), "", "[128]", ""},
		{"axes that the trace declares", tensor("logits", hooks.F32, 1, 160), "t v", "[1 160]", ""},
		{"a hidden state", tensor("norm", hooks.F32, 16), "", "[16]", ""},
	} {
		m := capture.Manifest{Status: capture.StatusComplete}
		if c.axes != "" {
			m.Axes = map[string]string{"logits": c.axes}
		}
		trace := fit(t, list, m, five, one, c.last)
		r := trace.Records()[2]
		got := fmt.Sprint(r.Shape)
		if r.LastRow {
			got += " LAST"
		}
		if notes := strings.Join(trace.Notes(), "\n"); got != c.want || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %s, want %s; notes %q", c.what, got, c.want, notes)
		}
	}
}
