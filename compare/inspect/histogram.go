package inspect

import (
	"github.com/tracediff/tracediff/compare/measure"
)

// Histogram counts elements in bins of equal width. If the whole range is more than ten times as wide as the middle 98 percent, the bins cover
// the middle, and Below and Above count the rest: otherwise one outlier would leave all others in one bin. Equal elements, or neighbouring
// floats, share one bin. Integers with no more values than bins have a bin for each value.
type Histogram struct {
	Below int64 `json:"below,omitempty"`
	Above int64 `json:"above,omitempty"`
	Bins  []Bin `json:"bins"`
}

// Bin has the elements from From up to To. Only the last bin includes To.
type Bin struct {
	From  measure.Number `json:"from"`
	To    measure.Number `json:"to"`
	Count int64          `json:"count"`
}

// maxBins is what a person takes in at a glance.
const maxBins = 16

// crowded is the ratio of the range to the middle of the elements above which the range is not shown as a whole.
const crowded = 10

// newHistogram lays out the bins for elements with known statistics and percentiles.
func newHistogram(s *Stats, p []Percentile, integers bool) *Histogram {
	lo, hi := float64(s.Min), float64(s.Max)
	if integers && hi-lo < maxBins && max(-lo, hi) < 1<<53 { // beyond it, the next integer is no float64
		h := &Histogram{}
		for v := lo; v <= hi; v++ {
			h.Bins = append(h.Bins, Bin{From: measure.Number(v), To: measure.Number(v + 1)})
		}
		return h
	}
	if low, high := percentile(p, 1), percentile(p, 99); low < high && hi/crowded-lo/crowded > high-low {
		lo, hi = low, high
	}
	h := &Histogram{Bins: make([]Bin, maxBins)}
	for i := range h.Bins {
		h.Bins[i] = Bin{From: edge(lo, hi, i), To: edge(lo, hi, i+1)}
		if h.Bins[i].From >= h.Bins[i].To { // between neighbouring floats there is nothing to be cut
			return &Histogram{Bins: []Bin{{From: measure.Number(lo), To: measure.Number(hi)}}}
		}
	}
	return h
}

// edge is the i-th of the edges from lo to hi. Both ends are exact, and no sum overflows on the way.
func edge(lo, hi float64, i int) measure.Number {
	part := float64(i) / maxBins
	return measure.Number(float64(lo*(1-part)) + float64(hi*part))
}

func percentile(list []Percentile, p float64) float64 {
	for _, q := range list {
		if q.P == p {
			return float64(q.Value)
		}
	}
	panic("no such percentile")
}

// count takes in elements.
func (h *Histogram) count(x []float64, mask float64) {
	last := len(h.Bins) - 1
	lo, hi := float64(h.Bins[0].From), float64(h.Bins[last].To)
	perBin := float64(len(h.Bins)) / (hi/2 - lo/2) / 2 // +Inf for a bin without a width
	for _, v := range x {
		switch {
		case !finite(v) || v <= mask:
		case v < lo:
			h.Below++
		case v > hi:
			h.Above++
		case lo == hi:
			h.Bins[0].Count++
		default:
			// The product may be rounded over an edge; the edges decide.
			i := max(0, min(int((v-lo)*perBin), last))
			for i > 0 && v < float64(h.Bins[i].From) {
				i--
			}
			for i < last && v >= float64(h.Bins[i+1].From) {
				i++
			}
			h.Bins[i].Count++
		}
	}
}
