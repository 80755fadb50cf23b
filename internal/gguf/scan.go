package gguf

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/internal/plain"
)

// scanner walks through a header.
type scanner struct {
	r       io.ReaderAt
	size    int64
	at      int64
	kept    int // bytes that may still be kept
	strings int // of arrays, that were skipped
	seen    map[string]bool

	elements int64 // where those of the last array begin

	in     *bufio.Reader
	inAt   int64 // where in is
	number [8]byte
}

var errEnds = errors.New("the file ends in the header")

// bytes reads the next len(p) bytes.
func (s *scanner) bytes(p []byte) error {
	if int64(len(p)) > s.size-s.at {
		return errEnds
	}
	if s.at+int64(len(p)) > maxHeader {
		return fmt.Errorf("a header of more than %d bytes", maxHeader)
	}
	if s.in == nil || s.inAt != s.at {
		section := io.NewSectionReader(s.r, s.at, s.size-s.at)
		if s.in == nil {
			s.in = bufio.NewReaderSize(section, 1<<16)
		} else {
			s.in.Reset(section)
		}
	}
	if _, err := io.ReadFull(s.in, p); err != nil {
		return fmt.Errorf("reading the header: %w", err)
	}
	s.at += int64(len(p))
	s.inAt = s.at
	return nil
}

// skip goes over n bytes.
func (s *scanner) skip(n uint64) error {
	if n > uint64(s.size-s.at) {
		return errEnds
	}
	if n > uint64(maxHeader-s.at) {
		return fmt.Errorf("a header of more than %d bytes", maxHeader)
	}
	s.at += int64(n)
	if s.in != nil && n <= uint64(s.in.Buffered()) {
		if _, err := s.in.Discard(int(n)); err != nil {
			return err
		}
		s.inAt = s.at
	}
	return nil
}

func (s *scanner) uint32() (uint32, error) {
	err := s.bytes(s.number[:4])
	return binary.LittleEndian.Uint32(s.number[:]), err
}

func (s *scanner) uint64() (uint64, error) {
	err := s.bytes(s.number[:8])
	return binary.LittleEndian.Uint64(s.number[:]), err
}

// count reads how many of something there are.
func (s *scanner) count(what string, most uint64) (uint64, error) {
	n, err := s.uint64()
	if err == nil && n > most {
		err = fmt.Errorf("%d %s, more than %d", n, what, most)
	}
	return n, err
}

// text reads a string of at most so many bytes, which is kept.
func (s *scanner) text(most uint64) (string, error) {
	n, err := s.uint64()
	switch {
	case err != nil:
		return "", err
	case n > uint64(s.size-s.at):
		return "", fmt.Errorf("a string of %d bytes, but the file ends before that", n)
	case n > most:
		return "", fmt.Errorf("a string of %d bytes, more than %d", n, most)
	case n > uint64(s.kept):
		return "", fmt.Errorf("names and strings of more than %d bytes", maxKept)
	}
	s.kept -= int(n)
	text := make([]byte, n)
	if err := s.bytes(text); err != nil {
		return "", err
	}
	if !utf8.Valid(text) {
		return "", fmt.Errorf("a string that is not UTF-8: %s", plain.Quote(string(text)))
	}
	return string(text), nil
}

// name reads a unique name. A name with control characters is refused: it could write anything to a terminal.
func (s *scanner) name() (string, error) {
	name, err := s.text(maxKey)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return "", errors.New("it has no name")
	case bytes.ContainsFunc([]byte(name), unicode.IsControl):
		return "", fmt.Errorf("its name %s has control characters", plain.Quote(name))
	case s.seen[name]:
		return "", fmt.Errorf("a second %s", plain.Quote(name))
	}
	s.seen[name] = true
	return name, nil
}

// kinds are the types of metadata, by their numbers: their names, their sizes, and what their bytes say.
var kinds = [...]struct {
	name string
	size uint64
	read func(b []byte) any
}{
	0:     {"uint8", 1, func(b []byte) any { return uint64(b[0]) }},
	1:     {"int8", 1, func(b []byte) any { return int64(int8(b[0])) }},
	2:     {"uint16", 2, func(b []byte) any { return uint64(binary.LittleEndian.Uint16(b)) }},
	3:     {"int16", 2, func(b []byte) any { return int64(int16(binary.LittleEndian.Uint16(b))) }},
	4:     {"uint32", 4, func(b []byte) any { return uint64(binary.LittleEndian.Uint32(b)) }},
	5:     {"int32", 4, func(b []byte) any { return int64(int32(binary.LittleEndian.Uint32(b))) }},
	6:     {"float32", 4, func(b []byte) any { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	7:     {"bool", 1, func(b []byte) any { return b[0] != 0 }},
	text:  {name: "string"},
	array: {name: "array"},
	10:    {"uint64", 8, func(b []byte) any { return binary.LittleEndian.Uint64(b) }},
	11:    {"int64", 8, func(b []byte) any { return int64(binary.LittleEndian.Uint64(b)) }},
	12:    {"float64", 8, func(b []byte) any { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }},
}

// The kinds that have no size of their own.
const (
	text  = 8
	array = 9
)

func (s *scanner) kind() (uint32, error) {
	k, err := s.uint32()
	if err == nil && k >= uint32(len(kinds)) {
		err = fmt.Errorf("a value of the unknown type %d", k)
	}
	return k, err
}

// field reads a key and its value.
func (s *scanner) field() (Field, error) {
	key, err := s.name()
	if err != nil {
		return Field{}, err
	}
	f := Field{Key: key}
	k, err := s.kind()
	switch {
	case err != nil:
	case k == text:
		f.Value, err = s.text(maxText)
	case k == array:
		f.Value, err = s.array()
	default:
		if err = s.bytes(s.number[:kinds[k].size]); err == nil {
			f.Value = kinds[k].read(s.number[:])
		}
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w", plain.Quote(key), err)
	}
	return f, nil
}

// array goes over the elements of an array. ggml has none of arrays.
func (s *scanner) array() (Array, error) {
	k, err := s.kind()
	if err != nil {
		return Array{}, err
	}
	n, err := s.uint64()
	a := Array{Kind: kinds[k].name, Len: n}
	s.elements = s.at
	switch {
	case err != nil:
		return a, err
	case k == array:
		return a, errors.New("an array of arrays, which ggml does not have")
	case k == text:
		return a, s.skipTexts(n)
	case n > uint64(s.size)/kinds[k].size:
		return a, fmt.Errorf("an array of %d elements of %s in a file of %d bytes", n, a.Kind, s.size)
	}
	return a, s.skip(n * kinds[k].size)
}

// skipTexts goes over n strings.
func (s *scanner) skipTexts(n uint64) error {
	if n > uint64(s.size-s.at)/8 {
		return fmt.Errorf("an array of %d strings in a file of %d bytes", n, s.size)
	}
	if n > uint64(maxSkipped-s.strings) {
		return fmt.Errorf("arrays of more than %d strings", maxSkipped)
	}
	s.strings += int(n)
	for range n {
		size, err := s.uint64()
		if err != nil {
			return err
		}
		if size > maxText {
			return fmt.Errorf("a string of %d bytes, more than %d", size, maxText)
		}
		if err := s.skip(size); err != nil {
			return err
		}
	}
	return nil
}
