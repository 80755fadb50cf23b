package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/measure"
)

// difference is the column of the difference of two tensors.
const difference = "A - B"

// pair writes two tensors side by side.
func (p *inspection) pair(r *inspect.Result) {
	a, b, d := &r.Tensors[0], &r.Tensors[1], r.Difference
	p.blank()
	p.Line("%s", a.Line.Key)
	if b.Line.Key != a.Line.Key {
		p.Line("%s", b.Line.Key)
	}
	header := append(texts(""), numbers("A", "B")...)
	if d != nil {
		header = append(header, numbers(difference)...)
	}
	rows := [][]string{
		{"shape", sizes(a.Line.Shape), sizes(b.Line.Shape)},
		{"dtype", a.Line.DType, b.Line.DType},
	}
	stats := []*inspect.Stats{a.Line.Stats, b.Line.Stats}
	percentiles := [][]inspect.Percentile{a.Percentiles, b.Percentiles}
	if d != nil {
		stats, percentiles = append(stats, &d.Stats), append(percentiles, d.Percentiles)
	}
	dtype := a.Line.DType
	if b.Line.DType != dtype {
		dtype = "" // of which the difference has neither
	}
	rows = append(rows, elements(stats)...)
	rows = append(rows, moments(stats)...)
	rows = append(rows, ranks(percentiles)...)
	p.table(header, rows)
	if d == nil {
		return
	}
	p.metrics(d.Metrics)
	p.histogram(d.Histogram)
	for i := range a.ByAxis {
		p.byAxisOfBoth(&a.ByAxis[i], &b.ByAxis[i])
	}
	p.logits("A: next token", a.Logits)
	p.logits("B: next token", b.Logits)
	if d.Values != nil {
		p.values("A", a.Values, a.Line.DType)
		p.values("B", b.Values, b.Line.DType)
		p.values(difference, d.Values, dtype)
	}
}

// byAxisOfBoth writes the statistics of each index of an axis, which both tensors have.
func (p *inspection) byAxisOfBoth(a, b *inspect.Axis) {
	rows := make([][]string, min(len(a.Slices), len(b.Slices)))
	for i := range rows {
		x, y := &a.Slices[i], &b.Slices[i]
		rows[i] = append([]string{strconv.Itoa(i)}, figures(4, x.Mean, y.Mean, x.Std, y.Std, x.RMS, y.RMS)...)
	}
	p.table(numbers("by "+a.Axis, "mean A", "mean B", "std A", "std B", "rms A", "rms B"), rows)
}

// elements returns rows with the number of elements of each sort (masked, NaN, zero), one column per tensor. A sort without elements in every
// tensor has no row.
func elements(all []*inspect.Stats) (rows [][]string) {
	for i, label := range []string{"elements", "masked", "NaN", "+Inf", "-Inf", "zero"} {
		row, some := []string{label}, false
		for _, s := range all {
			n := [...]int64{s.Elements, s.Masked, s.NaN, s.Inf, s.NInf, s.Zeros}[i]
			row, some = append(row, strconv.FormatInt(n, 10)), some || n > 0
		}
		if some {
			rows = append(rows, row)
		}
	}
	return rows
}

// moments are the lines of the statistics of several tensors.
func moments(all []*inspect.Stats) [][]string {
	rows := [][]string{{"min"}, {"max"}, {"mean"}, {"std"}, {"rms"}}
	for _, s := range all {
		for i, text := range figures(6, s.Min, s.Max, s.Mean, s.Std, s.RMS) {
			rows[i] = append(rows[i], text)
		}
	}
	return rows
}

// ranks returns rows with percentiles, one column per tensor. A tensor without percentiles has "-".
func ranks(all [][]inspect.Percentile) [][]string {
	var rows [][]string
	for side, list := range all {
		for i, q := range list {
			if i == len(rows) {
				row := slices.Repeat([]string{"-"}, len(all)+1)
				row[0] = strconv.FormatFloat(q.P, 'g', -1, 64) + "%"
				rows = append(rows, row)
			}
			rows[i][side+1] = figure(q.Value, 6)
		}
	}
	return rows
}

// metrics writes how far the tensors are apart, by the numbers that a comparison has of them.
func (p *inspection) metrics(m *measure.Metrics) {
	p.blank()
	if m.Worst == nil {
		p.field("max abs", "%s", rough(m.MaxAbs))
	} else {
		p.field("max abs", "%s at %v: A %s, B %s", rough(m.MaxAbs), m.Worst, figure(m.LocalAt, 9), figure(m.ReferenceAt, 9))
	}
	if !math.IsNaN(float64(m.RelL2)) { // integers have none
		p.field("relative L2", "%s, of B", rough(m.RelL2))
		p.field("cosine", "%s", parallel(m.Cosine))
		p.field("scale", "%s: A is nearest to B times this", figure(m.Scale, 8))
	}
	ulp := ""
	if m.MaxULP > 0 {
		ulp = fmt.Sprintf(", by up to %d units in the last place of the coarser dtype", m.MaxULP)
	}
	p.field("unequal", "%d of %d%s", m.Unequal, m.Elements, ulp)
	for _, a := range m.Axes {
		if a.RelL2 != 0 {
			p.worstOf(a, "")
		}
	}
	if m.NonFinite > 0 {
		p.field("non-finite", "on one side only in %s, the first at %v", count(int(m.NonFinite), "element", "elements"), m.NonFiniteAt)
	}
}
