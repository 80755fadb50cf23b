// Package npy reads numpy's .npy and .npz files: header versions 1 to 3, both byte orders, Fortran order, stored and deflated
// members. Arrays of Python objects are refused, since they are pickles.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/plain"
)

// Magic begins a .npy file.
const Magic = "\x93NUMPY"

// maxHeader bounds the text of a header, in bytes. numpy itself reads 10,000.
const maxHeader = 1 << 16

// head is how many bytes of a file have its header.
const head = len(Magic) + 2 + 4 + maxHeader

// errObjects refuses arrays of objects.
var errObjects = errors.New("an array of Python objects, which is a pickle")

// errShort is a header that ends before it should.
var errShort = errors.New("the file ends in it")

// parse reads the header of an array. data is the number of bytes in front of the elements. A dtype that is not a number's is
// Unknown in the tensor.
func parse(start []byte) (t container.Tensor, data int64, err error) {
	if len(start) < 10 || string(start[:6]) != Magic {
		return t, 0, errors.New("not a .npy file: it does not begin with \\x93NUMPY")
	}
	major, minor := start[6], start[7]
	length, rest := int64(binary.LittleEndian.Uint16(start[8:])), start[10:]
	switch {
	case major == 1:
	case (major == 2 || major == 3) && len(start) >= 12:
		length, rest = int64(binary.LittleEndian.Uint32(start[8:])), start[12:]
	default:
		return t, 0, fmt.Errorf("a .npy header of version %d.%d", major, minor)
	}
	if length > maxHeader {
		return t, 0, fmt.Errorf("a .npy header of %d bytes, more than %d", length, maxHeader)
	}
	if length > int64(len(rest)) {
		return t, 0, fmt.Errorf("a .npy header of %d bytes: %w", length, errShort)
	}
	t, err = dictionary(string(rest[:length]))
	return t, int64(len(start)-len(rest)) + length, err
}

// header reads the header of a file of size bytes: from its first bytes, or from more of them where it is long.
func header(size int64, start func(n int) ([]byte, error)) (container.Tensor, int64, error) {
	first, err := start(1 << 10)
	if err != nil {
		return container.Tensor{}, 0, err
	}
	t, data, err := parse(first)
	if !errors.Is(err, errShort) || size <= int64(len(first)) {
		return t, data, err
	}
	if first, err = start(head); err != nil {
		return t, 0, err
	}
	return parse(first)
}

