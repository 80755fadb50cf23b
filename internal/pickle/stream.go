package pickle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// stream reads a part of a file from its start on. Nothing is allocated by a length that the file cannot have.
type stream struct {
	r        io.ReaderAt
	at, size int64
	buf      []byte
	from     int64 // place of buf in the file
}

// take returns the next n bytes, valid until the next call.
func (s *stream) take(n int64) ([]byte, error) {
	if n < 0 || n > s.size-s.at {
		return nil, fmt.Errorf("the pickle ends in the middle: %w", io.ErrUnexpectedEOF)
	}
	if s.at < s.from || s.at+n > s.from+int64(len(s.buf)) {
		want := min(max(n, 1<<16), s.size-s.at)
		if int64(cap(s.buf)) < want {
			s.buf = make([]byte, want)
		}
		s.buf, s.from = s.buf[:want], s.at
		if k, err := s.r.ReadAt(s.buf, s.at); int64(k) < want {
			s.buf = s.buf[:0]
			if err == nil || err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	p := s.buf[s.at-s.from:][:n]
	s.at += n
	return p, nil
}

// skip goes over n bytes.
func (s *stream) skip(n int64) error {
	if n < 0 || n > s.size-s.at {
		return fmt.Errorf("the pickle ends in the middle: %w", io.ErrUnexpectedEOF)
	}
	s.at += n
	return nil
}

// uint reads a little-endian number of n bytes, at most 8.
func (s *stream) uint(n int64) (uint64, error) {
	var whole [8]byte
	p, err := s.take(n)
	copy(whole[:], p)
	return binary.LittleEndian.Uint64(whole[:]), err
}

// line reads up to the next end of a line, which numbers and names of the oldest protocol have.
func (s *stream) line() (string, error) {
	const most = 1 << 12
	start := s.at
	p, err := s.take(min(most, s.size-s.at))
	if err != nil {
		return "", err
	}
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		return "", fmt.Errorf("a line without an end at byte %d", start)
	}
	s.at = start + int64(end) + 1
	return string(p[:end]), nil
}
