package picture

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/internal/tracekey"
	"github.com/tracediff/tracediff/order"
)

// Values is one tensor of a trace without a reference.
type Values struct {
	Key   string
	Name  string // without its pass
	Pass  int
	Layer int // −1 outside the layers
	Shape []int
	DType string
	Stats measure.Stats
	RMS   float64 // of the finite, unmasked elements; NaN without any
}

// Trace draws every tensor of a trace, the tensors named by odd large. list names the axes and may be nil. The error is a read error, or
// ctx's.
func (s *Set) Trace(ctx context.Context, t *capture.Trace, list *order.List, odd func(key string) bool) ([]Values, error) {
	var all []Values
	for _, r := range t.Records() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := Values{Key: r.Key, Name: r.Key, Pass: r.Pass, Layer: layerOf(r.Name), Shape: r.Shape, DType: r.DType.String()}
		if pass, rest, _ := tracekey.CutPass(r.Key); pass == r.Pass {
			v.Name = rest
		}
		m, err := t.Moments(r)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", r.Key, err)
		}
		v.Stats = measure.StatsOf(&m, 1)
		axes, masked := t.Manifest().Axes[r.Name], strings.Contains(r.Name, "mask")
		if list != nil {
			if e, ok := list.Lookup(r.Name); ok {
				masked = e.Compare != order.All
				if axes == "" {
					axes = e.Axes
				}
			}
		}
		if axes = strings.ReplaceAll(axes, " ", ""); len(axes) != len(r.Shape) {
			axes = ""
		}
		limit := math.Inf(-1)
		if masked && r.DType.Float() {
			limit = measure.MaskLimit(r.DType, t.Manifest().DType)
		}
		v.RMS = math.Hypot(float64(v.Stats.Mean), float64(v.Stats.Std))
		if masked { // one mask outweighs all else
			v.RMS = 1
		}
		p, err := drawOne(measure.Whole(t, r), axes, limit, v.RMS)
		if err != nil {
			return nil, fmt.Errorf("drawing %s: %w", r.Key, err)
		}
		if masked {
			v.RMS = float64(p.Map.Top)
		}
		s.Put(r.Key, p, odd(r.Key))
		all = append(all, v)
	}
	return all, nil
}

// layerOf is the layer that a name says; −1 where it says none.
func layerOf(name string) int {
	if n := order.NameOf(name).Layer(); n < 1<<16 {
		return n
	}
	return -1
}
