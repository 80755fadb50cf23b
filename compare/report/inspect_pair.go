package report

import (
	"fmt"
	"strconv"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/inspect"
)

// pair writes two tensors side by side.
func (p *inspection) pair(r *inspect.Result) {
	a, b, d := &r.Tensors[0], &r.Tensors[1], r.Difference
	p.blank()
	p.line("%s", a.Line.Key)
	if b.Line.Key != a.Line.Key {
		p.line("%s", b.Line.Key)
	}
	header := []string{"", "A", "B"}
	if d != nil {
		header = append(header, "A - B")
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
	rows = append(rows, sideBySide(stats, percentiles)...)
	p.table(columns(1, len(header)-1), header, rows)
	if d == nil {
		return
	}
	p.metrics(d.Metrics)
	p.histogram(d.Histogram)
	if d.Values != nil {
		p.values("A", a.Values)
		p.values("B", b.Values)
		p.values("A - B", d.Values)
	}
}

// sideBySide are the lines of statistics of several tensors, of each a column.
func sideBySide(stats []*inspect.Stats, percentiles [][]inspect.Percentile) [][]string {
	var rows [][]string
	row := func(label string, cell func(i int) string) {
		cells := []string{label}
		for i := range stats {
			cells = append(cells, cell(i))
		}
		rows = append(rows, cells)
	}
	for _, c := range []struct {
		label string
		of    func(s *inspect.Stats) int64
		shown bool
	}{
		{"elements", func(s *inspect.Stats) int64 { return s.Elements }, true},
		{"masked", func(s *inspect.Stats) int64 { return s.Masked }, false},
		{"NaN", func(s *inspect.Stats) int64 { return s.NaN }, false},
		{"+Inf", func(s *inspect.Stats) int64 { return s.Inf }, false},
		{"-Inf", func(s *inspect.Stats) int64 { return s.NInf }, false},
		{"zero", func(s *inspect.Stats) int64 { return s.Zeros }, true},
	} {
		shown := c.shown
		for _, s := range stats {
			shown = shown || c.of(s) > 0
		}
		if shown {
			row(c.label, func(i int) string { return strconv.FormatInt(c.of(stats[i]), 10) })
		}
	}
	for _, n := range []struct {
		label string
		of    func(s *inspect.Stats) compare.Number
	}{
		{"min", func(s *inspect.Stats) compare.Number { return s.Min }},
		{"max", func(s *inspect.Stats) compare.Number { return s.Max }},
		{"mean", func(s *inspect.Stats) compare.Number { return s.Mean }},
		{"std", func(s *inspect.Stats) compare.Number { return s.Std }},
		{"rms", func(s *inspect.Stats) compare.Number { return s.RMS }},
	} {
		row(n.label, func(i int) string { return figure(n.of(stats[i]), 6) })
	}
	for at := range max(len(percentiles[0]), len(percentiles[1])) {
		label := ""
		row("", func(i int) string {
			if at >= len(percentiles[i]) {
				return "-"
			}
			label = strconv.FormatFloat(percentiles[i][at].P, 'g', -1, 64) + "%"
			return figure(percentiles[i][at].Value, 6)
		})
		rows[len(rows)-1][0] = label
	}
	return rows
}

// metrics writes how far the tensors are apart, by the numbers that a comparison has of them.
func (p *inspection) metrics(m *compare.Metrics) {
	p.blank()
	if m.Worst == nil {
		p.field("max abs", "%s", number(m.MaxAbs))
	} else {
		p.field("max abs", "%s at %v: A %s, B %s", number(m.MaxAbs), m.Worst, figure(m.LocalAt, 9), figure(m.ReferenceAt, 9))
	}
	p.field("relative L2", "%s, of B", number(m.RelL2))
	p.field("cosine", "%s", parallel(m.Cosine))
	p.field("scale", "%s: A is nearest to B times this", figure(m.Scale, 8))
	p.field("unequal", "%d of %d, up to %d units in the last place of the coarser dtype", m.Unequal, m.Elements, m.MaxULP)
	for _, a := range m.Axes {
		p.field("worst "+a.Axis, "%d of %d: relative L2 %s", a.Worst, a.Size, number(a.RelL2))
	}
	if m.NonFinite > 0 {
		p.field("non-finite", "%s", fmt.Sprintf("on one side alone in %s, the first at %v", count(int(m.NonFinite), "element", "elements"), m.NonFiniteAt))
	}
}