// dictionary reads the text of a header: a Python dict with the keys descr, fortran_order and shape.
func dictionary(text string) (t container.Tensor, err error) {
	s := literal{text: text}
	var descr string
	var shape []int
	fortran := false
	seen := map[string]bool{}
	err = s.dict(func(key string) error {
		if seen[key] {
			return fmt.Errorf("%q twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			descr, err = s.descr()
		case "fortran_order":
			fortran, err = s.boolean()
		case "shape":
			shape, err = s.tuple()
		default:
			err = fmt.Errorf("unknown key %s", plain.Quote(key))
		}
		return err
	})
	if err != nil {
		return t, fmt.Errorf(".npy header: %w", err)
	}
	if len(seen) != 3 {
		return t, errors.New(".npy header: it wants descr, fortran_order and shape")
	}
	t.Shape = shape
	if err := element(&t, descr); err != nil {
		return t, err
	}
	if _, ok := hooks.Elements(t.Shape); !ok {
		return t, fmt.Errorf("shape %v has more elements than a file can hold", t.Shape)
	}
	if fortran {
		t.Strides = make([]int, len(t.Shape))
		n := 1
		for i, d := range t.Shape {
			t.Strides[i] = n
			n *= max(d, 1)
		}
	}
	return t, nil
}

// kinds are numpy's codes of a dtype without the byte order.
var kinds = map[string]hooks.DType{
	"f8": hooks.F64, "f4": hooks.F32, "f2": hooks.F16, "i8": hooks.I64, "i4": hooks.I32, "i2": hooks.I16, "i1": hooks.I8,
	"u8": hooks.U64, "u4": hooks.U32, "u2": hooks.U16, "u1": hooks.U8, "b1": hooks.Bool,
	"V2": hooks.BF16, // two bytes without a meaning: what ml_dtypes and MLX write for bfloat16
}

// element sets the dtype that a descr names.
func element(t *container.Tensor, descr string) error {
	if strings.ContainsRune(descr, 'O') {
		return errObjects
	}
	if descr == "" {
		t.Unknown = "a structure"
		return nil
	}
	order, code := descr[0], descr[1:]
	known := strings.ContainsRune("<>|=", rune(order))
	d, ok := kinds[code]
	if !known || !ok || order == '>' && code == "V2" {
		t.Unknown = descr
		return nil
	}
	t.DType, t.Big = d, order == '>'
	return nil
}

// Array reads the header of a .npy file of size bytes.
func Array(r io.ReaderAt, size int64) (container.Tensor, error) {
	t, data, err := header(size, func(n int) ([]byte, error) {
		start := make([]byte, min(int64(n), size))
		if n, err := r.ReadAt(start, 0); n < len(start) {
			return nil, err
		}
		return start, nil
	})
	if err != nil {
		return t, err
	}
	t.Data, t.Offset = r, data
	return t, fits(&t, size)
}

// fits reports an array whose data are not those that its header gives it.
func fits(t *container.Tensor, size int64) error {
	if err := t.Check(size); err != nil {
		return err
	}
	if rest := size - t.Offset - t.Size(); t.Unknown == "" && rest > 0 {
		return fmt.Errorf("%d bytes after the array belong to nothing", rest)
	}
	return nil
}

// Descr reads the text of a dtype such as "<f4" into a tensor; what is not a number's dtype is Unknown.
func Descr(t *container.Tensor, descr string) error { return element(t, descr) }

// literal walks over a Python literal.
type literal struct {
	text string
	at   int
}

func (s *literal) space() {
	for s.at < len(s.text) && strings.IndexByte(" \n\r\t", s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *literal) take(word string) bool {
	s.space()
	if !strings.HasPrefix(s.text[s.at:], word) {
		return false
	}
	s.at += len(word)
	return true
}

func (s *literal) want(what string) error { return fmt.Errorf("byte %d: want %s", s.at, what) }

// dict reads a dictionary; member reads the value of each key.
func (s *literal) dict(member func(key string) error) error {
	if !s.take("{") {
		return s.want("'{'")
	}
	for !s.take("}") {
		key, err := s.str()
		if err != nil {
			return err
		}
		if !s.take(":") {
			return s.want("':'")
		}
		if err := member(key); err != nil {
			return err
		}
		if !s.take(",") {
			if !s.take("}") {
				return s.want("',' or '}'")
			}
			break
		}
	}
	if s.space(); s.at < len(s.text) {
		return s.want("nothing after the dictionary")
	}
	return nil
}

// str reads a string without escapes, as every key and dtype is.
func (s *literal) str() (string, error) {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != '\'' && s.text[s.at] != '"' {
		return "", s.want("a string")
	}
	quote := s.text[s.at]
	end := strings.IndexByte(s.text[s.at+1:], quote)
	if end < 0 {
		return "", s.want("the end of a string")
	}
	text := s.text[s.at+1 : s.at+1+end]
	if strings.ContainsAny(text, "\\\n") {
		return "", s.want("a string without escapes")
	}
	s.at += end + 2
	return text, nil
}

// descr reads a dtype: a string, or a structure's list. Of a list only the codes matter: the result is empty, or an object code.
func (s *literal) descr() (string, error) {
	s.space()
	if s.at == len(s.text) || s.text[s.at] != '[' {
		return s.str()
	}
	depth, object := 0, ""
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '\'', '"':
			word, err := s.str()
			if err != nil {
				return "", err
			}
			if strings.HasSuffix(word, "O") {
				object = "O"
			}
			continue
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		}
		if s.at++; depth == 0 {
			return object, nil
		}
	}
	return "", s.want("the end of a list")
}

func (s *literal) boolean() (bool, error) {
	if s.take("True") {
		return true, nil
	}
	if s.take("False") {
		return false, nil
	}
	return false, s.want("True or False")
}

// tuple reads a tuple of whole numbers that are not negative. Python 2 wrote an L after a large number.
func (s *literal) tuple() ([]int, error) {
	if !s.take("(") {
		return nil, s.want("a tuple")
	}
	var sizes []int
	for !s.take(")") {
		s.space()
		start := s.at
		for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
			s.at++
		}
		n, err := strconv.ParseUint(s.text[start:s.at], 10, 63)
		if err != nil || n > math.MaxInt {
			s.at = start
			return nil, s.want("a size that is a whole number and not negative")
		}
		s.take("L")
		if len(sizes) == container.MaxRank {
			return nil, fmt.Errorf("a shape of more than %d axes", container.MaxRank)
		}
		sizes = append(sizes, int(n))
		if !s.take(",") {
			if !s.take(")") {
				return nil, s.want("',' or ')'")
			}
			break
		}
	}
	return sizes, nil
}
