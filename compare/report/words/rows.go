package words

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
)

// rows writes a line an entry.
func rows(doc *Document, r *compare.Result) {
	if len(r.Rows) == 0 {
		return
	}
	passes := slices.ContainsFunc(r.Rows, func(row compare.Row) bool { return row.Pass > 0 })
	isolated := r.Isolation != nil
	all := []struct {
		Column
		shown bool
	}{
		{Column{Title: "verdict"}, true},
		{Column{Title: "pass", Right: true}, passes},
		{Column{Title: "name"}, true},
		{Column{Title: "shape"}, true},
		{Column{Title: "dtype"}, true},
		{Column{Title: "max abs", Right: true}, !r.Alone},
		{Column{Title: "accumulated", Right: true}, !r.Alone},
		{Column{Title: "limit", Right: true}, !r.Alone},
		{Column{Title: "cosine", Right: true}, !r.Alone},
		{Column{Title: "isolated"}, isolated},
		{Column{Title: "power", Right: true, Power: true}, isolated},
		{Column{Title: "scale - 1", Right: true, Power: true}, isolated},
		{Column{Title: "note"}, true},
	}
	var columns []Column
	for _, c := range all {
		if c.shown {
			columns = append(columns, c.Column)
		}
	}
	rows := make([][]Cell, len(r.Rows))
	for i := range r.Rows {
		for k, cell := range cells(&r.Rows[i]) {
			if all[k].shown {
				rows[i] = append(rows[i], cell)
			}
		}
	}
	doc.blank()
	doc.table(columns, rows)
}

// cells are one row as texts, a cell a column: numbers are formatted here, since the table would write them in full.
func cells(r *compare.Row) []Cell {
	dtype := r.Local.DType
	if ref := r.Ref.DType; ref != dtype && ref != "" {
		dtype += "/" + ref
	}
	maxAbs, relative, cosine := "-", "-", "-"
	if m := r.Metrics; m != nil && m.Pattern == nil || m != nil && !math.IsNaN(float64(m.RelL2)) {
		maxAbs, relative, cosine = rough(m.MaxAbs), rough(m.RelL2), parallel(m.Cosine)
		if m.NonFinite > 0 {
			maxAbs, relative, cosine = "NaN", "NaN", "-"
		}
	}
	limit := "-"
	if r.Gate != nil && len(r.Gate.Checks) > 0 {
		limit = rough(r.Gate.Checks[0].Limit)
	}
	power, scale := powers(r.Isolated)
	row := plainCells("", strconv.Itoa(r.Pass), CapturedName(r), shape(r), dtype, maxAbs, relative, limit, cosine, "", power, scale, remarks(r))
	row[0], row[9] = verdictOf(r), isolated(r)
	return row
}

// powers are how small an error of scale would have shown in an entry, and how far the scale that fits it is from 1.
func powers(c *compare.Isolated) (power, scale string) {
	power, scale = "-", "-"
	if c == nil {
		return power, scale
	}
	if power = rough(c.Power); c.Power <= 0 {
		power = "any"
	}
	if s := float64(c.Scale); !math.IsNaN(s) {
		scale = fmt.Sprintf("%.2g ± %.1g", s-1, float64(c.ScaleError))
	}
	return power, scale
}

// isolated returns the outcome of a certificate, with the relative L2 of the operation's own error if it is not 0.
func isolated(r *compare.Row) Cell {
	c := r.Isolated
	if c == nil {
		return Cell{Text: "-"}
	}
	cell := Cell{Text: string(c.Outcome)}
	if c.RelL2 > 0 {
		cell.Text += " " + rough(c.RelL2)
	}
	if c.Outcome == isolate.Bug {
		cell.Tone = Bad
	}
	return cell
}

func verdictOf(r *compare.Row) Cell {
	cell := Cell{Text: string(r.Verdict), Tone: Bad}
	if r.Class != "" {
		cell.Text += " " + string(r.Class)
	}
	switch {
	case r.Derived || r.Allowed != "":
		cell.Tone = Quiet
	case r.Verdict == compare.Match:
		cell.Tone = Good
	}
	return cell
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
