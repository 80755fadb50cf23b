package diagnose

import (
	"iter"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// otherRows yields wrong rows of a table: ids have the rows of other ids, or rows of zeros.
func otherRows(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		p := s.first.Program
		all := edit.StepsOf(p, program.Lookup)
		if len(all) == 1 && lookedUp(p) != all[0] {
			if m, ok := zeroIDs(s); ok {
				yield(m)
			}
			return
		} else if len(all) != 1 {
			return
		}
		table, at := tableOf(s.first)
		if at < 0 {
			return
		}
		rows, cols := table.Size()
		wanted, right := map[int][]float64{}, map[int]bool{} // by id: the row that the trace has
		for _, e := range s.entries {
			ids, ok := idsRead(s.subject, e)
			if !ok {
				return
			}
			for _, id := range ids {
				right[int(id)] = true
			}
			y, _ := e.Target()
			for _, i := range e.Left { // a row of the table may be several rows of the result, one for each layer
				row, id := y[i/cols*cols:][:cols], int(ids[i/cols])
				if old := wanted[id]; old != nil && !slices.Equal(old, row) {
					return
				}
				wanted[id] = row
			}
		}
		if len(wanted) > mostRuled || rows*cols > mostLooked {
			return
		}
		of := map[float64][]int{} // the ids of wanted rows, by the first number of the row
		for id, want := range wanted {
			of[want[0]] = append(of[want[0]], id)
		}
		from := map[int]int{} // isZero for zeros
		row := make([]float64, cols)
		for i := isZero; i < rows; i++ {
			if clear(row); i >= 0 && s.failed(table.Row(row, i)) {
				return
			}
			for _, id := range of[row[0]] {
				if _, found := from[id]; !found && slices.Equal(row, wanted[id]) {
					from[id] = i
				}
			}
		}
		if len(from) < len(wanted) {
			return
		}
		if m, ok := rowsMistake(s.first, from, right); ok {
			yield(m)
		}
	}
}

// zeroIDs is the mistake of ids whose rows of the result are zeros, where the operation computes with the rows of a table. ok is false if an unexplained
// element is not 0, or if the result does not have one row for each id. It is also false if the rows are the first or the last of each entry and no id comes
// twice: then their places may be wrong, and not their ids.
func zeroIDs(s *search) (m Mistake, ok bool) {
	zero, right, times := map[int]int{}, map[int]bool{}, map[int]int{}
	byID := false
	for _, e := range s.entries {
		ids, ok := idsRead(s.subject, e)
		width := e.Program.Out.Last()
		if !ok || len(ids) == 0 || e.elements() != len(ids)*width {
			return m, false
		}
		for _, id := range ids {
			right[int(id)] = true
		}
		y, _ := e.Target()
		rows := leftRows(e)
		for _, i := range e.Left {
			if y[i] != 0 {
				return m, false
			}
		}
		for _, r := range rows {
			id := int(ids[r])
			zero[id] = isZero
			if times[id]++; times[id] > 1 {
				byID = true
			}
		}
		slices.Sort(rows)
		run := len(rows) > 0 && rows[len(rows)-1]-rows[0] == len(rows)-1
		byID = byID || !run || rows[0] > 0 && rows[len(rows)-1] < len(ids)-1
	}
	if !byID {
		return m, false
	}
	return rowsMistake(s.first, zero, right)
}

// idsRead returns the ids of the rows that an entry reads from a table. ok is false if the program does not have exactly one lookup.
func idsRead(s *subject, e *Entry) (ids []float64, ok bool) {
	look := edit.StepsOf(e.Program, program.Lookup)
	if len(look) != 1 {
		return nil, false
	}
	return s.valueAt(e, e.Program.Steps[look[0]].Args[0])
}

// tableOf returns the table from which an entry reads rows, and its index among the entry's weights; −1 if the program does not have exactly one lookup, in a
// weight.
func tableOf(e *Entry) (table program.Rows, weight int) {
	p := e.Program
	look := edit.StepsOf(p, program.Lookup)
	if len(look) != 1 {
		return nil, -1
	}
	for _, a := range p.Steps[look[0]].Args {
		if s := &p.Steps[a.Step]; s.Prim == program.Matrix || s.Prim == program.Dense {
			return e.Call.W[s.Index()], s.Index()
		}
	}
	return nil, -1
}

// lookedUp is the step that reads the rows of a table for the result; −1 without such a step.
func lookedUp(p *program.Program) int {
	i := beforeRounding(p, p.Out.Step)
	if p.Steps[i].Prim != program.Lookup {
		return -1
	}
	return i
}
