package layout

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
)

// Block is a tensor in the making: its elements lie row-major in Data, along Axes.
type Block struct {
	Axes  []Strided // their strides no longer count
	Shape []int     // the axes as the tensor has them
	DType hooks.DType
	Data  io.ReaderAt
}

// View is a part of a source: the axes in a new order, from some element on.
func View(s *capture.Source, axes []Strided, shape []int, from int) Block {
	b := Block{Axes: axes, Shape: shape, DType: s.DType, Data: s.Data}
	t := &container.Tensor{Name: s.Name, DType: s.DType, Data: s.Data, Offset: int64(from) * int64(s.DType.Size())}
	dense, stride := from == 0, 1
	for i := len(axes) - 1; i >= 0; i-- {
		dense = dense && (axes[i].Stride == stride || axes[i].Size == 1)
		stride *= axes[i].Size
	}
	if dense {
		return b
	}
	for _, a := range axes {
		t.Shape, t.Strides = append(t.Shape, a.Size), append(t.Strides, a.Stride)
	}
	b.Data = t
	return b
}

// Concat concatenates blocks along the axis with a name. The sizes of the other axes have to be equal. l gives the shape.
func Concat(blocks []Block, name string, l *Layout) (Block, error) {
	at := slices.IndexFunc(blocks[0].Axes, func(a Strided) bool { return a.Name == name })
	if at < 0 {
		return Block{}, fmt.Errorf("no axis is called %s: axes = \"... -> ...\" gives names", name)
	}
	out := Block{Axes: slices.Clone(blocks[0].Axes), DType: blocks[0].DType}
	out.Axes[at].Size = 0
	j := &behind{}
	for _, b := range blocks {
		inner := int64(b.DType.Size())
		for i, a := range b.Axes {
			if i != at && a.Size != out.Axes[i].Size || b.DType != out.DType {
				return Block{}, fmt.Errorf("%s of shape %v and %s of shape %v do not fit together along %s", blocks[0].DType, blocks[0].Shape, b.DType, b.Shape, name)
			}
			if i >= at {
				inner *= int64(a.Size)
			}
		}
		out.Axes[at].Size += b.Axes[at].Size
		j.parts, j.inner, j.row = append(j.parts, b.Data), append(j.inner, inner), j.row+inner
	}
	out.Data = j
	_, out.Shape = l.Together(out.Axes)
	return out, nil
}

// behind reads tensors concatenated along an axis.
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

// Sum adds blocks up, element by element.
func Sum(blocks []Block) (Block, error) {
	out := blocks[0]
	elements, _ := hooks.Elements(out.Shape)
	t := &total{dtype: out.DType, bytes: int64(elements) * int64(out.DType.Size())}
	for _, b := range blocks {
		if !slices.Equal(b.Shape, out.Shape) || b.DType != out.DType {
			return Block{}, fmt.Errorf("%s of shape %v and %s of shape %v cannot be added", out.DType, out.Shape, b.DType, b.Shape)
		}
		t.parts = append(t.parts, b.Data)
	}
	if !out.DType.Float() {
		return Block{}, fmt.Errorf("only floats are added, and these are %s", out.DType)
	}
	out.Data = t
	return out, nil
}

// Terms returns the partial results that a block adds up. It returns nil for a block that is no sum.
func (b *Block) Terms() []io.ReaderAt {
	if t, ok := b.Data.(*total); ok {
		return t.parts
	}
	return nil
}

// Like reports whether two blocks have the same shape and dtype.
func (b *Block) Like(o *Block) bool { return slices.Equal(b.Shape, o.Shape) && b.DType == o.DType }

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
		floats.Append(raw[:int64(i)*size], t.dtype, floats.Round(t.dtype, floats.Round(t.held, x)))
	}
	return copy(p, raw[off-from:]), nil
}

// Differ says how two blocks differ that have to be the same; "" where they are, bit for bit.
func Differ(a, b Block) (string, error) {
	if !slices.Equal(a.Shape, b.Shape) || a.DType != b.DType {
		return fmt.Sprintf("%s of shape %v and %s of shape %v", a.DType, a.Shape, b.DType, b.Shape), nil
	}
	elements, _ := hooks.Elements(a.Shape)
	size := int64(a.DType.Size())
	whole := int64(elements) * size
	const chunk = 1 << 20
	l, r := make([]byte, min(chunk, whole)), make([]byte, min(chunk, whole))
	unequal, first := int64(0), int64(-1)
	for off := int64(0); off < whole; off += chunk {
		n := int(min(chunk, whole-off))
		for _, side := range []struct {
			data io.ReaderAt
			into []byte
		}{{a.Data, l[:n]}, {b.Data, r[:n]}} {
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
	return fmt.Sprintf("%d of %d elements, first at %v", unequal, elements, container.Indexes(first, a.Shape)), nil
}

// EveryNth is the first block of each run of n.
func EveryNth(blocks []Block, n int) (list []Block) {
	for i := 0; i < len(blocks); i += n {
		list = append(list, blocks[i])
	}
	return list
}
