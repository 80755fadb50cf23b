package diagnose

import (
	"iter"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// mostIDs is the largest number of ids with wrong rows.
const mostIDs = 16

// otherRows yields wrong rows of a table: an id has the row of another id, or a row of zeros.
func otherRows(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		p := s.first.Program
		all := edit.StepsOf(p, program.Lookup)
		if len(all) != 1 || lookedUp(p) != all[0] {
			return
		}
		table, at := tableOf(s.first)
		if at < 0 {
			return
		}
		rows, cols := table.Size()
		wanted := map[int][]float64{} // by id: the row that the trace has
		for _, e := range s.entries {
			ids, ok := idsLookedUp(s.subject, e)
			if !ok {
				return
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
		if len(wanted) > mostIDs || rows*cols > mostLooked {
			return
		}
		from := map[int]int{} // isZero for zeros
		row := make([]float64, cols)
		for i := isZero; i < rows; i++ {
			if clear(row); i >= 0 && s.failed(table.Row(row, i)) {
				return
			}
			for id, want := range wanted {
				if _, found := from[id]; !found && slices.Equal(row, want) {
					from[id] = i
				}
			}
		}
		if len(from) < len(wanted) {
			return
		}
		var runs []sourceRun
		for _, id := range slices.Sorted(maps.Keys(from)) {
			runs = append(runs, sourceRun{From: id, To: id + 1, Is: from[id]})
		}
		yield(Mistake{Kind: "lookup.other-rows", Place: "lookup.ids", Runs: makeRuns(runs...)})
	}
}

// idsLookedUp returns the ids of the rows that an entry reads from a table. ok is false if the result is not made of rows of a table.
func idsLookedUp(s *subject, e *Entry) (ids []float64, ok bool) {
	i := lookedUp(e.Program)
	if i < 0 {
		return nil, false
	}
	return s.valueAt(e, e.Program.Steps[i].Args[0])
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
	i := p.Out.Step
	for p.Steps[i].Prim == program.Round || p.Steps[i].Prim == program.Copy {
		i = p.Steps[i].Args[0].Step
	}
	if p.Steps[i].Prim != program.Lookup {
		return -1
	}
	return i
}
