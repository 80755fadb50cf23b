// Package plain makes text that others wrote safe for a terminal: names, prompts, and what a port prints.
package plain

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text escapes what a terminal would act on, as Go writes it: "\x1b". Printable characters and tabs stay.
func Text(text string) string { return escaped(text, "\t") }

// Columns is how wide a page is that people read.
const Columns = 80

// Wrap breaks a line between words where it is wider than so many columns, the lines after the first indented. A word that is wider by
// itself, such as a name, is not broken. Less than one column breaks nothing.
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

// Writer escapes what is written to w as [Text] does, and keeps line breaks and carriage returns: what a program draws again stands in
// its own line. A character that comes in two parts is written when it is whole.
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
