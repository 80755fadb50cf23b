package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// blockScale is what the rows of a block of a matrix are divided by and multiplied by: scales are the largest size of a block.
type blockScale struct{ over, by float64 }

// Wrong scales of a run of rows, in [Run.Of]: no scale, and its own scale twice. If the run has the scale of other rows, Of is empty and Is is the first of those.
const (
	unscaledRows = "unscaled"
	scaledTwice  = "scaled-twice"
)

// scales looks at the scales of blocks of rows, as a quantised matrix has them: a block may have that of another, or none.
func (s *search) scales(at program.Place, k int) error {
	sizes := []int{8, 16, 32, 64, 128}
	if d := s.m.List.Config.HeadDim; d > 1 && !slices.Contains(sizes, d) {
		sizes = append(sizes, d)
	}
	rows, cols := s.first.Call.W[k].Size()
	if rows*cols > maxHeld || s.first != s.entries[0] || s.m.List.Entries[s.entries[0].Node.Entry].Name != s.m.List.Entries[s.entries[len(s.entries)-1].Node.Entry].Name {
		return nil
	}
	for _, n := range sizes {
		if rows%n != 0 || rows == n {
			continue
		}
		chosen, others, err := s.scalesOf(at, k, n)
		if chosen == nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		w := weightTerm(s.first.Weights[k].Name)
		m := Mistake{Kind: "weight.scales-of-blocks", Place: w.Name, Of: w, Runs: makeRuns(others...)}
		if err := s.try(hypothesis{
			class: program.Leaf, solved: len(chosen), say: func(*Entry) Name { return m.name() },
			make: func(e *Entry) *program.Edited {
				return s.reweighted(e, at, func(k int) program.Rows { return rescaled{e.Call.W[k], n, chosen, e} })
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// rescaled is a matrix whose blocks of rows have other scales.
type rescaled struct {
	program.Rows
	n     int
	scale []blockScale
	e     *Entry
}

func (w rescaled) Row(dst []float64, i int) error {
	err := w.Rows.Row(dst, i)
	if f := w.scale[i/w.n]; f.over != f.by {
		for k := range dst {
			dst[k] = floats.Round(w.e.Call.DType, float64(float32(float64(float32(dst[k]/f.over))*f.by)))
		}
	}
	return err
}

// Product is that of the matrix.
func (w rescaled) Product(x, bound []float64) program.Product {
	p := program.ProductOf(w.Rows, x, bound)
	p.W = rescaled{p.W, w.n, w.scale, w.e}
	return p
}

// scalesOf returns the scales of all blocks of n rows and the runs of rows whose scale is wrong. Both are nil if no block has a wrong scale or no scale explains one.
func (s *search) scalesOf(at program.Place, k, n int) ([]blockScale, []Run, error) {
	e := s.entries[0]
	p, w := e.Program, e.Call.W[k]
	affine := p.Source(p.Out)
	rows, cols := w.Size()
	if st := &p.Steps[affine]; st.Prim != program.Affine || len(e.signed(s.m).Copies(at)) != 1 || p.Out.Last() != rows {
		return nil, nil, nil
	}
	own, ok := s.valueOf(e, nil)
	if !ok {
		return nil, nil, s.err
	}
	bias := make([]float64, rows)
	if args := p.Steps[affine].Args; len(args) > 2 {
		b, ok := s.valueAt(e, args[2])
		if !ok || len(b) < rows {
			return nil, nil, s.err
		}
		copy(bias, b)
	}
	largest := make([]float64, rows/n)
	row := make([]float64, cols)
	for i := range rows {
		if err := w.Row(row, i); err != nil {
			return nil, nil, err
		}
		for _, x := range row {
			largest[i/n] = max(largest[i/n], math.Abs(x))
		}
	}
	y, _ := e.Target()
	all := make([]blockScale, rows/n)
	var others []Run
	for b := range all {
		var xy, xx float64
		for at := 0; at < len(y); at += rows {
			for c := b * n; c < (b+1)*n; c++ {
				x := own.Data[at+c] - bias[c]
				xy, xx = xy+x*(y[at+c]-bias[c]), xx+x*x
			}
		}
		all[b] = blockScale{1, 1}
		f := xy / xx
		if math.Abs(f-1) < nearOne/4 {
			continue
		}
		best := math.Inf(1)
		block := Run{From: b * n, To: (b + 1) * n}
		consider := func(over, by float64, is int, of string) {
			if off := math.Abs(by/over/f - 1); off < best {
				best, all[b], block.Is, block.Of = off, blockScale{over, by}, is, of
			}
		}
		for o, x := range largest {
			if o != b {
				consider(largest[b], x, o*n, "")
			}
		}
		consider(largest[b], 1, block.From, unscaledRows)
		consider(1, largest[b], block.From, scaledTwice)
		if !(best < nearOne) {
			return nil, nil, nil
		}
		others = append(others, block)
	}
	if len(others) == 0 {
		return nil, nil, nil
	}
	return all, others, nil
}
