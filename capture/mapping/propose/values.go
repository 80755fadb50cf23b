package propose

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// maxValues bounds the elements of a tensor that is told by its values.
const maxValues = 1 << 22

// numbers are the elements of a tensor, in order and sorted.
type numbers struct{ plain, sorted []float64 }

// maxKept bounds the elements that a reader holds at a time.
const maxKept = 1 << 24

// reader reads tensors. It keeps what it can of their elements, and a summary of each.
type reader struct {
	have      map[string]*numbers
	kept      int
	summaries map[string]*summary
}

func newReader() *reader {
	return &reader{have: map[string]*numbers{}, summaries: map[string]*summary{}}
}

// recorded is a tensor of a trace.
func recorded(t *capture.Trace, r capture.Record) tensor {
	return tensor{r.Key, r.Shape, r.DType, record{t, r}}
}

type record struct {
	t *capture.Trace
	r capture.Record
}

func (x record) ReadAt(p []byte, off int64) (int, error) { return x.t.ReadAt(x.r, p, off) }

// lastOf is the last row of a tensor of one batch, [1, T, C].
func lastOf(x tensor) tensor {
	width := int64(x.shape[2]) * int64(x.dtype.Size())
	from := int64(x.shape[1]-1) * width
	return tensor{x.key + "\x00last", []int{1, 1, x.shape[2]}, x.dtype, io.NewSectionReader(x.data, from, width)}
}

// of are the elements of a tensor; nil for one that is too large, or no float.
func (v *reader) of(x tensor) (*numbers, error) {
	if n, ok := v.have[x.key]; ok {
		return n, nil
	}
	elements, ok := hooks.Elements(x.shape)
	if !x.dtype.Float() || !ok || elements > maxValues {
		return nil, nil
	}
	raw, err := x.read(elements)
	if err != nil {
		return nil, err
	}
	n := &numbers{plain: make([]float64, elements)}
	if err := floats.Decode(n.plain, x.dtype, raw); err != nil {
		return nil, err
	}
	n.sorted = slices.Clone(n.plain)
	slices.Sort(n.sorted) // NaN first
	if v.kept += elements; v.kept > maxKept {
		clear(v.have)
		v.kept = elements
	}
	v.have[x.key] = n
	return n, nil
}

// read reads the bytes of so many elements.
func (x tensor) read(elements int) ([]byte, error) {
	raw := make([]byte, elements*x.dtype.Size())
	if n, err := x.data.ReadAt(raw, 0); n < len(raw) {
		return nil, fmt.Errorf("reading %q: %w", strings.TrimRight(x.key, here), err)
	}
	return raw, nil
}

// summary is of a tensor what no order of its elements changes.
type summary struct {
	elements        int
	odd             [3]int  // NaN, −Inf and +Inf
	norm            float64 // ‖x‖ of the finite elements
	lowest, highest float64 // of the finite ones; 0 without any
}

// summary reads a tensor; nil for one that is too large, or no float.
func (v *reader) summary(x tensor) (*summary, error) {
	if s, ok := v.summaries[x.key]; ok {
		return s, nil
	}
	n, err := v.of(x)
	if err != nil {
		return nil, err
	}
	var s *summary
	if n != nil {
		s = summarise(n.sorted)
	}
	v.summaries[x.key] = s
	return s, nil
}

func summarise(sorted []float64) *summary {
	s := &summary{elements: len(sorted)}
	finite := 0
	for _, x := range sorted {
		switch {
		case math.IsNaN(x):
			s.odd[0]++
			continue
		case math.IsInf(x, -1):
			s.odd[1]++
			continue
		case math.IsInf(x, 1):
			s.odd[2]++
			continue
		}
		if finite++; finite == 1 {
			s.lowest = x
		}
		s.highest = x
		s.norm = math.Hypot(s.norm, x)
	}
	return s
}

// tells reports whether numbers tell a tensor from another: zeros, and what is no number, are alike in all tensors.
func (s *summary) tells() bool { return s.norm > 0 && s.odd[0] == 0 }

// apart reports whether tensors with these summaries cannot be near in any order of their elements: the distance of two vectors
// is at least that of their norms, and that of their largest and of their smallest elements.
func (s *summary) apart(ref *summary) bool {
	limit := near * ref.norm * (1 + 1e-9)
	return s.elements != ref.elements || s.odd != ref.odd || math.Abs(s.norm-ref.norm) > limit ||
		math.Abs(s.lowest-ref.lowest) > limit || math.Abs(s.highest-ref.highest) > limit
}

// distance is the relative L2 distance ‖l − r‖/‖r‖ of the elements that are finite on both sides; +Inf where they are not as many, where
// infinities and NaN stand in other places, and where only one side is zero.
func distance(l, r []float64) float64 {
	if len(l) != len(r) {
		return math.Inf(1)
	}
	var d, n float64
	for i, x := range l {
		y := r[i]
		switch {
		case math.IsNaN(x) && math.IsNaN(y) || x == y:
		case math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsNaN(x) || math.IsNaN(y):
			return math.Inf(1)
		default:
			d += (x - y) * (x - y)
		}
		if !math.IsInf(y, 0) && !math.IsNaN(y) {
			n += y * y
		}
	}
	if d == 0 {
		return 0
	}
	return math.Sqrt(d / n)
}

// arrange puts elements that lie as the left side of a layout says in the order of the right side. It is nil where they do not fit.
func arrange(plain []float64, shape []int, l *layout.Layout) []float64 {
	axes, err := l.Apart(shape, nil)
	if err != nil {
		return nil
	}
	order, _ := l.Together(axes)
	return elementsAt(plain, order, len(plain))
}

// elementsAt are n elements in the order of axes.
func elementsAt(plain []float64, order []layout.Strided, n int) []float64 {
	out := make([]float64, 0, n)
	index := make([]int, len(order))
	for range n {
		at := 0
		for i, a := range order {
			at += index[i] * a.Stride
		}
		out = append(out, plain[at])
		for i := len(order) - 1; i >= 0; i-- {
			if index[i]++; index[i] < order[i].Size {
				break
			}
			index[i] = 0
		}
	}
	return out
}
