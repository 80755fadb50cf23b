package ggmltext

import (
	"fmt"
	"io"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
)

// maxElements bounds a tensor's claimed size; no engine has a larger tensor.
const maxElements = 1 << 40

// grid is a tensor with some printed elements, as row-major little-endian bytes. The text is read again for each access.
type grid struct {
	in         io.ReaderAt
	begin, end int64 // of the text below its heading
	number     int   // of the line there
	size       [4]int
	dtype      hooks.DType
}

// ReadAt reads bytes as [io.ReaderAt] does.
func (g *grid) ReadAt(p []byte, off int64) (int, error) {
	size := int64(g.dtype.Size())
	all := size
	for _, n := range g.size {
		all *= int64(n)
	}
	if off < 0 || off > all {
		return 0, fmt.Errorf("offset %d of %d bytes", off, all)
	}
	var end error
	if rest := all - off; int64(len(p)) > rest {
		p, end = p[:rest], io.EOF
	}
	if len(p) == 0 {
		return 0, end
	}
	from, to := off/size, (off+int64(len(p))+size-1)/size
	out := make([]byte, 0, (to-from)*size)
	nothing := container.Elided(g.dtype)
	for len(out) < cap(out) {
		out = append(out, nothing...)
	}
	if err := g.fill(out, from, to); err != nil {
		return 0, err
	}
	copy(p, out[off%size:])
	return len(p), end
}

// fill writes the printed ones of the elements from number from to number to.
func (g *grid) fill(out []byte, from, to int64) error {
	// Which indexes are printed is known when all is read: the elements are put to their places in a second reading.
	first := g.body()
	if err := first.read(nil); err != nil {
		return err
	}
	at, size := int64(0), int64(g.dtype.Size())
	b := g.body()
	return b.read(func(v float64) {
		if n := g.place(first.axes, at); n >= from && n < to {
			floats.Append(out[:(n-from)*size], g.dtype, v)
		}
		at++
	})
}

// body is what reads the text of the tensor.
func (g *grid) body() *body {
	s := newScanner(io.NewSectionReader(g.in, g.begin, g.end-g.begin), g.end-g.begin)
	s.number = g.number - 1
	return &body{of: heading{size: g.size}, s: s, more: s.next()}
}

// place is the number among all elements of the n-th that is printed.
func (g *grid) place(axes [3]run, n int64) int64 {
	at, stride := int64(0), int64(1)
	for i, r := range axes {
		k := int64(r.printed())
		index := n % k
		if n /= k; index >= int64(r.head) {
			index += int64(g.size[i]) - k
		}
		at += index * stride
		stride *= int64(g.size[i])
	}
	return at + n*stride
}
