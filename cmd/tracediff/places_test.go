package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ownNames are names of steps of this program's formulas: "step mul.vector".
var ownNames = regexp.MustCompile(`\b(step|index \d+ of) [a-z_]+\.[a-z]+`)

// A mistake in a recorded model is named by the line of its source and the expression there, in every format: by the operation's own expression, by the step within it, or
// beside a sentence that speaks of a number alone.
func TestPlacesOfRecordedModels(t *testing.T) {
	const folder = "../../fixtures/programs/places/"
	for _, c := range []struct{ mistake, want, json string }{
		{"sum", "`x * torch.sigmoid(gate) - gate` (places.py:44) is a sum, not a difference", `"expression": "x * torch.sigmoid(gate) - gate"`},
		{"axis", "the sum within `y.mean(-1, keepdim=True)` (places.py:48) runs over the wrong axis: its tokens, not its channels", `"within": "the sum"`},
		{"factor", "at: `z * 0.75` (places.py:49)", `"line": "places.py:49"`},
	} {
		page := filepath.Join(t.TempDir(), "report.html")
		args := []string{"compare", "--model", folder + "model", "--dir", t.TempDir(), "--report", "html=" + page, folder + c.mistake + ".safetensors", folder + "reference.safetensors"}
		text := strings.ReplaceAll(strings.ReplaceAll(told(t, 1, args...), "at            ", "at: "), "\n                ", " ")
		for format, text := range map[string]string{"text": text, "JSON": told(t, 1, append(args, "--format", "json")...)} {
			want := c.want
			if format == "JSON" {
				want = c.json
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s, %s: no %q in\n%s", c.mistake, format, want, text)
			}
			if own := ownNames.FindString(text); own != "" {
				t.Errorf("%s, %s: %q", c.mistake, format, own)
			}
		}
		said, _, _ := strings.Cut(strings.TrimPrefix(c.want, "at: "), " is ")
		if text := string(readAll(t, page)); !strings.Contains(text, said) {
			t.Errorf("%s: the page does not say %q", c.mistake, said)
		}
	}
}
