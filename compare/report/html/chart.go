package html

import (
	"fmt"
	"math"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/compare/report/words"
)

// The chart of the error along the order, in the units of its viewBox.
const (
	chartWidth, chartHeight = 1120, 250
	chartLeft, chartRight   = 62, 12
	chartTop, chartBottom   = 22, 34
	chartLowest             = 1e-10 // smaller errors are drawn there
)

// chart is the relative L2 of every entry in the order of the walk, on a logarithmic scale, as the paths of an SVG.
type chart struct {
	Width, Height int
	Left, Right   int // of the plot
	Top, Bottom   int
	Decades       []tick // horizontal lines
	Layers        []tick // where a layer or a pass begins
	Equal         string // ticks: no difference
	Within        string // dots: within the limit
	Past          string // dots: mismatches
	Drift         string // dots: past the limit, and no mismatch
	Broken        string // marks at the top: not finite, or of another shape
	Limit, Noise  string // lines
	First         *mark
	Said          string // the chart in words
	Start, Step   float64
	Rows          int
}

type tick struct {
	At   float64
	Text string
}

// mark is the first divergence.
type mark struct {
	At     float64
	Anchor string // of its text
	Text   string
}

// newChart draws the errors of all rows. It returns nil for a comparison of one trace with its own inputs, and for a result without rows.
func newChart(res *compare.Result) *chart {
	if res.Alone || len(res.Rows) == 0 {
		return nil
	}
	c := &chart{
		Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartWidth - chartRight, Top: chartTop, Bottom: chartHeight - chartBottom,
		Rows: len(res.Rows),
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range res.Rows {
		for _, x := range []float64{words.ErrorAt(&res.Rows[i]), limitAt(&res.Rows[i])} {
			if x > 0 && measure.Finite(x) {
				low, high = min(low, max(x, chartLowest)), max(high, x)
			}
		}
	}
	if low > high { // nothing differs, and nothing has a limit
		low, high = 1e-8, 1
	}
	from, to := math.Floor(math.Log10(low))-1, math.Ceil(math.Log10(high))
	y := func(x float64) float64 {
		at := (math.Log10(max(x, chartLowest)) - from) / (to - from)
		return float64(c.Bottom) - min(at, 1)*float64(c.Bottom-c.Top)
	}
	every := max(1, int(math.Ceil((to-from)/8)))
	for d := int(from) + 1; d <= int(to); d += every {
		c.Decades = append(c.Decades, tick{round(y(math.Pow(10, float64(d)))), fmt.Sprintf("1e%d", d)})
	}
	c.Start, c.Step = float64(c.Left)+3, float64(c.Right-c.Left-6)/float64(max(len(res.Rows)-1, 1))
	c.paths(res, y)
	c.layers(res)
	c.Said = words.Curve(res)
	return c
}

// x is where row i is drawn.
func (c *chart) x(i int) float64 { return c.Start + float64(i)*c.Step }

// paths draws dots as lines of length zero with round ends. If a page has fewer horizontal places than rows, dots at the same place are
// drawn once.
func (c *chart) paths(res *compare.Result, y func(float64) float64) {
	var equal, within, past, drift, broken, limit, noise strings.Builder
	seen := map[string]bool{}
	dot := func(b *strings.Builder, i int, at float64) {
		mark := fmt.Sprintf("M%.4g %.4gh0", c.x(i), at)
		if key := fmt.Sprintf("%p%s", b, mark); !seen[key] {
			seen[key] = true
			b.WriteString(mark)
		}
	}
	lastLimit, lastNoise, end := "", "", 0.0
	for i := range res.Rows {
		r := &res.Rows[i]
		e, l := words.ErrorAt(r), limitAt(r)
		switch {
		case r.Metrics == nil || math.IsInf(e, 0) || r.Metrics.NonFinite > 0:
			dot(&broken, i, float64(c.Top)+4)
		case r.Verdict == compare.Mismatch && words.TakesPart(r):
			dot(&past, i, y(max(e, chartLowest)))
		case math.IsNaN(e): // no tolerance, and equal
		case e == 0:
			dot(&equal, i, float64(c.Bottom)-3)
		case l > 0 && e > l:
			dot(&drift, i, y(e))
		default:
			dot(&within, i, y(e))
		}
		if l > 0 && measure.Finite(l) {
			end = c.x(i)
			lastLimit = step(&limit, lastLimit, end, y(l))
			if n := noiseAt(r); n > 0 {
				lastNoise = step(&noise, lastNoise, end, y(n))
			}
		}
	}
	for _, line := range []*strings.Builder{&limit, &noise} {
		if line.Len() > 0 { // the last height goes on to the last entry
			fmt.Fprintf(line, "H%.5g", end)
		}
	}
	c.Equal, c.Within, c.Past, c.Drift, c.Broken = equal.String(), within.String(), past.String(), drift.String(), broken.String()
	c.Limit, c.Noise = limit.String(), noise.String()
}

// step goes on with a line that has one height an entry.
func step(b *strings.Builder, last string, x, y float64) string {
	at := fmt.Sprintf("%.4g", y)
	switch {
	case b.Len() == 0:
		fmt.Fprintf(b, "M%.5g %s", x, at)
	case at != last:
		fmt.Fprintf(b, "H%.5gV%s", x, at)
	default:
		return last
	}
	return at
}

// layers marks the first row of each layer and pass. A mark has its number if the text does not overlap the previous number.
func (c *chart) layers(res *compare.Result) {
	lastLayer, lastPass, lastText := -1, 0, -1e9
	for i := range res.Rows {
		r := &res.Rows[i]
		text := ""
		switch {
		case r.Pass != lastPass:
			text = fmt.Sprintf("pass %d", r.Pass)
		case r.Layer >= 0 && r.Layer != lastLayer:
			text = fmt.Sprint(r.Layer)
		}
		if r.Layer >= 0 {
			lastLayer = r.Layer
		}
		lastPass = r.Pass
		if text == "" {
			continue
		}
		at := c.x(i)
		if at-lastText < 8+6*float64(len(text)) {
			text = ""
		} else {
			lastText = at
		}
		c.Layers = append(c.Layers, tick{round(at), text})
	}
	if d := res.Divergence; d != nil {
		for i := range res.Rows {
			if res.Rows[i].Key() == d.Row.Key() {
				m := &mark{At: round(c.x(i)), Anchor: "start", Text: words.Clean(words.FirstDivergence + ": " + d.Row.Key())}
				if m.At > chartWidth/2 {
					m.Anchor = "end"
				}
				c.First = m
				return
			}
		}
	}
}

// limitAt is the limit on the whole tensor; 0 without such a limit.
func limitAt(r *compare.Row) float64 {
	if r.Gate == nil || len(r.Gate.Checks) == 0 || r.Gate.Checks[0].What != "tensor" {
		return 0
	}
	return float64(r.Gate.Checks[0].Limit)
}

// noiseAt is the noise floor if the limit is a multiple of a noise floor (From of [gate.Gate] says so), else 0.
func noiseAt(r *compare.Row) float64 {
	var times float64
	if n, _ := fmt.Sscanf(r.Gate.From, "%g x noise floor", &times); n != 1 || times <= 0 {
		return 0
	}
	return limitAt(r) / times
}

// round keeps a coordinate short.
func round(x float64) float64 { return math.Round(x*10) / 10 }
