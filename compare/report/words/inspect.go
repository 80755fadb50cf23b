package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/measure"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/amount"
)

// Inspection is what a look into one or two files has shown, at most 80 columns wide but for names, tables of many columns and the values
// of a slice.
func Inspection(r *inspect.Result) *Document {
	p := &inspection{result: r}
	for i := range r.Files {
		p.file(i)
	}
	switch {
	case len(r.Tensors) == 0:
		p.list(r.List)
	case len(r.Tensors) == 1:
		p.one(&r.Tensors[0])
	default:
		p.pair(r)
	}
	if len(r.Notes) > 0 {
		p.blank()
	}
	p.fields(Remarks(r.Notes)...)
	return &p.Document
}

// inspection is a document while it is made.
type inspection struct {
	Document
	result *inspect.Result
}

// sideName is A or B where there are two files.
func (p *inspection) sideName(i int) string {
	if len(p.result.Files) == 1 {
		return ""
	}
	return string(rune('A' + i))
}

func (p *inspection) file(i int) {
	f := &p.result.Files[i]
	label := p.sideName(i)
	if label == "" {
		label = "file"
	}
	text := f.Path
	if by := strings.TrimSpace(f.Producer.Name + " " + f.Producer.Version); by != "" {
		text += ", " + by
	}
	for _, part := range []string{f.DType, f.Model} {
		if part != "" {
			text += ", " + part
		}
	}
	p.Line("%-6s %s", label+":", text)
	if !f.Sequence {
		p.Line("%-6s unknown, the file does not tell: other writers sort by dtype and name", "order:")
	}
	if f.Status != "" && f.Status != "complete" {
		p.Line("%-6s %s", "run:", f.Status)
	}
	for _, n := range f.Notes {
		p.Line("%-6s %s", "note:", n)
	}
}

// table is written after a blank line.
func (p *inspection) table(columns []Column, rows [][]string) {
	cells := make([][]Cell, len(rows))
	for i, row := range rows {
		cells[i] = plainCells(row...)
	}
	p.blank()
	p.Document.table(columns, cells)
}

// texts are columns of texts, and numbers of numbers.
func texts(titles ...string) (all []Column) {
	for _, title := range titles {
		all = append(all, Column{Title: title})
	}
	return all
}

func numbers(titles ...string) []Column {
	all := texts(titles...)
	for i := range all {
		all[i].Right = true
	}
	return all
}

func (p *inspection) list(lines []inspect.Line) {
	header := texts("name", "shape", "dtype")
	if passes := p.result.Files[0].Passes > 1; passes {
		header = append(numbers("pass"), header...)
	}
	width := len(header)
	if len(lines) > 0 && lines[0].Stats != nil {
		header = slices.Concat(header, numbers("min", "max", "mean", "std"), texts("note"))
	}
	rows := make([][]string, len(lines))
	bytes := int64(0)
	for i := range lines {
		l := &lines[i]
		name := capture.Key(0, l.Name, l.Firing)
		rows[i] = []string{strconv.Itoa(l.Pass), name, sizes(l.Shape), l.DType}[4-width:]
		if s := l.Stats; s != nil {
			rows[i] = append(rows[i], extreme(s.Min, 4, l.DType), extreme(s.Max, 4, l.DType), figure(s.Mean, 4), figure(s.Std, 4), oddities(s))
		}
		bytes += l.Bytes
	}
	p.table(header, rows)
	p.blank()
	text := count(len(lines), "tensor", "tensors")
	if all := p.result.Files[0].Tensors; all != len(lines) {
		text += fmt.Sprintf(" of %d", all)
	}
	p.Line("%s, %s", text, amount.Bytes(bytes))
}

// oddities lists counts of NaN, infinities and masked elements, and tensors that are empty, all zero or constant.
func oddities(s *inspect.Stats) string {
	text := counts(", ", number{s.NaN, "NaN"}, number{s.Inf, "+Inf"}, number{s.NInf, "-Inf"}, number{s.Masked, "masked"})
	switch {
	case s.Elements == 0:
		text += ", empty"
	case s.Finite > 0 && s.Zeros == s.Finite:
		text += ", all zero"
	case s.Finite > 1 && s.Min == s.Max:
		text += ", constant"
	}
	return strings.TrimPrefix(text, ", ")
}

// figures are numbers with the given significant digits.
func figures(most int, all ...measure.Number) []string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = figure(n, most)
	}
	return texts
}

// one writes a tensor in full.
func (p *inspection) one(t *inspect.Tensor) {
	p.blank()
	p.head(t)
	p.stats(t.Line.Stats, t.Line.DType)
	if t.Line.Stats.Finite > 1 {
		p.percentiles(t.Percentiles)
		p.histogram(t.Histogram)
	}
	for i := range t.ByAxis {
		p.byAxis(&t.ByAxis[i])
	}
	p.channels(t.Channels)
	p.logits("next token", t.Logits)
	p.values("values", t.Values, t.Line.DType)
}

// head writes what a tensor is.
func (p *inspection) head(t *inspect.Tensor) {
	p.Line("%s", t.Line.Key)
	shape := sizes(t.Line.Shape)
	if known(t.Axes) {
		shape += ": " + strings.Join(t.Axes, " x ")
	}
	p.field("shape", "%s", shape)
	p.field("dtype", "%s, %s", t.Line.DType, amount.Bytes(t.Line.Bytes))
	if e := t.Entry; e != nil {
		parts := []string{fmt.Sprintf("entry %d of %d", e.Index+1, e.Entries)}
		if e.Op != "" {
			parts = append(parts, e.Op)
		}
		if e.Layer >= 0 {
			parts = append(parts, fmt.Sprintf("layer %d", e.Layer))
		}
		p.field("order", "%s, level %d", strings.Join(parts, ", "), e.Level)
	}
	switch {
	case t.Passes != "":
		p.field("pass", "%d; --pass shows it in %s", t.Line.Pass, t.Passes)
	case t.Line.Pass > 0:
		p.field("pass", "%d", t.Line.Pass)
	}
}

// known reports whether axes have roles.
func known(axes []string) bool {
	for i, a := range axes {
		if a != measure.AxisName("", i) {
			return true
		}
	}
	return false
}

func (p *inspection) stats(s *inspect.Stats, dtype string) {
	p.blank()
	text := strings.TrimSuffix(fmt.Sprintf("%d, %s", s.Elements, oddities(s)), ", ")
	if s.Zeros > 0 && s.Zeros < s.Finite {
		text += fmt.Sprintf(", %d zero", s.Zeros)
	}
	p.field("elements", "%s", text)
	p.field("min", "%s%s", extreme(s.Min, 6, dtype), at(s.MinAt))
	p.field("max", "%s%s", extreme(s.Max, 6, dtype), at(s.MaxAt))
	for i, text := range figures(6, s.Mean, s.Std, s.RMS) {
		p.field([]string{"mean", "std", "rms"}[i], "%s", text)
	}
}

func at(index []int) string {
	if index == nil {
		return ""
	}
	return fmt.Sprintf(" at %v", index)
}

// extreme is a number that a tensor holds: an integer in full, since it may be an id.
func extreme(n measure.Number, most int, dtype string) string {
	if d, err := hooks.ParseDType(dtype); err == nil && !d.Float() && !math.IsNaN(float64(n)) {
		return strconv.FormatFloat(float64(n), 'f', 0, 64)
	}
	return figure(n, most)
}

// figure is a number with the given significant digits; "-" for NaN.
func figure(n measure.Number, most int) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return strconv.FormatFloat(float64(n), 'g', most, 64)
}
