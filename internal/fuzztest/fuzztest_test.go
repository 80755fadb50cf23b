package fuzztest_test

import (
	"testing"

	"github.com/tracediff/tracediff/internal/fuzztest"
)

// Each kind of edit does what it says, at any place, and the file stays as it is.
func TestEdited(t *testing.T) {
	file := []byte("abcdef")
	for edits, want := range map[string]string{
		"":                                      "abcdef",
		"\x00\x01\x00\x00":                      "abcdef", // cut short
		"\x00\x01\x00\x00X":                     "aXcdef",
		"\x00\x06\x00\x00X":                     "abcdef", // behind the end
		"\x01\x02\x00\x00\x05":                  "abCdef",
		"\x02\x06\x00\x00X":                     "abcdefX",
		"\x03\x01\x00\x00\x01":                  "adef",
		"\x03\x04\x00\x00\xff":                  "abcd",
		"\x04\x09\x00\x00\x00":                  "ab", // 9 modulo 7
		"\x05\x01\x00\x00\x01":                  "abcbcdef",
		"\x06\x00\x00\x00\x15":                  "\xff\x00cdef",
		"\x07\x03\x00\x00\x0b":                  "abcnulldef",
		"\x04\x00\x00\x00\x00\x02\x00\x00\x00X": "X",
	} {
		if got := string(fuzztest.Edited(file, []byte(edits))); got != want {
			t.Errorf("%q: %q, want %q", edits, got, want)
		}
	}
	if string(file) != "abcdef" {
		t.Errorf("the file has become %q", file)
	}
}
