package plain

import (
	"bytes"
	"io"
)

// WithoutCommands breaks what the runner of GitHub Actions would take for commands, and writes the text to w. The runner acts on a line that begins with "::",
// after any white space, and on "##[" anywhere. A space breaks both; in a text that begins with a brace, which is JSON, an escape breaks "##[". A line feed and a
// carriage return end a line.
func WithoutCommands(w io.Writer) io.Writer { return &inert{w: w} }

type inert struct {
	w      io.Writer
	begun  bool
	json   bool // "##[" is in a string
	within bool // the line has begun
	colon  bool // with a colon
	hashes int  // that were written last
}

func (f *inert) Write(p []byte) (int, error) {
	var b bytes.Buffer
	for _, c := range p {
		f.json, f.begun = f.json || !f.begun && c == '{', true
		written := []byte{c}
		switch {
		case c == '[' && f.hashes > 1 && f.json:
			written = []byte(`\u005b`)
		case c == '[' && f.hashes > 1, c == ':' && f.colon:
			written = []byte{' ', c}
		}
		b.Write(written)
		switch {
		case c == '\n' || c == '\r':
			f.within, f.colon = false, false
		case f.within:
			f.colon = false
		case c == ':':
			f.within, f.colon = true, true
		case c > ' ' && c < 0x80: // of other bytes some are white space in Unicode
			f.within = true
		}
		if f.hashes++; c != '#' {
			f.hashes = 0
		}
	}
	if _, err := f.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}
