package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner walks over JSON text. It is written by hand because encoding/json keeps the last of two equal names,
// turns broken text into U+FFFD without a word and reads 1.0 into an int; each would let a bad header pass.
type scanner struct {
	text    []byte
	at      int
	numbers []int64 // scratch of integers
}

// errorf makes an error that says where in the header it is. If nothing but space is left it is the end of the
// text that is wrong, whatever was wanted there.
func (s *scanner) errorf(format string, args ...any) error {
	s.space()
	if s.at >= len(s.text) {
		return fmt.Errorf("the header ends in the middle: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("header byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

// space skips what JSON calls white space.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\n', '\r', '\t':
			s.at++
		default:
			return
		}
	}
}

// peek returns the next byte that is no space, 0 at the end of the text.
func (s *scanner) peek() byte {
	s.space()
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// take skips the next byte that is no space if it is c.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// null skips a null.
func (s *scanner) null() bool {
	s.space()
	if !bytes.HasPrefix(s.text[s.at:], []byte("null")) {
		return false
	}
	s.at += len("null")
	return true
}

// object reads an object. It calls member for each key, with the scanner at the value. The key is valid during the
// call.
func (s *scanner) object(member func(key []byte) error) error {
	if !s.take('{') {
		return s.errorf("want an object")
	}
	return s.list('}', func() error {
		key, err := s.bytes()
		if err != nil {
			return err
		}
		if !s.take(':') {
			return s.errorf("want ':' after a key")
		}
		return member(key)
	})
}

// list reads what stands between commas up to the closing bracket.
func (s *scanner) list(closing byte, item func() error) error {
	if s.take(closing) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if s.take(closing) {
			return nil
		}
		if !s.take(',') {
			return s.errorf("want ',' or '%c'", closing)
		}
	}
}

// integers reads a list of at most most whole numbers that are not negative. The list is valid until the next call.
func (s *scanner) integers(most int) ([]int64, error) {
	if !s.take('[') {
		return nil, s.errorf("want a list of numbers")
	}
	s.numbers = s.numbers[:0]
	err := s.list(']', func() error {
		n, err := s.integer()
		if err != nil {
			return err
		}
		if len(s.numbers) == most {
			return s.errorf("want at most %d numbers", most)
		}
		s.numbers = append(s.numbers, n)
		return nil
	})
	return s.numbers, err
}

// integer reads digits. JSON's other spellings of a whole number (1.0, 1e3, -0) are refused, as they are by the
// official reader.
func (s *scanner) integer() (int64, error) {
	s.space()
	start := s.at
	n := int64(0)
	for ; s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9'; s.at++ {
		digit := int64(s.text[s.at] - '0')
		if n > (math.MaxInt64-digit)/10 {
			return 0, s.errorf("number too large")
		}
		n = n*10 + digit
	}
	leadingZero := s.at-start > 1 && s.text[start] == '0'
	if s.at == start || leadingZero || s.at < len(s.text) && bytes.IndexByte([]byte(".eE"), s.text[s.at]) >= 0 {
		return 0, s.errorf("want a whole number that is not negative")
	}
	return n, nil
}

// str reads a string.
func (s *scanner) str() (string, error) {
	b, err := s.bytes()
	return string(b), err
}

// bytes reads a string where it need not be kept: the bytes may be those of the text.
func (s *scanner) bytes() ([]byte, error) {
	if !s.take('"') {
		return nil, s.errorf("want a string")
	}
	start := s.at
	escapes := false
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			raw := s.text[start:s.at]
			s.at++
			if !utf8.Valid(raw) {
				return nil, fmt.Errorf("header byte %d: a string that is not valid UTF-8", start)
			}
			if escapes {
				return unescape(raw, start)
			}
			return raw, nil
		case c < ' ':
			return nil, fmt.Errorf("header byte %d: a control character in a string", s.at)
		case c == '\\':
			escapes = true
			s.at++ // the byte after it is no end, whichever it is
		}
		s.at++
	}
	s.at = len(s.text)
	return nil, s.errorf("")
}

// unescape resolves the escapes of a JSON string that stands at byte at of the header. Half a surrogate pair is
// an error: it is no text, and readers disagree about what it becomes.
func unescape(raw []byte, at int) ([]byte, error) {
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++ // the scan for the closing quote has seen to it that a byte follows
		if k := bytes.IndexByte([]byte(from), raw[i]); k >= 0 {
			out = append(out, to[k])
			continue
		}
		r, ok := unit(raw[i:])
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if i += 5; i < len(raw) && raw[i] == '\\' {
				i++
				low, _ = unit(raw[i:])
			}
			r = utf16.DecodeRune(r, low)
			ok = r != utf8.RuneError
		}
		if !ok {
			return nil, fmt.Errorf("header byte %d: a string with an invalid escape", at)
		}
		out = utf8.AppendRune(out, r)
		i += 4
	}
	return out, nil
}

// unit reads u and four hexadecimal digits.
func unit(b []byte) (rune, bool) {
	if len(b) < 5 || b[0] != 'u' {
		return -1, false
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	return rune(n), err == nil
}

// skip reads a value that nobody asked for, of any kind. The scanner finds where it ends, encoding/json whether
// it is one.
func (s *scanner) skip() error {
	s.space()
	start := s.at
	for depth := 0; s.at < len(s.text); {
		switch s.text[s.at] {
		case '"':
			if _, err := s.bytes(); err != nil {
				return err
			}
			continue
		case '[', '{':
			depth++
		case ']', '}', ',':
			if depth == 0 {
				return s.skipped(start)
			}
			if s.text[s.at] != ',' {
				depth--
			}
		}
		s.at++
	}
	return s.errorf("")
}

func (s *scanner) skipped(start int) error {
	if !json.Valid(s.text[start:s.at]) {
		s.at = start
		return s.errorf("want a value")
	}
	return nil
}
