package recorded

import (
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/internal/files"
)

// raw is a part of a file that is read when it is needed: the bytes of the file themselves.
type raw []byte

// UnmarshalJSON keeps the bytes, which nobody changes.
func (r *raw) UnmarshalJSON(data []byte) error {
	*r = data
	return nil
}

// File is the content of a program's file.
func File(path string) ([]byte, error) {
	f, info, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s: more than %d MiB", path, maxBytes>>20)
	}
	data, err := read(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

// readAll reads the content of a program, and stops where it is larger than any program, or has more values than one: what a file makes a
// reader allocate follows from these two.
func readAll(in io.Reader) ([]byte, error) { return read(in, 0) }

// read is Bytes of a file of a size, about.
func read(in io.Reader, size int) ([]byte, error) {
	data := make([]byte, 0, size+1)
	var s scanner
	for {
		if len(data) == cap(data) {
			data = slices.Grow(data, chunk)
		}
		n, err := in.Read(data[len(data):min(cap(data), len(data)+chunk)])
		s.see(data[len(data) : len(data)+n])
		data = data[:len(data)+n]
		switch {
		case len(data) > maxBytes:
			return nil, fmt.Errorf("more than %d MiB", maxBytes>>20)
		case s.parts > maxParts:
			return nil, fmt.Errorf("more than %d numbers, texts, lists and objects", maxParts)
		case err == io.EOF:
			return data, nil
		case err != nil:
			return nil, err
		}
	}
}

// chunk is how much is read at a time.
const chunk = 1 << 16

// scanner counts the values of a JSON text, about.
type scanner struct {
	text, escaped bool // within a text; after a backslash in the text
	parts         int  // commas, colons and brackets that open
}

func (s *scanner) see(data []byte) {
	for _, c := range data {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '"':
			s.text = !s.text
		case s.text:
			s.escaped = c == '\\'
		case c == ',' || c == ':' || c == '[' || c == '{':
			s.parts++
		}
	}
}
