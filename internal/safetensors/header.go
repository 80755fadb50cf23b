// Package safetensors reads the header of a safetensors file, and trusts none of it.
//
// A file is eight bytes of little-endian header length N, N bytes of JSON that map tensor names to a dtype, a
// shape and a range of data, and the data. The parser is stricter than the official reader where leniency would
// let two readers see two files: a name may occur once, the header starts with '{', text is valid UTF-8. It is as
// lenient where that harms nobody: unknown keys of an entry are skipped, "__metadata__": null (as MLX writes it)
// is no metadata, spaces may stand wherever JSON allows them, data need not be aligned.
//
// Only headers are read here. Data stay in the file, and who reads them brings an [io.ReaderAt].
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// MaxHeader is the longest header, in bytes: the limit of the official reader, beyond which no other tool opens
// the file either.
const MaxHeader = 100_000_000

// CutShort is the next step for a file without the end of its header or of its data.
const CutShort = "the file is cut short: did the run that wrote it end, and is the copy complete?"

// maxRank bounds the sizes of one shape. No framework has more axes (numpy: 64, torch: 64), and a longer list
// would only serve to fill an error message.
const maxRank = 64

// MetadataKey is the key of the header that is no tensor: a map from string to string.
const MetadataKey = "__metadata__"

// Header is what a header says.
type Header struct {
	Metadata map[string]string // or nil
	Tensors  []Tensor          // in the order of the text
}

// Tensor is one entry of a header. End-Begin is the size of DType times the product of Shape, unless the dtype is unknown.
type Tensor struct {
	Name       string
	DType      hooks.DType
	Unknown    string // the dtype's name where it is not one of ours: nothing but the range of data is known then
	Shape      []int  // empty for a scalar
	Begin, End int64  // where the data lie, in bytes after the header
}

// Text reads the JSON text of the header of a file of size bytes. Nothing is allocated before the length is
// known to be at most [MaxHeader] and within the file.
func Text(r io.ReaderAt, size int64) ([]byte, error) {
	if size < 8 {
		return nil, fmt.Errorf("a file of %d bytes: the length of a safetensors header takes 8", size)
	}
	var length [8]byte
	if err := readFull(r, length[:], 0); err != nil {
		return nil, fmt.Errorf("read the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > MaxHeader {
		return nil, fmt.Errorf("a header of %d bytes: safetensors allows %d", n, MaxHeader)
	}
	if int64(n) > size-8 {
		return nil, hint.Add(fmt.Errorf("a header of %d bytes in a file of %d", n, size), CutShort)
	}
	text := make([]byte, n)
	if err := readFull(r, text, 8); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	return text, nil
}

// MaxTensors bounds the tensors of a file that no recorder of tracediff wrote: what it takes to list them grows with their number. The
// largest checkpoints have less in a file.
const MaxTensors = 1 << 17

// Bounded returns an error, with a hint, where the text of a header has more than [MaxTensors] tensors. Nothing is allocated.
func Bounded(text []byte) error {
	if n := count(text); n > MaxTensors {
		return hint.Add(fmt.Errorf("%d tensors, more than %d", n, MaxTensors), "write a file for some of them: some passes, or some layers")
	}
	return nil
}

// count is how many tensors the text of a header has, or more.
func count(text []byte) int { return bytes.Count(text, []byte(`"data_offsets"`)) }

// readFull fills p from offset off. A file that ends before is an error: its size said otherwise.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Parse reads the JSON text of a header. It checks each entry; that the ranges fit together is for
// [Header.Layout] to say.
//
// With an error comes the part of the header before it, whole entries only. The error wraps
// [io.ErrUnexpectedEOF] if the text ended, or had nothing but spaces left, where more had to come: the mark of
// an entry that was being written when its writer died.
func Parse(text []byte) (Header, error) {
	var h Header
	if len(text) == 0 || text[0] != '{' {
		return h, errors.New("the header does not start with '{'")
	}
	s := scanner{text: text}
	n := min(count(text), MaxTensors) // at once, not by doubling what is already there
	names := make(map[string]struct{}, n)
	if n > 0 {
		h.Tensors = make([]Tensor, 0, n)
	}
	err := s.object(func(key []byte) error {
		name := string(key)
		if _, twice := names[name]; twice {
			return fmt.Errorf("the header has %s twice", plain.Quote(name))
		}
		names[name] = struct{}{}
		if name == MetadataKey {
			return s.metadata(&h.Metadata)
		}
		t, err := s.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", plain.Quote(name), err)
		}
		h.Tensors = append(h.Tensors, t)
		return nil
	})
	if err != nil {
		return h, err
	}
	s.space()
	if s.at < len(s.text) {
		return h, s.errorf("want nothing after the header's closing brace")
	}
	return h, nil
}

