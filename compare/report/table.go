package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/compare/measure"
)

// Table writes rows of cells in aligned columns, without lines and without blanks at the end: plain text that stays
// readable in a log. Cells are written as they are, whatever their length. The error is that of w.
func Table(w io.Writer, align []tw.Align, header []string, rows [][]string) error {
	cells := tw.CellConfig{
		Padding:    tw.CellPadding{Global: tw.Padding{Right: "  ", Overwrite: true}},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
	}
	var text strings.Builder
	t := tablewriter.NewTable(&text,
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells}),
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Settings: tw.Settings{
				Separators: tw.Separators{BetweenColumns: tw.Off, BetweenRows: tw.Off, ShowHeader: tw.Off},
				Lines:      tw.Lines{ShowHeaderLine: tw.Off, ShowTop: tw.Off, ShowBottom: tw.Off},
			},
		})),
	)
	t.Header(header)
	if err := t.Bulk(rows); err != nil {
		return err
	}
	if err := t.Render(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// table writes one line an entry.
func (p *printer) table(r *compare.Result) error {
	passes := false
	for i := range r.Rows {
		passes = passes || r.Rows[i].Pass > 0
	}
	const right, left = tw.AlignRight, tw.AlignLeft
	columns := []struct {
		title string
		align tw.Align
		shown bool
	}{
		{"verdict", left, true},
		{"pass", right, passes},
		{"name", left, true},
		{"shape", left, true},
		{"dtype", left, true},
		{"max abs", right, !r.Alone},
		{"accumulated", right, !r.Alone},
		{"limit", right, !r.Alone},
		{"cosine", right, !r.Alone},
		{"isolated", left, r.Isolation != nil},
		{"power", right, r.Isolation != nil && p.style.power},
		{"scale - 1", right, r.Isolation != nil && p.style.power},
		{"note", left, true},
	}
	var header []string
	var align []tw.Align
	for _, c := range columns {
		if c.shown {
			header, align = append(header, c.title), append(align, c.align)
		}
	}
	rows := make([][]string, len(r.Rows))
	for i := range r.Rows {
		for k, cell := range p.cells(&r.Rows[i]) {
			if columns[k].shown {
				rows[i] = append(rows[i], cell)
			}
		}
	}
	return Table(&p.Builder, align, header, rows)
}

// cells are one row as texts, a cell a column: numbers are formatted here, since the table would write them in full.
func (p *printer) cells(r *compare.Row) []string {
	name := r.Name
	if r.Firing > 0 {
		name += "#" + strconv.Itoa(r.Firing)
	}
	dtype := r.Local.DType
	if ref := r.Ref.DType; ref != dtype && ref != "" {
		dtype += "/" + ref
	}
	maxAbs, relative, cosine := "-", "-", "-"
	if m := r.Metrics; m != nil && m.Pattern == nil || m != nil && !math.IsNaN(float64(m.RelL2)) {
		maxAbs, relative, cosine = number(m.MaxAbs), number(m.RelL2), parallel(m.Cosine)
		if m.NonFinite > 0 {
			maxAbs, relative, cosine = "NaN", "NaN", "-"
		}
	}
	limit := "-"
	if r.Gate != nil && len(r.Gate.Checks) > 0 {
		limit = number(r.Gate.Checks[0].Limit)
	}
	power, scale := powers(r.Isolated)
	return []string{p.verdict(r), strconv.Itoa(r.Pass), clean(name), shape(r), dtype, maxAbs, relative, limit, cosine, p.isolated(r), power, scale, remarks(r)}
}

// powers are how small an error of scale would have shown in an entry, and how far the scale that fits it is from 1.
func powers(c *compare.Isolated) (power, scale string) {
	power, scale = "-", "-"
	if c == nil {
		return power, scale
	}
	if power = number(c.Power); c.Power <= 0 {
		power = "any"
	}
	if s := float64(c.Scale); !math.IsNaN(s) {
		scale = fmt.Sprintf("%.2g ± %.1g", s-1, float64(c.ScaleError))
	}
	return power, scale
}

// isolated is the certificate in a word, with the error of the operation alone where there is one.
func (p *printer) isolated(r *compare.Row) string {
	c := r.Isolated
	if c == nil {
		return "-"
	}
	text := string(c.Outcome)
	if c.RelL2 > 0 {
		text += " " + number(c.RelL2)
	}
	if c.Outcome == isolate.Bug {
		return paint(p.style.bad, text)
	}
	return text
}

func (p *printer) verdict(r *compare.Row) string {
	text := string(r.Verdict)
	if r.Class != "" {
		text += " " + string(r.Class)
	}
	switch {
	case r.Derived || r.Allowed != "":
		return paint(p.style.quiet, text)
	case r.Verdict == compare.Match:
		return paint(p.style.good, text)
	}
	return paint(p.style.bad, text)
}

// remarks are the notes in a word each.
func remarks(r *compare.Row) string {
	var words []string
	if r.Derived {
		words = append(words, "derived")
	}
	switch {
	case r.Excused != "":
		words = append(words, string(r.Excused))
	case r.Allowed != "":
		words = append(words, "allowed")
	}
	if r.Blame != "" {
		words = append(words, string(r.Blame))
	}
	for _, n := range r.Notes {
		words = append(words, string(n.Kind))
	}
	return strings.Join(words, ", ")
}

func shape(r *compare.Row) string {
	own, ref := sizes(r.Local.Shape), sizes(r.Ref.Shape)
	if ref != own && r.Ref.DType != "" {
		return own + " / " + ref
	}
	return own
}

func sizes(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	var b strings.Builder
	for i, n := range shape {
		if i > 0 {
			b.WriteByte('x')
		}
		b.WriteString(strconv.Itoa(n))
	}
	return b.String()
}

// number has three digits, enough to compare by eye; "-" where it is not defined.
func number(n measure.Number) string {
	if math.IsNaN(float64(n)) {
		return "-"
	}
	return fmt.Sprintf("%.3g", float64(n))
}

// parallel is a cosine, cut and not rounded, so that a difference in the seventh digit is not written as 1. The sum that
// it comes from is good to twelve digits.
func parallel(n measure.Number) string {
	const digits, sum = 1e7, 1e-12
	x := float64(n)
	if math.IsNaN(x) {
		return "-"
	}
	return fmt.Sprintf("%.7f", math.Trunc((x+math.Copysign(sum, x))*digits)/digits)
}
