package picture

import (
	"fmt"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

const (
	// maxLarge is the number of large pictures. Beyond it only the pictures of rows that are not plainly right are large, up to maxOdd. So the
	// report of a small model shows everything large, and a large model's report stays below 2 MB.
	maxLarge = 300
	maxOdd   = 48
	// maxTensors is how many pictures there are of what is plainly right.
	maxTensors = 2500
)

// Set is the pictures of one comparison, or of one trace. The zero value is ready to use.
type Set struct {
	tensors map[string]*Tensor
	waiting []*Tensor // that become small when there are too many
	odd     int
	left    int
}

// Of is the picture of a row, or nil.
func (s *Set) Of(key string) *Tensor {
	if s == nil {
		return nil
	}
	return s.tensors[key]
}

// Left says how many tensors have no picture since there were too many; empty where none was left out.
func (s *Set) Left() string {
	if s == nil || s.left == 0 {
		return ""
	}
	return fmt.Sprintf(" There were too many tensors to draw each: %d have no picture.", s.left)
}

// Observer returns See for [compare.Options]; nil if there is no set.
func (s *Set) Observer() func(compare.Pair) error {
	if s == nil {
		return nil
	}
	return s.See
}

// See draws a compared pair. The error is a read error.
func (s *Set) See(p compare.Pair) error {
	odd := !right(p.Row)
	if !odd && len(s.tensors) >= maxTensors || odd && s.odd >= maxTensors {
		s.left++
		return nil
	}
	t, err := draw(p)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", p.Row.Key(), err)
	}
	s.put(p.Row.Key(), t, odd)
	return nil
}

// Put adds a picture of one tensor; odd of a tensor that a person is likely to look at.
func (s *Set) Put(key string, t *Tensor, odd bool) {
	if len(s.tensors) >= 2*maxTensors {
		s.left++
		return
	}
	s.put(key, t, odd)
}

func (s *Set) put(key string, t *Tensor, odd bool) {
	if s.tensors == nil {
		s.tensors = map[string]*Tensor{}
	}
	s.tensors[key] = t
	if odd {
		s.odd++
	}
	if !odd || s.odd > maxOdd {
		s.waiting = append(s.waiting, t)
	}
	if len(s.tensors) > maxLarge {
		for _, w := range s.waiting {
			w.small()
		}
		s.waiting = s.waiting[:0]
	}
}

// right reports whether a row is plainly right: within its limit, and right on its own inputs.
func right(r *compare.Row) bool {
	if r.Verdict != compare.Match || r.Allowed != "" {
		return false
	}
	c := r.Isolated
	return c == nil || c.Outcome == isolate.Exact || c.Outcome == isolate.Rounding
}
