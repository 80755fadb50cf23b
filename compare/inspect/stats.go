package inspect

import (
	"math"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/lanes"
)

// Stats are the statistics of a tensor, or of a part, over its finite, unmasked elements; NaN without any. Sums are a comparison's sums, the
// same to the bit on every machine.
type Stats struct {
	Elements int64 `json:"elements"`
	Finite   int64 `json:"finite"` // that are not masked: what the statistics are of
	Masked   int64 `json:"masked,omitempty"`
	NaN      int64 `json:"nan,omitempty"`
	Inf      int64 `json:"inf,omitempty"`     // +Inf
	NInf     int64 `json:"neg_inf,omitempty"` // −Inf
	Zeros    int64 `json:"zeros,omitempty"`   // of either sign

	Min  measure.Number `json:"min"`
	Max  measure.Number `json:"max"`
	Mean measure.Number `json:"mean"` // Σx / n
	Std  measure.Number `json:"std"`  // √(Σ(x − mean)² / n), the population's
	RMS  measure.Number `json:"rms"`  // √(Σx² / n)

	MinAt []int `json:"min_at,omitempty"` // the first index that has it; not of parts
	MaxAt []int `json:"max_at,omitempty"`
}

// tally adds up statistics.
type tally struct {
	moments       lanes.Moments
	masked, zeros int64
}

// add takes in elements, at most a strip of them, and overwrites them.
func (t *tally) add(x []float64, mask float64) {
	hidden := int64(0)
	for i, v := range x {
		if v == 0 {
			t.zeros++
		} else if masked(v, mask) {
			hidden++
			x[i] = math.NaN() // which has no part in moments
		}
	}
	t.moments.Add(x)
	t.moments.NaN -= hidden
	t.masked += hidden
}

func (t *tally) merge(o *tally) {
	t.moments.Merge(&o.moments)
	t.masked += o.masked
	t.zeros += o.zeros
}

func (t *tally) stats() Stats {
	m, s := &t.moments, t.moments.Summary(1)
	return Stats{
		Elements: m.N + m.NaN + m.PosInf + m.NegInf + t.masked, Finite: m.N,
		Masked: t.masked, NaN: m.NaN, Inf: m.PosInf, NInf: m.NegInf, Zeros: t.zeros,
		Min: measure.Number(s.Min), Max: measure.Number(s.Max), Mean: measure.Number(s.Mean), Std: measure.Number(s.Std),
		RMS: measure.Number(math.Hypot(s.Mean, s.Std)), // Σx²/n is mean² + std², and neither term cancels
	}
}

// summary is the tally of a whole tensor, with where its extremes are.
type summary struct {
	shape        []int
	mask         float64
	block, all   tally
	least, most  float64
	minAt, maxAt int64
}

func newSummary(s source) *summary {
	return &summary{shape: s.shape, mask: s.mask, least: math.Inf(1), most: math.Inf(-1)}
}

// add adds the next strip, and overwrites it. Blocks are merged as in capture.Trace.Moments.
func (s *summary) add(at int64, x []float64) error {
	if at%lanes.Block == 0 {
		s.all.merge(&s.block)
		s.block = tally{}
	}
	for i, v := range x {
		if v < s.least && v >= -math.MaxFloat64 && !masked(v, s.mask) {
			s.least, s.minAt = v, at+int64(i)
		}
		if v > s.most && v <= math.MaxFloat64 && !masked(v, s.mask) {
			s.most, s.maxAt = v, at+int64(i)
		}
	}
	s.block.add(x, s.mask)
	return nil
}

// stats are final: nothing is added after them.
func (s *summary) stats() Stats {
	s.all.merge(&s.block)
	s.block = tally{}
	stats := s.all.stats()
	if stats.Finite > 0 && len(s.shape) > 0 {
		stats.MinAt, stats.MaxAt = container.Indexes(s.minAt, s.shape), container.Indexes(s.maxAt, s.shape)
	}
	return stats
}
