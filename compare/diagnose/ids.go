package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// otherIDs yields wrong rows of a table: the row after or before the row of each id, the last row for ids beyond the table, and row 0 for every id.
func otherIDs(s *search) iter.Seq[Mistake] {
	var all []Mistake
	if len(edit.StepsOf(s.first.Program, program.Lookup)) > 0 {
		for _, kind := range []Kind{"ids.row-after", "ids.row-before", "ids.last-row", "ids.row-zero"} {
			all = append(all, Mistake{Kind: kind, Place: "lookup.ids"})
		}
	}
	return slices.Values(all)
}

// rowsOfOtherIDs reads the rows of other ids.
func rowsOfOtherIDs(_ *subject, e *Entry, m Mistake) *program.Edited {
	ed := edit.NewEditor(e.Program)
	for _, i := range edit.StepsOf(e.Program, program.Lookup) {
		st := e.Program.Steps[i]
		ids := st.Args[0]
		switch m.Kind {
		case "ids.row-after": // the last row stays: no row comes after it
			ids = ed.Neg(ed.Max(ed.Neg(ed.Add("", ids, ed.Literal(1))), ed.Literal(float64(1-st.Entries().Rows))))
		case "ids.row-before":
			ids = ed.Add("", ids, ed.Literal(-1))
		case "ids.last-row":
			ids = ed.Neg(ed.Max(ed.Neg(ids), ed.Literal(float64(1-st.Entries().Rows))))
		default:
			ids = ed.Mul("", ids, ed.Literal(0))
		}
		ed.Read(i, 0, ids)
	}
	return ended(ed)
}