// Layout sorts the tensors by where their data lie and returns the number of bytes of data. The ranges have to
// follow one another from 0 without a hole and without an overlap; the error names the first tensor that does not.
// Tensors without data keep the order of the text among themselves and come before the one whose data start there.
func (h *Header) Layout() (int64, error) {
	slices.SortStableFunc(h.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End))
	})
	end := int64(0)
	for _, t := range h.Tensors {
		if t.Begin > end {
			return 0, fmt.Errorf("tensor %s: %d bytes before its data belong to no tensor", plain.Quote(t.Name), t.Begin-end)
		}
		if t.Begin < end {
			return 0, fmt.Errorf("tensor %s: its data overlap another tensor's by %d bytes", plain.Quote(t.Name), end-t.Begin)
		}
		end = t.End
	}
	return end, nil
}

// metadata reads a map from string to string, or null.
func (s *scanner) metadata(to *map[string]string) error {
	if s.null() {
		return nil
	}
	m := map[string]string{}
	err := s.object(func(b []byte) error {
		key := string(b)
		if _, twice := m[key]; twice {
			return fmt.Errorf("metadata has %s twice", plain.Quote(key))
		}
		value, err := s.str()
		if err != nil {
			return fmt.Errorf("metadata %s: %w", plain.Quote(key), err)
		}
		m[key] = value
		return nil
	})
	if err != nil {
		return err
	}
	*to = m
	return nil
}

// tensor reads the object of one entry. Keys that it does not know are skipped, as the official reader does.
func (s *scanner) tensor(name string) (Tensor, error) {
	t := Tensor{Name: name}
	var dtype, shape, offsets bool // seen
	err := s.object(func(key []byte) error {
		switch string(key) {
		case "dtype":
			return once(&dtype, key, func() error { return s.dtype(&t) })
		case "shape":
			return once(&shape, key, func() error { return s.shape(&t) })
		case "data_offsets":
			return once(&offsets, key, func() error { return s.offsets(&t) })
		}
		return s.skip()
	})
	switch {
	case err != nil:
		return t, err
	case !dtype:
		return t, errors.New("no dtype")
	case !shape:
		return t, errors.New("no shape")
	case !offsets:
		return t, errors.New("no data_offsets")
	}
	return t, t.check()
}

// once reads the value of a key that may stand in an entry once.
func once(seen *bool, key []byte, read func() error) error {
	if *seen {
		return fmt.Errorf("%q twice", key)
	}
	*seen = true
	return read()
}

// dtype reads a type by the name that safetensors gives it.
func (s *scanner) dtype(t *Tensor) error {
	name, err := s.str()
	if err != nil {
		return fmt.Errorf("dtype: %w", err)
	}
	// ParseDType also reads torch's names, which a file does not have.
	if t.DType, err = hooks.ParseDType(name); err != nil || t.DType.Safetensors() != name {
		t.DType, t.Unknown = 0, name
	}
	if name == "" {
		return errors.New("the dtype has no name")
	}
	return nil
}

func (s *scanner) shape(t *Tensor) error {
	sizes, err := s.integers(maxRank)
	if err != nil || len(sizes) == 0 {
		return err
	}
	t.Shape = make([]int, len(sizes))
	for i, size := range sizes {
		// On a 32-bit machine an int cannot hold every size of a file.
		if size > math.MaxInt {
			return fmt.Errorf("size %d is too large for this machine", size)
		}
		t.Shape[i] = int(size)
	}
	return nil
}

func (s *scanner) offsets(t *Tensor) error {
	ends, err := s.integers(2)
	if err != nil {
		return err
	}
	if len(ends) != 2 {
		return fmt.Errorf("data_offsets has %d numbers, want 2", len(ends))
	}
	t.Begin, t.End = ends[0], ends[1]
	return nil
}

// check compares the range of data with what dtype and shape ask for.
func (t Tensor) check() error {
	n, ok := hooks.Elements(t.Shape)
	if !ok {
		return fmt.Errorf("shape %v has more elements than a file can hold", t.Shape)
	}
	if t.End < t.Begin {
		return fmt.Errorf("data_offsets %d to %d end before they start", t.Begin, t.End)
	}
	if want := int64(n) * int64(t.DType.Size()); t.Unknown == "" && t.End-t.Begin != want {
		return fmt.Errorf("%s of shape %v takes %d bytes, data_offsets give it %d", t.DType.Safetensors(), t.Shape, want, t.End-t.Begin)
	}
	return nil
}

// Readable returns the error that a tensor's dtype is unknown, nil where it is not. Who reads data, or counts on them, asks
// every tensor.
func (t Tensor) Readable() error {
	if t.Unknown == "" {
		return nil
	}
	return &DTypeError{t.Name, t.Unknown}
}

// DTypeError is returned for a tensor of a dtype that is not read.
type DTypeError struct{ Name, DType string }

// Error names the tensor and its dtype.
func (e *DTypeError) Error() string {
	return fmt.Sprintf("tensor %s: unknown dtype %s", plain.Quote(e.Name), plain.Quote(e.DType))
}
