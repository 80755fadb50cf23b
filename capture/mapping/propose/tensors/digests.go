package tensors

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/tracediff/tracediff/hooks"
)

// Digests say which tensors of a dump have the same bytes. The zero value is ready. Of a tensor the first chunk is read once, and the rest where
// the first chunk is that of another tensor.
type Digests struct{ of map[string]*digest }

// Start has the sum of the first chunk of a tensor.
type Start struct {
	dtype  hooks.DType
	length int64 // of all bytes
	sum    [sha256.Size]byte
}

type digest struct {
	Start
	varied bool // the first chunk has elements that differ
	whole  *[sha256.Size]byte
}

// chunk is how many bytes of a tensor are read at a time.
const chunk = 1 << 16

func (x Tensor) bytes() int64 { return int64(Elements(x.Shape)) * int64(x.DType.Size()) }

func (x Tensor) chunkAt(at int64) ([]byte, error) {
	raw := make([]byte, min(x.bytes()-at, chunk))
	if n, err := x.data.ReadAt(raw, at); n < len(raw) {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("reading %q: %w", x.Key, err)
	}
	return raw, nil
}

// begin reads the first chunk of a tensor, once.
func (d *Digests) begin(x Tensor) (*digest, error) {
	if c, ok := d.of[x.Key]; ok {
		return c, nil
	}
	raw, err := x.chunkAt(0)
	if err != nil {
		return nil, err
	}
	size := x.DType.Size()
	c := &digest{Start: Start{x.DType, x.bytes(), sha256.Sum256(raw)}, varied: len(raw) > size && !bytes.Equal(raw[size:], raw[:len(raw)-size])}
	if d.of == nil {
		d.of = map[string]*digest{}
	}
	d.of[x.Key] = c
	return c, nil
}

// Start is what a tensor begins with. varied is false where all elements of the first chunk are alike, so that a copy proves nothing.
func (d *Digests) Start(x Tensor) (start Start, varied bool, err error) {
	c, err := d.begin(x)
	if err != nil {
		return Start{}, false, err
	}
	return c.Start, c.varied, nil
}

// Same reports whether two tensors have the same elements in the same order, whatever their shapes are.
func (d *Digests) Same(x, y Tensor) (bool, error) {
	if x.DType != y.DType || x.bytes() != y.bytes() {
		return false, nil
	}
	a, err := d.begin(x)
	if err != nil {
		return false, err
	}
	b, err := d.begin(y)
	if err != nil || a.Start != b.Start {
		return false, err
	}
	for _, side := range []struct {
		x Tensor
		c *digest
	}{{x, a}, {y, b}} {
		if err := side.c.read(side.x); err != nil {
			return false, err
		}
	}
	return *a.whole == *b.whole, nil
}

// read finds the sum of all bytes, once.
func (c *digest) read(x Tensor) error {
	switch {
	case c.whole != nil:
		return nil
	case c.length <= chunk:
		c.whole = &c.sum
		return nil
	}
	h := sha256.New()
	for at := int64(0); at < c.length; at += chunk {
		raw, err := x.chunkAt(at)
		if err != nil {
			return err
		}
		h.Write(raw)
	}
	c.whole = (*[sha256.Size]byte)(h.Sum(nil))
	return nil
}
