package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// Wrong scales of a run of rows, in [sourceRun.Of]: no scale, and the own scale twice. If the run has the scale of other rows, Of is empty and Is is the
// first of the other rows.
const (
	unscaledRows = "unscaled"
	scaledTwice  = "scaled-twice"
)

// blockScales yields wrong scales for blocks of rows in a quantised matrix. A block has the scale of another block, no scale, or its own scale twice.
func blockScales(s *search, k int) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		w := s.first.Call.W[k]
		if rows, cols := w.Size(); rows*cols > maxHeld {
			return
		}
		l, ok := linearIn(s, s.first, k)
		if !ok {
			return
		}
		sizes := []int{8, 16, 32, 64, 128}
		if d := s.m.List.Config.HeadDim; d > 1 && !slices.Contains(sizes, d) {
			sizes = append(sizes, d)
		}
		for _, n := range sizes {
			if l.rows%n != 0 || l.rows == n {
				continue
			}
			runs := wrongRuns(s, l, w, n)
			if len(runs) > 0 && !yield(Mistake{Kind: "weight.scales-of-blocks", Runs: makeRuns(runs...)}) {
				return
			}
		}
	}
}

// wrongRuns lists the blocks of n rows with a wrong scale; nil if no scale explains a block.
func wrongRuns(s *search, l linear, w program.Rows, n int) []sourceRun {
	largest := make([]float64, l.rows/n)
	for b := range largest {
		top, err := largestIn(w, b*n, (b+1)*n)
		if s.failed(err) {
			return nil
		}
		largest[b] = top
	}
	y, _ := s.first.Target()
	var others []sourceRun
	for b, own := range largest {
		var xy, xx float64
		for at := 0; at < len(y); at += l.rows {
			for c := b * n; c < (b+1)*n; c++ {
				bias := 0.0
				if l.bias != nil {
					bias = l.bias[c]
				}
				x := l.own[at+c] - bias
				xy, xx = xy+x*(y[at+c]-bias), xx+x*x
			}
		}
		f := xy / xx
		if math.Abs(f-1) < nearOne/4 {
			continue
		}
		best := math.Inf(1)
		block := sourceRun{From: b * n, To: (b + 1) * n}
		consider := func(scale float64, is int, of string) {
			if off := math.Abs(scale/f - 1); off < best {
				best, block.Is, block.Of = off, is, of
			}
		}
		for o, x := range largest {
			if o != b {
				consider(x/own, o*n, "")
			}
		}
		consider(1/own, block.From, unscaledRows)
		consider(own, block.From, scaledTwice)
		if !(best < nearOne) {
			return nil
		}
		others = append(others, block)
	}
	return others
}

// largestIn is the largest absolute value in some rows. The scale of a block is proportional to this value.
func largestIn(w program.Rows, from, to int) (top float64, err error) {
	_, cols := w.Size()
	row := make([]float64, cols)
	for i := from; i < to; i++ {
		if err := w.Row(row, i); err != nil {
			return 0, err
		}
		top = max(top, math.Abs(largestOf(row)))
	}
	return top, nil
}

// rescaled is a matrix with wrong scales for some blocks of rows. The scale of a block is its largest absolute value. Rows with the scale of another
// block are divided by their own scale and multiplied by the scale of the other block. Rows without a scale are divided by their scale. Rows with
// their scale twice are multiplied by it.
func rescaled(w program.Rows, m Mistake, model hooks.DType) program.Rows {
	rows, _ := w.Size()
	over, by := make([]float64, rows), make([]float64, rows) // 0 for a row that is right
	for _, run := range m.Runs.list() {
		if is := run.Is + run.To - run.From; run.To > rows || run.Is < 0 || is > rows {
			return nil
		}
		own, err := largestIn(w, run.From, run.To)
		if err != nil {
			return nil
		}
		o, b := own, 1.0
		switch run.Of {
		case scaledTwice:
			o, b = 1, own
		case "":
			if b, err = largestIn(w, run.Is, run.Is+run.To-run.From); err != nil {
				return nil
			}
		}
		for i := run.From; i < run.To; i++ {
			over[i], by[i] = o, b
		}
	}
	return changedRows(w, func(i int, row []float64) {
		if over[i] == by[i] {
			return
		}
		for k, x := range row {
			row[k] = floats.Round(model, float64(float32(float64(float32(x/over[i]))*by[i])))
		}
	})
}
