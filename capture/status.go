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

// StatusWidth is the number of bytes that a trace keeps for its status. It fits a line and a half of reason.
const StatusWidth = 240

// Failure returns why the run failed; false if it did not, or did not say so.
func (s Status) Failure() (why string, ok bool) {
	return strings.CutPrefix(string(s), failed)
}

// unfinished reports whether the file is a trace whose writer says, or was kept from saying, that more was to come.
func (s Status) unfinished() bool { return s != "" && s != StatusComplete }

// statusStart is how the header of every trace starts. The status stands at a fixed place behind it.
const statusStart = `{"__metadata__":{"tracediff.version":"` + version + `","tracediff.status":"`

// slot returns the bytes of s in the header: StatusWidth of them, cut between runes, padded with spaces. What
// JSON would escape is replaced, so that no cut through the text, by a kill in the middle of writing it, can leave a
// broken escape.
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

// mendStatus repairs, in the text of a header, a status that was cut within a rune by a kill while a failure was
// being written. Without it the whole file would be unreadable for want of valid UTF-8.
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
