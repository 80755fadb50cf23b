package diagnose

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/order/program"
)

// span is what the edges of a mask may depend on beside the query: positions of the first and of the last query of its pass, and the number
// of tokens of the prompt.
type span struct{ first, last, prompt float64 }

// edge is the first key that a query sees, or the last.
type edge func(q float64, in span) float64

// mostRings bounds the sizes of chunks that are tried with each size of a ring.
const mostRings = 16

// edged tries masks by their edges, in which each query sees the keys from one to another: windows that begin with a chunk, or that are
// open ahead, keys that a ring has lost, blocks that are not full, and those of the prompt or of its steps alone. Most is the largest size of
// a chunk; try has the name of a mask and whether a query sees a key.
func (s *search) edged(window float64, most int, try func(what string, sees func(q, k float64, in span) bool) error) error {
	own := func(q float64, _ span) float64 { return q }
	low := func(float64, span) float64 { return 0 }
	if window > 0 {
		low = func(q float64, _ span) float64 { return q - window + 1 }
	}
	between := func(what string, low, high edge) error {
		return try(what, func(q, k float64, in span) bool { return k >= low(q, in) && k <= high(q, in) })
	}
	last := func(_ float64, in span) float64 { return in.last }
	first := func(_ float64, in span) float64 { return low(in.first, in) }
	behind := func(low edge, by float64) edge { return func(q float64, in span) float64 { return low(q, in) + by } }
	type variant struct {
		what      string
		low, high edge
	}
	all := []variant{
		{"", low, own}, // the right one
		{"the mask is the wrong way round: a query sees its own key and those ahead alone", own, last},
		{"a decode step sees no key of the prompt", func(q float64, in span) float64 { return max(low(q, in), in.prompt) }, own},
		{"a query sees its own key alone", own, own},
	}
	if window > 0 {
		all = append(all,
			variant{"the window has no end ahead: keys ahead are seen", low, last},
			variant{"all queries of a pass have the window of the first: it is too long for the others", first, own})
		for _, by := range []float64{1, -1, 2, -2} {
			all = append(all, variant{fmt.Sprintf("the window is moved by %g keys, both ends of it", by), behind(low, by), behind(own, by)})
		}
	}
	for n := 2; n <= most; n++ {
		size := float64(n)
		start := func(q float64, _ span) float64 { return math.Floor(q/size) * size }
		end := func(q float64, in span) float64 { return min(start(q, in)+size-1, in.last) }
		all = append(all,
			variant{fmt.Sprintf("tokens of a chunk of %d see each other: the mask is causal between chunks alone", n), low, end},
			variant{fmt.Sprintf("the last block of %d keys is left out where it is not full", n), low, func(q float64, in span) float64 {
				return min(q, math.Floor((in.last+1)/size)*size-1)
			}})
		if window == 0 {
			continue
		}
		of := func(q float64, in span) float64 { return low(start(q, in), in) }
		all = append(all,
			variant{fmt.Sprintf("the window is that of the first token of each chunk of %d: it is too long for the others", n), of, own},
			variant{fmt.Sprintf("the window is that of the first token of each chunk of %d, whose tokens see each other", n), of, end},
			variant{fmt.Sprintf("the window begins with the next whole block of %d keys", n), func(q float64, in span) float64 {
				return math.Ceil(low(q, in)/size) * size
			}, own})
	}
	for ring := 2; ring <= most; ring++ {
		left := func(end edge) edge {
			return func(q float64, in span) float64 { return max(low(q, in), end(q, in)-float64(ring)+1) }
		}
		all = append(all, variant{fmt.Sprintf("a ring of %d keys has lost keys that early queries of a pass should see: the pass is written first", ring), left(last), own})
		for n := 2; n < min(most, mostRings) && n <= ring; n++ {
			size := float64(n)
			end := func(q float64, in span) float64 { return min(math.Floor(q/size)*size+size-1, in.last) }
			what := fmt.Sprintf("a ring of %d keys has lost keys that early queries of a chunk of %d tokens should see: the chunk is written first", ring, n)
			if window > 0 && float64(ring) < size+window-1 { // else nothing is lost
				all = append(all, variant{what, left(end), own})
			}
		}
	}
	for _, v := range all {
		if err := between(v.what, v.low, v.high); err != nil {
			return err
		}
	}
	return try("a decode step sees the prompt and its own key alone", func(q, k float64, in span) bool {
		return k >= low(q, in) && k <= q && (k < in.prompt || k == q)
	})
}

// mostPattern is how many elements of masks are told apart before they are tried.
const mostPattern = 1 << 14

// pattern is what queries see in the masks of all entries; empty where they are large.
func (s *search) pattern(sees func(q, k float64, in span) bool) string {
	var key []byte
	for _, e := range s.entries {
		in := s.spanOf(e)
		for _, i := range masksOf(e) {
			shape := e.Program.Steps[i].Shape
			keys := shape[len(shape)-1]
			if len(shape) < 2 || len(key)+product(shape) > mostPattern {
				return ""
			}
			for row := range shape[len(shape)-2] {
				for column := range keys {
					if sees(in.first+float64(row), in.last+1-float64(keys-column), in) {
						key = append(key, 1)
					} else {
						key = append(key, 0)
					}
				}
			}
		}
	}
	return string(key)
}

// spanOf is what the edges of an entry's masks may depend on.
func (s *search) spanOf(e *Entry) span {
	pass := s.m.Passes[e.Node.Pass]
	return span{float64(pass.Past), float64(pass.Past + pass.Tokens - 1), float64(s.m.Passes[0].Tokens)}
}

// spanned has other masks, in which queries see what the edges of a pass let them see.
func (s *search) spanned(e *Entry, sees func(q, k float64, in span) bool) *program.Edited {
	in := s.spanOf(e)
	return s.masking(e, func(q, k float64, _, _ int, _ bool) bool { return sees(q, k, in) })
}
