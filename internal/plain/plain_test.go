package plain_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/internal/plain"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"layers.0.mlp":            "layers.0.mlp",
		"▁Grüße\t漢":               "▁Grüße\t漢",
		"\x1b[2J\x1b]0;title\a":   `\x1b[2J\x1b]0;title\a`,
		"a\nb\rc\x00\x7f\u009b1m": `a\nb\rc\x00\x7f\u009b1m`,
		"abc\u202edef\u200b":      `abc\u202edef\u200b`,
		"\xff\x9b2J":              "\ufffd\ufffd2J",
	} {
		if got := plain.Text(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// However it is cut, nothing comes out that a terminal acts on but the ends of lines, and what prints is kept.
func TestWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching("[\x1b\\[a-c\u009b\n\r\té漢]{0,20}")).Draw(t, "text")
		var whole, cut bytes.Buffer
		w := plain.Writer(&whole)
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
		w = plain.Writer(&cut)
		for i := range len(text) {
			if n, err := w.Write([]byte(text[i : i+1])); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if !bytes.Equal(whole.Bytes(), cut.Bytes()) {
			t.Fatalf("%q becomes %q, and byte by byte %q", text, whole.String(), cut.String())
		}
		for _, r := range whole.String() {
			if !unicode.IsPrint(r) && !strings.ContainsRune("\n\r\t", r) {
				t.Fatalf("%q becomes %q", text, whole.String())
			}
		}
		if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && !strings.ContainsRune("\n\r\t", r) }) < 0 && utf8.ValidString(text) && whole.String() != text {
			t.Fatalf("%q becomes %q", text, whole.String())
		}
	})
}

// A line that is broken has its words in their order, none of them broken; no line is wider than the page unless one word is.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching("[a-zé漢.]{1,12}"), 1, 30).Draw(t, "words")
		columns, indent := rapid.IntRange(8, 40).Draw(t, "columns"), rapid.IntRange(0, 6).Draw(t, "indent")
		text := strings.Join(words, " ")
		got := plain.Wrap(text, columns, indent)
		if strings.Join(strings.Fields(got), " ") != text {
			t.Fatalf("%q becomes %q", text, got)
		}
		for i, line := range strings.Split(got, "\n") {
			rest := strings.TrimLeft(line, " ")
			if i > 0 && len(line)-len(rest) != indent {
				t.Fatalf("line %d of %q is not indented by %d", i+1, got, indent)
			}
			if utf8.RuneCountInString(line) > columns && strings.Contains(rest, " ") {
				t.Fatalf("line %d of %q is wider than %d", i+1, got, columns)
			}
		}
		if columns >= utf8.RuneCountInString(text) && got != text {
			t.Fatalf("%q fits, and becomes %q", text, got)
		}
	})
}
