package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/order"
)

// looker looks at one tensor in full.
type looker struct {
	t       *capture.Trace
	rec     capture.Record
	o       *Options
	letters string   // the roles of the axes, as an entry of the order has them; empty where they are not known
	axes    []string // in words
	entry   *Entry

	source source
	index  *slice // what --slice asks for; nil for nothing
}

func look(ctx context.Context, t *capture.Trace, r capture.Record, o *Options) (*Tensor, error) {
	x := &looker{t: t, rec: r, o: o, source: sourceOf(ctx, t, r)}
	x.know()
	numbers, err := x.axesWanted()
	if err != nil {
		return nil, err
	}
	if x.index, err = x.sliceWanted(); err != nil {
		return nil, err
	}
	out := &Tensor{Line: lineOf(r), Axes: x.axes, Entry: x.entry, Passes: otherPasses(t, r)}
	if out.Logits, err = x.logits(); err != nil {
		return nil, err
	}
	if out.Values, err = x.values(); err != nil {
		return nil, err
	}
	return out, x.measure(out, numbers)
}

// know finds out what the file and the order say about the tensor.
func (x *looker) know() {
	letters, rank := strings.ReplaceAll(x.t.Manifest().Axes[x.rec.Name], " ", ""), len(x.rec.Shape)
	if x.o.Order != nil {
		if e, ok := x.o.Order.Lookup(x.rec.Name); ok {
			if letters == "" {
				letters = e.Axes
			}
			x.entry = &Entry{Index: x.o.Order.Index(e.Name), Entries: len(x.o.Order.Entries), Layer: e.Layer, Level: e.Level}
			if e.Op != nil {
				x.entry.Op = e.Op.Kind()
			}
		}
	}
	if len(letters) == rank {
		x.letters = letters
	}
	x.axes = make([]string, rank)
	for i := range x.axes {
		x.axes[i] = measure.AxisName(x.letters, i)
	}
}

// role is that of axis i, 0 where it is not known.
func (x *looker) role(i int) byte {
	if x.letters == "" {
		return 0
	}
	return x.letters[i]
}

// survey reads the tensor several times: once for everything but the percentiles' ranges.
func (x *looker) measure(out *Tensor, numbers []int) error {
	var axes []*byAxis
	for _, n := range numbers {
		axes = append(axes, newByAxis(x.source, n, x.axes[n]))
	}
	var columns *channels
	if x.hasChannels() {
		columns = newChannels(x.source)
	}
	m, err := survey(x.source, !x.rec.DType.Float(), func(at int64, e []float64) {
		for _, a := range axes {
			a.add(at, e)
		}
		if columns != nil {
			columns.add(at, e)
		}
	})
	if err != nil {
		return err
	}
	out.Line.Stats, out.Percentiles, out.Histogram = &m.stats, m.percentiles, m.histogram
	for _, a := range axes {
		out.ByAxis = append(out.ByAxis, a.result())
	}
	if columns != nil {
		out.Channels = columns.result(x.axes[len(x.axes)-1], x.o.top())
	}
	return nil
}

// hasChannels reports whether the last axis counts features, or belongs to a tensor of floats without known axes.
func (x *looker) hasChannels() bool {
	last := len(x.rec.Shape) - 1
	if last < 1 || !x.rec.DType.Float() || x.rec.Shape[last] < 2 || x.rec.Shape[last] > maxChannels {
		return false
	}
	role := x.role(last)
	return role == order.AxisChannel || role == 0 && !x.isLogits()
}

// measured is what there is to know about any source.
type measured struct {
	stats       Stats
	percentiles []Percentile
	histogram   *Histogram
}

// survey reads a source once for the statistics and the first digits of the percentiles, then for further digits, then for the histogram. It
// passes the elements of the first round to the callback.
func survey(s source, integers bool, beside func(at int64, x []float64)) (m measured, err error) {
	sum, ranks := newSummary(s), newSelector(measure.Elements(s.shape), s.bits)
	err = s.each(func(at int64, x []float64) error {
		ranks.count(x, s.mask)
		beside(at, x)
		return sum.add(at, x) // the last: it overwrites them
	})
	if err != nil {
		return m, err
	}
	m.stats = sum.stats()
	n := m.stats.Finite
	for ranks.next(n) {
		err = s.each(func(_ int64, x []float64) error {
			ranks.count(x, s.mask)
			return nil
		})
		if err != nil {
			return m, err
		}
	}
	if n == 0 {
		return m, nil
	}
	m.percentiles = ranks.percentiles(n)
	m.histogram = newHistogram(&m.stats, m.percentiles, integers)
	return m, s.each(func(_ int64, x []float64) error {
		m.histogram.count(x, s.mask)
		return nil
	})
}

// subtract is the difference of two tensors; nil where the shapes differ.
func subtract(ctx context.Context, a, b *capture.Trace, recs [2]capture.Record, tensors []Tensor) (*Difference, error) {
	if !slices.Equal(recs[0].Shape, recs[1].Shape) {
		return nil, nil
	}
	integers := !recs[0].DType.Float() && !recs[1].DType.Float()
	m, err := survey(differenceOf(ctx, a, b, recs[0], recs[1]), integers, func(int64, []float64) {})
	if err != nil {
		return nil, err
	}
	d := &Difference{Stats: m.stats, Percentiles: m.percentiles, Histogram: m.histogram}
	if d.Metrics, err = measure.Tensors(ctx, a, b, recs[0], recs[1]); err != nil {
		return nil, err
	}
	for i := range d.Metrics.Axes {
		x := &d.Metrics.Axes[i]
		x.Axis = tensors[0].Axes[x.Number]
	}
	if v, w := tensors[0].Values, tensors[1].Values; v != nil && w != nil {
		d.Values = v.minus(w)
	}
	return d, nil
}

// otherPasses are the passes that have the name too, as ranges: "1-6".
func otherPasses(t *capture.Trace, r capture.Record) string {
	var passes capture.Ranges
	for _, other := range t.Records() {
		if other.Name != r.Name || other.Firing != r.Firing || other.Pass == r.Pass {
			continue
		}
		if last := len(passes) - 1; last >= 0 && passes[last].To == other.Pass-1 {
			passes[last].To = other.Pass
		} else {
			passes = append(passes, capture.Range{From: other.Pass, To: other.Pass})
		}
	}
	return passes.String()
}

// OptionError is an option that the file does not fit, or that cannot be understood, with what to do about it.
type OptionError struct {
	error
	hint string
}

// Hint says what to do.
func (e *OptionError) Hint() string { return e.hint }

// Unwrap returns the error without the hint.
func (e *OptionError) Unwrap() error { return e.error }

func optionError(err error, format string, args ...any) error {
	return &OptionError{err, fmt.Sprintf(format, args...)}
}
