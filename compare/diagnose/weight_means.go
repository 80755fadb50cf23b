package diagnose

import (
	"iter"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

const (
	rowsMean         Kind = "weight.rows-mean"
	rowsMeanOfOthers Kind = "weight.rows-mean-of-others"
)

// mostAveraged is how many elements a matrix has at most, whose rows are averaged.
const mostAveraged = 1 << 30

// meanRows yields matrices in which the wrong rows are the mean of all rows, or of all right rows: a table has got rows for added tokens. The wrong rows are
// those that the wrong channels of the result, or the ids of a lookup, show.
func meanRows(s *search, k int) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		rows, _ := s.first.Call.W[k].Size()
		wrong := map[int]bool{}
		for _, e := range s.entries {
			for _, r := range wrongRows(s, e, k) {
				wrong[r] = true
			}
		}
		if len(wrong) == 0 || 2*len(wrong) > rows {
			return
		}
		var runs []sourceRun
		for _, r := range slices.Sorted(maps.Keys(wrong)) {
			if last := len(runs) - 1; last >= 0 && runs[last].To == r {
				runs[last].To++
				continue
			}
			runs = append(runs, sourceRun{From: r, To: r + 1, Is: isUnknown})
		}
		for _, kind := range []Kind{rowsMean, rowsMeanOfOthers} {
			if !yield(Mistake{Kind: kind, Runs: makeRuns(runs...)}) {
				return
			}
		}
	}
}

// wrongRows lists the rows of matrix k that unexplained elements of an entry read; nil if the entry is no product with the whole matrix, and no lookup in it.
func wrongRows(s *search, e *Entry, k int) []int {
	p := e.Program
	if _, part := e.Call.W[k].(someOf); part {
		return nil
	}
	rows, cols := e.Call.W[k].Size()
	if end := &p.Steps[p.Out.Step]; end.Prim == program.Affine && p.Steps[end.Args[1].Step].Index() == k && p.Out.Last() == rows {
		return wrongChannels(e)
	}
	if _, at := tableOf(e); at != k || p.Out.Last() != cols {
		return nil
	}
	ids, ok := idsRead(s.subject, e)
	if !ok || len(ids)*cols != program.Size(p.Out.Shape) {
		return nil
	}
	var all []int
	for _, i := range e.Left {
		all = append(all, int(ids[i/cols]))
	}
	return all
}

// withMeans puts the mean of rows in place of the rows of a mistake. The mean is float32, rounded to the model's type.
func withMeans(w program.Rows, m Mistake, model hooks.DType) program.Rows {
	rows, cols := w.Size()
	added := make([]bool, rows)
	for _, run := range m.Runs.list() {
		if run.From < 0 || run.To > rows {
			return nil
		}
		for r := run.From; r < run.To; r++ {
			added[r] = true
		}
	}
	if rows < 2 || rows*cols > mostAveraged {
		return nil
	}
	mean, row, n := make([]float64, cols), make([]float64, cols), 0
	for r := range rows {
		if m.Kind == rowsMeanOfOthers && added[r] {
			continue
		}
		if w.Row(row, r) != nil {
			return nil
		}
		n++
		for c, x := range row {
			mean[c] += x
		}
	}
	for c := range mean {
		mean[c] = floats.Round(model, float64(float32(mean[c]/float64(n))))
	}
	return changedRows(w, func(r int, x []float64) {
		if added[r] {
			copy(x, mean)
		}
	})
}
