package diagnose

import (
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// mostIDs is how many ids with other rows are named.
const mostIDs = 16

// otherRows yields wrong rows of a table: an id has the row of another id, or a row of zeros.
func otherRows(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		p := s.first.Program
		all := p.Of(program.Lookup)
		if len(all) != 1 || lookedUp(p) != all[0] {
			return
		}
		wanted := map[int][]float64{} // by id: the row that the trace has
		for _, e := range s.entries {
			ids, ok := idsLookedUp(s.subject, e)
			if !ok {
				return
			}
			y, _ := e.Target()
			width := e.Program.Out.Last()
			for _, r := range leftRows(e) {
				row, id := y[r*width:][:width], int(ids[r])
				if old := wanted[id]; old != nil && !slices.Equal(old, row) {
					return
				}
				wanted[id] = row
			}
		}
		table := tableOf(s.first)
		rows, cols := table.Size()
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
		var runs []Run
		for _, id := range slices.Sorted(maps.Keys(from)) {
			runs = append(runs, Run{From: id, To: id + 1, Is: from[id]})
		}
		yield(Mistake{Kind: "lookup.other-rows", Place: "lookup.ids", Runs: makeRuns(runs...)})
	}
}

// idsLookedUp are the ids of the rows that an entry reads in a table; ok is false for an entry whose result is no row of a table.
func idsLookedUp(s *subject, e *Entry) (ids []float64, ok bool) {
	i := lookedUp(e.Program)
	if i < 0 {
		return nil, false
	}
	return s.valueAt(e, e.Program.Steps[i].Args[0])
}

// tableOf is the table that an entry reads rows of.
func tableOf(e *Entry) program.Rows {
	p := e.Program
	return e.Call.W[p.Steps[p.Source(p.Steps[lookedUp(p)].Args[1])].Index]
}

// rowsOfOthers has the rows of other ids in a table, or rows of zeros.
func rowsOfOthers(s *subject, e *Entry, m Mistake) *program.Edited {
	ids, ok := idsLookedUp(s, e)
	own, has := s.valueOf(e, nil)
	if !ok || !has {
		return nil
	}
	table := tableOf(e)
	rows, cols := table.Size()
	if len(ids)*cols != len(own.Data) {
		return nil
	}
	for _, run := range m.Runs.list() {
		if run.Is >= rows {
			return nil
		}
		for r, id := range ids {
			if int(id) != run.From {
				continue
			}
			row := own.Data[r*cols:][:cols]
			if clear(row); run.Is >= 0 && s.failed(table.Row(row, run.Is)) {
				return nil
			}
		}
	}
	return given(e, own)
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

// logarithms tries results of which the logarithm of the sum of all exponentials is taken off, by row: log softmax.
func (s *search) logarithms() error {
	for _, rounded := range []bool{false, true} {
		if err := s.try(hypothesis{
			class: program.Inserted, of: "log-softmax", make: func(e *Entry) *program.Edited { return s.logSoftmax(e, rounded) },
			say: func(*Entry) Name { return Mistake{Kind: "result.log-softmax"}.name() },
		}); err != nil {
			return err
		}
	}
	return nil
}

// logSoftmax has the logarithm of the softmax of the result, which is rounded to the model's dtype before, or not.
func (s *subject) logSoftmax(e *Entry, rounded bool) *program.Edited {
	v, ok := s.valueOf(e, nil)
	if !ok {
		return nil
	}
	if rounded {
		if v, ok = s.asStored(e); !ok {
			return nil
		}
	}
	width := e.Program.Out.Last()
	for at := 0; at < len(v.Data); at += width {
		x, b := v.Data[at:][:width], v.Bound[at:][:width]
		top, sum, off := slices.Max(x), 0.0, 0.0
		for i := range x {
			y := floats.Exp(x[i] - top)
			sum, off = sum+y, off+y*b[i]
		}
		by := top + math.Log(sum)
		// The error of the logarithm is that of the weighted mean of the elements, of the sum and of two roundings.
		off = off/sum + 0x1p-24*(math.Sqrt(float64(width))+4)*(1+math.Abs(by))
		for i := range x {
			x[i] -= by
			b[i] += off
		}
	}
	return given(e, v)
}
