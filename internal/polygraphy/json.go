package polygraphy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// maxDepth bounds values in values; the files have some ten.
	maxDepth = 64
	// maxBuilt bounds the memory of a document without its long strings, in bytes.
	maxBuilt = 24 << 20
	// spanFrom is the length from which a string stays in the file.
	spanFrom = 4096
)

// span is a long string without escapes: where it lies in the file.
type span struct{ at, length int64 }

// member is a value of an object with its key.
type member struct {
	key   string
	value any
}

// object is an object in the order of the file.
type object []member

func (o object) get(key string) any {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// parser reads JSON whose long strings stay in the file. Values are objects, []any, strings and spans; numbers and words are nil, since
// nothing depends on them.
type parser struct {
	r     *bufio.Reader
	at    int64
	built int64
}

var errSyntax = errors.New("not JSON, or JSON that ends early")

func parse(r io.ReaderAt, size int64) (any, error) {
	p := &parser{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 1<<16)}
	v, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.next(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("byte %d: something after the document", p.at)
	}
	return v, nil
}

func (p *parser) byte() (byte, error) {
	b, err := p.r.ReadByte()
	if err == nil {
		p.at++
	}
	return b, err
}

// next is the next byte that is no white space.
func (p *parser) next() (byte, error) {
	for {
		b, err := p.byte()
		if err != nil || b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b, err
		}
	}
}

func (p *parser) value(depth int) (any, error) {
	if p.built += 32; p.built > maxBuilt || depth > maxDepth {
		return nil, errors.New("JSON with more values, or deeper ones, than results have")
	}
	b, err := p.next()
	if err != nil {
		return nil, errSyntax
	}
	switch b {
	case '{':
		var o object
		err := p.list('}', func() error {
			if b, err := p.next(); err != nil || b != '"' {
				return errSyntax
			}
			key, err := p.text()
			if err != nil {
				return err
			}
			name, short := key.(string)
			if b, err := p.next(); err != nil || b != ':' || !short {
				return errSyntax
			}
			v, err := p.value(depth + 1)
			o = append(o, member{name, v})
			return err
		})
		return o, err
	case '[':
		var items []any
		err := p.list(']', func() error {
			v, err := p.value(depth + 1)
			items = append(items, v)
			return err
		})
		return items, err
	case '"':
		return p.text()
	}
	for { // a number or a word
		peek, err := p.r.Peek(1)
		if err != nil || strings.IndexByte(" \n\r\t,]}", peek[0]) >= 0 {
			return nil, nil
		}
		if peek[0] == '"' || peek[0] == '{' || peek[0] == '[' {
			return nil, errSyntax
		}
		if _, err := p.byte(); err != nil {
			return nil, errSyntax
		}
	}
}

// list reads what stands between commas up to the closing bracket.
func (p *parser) list(closing byte, item func() error) error {
	for first := true; ; first = false {
		b, err := p.next()
		switch {
		case err != nil:
			return errSyntax
		case b == closing && first:
			return nil
		}
		if first {
			if err := p.r.UnreadByte(); err != nil {
				return err
			}
			p.at--
		} else if b == closing {
			return nil
		} else if b != ',' {
			return errSyntax
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// text reads the rest of a string. A long one stays in the file and may have no escapes.
func (p *parser) text() (any, error) {
	start := p.at
	var b strings.Builder
	escaped := false
	for {
		c, err := p.byte()
		switch {
		case err != nil || c < ' ':
			return nil, errSyntax
		case c == '"' && p.at-1-start >= spanFrom:
			if escaped {
				return nil, fmt.Errorf("byte %d: a long string with escapes", start)
			}
			return span{start, p.at - 1 - start}, nil
		case c == '"':
			p.built += int64(b.Len())
			return b.String(), nil
		case c == '\\':
			// Names and arrays have none; what it stands for does not matter where nothing is looked up by it.
			escaped = true
			if _, err := p.byte(); err != nil {
				return nil, errSyntax
			}
			c = '?'
		}
		if b.Len() < spanFrom {
			b.WriteByte(c)
		}
	}
}
