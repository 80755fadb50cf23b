package diagnose

import (
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

// edged tries masks in which each query sees the keys from one edge to another: windows that begin with a chunk or have no end ahead, keys that a ring has lost,
// blocks that are not full, and masks of the prompt or of decode steps. Most is the largest size of a chunk. The function try takes the mistake of a mask, the
// zero value for the right mask, and a function that reports whether a query sees a key.
func (s *search) edged(window float64, most int, try func(m Mistake, sees func(q, k float64, in span) bool) error) error {
	own := func(q float64, _ span) float64 { return q }
	low := func(float64, span) float64 { return 0 }
	if window > 0 {
		low = func(q float64, _ span) float64 { return q - window + 1 }
	}
	between := func(m Mistake, low, high edge) error {
		return try(m, func(q, k float64, in span) bool { return k >= low(q, in) && k <= high(q, in) })
	}
	last := func(_ float64, in span) float64 { return in.last }
	first := func(_ float64, in span) float64 { return low(in.first, in) }
	behind := func(low edge, by float64) edge { return func(q float64, in span) float64 { return low(q, in) + by } }
	type variant struct {
		m         Mistake
		low, high edge
	}
	all := []variant{
		{Mistake{}, low, own}, // the right one
		{Mistake{Kind: "mask.reversed"}, own, last},
		{Mistake{Kind: "mask.prompt-masked"}, func(q float64, in span) float64 { return max(low(q, in), in.prompt) }, own},
		{Mistake{Kind: "mask.own-key-alone"}, own, own},
	}
	if window > 0 {
		all = append(all,
			variant{Mistake{Kind: "mask.window-no-end"}, low, last},
			variant{Mistake{Kind: "mask.window-of-first-query"}, first, own})
		for _, by := range []float64{1, -1, 2, -2} {
			all = append(all, variant{Mistake{Kind: "mask.window-moved", N: int(by)}, behind(low, by), behind(own, by)})
		}
	}
	for n := 2; n <= most; n++ {
		size := float64(n)
		start := func(q float64, _ span) float64 { return math.Floor(q/size) * size }
		end := func(q float64, in span) float64 { return min(start(q, in)+size-1, in.last) }
		all = append(all,
			variant{Mistake{Kind: "mask.chunks", N: n}, low, end},
			variant{Mistake{Kind: "mask.last-block-left-out", N: n}, low, func(q float64, in span) float64 {
				return min(q, math.Floor((in.last+1)/size)*size-1)
			}})
		if window == 0 {
			continue
		}
		of := func(q float64, in span) float64 { return low(start(q, in), in) }
		all = append(all,
			variant{Mistake{Kind: "mask.window-of-chunk", N: n}, of, own},
			variant{Mistake{Kind: "mask.window-of-chunk-no-end", N: n}, of, end},
			variant{Mistake{Kind: "mask.window-next-block", N: n}, func(q float64, in span) float64 {
				return math.Ceil(low(q, in)/size) * size
			}, own})
	}
	for ring := 2; ring <= most; ring++ {
		left := func(end edge) edge {
			return func(q float64, in span) float64 { return max(low(q, in), end(q, in)-float64(ring)+1) }
		}
		all = append(all, variant{Mistake{Kind: "mask.ring", N: ring}, left(last), own})
		for n := 2; n < min(most, mostRings) && n <= ring; n++ {
			size := float64(n)
			end := func(q float64, in span) float64 { return min(math.Floor(q/size)*size+size-1, in.last) }
			if window > 0 && float64(ring) < size+window-1 { // else nothing is lost
				all = append(all, variant{Mistake{Kind: "mask.ring-of-chunk", N: ring, M: n}, left(end), own})
			}
		}
	}
	for _, v := range all {
		if err := between(v.m, v.low, v.high); err != nil {
			return err
		}
	}
	return try(Mistake{Kind: "mask.step-sees-prompt-alone"}, func(q, k float64, in span) bool {
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
