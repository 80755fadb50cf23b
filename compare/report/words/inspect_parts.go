package words

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/measure"
)

func (p *inspection) percentiles(list []inspect.Percentile) {
	if len(list) == 0 {
		return
	}
	header, row := texts("percentile"), []string{""}
	for _, q := range list {
		header, row = append(header, numbers(strconv.FormatFloat(q.P, 'g', -1, 64))...), append(row, figure(q.Value, 3))
	}
	p.table(header, [][]string{row})
}

// barWidth is the length of the longest bar. With its bounds and its count, a line stays within 80 columns.
const barWidth = 36

func (p *inspection) histogram(h *inspect.Histogram) {
	if h == nil {
		return
	}
	most, last := max(1, h.Below, h.Above), len(h.Bins)-1
	for _, b := range h.Bins {
		most = max(most, b.Count)
	}
	var rows [][]string
	add := func(label string, n int64) {
		rows = append(rows, []string{label, strconv.FormatInt(n, 10), bar(n, most)})
	}
	if h.Below > 0 {
		add("below "+figure(h.Bins[0].From, 3), h.Below)
	}
	for _, b := range h.Bins {
		label := figure(b.From, 3)
		if b.To > b.From {
			label += " to " + figure(b.To, 3)
		}
		add(label, b.Count)
	}
	if h.Above > 0 {
		add("above "+figure(h.Bins[last].To, 3), h.Above)
	}
	p.table(append(numbers("from to", "elements"), texts("")...), rows)
}

// bar returns n/most of barWidth in '#'; "." for a count above 0 that rounds to an empty bar.
func bar(n, most int64) string {
	long := int(float64(n) / float64(most) * barWidth)
	if long == 0 && n > 0 {
		return "."
	}
	return strings.Repeat("#", long)
}

func (p *inspection) byAxis(a *inspect.Axis) {
	rows := make([][]string, len(a.Slices))
	for i := range a.Slices {
		s := &a.Slices[i]
		rows[i] = slices.Concat([]string{strconv.Itoa(i)}, figures(4, s.Min, s.Max, s.Mean, s.Std, s.RMS), []string{oddities(s)})
	}
	p.table(append(numbers("by "+a.Axis, "min", "max", "mean", "std", "rms"), texts("note")...), rows)
}

func (p *inspection) channels(c *inspect.Channels) {
	if c == nil {
		return
	}
	rows := make([][]string, len(c.Top))
	for i, t := range c.Top {
		rows[i] = []string{strconv.Itoa(t.Index), figure(t.RMS, 4), figure(t.Ratio, 3), figure(t.Peak, 4), fmt.Sprint(t.At)}
	}
	p.table(append(numbers("top "+c.Axis, "rms", "times the median", "peak"), texts("at")...), rows)
}

func (p *inspection) logits(title string, l *inspect.Logits) {
	if l == nil {
		return
	}
	header := append(numbers("rank", "id", "logit", "probability"), texts("text")...)
	rows := make([][]string, len(l.Top))
	shown := 4 // columns, without texts
	for i, t := range l.Top {
		rows[i] = []string{strconv.Itoa(i + 1), strconv.Itoa(t.ID), figure(t.Logit, 6), figure(t.Probability, 4), ""}
		if t.Text != nil {
			rows[i][4], shown = strconv.Quote(*t.Text), 5
		}
	}
	for i := range rows {
		rows[i] = rows[i][:shown]
	}
	p.blank()
	p.Line("%s, by row %v of %d; entropy %s nats", title, l.Row, l.Rows, figure(l.Entropy, 4))
	p.table(header[:shown], rows)
}

// values writes the last two axes as a table, once for each index of the others.
func (p *inspection) values(title string, v *inspect.Values, dtype string) {
	if v == nil {
		return
	}
	if v.Slice != "" {
		title += fmt.Sprintf(" [%s]", v.Slice)
	}
	p.blank()
	if len(v.Indexes) == 0 {
		text := ""
		if v.Texts != nil {
			text = " " + strconv.Quote(v.Texts[0])
		}
		p.Line("%s: %s%s", title, exactly(v.Values[0], dtype), text)
		return
	}
	p.Line("%s: %s, mean %s, std %s", title, count(len(v.Values), "value", "values"), figure(v.Stats.Mean, 6), figure(v.Stats.Std, 6))
	if len(v.Values) == 0 {
		return
	}
	if v.Texts != nil {
		p.tokens(v)
		return
	}
	axes := len(v.Indexes)
	across, down := v.Indexes[axes-1], []int{0}
	if axes > 1 {
		down = v.Indexes[axes-2]
	}
	each := len(across) * len(down)
	for n := 0; n < len(v.Values); n += each {
		if axes > 2 {
			p.blank()
			p.Line("%s", outer(v, n/each))
		}
		p.matrix(down, across, v.Values[n:n+each], dtype)
	}
}

// tokens writes a line for each token id, with its text.
func (p *inspection) tokens(v *inspect.Values) {
	across := v.Indexes[len(v.Indexes)-1]
	rows := make([][]string, len(v.Values))
	for i, id := range v.Values {
		rows[i] = []string{strconv.Itoa(across[i%len(across)]), strconv.FormatFloat(float64(id), 'f', 0, 64), strconv.Quote(v.Texts[i])}
	}
	p.table(append(numbers(v.Axes[len(v.Axes)-1], "id"), texts("text")...), rows)
}

// outer says where the n-th table of a slice lies.
func outer(v *inspect.Values, n int) string {
	parts := make([]string, len(v.Indexes)-2)
	for i := len(parts) - 1; i >= 0; i-- {
		size := len(v.Indexes[i])
		parts[i] = fmt.Sprintf("%s %d", v.Axes[i], v.Indexes[i][n%size])
		n /= size
	}
	return strings.Join(parts, ", ")
}

// matrix writes a table of values under the indexes of the tensor.
func (p *inspection) matrix(down, across []int, values []measure.Number, dtype string) {
	header := numbers("")
	for _, i := range across {
		header = append(header, numbers(strconv.Itoa(i))...)
	}
	rows := make([][]string, len(down))
	for r, i := range down {
		rows[r] = []string{strconv.Itoa(i)}
		for c := range across {
			rows[r] = append(rows[r], exactly(values[r*len(across)+c], dtype))
		}
	}
	p.table(header, rows)
}

// exactly writes an element's value. NaN is a value here, so "NaN" is written; in statistics NaN means undefined.
func exactly(n measure.Number, dtype string) string {
	if n != n {
		return "NaN"
	}
	return extreme(n, 6, dtype)
}
