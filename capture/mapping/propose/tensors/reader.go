package tensors

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
)

// MaxValues bounds the elements of a tensor that is compared by values. maxKept bounds the elements that a reader keeps.
const (
	MaxValues = 1 << 22
	maxKept   = 1 << 24
)

// Numbers are the elements of a tensor, in order and sorted.
type Numbers struct{ Plain, Sorted []float64 }

// Reader reads tensors, and keeps their elements while there is room, and their summaries.
type Reader struct {
	have      map[string]*Numbers
	kept      int
	summaries map[string]*summary
}

// NewReader returns a reader that has nothing yet.
func NewReader() *Reader {
	return &Reader{have: map[string]*Numbers{}, summaries: map[string]*summary{}}
}

// Numbers are the elements of a tensor; nil for one that is too large, or has no floats.
func (v *Reader) Numbers(x Tensor) (*Numbers, error) {
	if n, ok := v.have[x.Key]; ok {
		return n, nil
	}
	elements, ok := hooks.Elements(x.Shape)
	if !x.DType.Float() || !ok || elements > MaxValues {
		return nil, nil
	}
	plain, err := x.Floats(elements)
	if err != nil {
		return nil, err
	}
	n := &Numbers{plain, slices.Clone(plain)}
	slices.Sort(n.Sorted) // NaN first
	if v.kept += elements; v.kept > maxKept {
		clear(v.have)
		v.kept = elements
	}
	v.have[x.Key] = n
	return n, nil
}

// summary has what no order of a tensor's elements changes.
type summary struct {
	elements        int
	odd             [3]int  // NaN, −Inf and +Inf
	norm            float64 // ‖x‖ of the finite elements
	lowest, highest float64 // of the finite ones; 0 without any
}

// summary returns the summary of a tensor. It returns nil for a tensor that is too large, or has no floats.
func (v *Reader) summary(x Tensor) (*summary, error) {
	if s, ok := v.summaries[x.Key]; ok {
		return s, nil
	}
	n, err := v.Numbers(x)
	if err != nil {
		return nil, err
	}
	var s *summary
	if n != nil {
		s = summarise(n.Sorted)
	}
	v.summaries[x.Key] = s
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

// tells reports whether numbers tell a tensor from another: zeros, and NaN, are alike in all tensors. It is false for no summary.
func (s *summary) tells() bool { return s != nil && s.norm > 0 && s.odd[0] == 0 }

// apart reports whether tensors with these summaries cannot be near in any order of their elements: the distance of two vectors
// is at least that of their norms, and that of their largest and of their smallest elements.
func (s *summary) apart(ref *summary) bool {
	limit := Near * ref.norm * (1 + 1e-9)
	return s.elements != ref.elements || s.odd != ref.odd || math.Abs(s.norm-ref.norm) > limit ||
		math.Abs(s.lowest-ref.lowest) > limit || math.Abs(s.highest-ref.highest) > limit
}
