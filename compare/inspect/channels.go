package inspect

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/container"
)

// Channels are the indexes of the last axis with the largest root mean square: where a model keeps its massive activations,
// and where a quantization of the whole row loses the rest of it.
type Channels struct {
	Axis   string         `json:"axis"`   // the role of the last axis
	Size   int            `json:"size"`   // how many there are
	Median measure.Number `json:"median"` // of the root mean squares, of an even number the lower one
	Top    []Channel      `json:"top"`    // the largest first, of equal ones the lower index
}

// Channel is one index of the last axis, over all others.
type Channel struct {
	Index int            `json:"index"`
	RMS   measure.Number `json:"rms"`   // √(Σx² / n) of its finite elements
	Ratio measure.Number `json:"ratio"` // to the median
	Peak  measure.Number `json:"peak"`  // the element that is farthest from 0
	At    []int          `json:"at"`    // where that is
}

// maxChannels bounds the channels that are summed one by one, at 32 bytes each: twice the largest vocabulary. A longer axis gets a note in
// place of a list.
const maxChannels = 1 << 19

// channels adds up the indexes of the last axis.
type channels struct {
	shape   []int
	mask    float64
	sums    []channelSum
	current int // the index of the element that comes next
}

type channelSum struct {
	squares, peak float64
	n, at         int64
}

func newChannels(s source) *channels {
	return &channels{shape: s.shape, mask: s.mask, sums: make([]channelSum, s.shape[len(s.shape)-1])}
}

func (c *channels) add(at int64, x []float64) {
	for i, v := range x {
		s := &c.sums[c.current]
		if c.current++; c.current == len(c.sums) {
			c.current = 0
		}
		if !finite(v) || v <= c.mask {
			continue
		}
		s.squares += float64(v * v)
		s.n++
		if math.Abs(v) > math.Abs(s.peak) || s.n == 1 {
			s.peak, s.at = v, at+int64(i)
		}
	}
}

func (c *channels) result(role string, top int) *Channels {
	all := make([]Channel, 0, len(c.sums))
	for i, s := range c.sums {
		if s.n > 0 {
			all = append(all, Channel{Index: i, RMS: measure.Number(math.Sqrt(s.squares / float64(s.n))), Peak: measure.Number(s.peak)})
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b Channel) int { return cmp.Compare(b.RMS, a.RMS) })
	r := &Channels{Axis: role, Size: len(c.sums), Median: all[len(all)/2].RMS, Top: all[:min(top, len(all))]}
	for i := range r.Top {
		t := &r.Top[i]
		t.Ratio, t.At = t.RMS/r.Median, container.Indexes(c.sums[t.Index].at, c.shape)
	}
	return r
}
