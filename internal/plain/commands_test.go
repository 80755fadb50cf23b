package plain_test

import (
	"io"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/plain"
)

// Nothing is left that a runner acts on, however the text comes in parts, and a JSON says what it said.
func TestWithoutCommands(t *testing.T) {
	for text, want := range map[string]string{
		"::stop-commands::x\n":     ": :stop-commands::x\n",
		"a\n \t::error::b":         "a\n \t: :error::b",
		"a\r::error::b":            "a\r: :error::b",
		"\u00a0::error::b":         "\u00a0: :error::b",
		"a ::error::b\n:c\n: :d\n": "a ::error::b\n:c\n: :d\n",
		"a ##[error]b ###[x":       "a ## [error]b ### [x",
		"##\n[":                    "##\n[",
		`{"a##[b": "::x"}`:         `{"a##\u005bb": "::x"}`,
	} {
		for _, part := range []int{1, 2, len(text)} {
			var b strings.Builder
			w := plain.WithoutCommands(&b)
			for at := 0; at < len(text); at += part {
				n, err := io.WriteString(w, text[at:min(at+part, len(text))])
				if err != nil || n != min(part, len(text)-at) {
					t.Fatalf("%q: %d bytes, %v", text, n, err)
				}
			}
			if b.String() != want {
				t.Errorf("%q in parts of %d: %q, want %q", text, part, b.String(), want)
			}
		}
	}
}
