package torch

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/npy"
	"github.com/tracediff/tracediff/internal/pickle"
)

// numpyType is a numpy dtype while a pickle builds it: a code such as "f4", then the byte order.
type numpyType struct {
	code  string
	order string
}

// array is a numpy array while a pickle builds it: the data come with the state.
type array struct{ tensor *tensor }

var errArray = errors.New("a malformed numpy array")

// mlTypes are the dtypes of ml_dtypes, by their class.
var mlTypes = map[constant]hooks.DType{"ml_dtypes.bfloat16": hooks.BF16, "ml_dtypes.float8_e4m3fn": hooks.F8E4M3, "ml_dtypes.float8_e5m2": hooks.F8E5M2}

// numpyDType makes a dtype of (code, align, copy).
func numpyDType(_ *owner, args pickle.Tuple) (any, error) {
	if len(args) == 0 {
		return nil, errArray
	}
	switch code := args[0].(type) {
	case string:
		return &numpyType{code: code, order: "|"}, nil
	case []byte:
		return &numpyType{code: string(code), order: "|"}, nil
	case constant:
		if _, ok := mlTypes[code]; ok {
			return &numpyType{code: string(code), order: "|"}, nil
		}
	}
	return nil, errArray
}

func (n *numpyType) apply(t *container.Tensor) error {
	if d, ok := mlTypes[constant(n.code)]; ok {
		t.DType = d
		return nil
	}
	return npy.Descr(t, n.order+n.code)
}

func numpyArray(*owner, pickle.Tuple) (any, error) { return &array{&tensor{}}, nil }

// numpyScalar makes a tensor without axes of (dtype, bytes).
func numpyScalar(o *owner, args pickle.Tuple) (any, error) {
	if len(args) != 2 {
		return nil, errArray
	}
	return o.numpy(&tensor{}, args[0], nil, false, args[1])
}

// numpyBuffer makes an array of (buffer, dtype, shape, order).
func numpyBuffer(o *owner, args pickle.Tuple) (any, error) {
	if len(args) != 4 {
		return nil, errArray
	}
	shape, err := integers(args[2])
	order, _ := args[3].(string)
	if err != nil || order != "C" && order != "F" {
		return nil, errArray
	}
	return o.numpy(&tensor{}, args[1], shape, order == "F", args[0])
}

// Build gives an array or a dtype its state. The attributes of a Parameter are no tensors of a model.
func (o *owner) Build(object, state any) (any, error) {
	switch object := object.(type) {
	case *tensor:
		return object, nil
	case *numpyType:
		s, ok := state.(pickle.Tuple)
		if !ok || len(s) < 2 {
			return nil, errArray
		}
		if object.order, ok = s[1].(string); !ok {
			b, _ := s[1].([]byte)
			object.order = string(b)
		}
		return object, nil
	case *array:
		s, ok := state.(pickle.Tuple)
		if !ok || len(s) != 5 {
			return nil, errArray
		}
		shape, err := integers(s[1])
		fortran, isBool := s[3].(bool)
		if err != nil || !isBool {
			return nil, errArray
		}
		return o.numpy(object.tensor, s[2], shape, fortran, s[4])
	}
	return nil, errors.New("a state for what has none")
}

// numpy makes an array of its dtype, its shape and its bytes.
func (o *owner) numpy(t *tensor, dtype any, shape []int, fortran bool, data any) (any, error) {
	n, ok := dtype.(*numpyType)
	if !ok {
		return nil, errArray
	}
	t.Shape = shape
	if err := n.apply(&t.Tensor); err != nil || t.Unknown != "" {
		return t, err
	}
	if _, ok := hooks.Elements(shape); !ok {
		return nil, fmt.Errorf("shape %v has more elements than a file can hold", shape)
	}
	if fortran {
		t.Strides = make([]int, len(shape))
		step := 1
		for i, d := range shape {
			t.Strides[i] = step
			step *= max(d, 1)
		}
	}
	length := int64(0)
	switch data := data.(type) {
	case []byte:
		t.Data, length = bytes.NewReader(data), int64(len(data))
	case pickle.Blob:
		if data.Text {
			return nil, errArray
		}
		t.Data, length = io.NewSectionReader(o.pickled, data.At, data.Length), data.Length
	case latin1:
		// Every character is a byte: an array needs a text with one character per byte.
		length = t.Size()
		t.Data = o.spool.Add(length, func() (io.ReadCloser, error) {
			return io.NopCloser(&decoder{r: io.NewSectionReader(o.pickled, data.At, data.Length)}), nil
		})
	default:
		return nil, errArray
	}
	if length != t.Size() {
		return nil, fmt.Errorf("an array of shape %v with %d bytes", shape, length)
	}
	return t, t.Check(length)
}

// decoder reads the bytes that a text in UTF-8 stands for, one a character below 256.
type decoder struct {
	r    io.Reader
	half byte // the first byte of a character of two
}

func (d *decoder) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := d.r.Read(p)
	k := 0
	for _, b := range p[:n] {
		switch {
		case d.half == 0 && b < 0x80:
			p[k] = b
			k++
		case d.half == 0 && (b == 0xc2 || b == 0xc3):
			d.half = b
		case d.half != 0 && b&0xc0 == 0x80:
			p[k] = d.half<<6 | b&0x3f
			d.half = 0
			k++
		default:
			return k, errArray
		}
	}
	if err == io.EOF && d.half != 0 {
		err = io.ErrUnexpectedEOF
	}
	return k, err
}
