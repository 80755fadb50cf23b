package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// lookupMistakes proposes that ids have the rows of other ids, if every wrong row of a table that is looked up within an operation is found in the table.
// all are the values that the lookups have to have. Equal ids have to have equal rows.
func lookupMistakes(s *search, all []observed, among func(o *observed) []rowFrom) []Mistake {
	rows, right := map[int]int{}, map[int]bool{} // by id
	for n := range all {
		o := &all[n]
		look := edit.StepsOf(o.e.Program, program.Lookup)
		if len(look) != 1 || !o.same() || len(o.shape) == 0 {
			return nil
		}
		ids, ok := s.valueAt(o.e, o.e.Program.Steps[look[0]].Args[0])
		width := o.shape[len(o.shape)-1]
		if !ok || len(ids)*width != len(o.want) {
			return nil
		}
		from := among(o)
		for r, id := range ids {
			if !o.wrongRow(r*width, width) {
				right[int(id)] = true
				continue
			}
			// from has every row of the table, in order
			k := slices.IndexFunc(from, func(f rowFrom) bool { return o.isRow(r*width, width, f.x) })
			if o.zeroRow(r*width, width) {
				k = isZero
			} else if k < 0 {
				return nil
			}
			if old, known := rows[int(id)]; known && old != k {
				return nil
			}
			rows[int(id)] = k
		}
	}
	if m, ok := rowsMistake(s.first, rows, right); ok {
		return []Mistake{m}
	}
	return nil
}

// rowsOfOthers gives some ids the rows of other ids, or rows of zeros. The table is the result of the entry, or is looked up within the entry's operation.
func rowsOfOthers(s *subject, e *Entry, m Mistake) *program.Edited {
	if lookedUp(e.Program) >= 0 {
		own, has := s.valueOf(e, nil)
		ids, ok := idsRead(s, e)
		if !has || !ok || !exchangeRows(s, e, m, ids, own.Data) {
			return nil
		}
		return given(e, own)
	}
	look := edit.StepsOf(e.Program, program.Lookup)
	if len(look) != 1 {
		return nil
	}
	v := e.Program.Result(look[0])
	ids, ok := idsRead(s, e)
	own, has := s.valueAt(e, v)
	if !ok || !has {
		return nil
	}
	x := program.Value{Shape: v.Shape, Data: slices.Clone(own), Bound: make([]float64, len(own))}
	if !exchangeRows(s, e, m, ids, x.Data) {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	ed.Pass(look[0], ed.Other(x))
	return ended(ed)
}

// exchangeRows writes the rows of a mistake into data, which has a row of the entry's table for each id. It returns false if the mistake does not fit the
// table.
func exchangeRows(s *subject, e *Entry, m Mistake, ids, data []float64) bool {
	table, at := tableOf(e)
	if at < 0 {
		return false
	}
	rows, cols := table.Size()
	if len(ids)*cols != len(data) {
		return false
	}
	for _, run := range m.Runs.list() {
		if run.Is >= rows {
			return false
		}
		for r, id := range ids {
			if int(id) != run.From {
				continue
			}
			row := data[r*cols:][:cols]
			if clear(row); run.Is >= 0 && s.failed(table.Row(row, run.Is)) {
				return false
			}
		}
	}
	return true
}
