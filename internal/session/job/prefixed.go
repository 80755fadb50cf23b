package job

import (
	"bytes"
	"fmt"
	"io"

	"github.com/tracediff/tracediff/internal/plain"
)

// Prefixed writes a prefix before every line of another program's output, and escapes control characters. A
// carriage return, used to redraw a progress line, also begins a line.
type Prefixed struct {
	To     io.Writer
	Prefix string
	within bool // a line that was begun
	open   bool // the last line is unfinished, and other output would continue it
	safe   io.Writer
	text   bytes.Buffer // what safe has written
}

// End ends a line that was left open.
func (p *Prefixed) End() {
	if p.open {
		fmt.Fprintln(p.To)
	}
	p.within, p.open = false, false
}

// Write writes data to p.To, with control characters escaped and with the prefix before each line. Write returns the length of data in
// bytes and the error of p.To, or 0 and an error if the escaping fails.
func (p *Prefixed) Write(data []byte) (int, error) {
	var b bytes.Buffer
	if p.safe == nil {
		p.safe = plain.Writer(&p.text)
	}
	if _, err := p.safe.Write(data); err != nil {
		return 0, err
	}
	defer p.text.Reset()
	for _, c := range p.text.Bytes() {
		if !p.within {
			b.WriteString(p.Prefix)
		}
		b.WriteByte(c)
		p.within, p.open = c != '\n' && c != '\r', c != '\n'
	}
	_, err := p.To.Write(b.Bytes())
	return len(data), err
}
