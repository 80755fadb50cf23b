package report

import (
	"github.com/olekukonko/tablewriter/tw"

	"github.com/tracediff/tracediff/compare"
)

// around lists the entries about the first divergence.
func (p *printer) around(r *compare.Result) error {
	d := r.Divergence
	if d == nil {
		return nil
	}
	at := -1
	for i := range r.Rows {
		if r.Rows[i].Key() == d.Row.Key() {
			at = i
			break
		}
	}
	if at < 0 {
		return nil
	}
	const right, left = tw.AlignRight, tw.AlignLeft
	header, align := []string{"", "entry", "error", "limit", "on its own inputs"}, []tw.Align{left, left, right, right, left}
	if r.Alone {
		header, align = []string{"", "entry", "on its own inputs"}, []tw.Align{left, left, left}
	} else if r.Isolation == nil {
		header, align = header[:4], align[:4]
	}
	var rows [][]string
	for i := max(at-before, 0); i < min(at+after+1, len(r.Rows)); i++ {
		row := &r.Rows[i]
		verdict := string(row.Verdict)
		switch {
		case row.Verdict == compare.Mismatch && takesPart(row):
			verdict = paint(p.style.bad, verdict)
		case row.Verdict == compare.Match:
			verdict = paint(p.style.good, verdict)
		}
		cells := []string{verdict, clean(row.Key())}
		if !r.Alone {
			failed, limit := errorOf(row)
			cells = append(cells, failed, limit)
		}
		rows = append(rows, append(cells, alone(row))[:len(header)])
	}
	p.blank()
	return Table(&p.Builder, align, header, rows)
}

// alone is what an entry is on its own inputs, in a word.
func alone(r *compare.Row) string {
	if r.Isolated == nil {
		return "-"
	}
	return string(r.Isolated.Outcome)
}
