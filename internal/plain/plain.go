// Package plain makes foreign text safe for a terminal: names, prompts, and a port's output.
package plain

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text escapes control characters in Go's notation: "\x1b". Printable characters and tabs stay.
func Text(text string) string { return escaped(text, "\t") }

// Quote is %q, shortened: a name of a hostile file can be as long as the file.
func Quote(name string) string {
	const most = 120
	if len(name) > most {
		return fmt.Sprintf("%q...", name[:most])
	}
	return fmt.Sprintf("%q", name)
}

// Columns is how wide a page is that people read.
const Columns = 80

// Wrap breaks a line between words at a number of columns, and indents the lines after the first. A longer word, such as a name, is not
// broken. A number below 1 breaks nothing.
func Wrap(line string, columns, indent int) string {
	var b strings.Builder
	for columns > 0 && utf8.RuneCountInString(line) > columns {
		begin := len(line) - len(strings.TrimLeft(line, " "))
		at := strings.LastIndexByte(string([]rune(line)[:columns+1]), ' ')
		if at <= begin {
			next := strings.IndexByte(line[begin:], ' ')
			if next < 0 {
				break
			}
			at = begin + next
		}
		b.WriteString(strings.TrimRight(line[:at], " ") + "\n")
		line = strings.Repeat(" ", indent) + strings.TrimLeft(line[at:], " ")
	}
	return b.String() + line
}

// escaped keeps printable characters and some others.
func escaped(text, kept string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) || strings.ContainsRune(kept, r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Writer escapes the text written to w as [Text] does, and keeps line breaks and carriage returns: a program that redraws a line stays on its
// line. A character in two writes is written when complete.
func Writer(w io.Writer) io.Writer { return &writer{w: w} }

type writer struct {
	w    io.Writer
	part []byte // of a character
}

func (w *writer) Write(data []byte) (int, error) {
	text := append(w.part, data...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if c := text[len(text)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-back:]) {
				whole -= back
			}
			break
		}
	}
	w.part = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(w.w, escaped(string(text[:whole]), "\t\n\r")); err != nil {
		return 0, err
	}
	return len(data), nil
}
