package reference

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/spelling"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// Weights reads a checkpoint's tensors row by row, rounded to the dtype of the model if the file has a wider dtype, as
// from_pretrained(dtype=...) does. The error of the function names a weight that is missing or has another shape.
// Mapped pages are released after every releaseBytes read.
func Weights(ck *checkpoint.Checkpoint, model hooks.DType) func(order.Weight) (program.Rows, error) {
	pages := &pages{ck: ck}
	return func(w order.Weight) (program.Rows, error) {
		t, ok := ck.Tensor(w.Name)
		if !ok && w.Fallback != "" {
			t, ok = ck.Tensor(w.Fallback)
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("the checkpoint has no tensor %s", w.Name)
		case !slices.Equal(t.Shape, w.Shape):
			return nil, fmt.Errorf("the checkpoint's %s has shape %v, not %v", w.Name, t.Shape, w.Shape)
		case !t.DType.Float():
			return nil, fmt.Errorf("the checkpoint's %s holds %s, not numbers with a fraction", w.Name, t.DType)
		}
		r := rows{tensor: t, cols: 1, pages: pages}
		if r.place, ok = ck.Place(w.Name); !ok && w.Fallback != "" {
			r.place, _ = ck.Place(w.Fallback)
		}
		if n := len(t.Shape); n > 0 {
			r.cols = t.Shape[n-1]
		}
		to := model
		if d, err := hooks.ParseDType(w.DType); err == nil { // a weight with a dtype of its own in the model
			to = d
		}
		if t.DType != to && to != hooks.F32 || t.DType == hooks.F64 { // float32 holds bfloat16 and float16; neither of the two holds the other
			r.round = to
		}
		return r, nil
	}
}

// SpareVectors lists the vectors of the text model that a checkpoint has and no entry of an order reads.
func SpareVectors(ck *checkpoint.Checkpoint, list *order.List) []order.Weight {
	read := map[string]bool{}
	for _, w := range list.Weights() {
		read[w.Name], read[w.Fallback] = true, true
	}
	var all []order.Weight
	for _, name := range ck.Names() {
		if t, ok := ck.Tensor(name); ok && !read[name] && spelling.TowerOf(ck.Prefix()+name) == "" && len(t.Shape) == 1 && t.DType.Float() {
			all = append(all, order.Weight{Name: name, Shape: t.Shape})
		}
	}
	return all
}

// releaseBytes is the number of bytes read of a checkpoint before its pages are released: far more than the weights of
// any operation except the head, and little of the memory of a machine that runs the model.
const releaseBytes = 256 << 20

// pages counts the bytes read of a checkpoint since its last release.
type pages struct {
	ck   *checkpoint.Checkpoint
	read atomic.Int64
}

func (p *pages) add(n int) {
	if read := p.read.Add(int64(n)); read >= releaseBytes && p.read.CompareAndSwap(read, 0) {
		p.ck.Release()
	}
}

// rows is a weight as a view of the checkpoint's file.
type rows struct {
	tensor hooks.Tensor
	cols   int
	round  hooks.DType // the dtype to round to; 0 for no rounding
	pages  *pages
	place  checkpoint.Place // of the data in a file; zero for a checkpoint in memory
}

func (r rows) Size() (rows, cols int) {
	n, _ := hooks.Elements(r.tensor.Shape)
	return n / r.cols, r.cols
}

func (r rows) Row(dst []float64, i int) error {
	size := r.cols * r.tensor.DType.Size()
	r.pages.add(size)
	return r.decode(dst[:r.cols], r.tensor.Data[i*size:(i+1)*size])
}

func (r rows) decode(dst []float64, data []byte) error {
	if err := floats.Decode(dst, r.tensor.DType, data); err != nil {
		return err
	}
	if r.round.Valid() {
		floats.RoundAll(r.round, dst)
	}
	return nil
}

// buffers hold bytes of files before decoding.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Span reads the rows from the file, if there is a file: through the mapping, the system would map page after
// page.
func (r rows) Span(dst []float64, from, count int) error {
	size := r.cols * r.tensor.DType.Size()
	if r.place.File == nil {
		return r.decode(dst, r.tensor.Data[from*size:(from+count)*size])
	}
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	if cap(*b) < spanBytes {
		*b = make([]byte, spanBytes)
	}
	for at, end := from*size, (from+count)*size; at < end; at += spanBytes {
		part := (*b)[:min(spanBytes, end-at)]
		if _, err := r.place.File.ReadAt(part, r.place.At+int64(at)); err != nil {
			return fmt.Errorf("reading the weights: %w", err)
		}
		n := len(part) / r.tensor.DType.Size()
		if err := r.decode(dst[:n], part); err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// spanBytes is the number of bytes of one read: small enough to stay in a near cache for decoding.
const spanBytes = 64 << 10

// Digits is the largest number of significant binary digits of an element: see [products.Digits].
func (r rows) Digits() int {
	d := r.tensor.DType
	if r.round.Valid() {
		d = r.round
	}
	if d == hooks.F64 {
		return 0
	}
	return floats.Precision(d)
}
