package mapping

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
)

// block is a tensor in the making: its elements lie row-major in data, along axes.
type block struct {
	axes  []strided // their strides no longer count
	shape []int     // the axes as the tensor has them
	dtype hooks.DType
	data  io.ReaderAt
}

// view is a part of a source: the axes in a new order, from some element on.
func view(s *capture.Source, axes []strided, shape []int, from int) block {
	b := block{axes: axes, shape: shape, dtype: s.DType, data: s.Data}
	t := &container.Tensor{Name: s.Name, DType: s.DType, Data: s.Data, Offset: int64(from) * int64(s.DType.Size())}
	dense, stride := from == 0, 1
	for i := len(axes) - 1; i >= 0; i-- {
		dense = dense && (axes[i].stride == stride || axes[i].size == 1)
		stride *= axes[i].size
	}
	if dense {
		return b
	}
	for _, a := range axes {
		t.Shape, t.Strides = append(t.Shape, a.size), append(t.Strides, a.stride)
	}
	b.data = t
	return b
}

// concat puts blocks behind each other along one of their axes. Their other axes have to be alike. whole is the shape.
func concat(blocks []block, name string, l *layout) (block, error) {
	at := slices.IndexFunc(blocks[0].axes, func(a strided) bool { return a.name == name })
	if at < 0 {
		return block{}, fmt.Errorf("no axis is called %s: axes = \"... -> ...\" gives names", name)
	}
	out := block{axes: slices.Clone(blocks[0].axes), dtype: blocks[0].dtype}
	out.axes[at].size = 0
	j := &behind{}
	for _, b := range blocks {
		inner := int64(b.dtype.Size())
		for i, a := range b.axes {
			if i != at && a.size != out.axes[i].size || b.dtype != out.dtype {
				return block{}, fmt.Errorf("%s of shape %v and %s of shape %v do not fit together along %s", blocks[0].dtype, blocks[0].shape, b.dtype, b.shape, name)
			}
			if i >= at {
				inner *= int64(a.size)
			}
		}
		out.axes[at].size += b.axes[at].size
		j.parts, j.inner, j.row = append(j.parts, b.data), append(j.inner, inner), j.row+inner
	}
	out.data = j
	_, out.shape = l.together(out.axes)
	return out, nil
}

// behind reads tensors that lie behind each other along an axis.
type behind struct {
	parts []io.ReaderAt
	inner []int64 // bytes of each part below and along the axis
	row   int64   // their sum
}

func (j *behind) ReadAt(p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		outer, rest := (off+int64(done))/j.row, (off+int64(done))%j.row
		at := 0
		for rest >= j.inner[at] {
			rest -= j.inner[at]
			at++
		}
		n := int(min(int64(len(p)-done), j.inner[at]-rest))
		got, err := j.parts[at].ReadAt(p[done:done+n], outer*j.inner[at]+rest)
		if done += got; got < n {
			return done, err
		}
	}
	return done, nil
}

// total is the sum of partial results: in float64, rounded once to the dtype that holds them, see [capture.HeldIn]. How far that of the engine may be is [capture.Sum].
type total struct {
	parts []io.ReaderAt
	dtype hooks.DType
	bytes int64 // of each

	once sync.Once
	held hooks.DType
	err  error
}

// sum adds blocks up, element by element.
func sum(blocks []block) (block, error) {
	out := blocks[0]
	t := &total{dtype: out.dtype, bytes: int64(elementsOf(out.shape)) * int64(out.dtype.Size())}
	for _, b := range blocks {
		if !slices.Equal(b.shape, out.shape) || b.dtype != out.dtype {
			return block{}, fmt.Errorf("%s of shape %v and %s of shape %v cannot be added up", out.dtype, out.shape, b.dtype, b.shape)
		}
		t.parts = append(t.parts, b.data)
	}
	if !out.dtype.Float() {
		return block{}, fmt.Errorf("sums are of floats, and these are %s", out.dtype)
	}
	out.data = t
	return out, nil
}

func (t *total) ReadAt(p []byte, off int64) (int, error) {
	if t.once.Do(func() { t.held, t.err = capture.HeldIn(t.parts, t.dtype, t.bytes) }); t.err != nil {
		return 0, t.err
	}
	size := int64(t.dtype.Size())
	from := off / size * size
	to := (off + int64(len(p)) + size - 1) / size * size
	raw, n := make([]byte, to-from), int((to-from)/size)
	sums, terms := make([]float64, n), make([]float64, n)
	for _, part := range t.parts {
		if got, err := part.ReadAt(raw, from); got < len(raw) {
			return 0, err
		}
		if err := floats.Decode(terms, t.dtype, raw); err != nil {
			return 0, err
		}
		for i, x := range terms {
			sums[i] += x
		}
	}
	for i, x := range sums {
		encode(raw[int64(i)*size:], t.dtype, floats.Round(t.held, x))
	}
	return copy(p, raw[off-from:]), nil
}

// encode writes x, rounded to d.
func encode(into []byte, d hooks.DType, x float64) {
	x = floats.Round(d, x)
	switch d {
	case hooks.F64:
		binary.LittleEndian.PutUint64(into, math.Float64bits(x))
	case hooks.F32:
		binary.LittleEndian.PutUint32(into, math.Float32bits(float32(x)))
	case hooks.BF16:
		binary.LittleEndian.PutUint16(into, floats.BF16(float32(x)))
	case hooks.F16:
		binary.LittleEndian.PutUint16(into, floats.F16(float32(x)))
	case hooks.F8E4M3:
		into[0] = floats.F8E4M3(float32(x))
	case hooks.F8E5M2:
		into[0] = floats.F8E5M2(float32(x))
	}
}

// differ says how two blocks differ that have to be the same; "" where they are, bit for bit.
func differ(a, b block) (string, error) {
	if !slices.Equal(a.shape, b.shape) || a.dtype != b.dtype {
		return fmt.Sprintf("%s of shape %v and %s of shape %v", a.dtype, a.shape, b.dtype, b.shape), nil
	}
	elements, _ := hooks.Elements(a.shape)
	size := int64(a.dtype.Size())
	whole := int64(elements) * size
	const chunk = 1 << 20
	l, r := make([]byte, min(chunk, whole)), make([]byte, min(chunk, whole))
	unequal, first := int64(0), int64(-1)
	for off := int64(0); off < whole; off += chunk {
		n := int(min(chunk, whole-off))
		for _, side := range []struct {
			data io.ReaderAt
			into []byte
		}{{a.data, l[:n]}, {b.data, r[:n]}} {
			if got, err := side.data.ReadAt(side.into, off); got < n {
				return "", err
			}
		}
		if bytes.Equal(l[:n], r[:n]) {
			continue
		}
		for i := 0; i < n; i += int(size) {
			if !bytes.Equal(l[i:i+int(size)], r[i:i+int(size)]) {
				if unequal++; first < 0 {
					first = (off + int64(i)) / size
				}
			}
		}
	}
	if unequal == 0 {
		return "", nil
	}
	return fmt.Sprintf("%d of %d elements, first at %v", unequal, elements, indexes(first, a.shape)), nil
}

// indexes are those of an element of a tensor of some shape, by its number.
func indexes(number int64, shape []int) []int {
	at := make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		at[i] = int(number % int64(shape[i]))
		number /= int64(shape[i])
	}
	return at
}
