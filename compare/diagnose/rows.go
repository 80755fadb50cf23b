package diagnose

import (
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// mostIDs is how many ids with other rows are named.
const mostIDs = 16

// otherRows looks at tables that are read by id: an id may have the row of another, or a row of zeros.
func (s *search) otherRows() error {
	p := s.first.Program
	all := p.Of(program.Lookup)
	if len(all) != 1 || lookedUp(p) != all[0] {
		return nil
	}
	wanted := map[float64][]float64{} // by id: the row that the trace has
	for _, e := range s.entries {
		st := &e.Program.Steps[max(lookedUp(e.Program), 0)]
		ids, ok := s.valueAt(e, st.Args[0])
		if st.Prim != program.Lookup || !ok {
			return nil
		}
		y, _ := e.Target()
		width := e.Program.Out.Last()
		for _, r := range leftRows(e) {
			row := y[r*width:][:width]
			if old := wanted[ids[r]]; old != nil && !slices.Equal(old, row) {
				return nil
			}
			wanted[ids[r]] = row
		}
	}
	table := s.first.Call.W[p.Steps[p.Source(p.Steps[all[0]].Args[1])].Index]
	rows, cols := table.Size()
	if len(wanted) > mostIDs || rows*cols > mostLooked {
		return nil
	}
	from := map[float64]int{} // isZero for zeros
	row := make([]float64, cols)
	for i := isZero; i < rows; i++ {
		if clear(row); i >= 0 && s.failed(table.Row(row, i)) {
			return s.err
		}
		for id, want := range wanted {
			if _, found := from[id]; !found && slices.Equal(row, want) {
				from[id] = i
			}
		}
	}
	if len(from) < len(wanted) {
		return nil
	}
	ids := make([]float64, 0, len(from))
	for id := range from {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var runs []Run
	for _, id := range ids {
		runs = append(runs, Run{From: int(id), To: int(id) + 1, Is: from[id]})
	}
	m := Mistake{Kind: "lookup.other-rows", Place: "lookup.ids", Runs: makeRuns(runs...)}
	return s.try(hypothesis{
		class: program.Leaf, exact: true, say: func(*Entry) Name { return m.name() },
		make: func(e *Entry) *program.Edited {
			own, ok := s.valueOf(e, nil)
			st := &e.Program.Steps[max(lookedUp(e.Program), 0)]
			if !ok || st.Prim != program.Lookup {
				return nil
			}
			ids, ok := s.valueAt(e, st.Args[0])
			if !ok || len(ids)*cols != len(own.Data) {
				return nil
			}
			for r, id := range ids {
				if want := wanted[id]; want != nil {
					copy(own.Data[r*cols:], want)
				}
			}
			return given(e, own)
		},
	})
}

// lookedUp is the step that reads the rows of a table which are the result; −1 where there is none.
func lookedUp(p *program.Program) int {
	i := p.Source(p.Out)
	for p.Steps[i].Prim == program.Round || p.Steps[i].Prim == program.Copy {
		i = p.Source(p.Steps[i].Args[0])
	}
	if p.Steps[i].Prim != program.Lookup {
		return -1
	}
	return i
}
