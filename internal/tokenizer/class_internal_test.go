package tokenizer

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"
	"unicode/utf8"
)

// TestClassesEqualPython compares the classes of every character of Unicode with those that the regular
// expression engines of the `tokenizers` package find. It looks inside of the package because a text
// for each of a million characters would take minutes.
func TestClassesEqualPython(t *testing.T) {
	f, err := os.Open("testdata/classes.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	golden := map[string]map[rune]bool{"letter": {}, "number": {}, "space": {}, "word": {}}
	for _, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var name string
		var first, last rune
		if _, err := fmt.Sscan(string(line), &name, &first, &last); err != nil {
			t.Fatal(err)
		}
		for r := first; r <= last; r++ {
			golden[name][r] = true
		}
	}
	if n := len(golden["letter"]); n < 100_000 {
		t.Fatalf("only %d letters", n)
	}
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		c, size := classAt(string(r))
		for _, class := range []struct {
			name string
			is   bool
		}{{"letter", c == letter}, {"number", c == number}, {"space", c == space || c == newline}, {"word", isWord(r)}} {
			if class.is != golden[class.name][r] {
				t.Errorf("%U: %s is %t, want %t", r, class.name, class.is, !class.is)
			}
		}
		if size != utf8.RuneLen(r) || (c == newline) != (r == '\n' || r == '\r') {
			t.Errorf("%U: class %d of %d bytes", r, c, size)
		}
	}
}
