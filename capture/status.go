package capture

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Status is how far the writer of a trace came: [StatusOpen], [StatusComplete], "failed: " and the reason, or
// empty in a file that does not say.
type Status string

const (
	StatusOpen     Status = "open"     // being written, or left by a writer that was killed
	StatusComplete Status = "complete" // everything that was fired is there
	failed                = "failed: "
)

// StatusWidth is the number of bytes that a trace keeps for its status: enough for a line and a half of reason.
const StatusWidth = 240

// Failure returns why the run failed; ok is false for a run that did not fail and for a run without a status.
func (s Status) Failure() (why string, ok bool) {
	return strings.CutPrefix(string(s), failed)
}

// unfinished reports whether the file is a trace that may lack the end of its run.
func (s Status) unfinished() bool { return s != "" && s != StatusComplete }

// statusStart is the start of the header of every trace. The status follows at a fixed offset.
const statusStart = `{"__metadata__":{"tracediff.version":"` + version + `","tracediff.status":"`

// slot returns the bytes of s in the header: StatusWidth bytes, cut between runes, padded with spaces. Characters
// that JSON would escape are replaced, so that a kill in the middle of a write cannot leave a broken escape.
func (s Status) slot() []byte {
	text := strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r == '\\':
			return '/'
		case r < ' ':
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(s), "?"))
	for len(text) > StatusWidth {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return append([]byte(text), strings.Repeat(" ", StatusWidth-len(text))...)
}

// mendStatus repairs, in the text of a header, a status that a kill cut within a rune while a failure was written.
// Without the repair the whole file would be unreadable, since it would not be valid UTF-8.
func mendStatus(header []byte) {
	rest, ok := bytes.CutPrefix(header, []byte(statusStart))
	if !ok || len(rest) < StatusWidth {
		return
	}
	for slot := rest[:StatusWidth]; len(slot) > 0; {
		r, n := utf8.DecodeRune(slot)
		if r == utf8.RuneError && n == 1 {
			slot[0] = '?'
		}
		slot = slot[n:]
	}
}
