package diagnose

import (
	"fmt"
	"math"

	"github.com/tracediff/tracediff/order/program"
)

const (
	mostUnknowns = 128     // factors that are solved at a time
	perUnknown   = 2       // elements for each factor, at least
	mostRowsEach = 8       // elements for each factor that they are solved from
	mostFactor   = 1 << 10 // a factor that is said
)

// blocking are the blocks of a matrix that have one factor each: so many rows by so many columns. No rows are all rows.
type blocking struct{ rows, cols int }

// factorsOfInputs describes products with a matrix that has a factor of its own for each input, the same for all outputs, or for each block: as where a scale is folded into the one
// side alone, or scales of blocks are those of other blocks. It takes the fewest factors that give the elements.
func factorsOfInputs(x *difference) *Description {
	p := x.first.Program
	end := &p.Steps[p.Source(p.Out)]
	if end.Prim != program.Affine || p.Steps[p.Source(end.Args[1])].Prim != program.Matrix {
		return nil
	}
	_, cols := x.first.Call.W[p.Steps[p.Source(end.Args[1])].Index].Size()
	weight := weightTerm(x.first.Weights[p.Steps[p.Source(end.Args[1])].Index].Name)
	for _, b := range blockings(cols) {
		d := &Description{Kind: "described.blocks", Of: x.value(x.first, end.Args[0]), Like: weight}
		if d.Called = fmt.Sprintf(blockWords, b.rows, b.cols); b.rows == 0 {
			d.Kind, d.Called = "described.inputs", ""
		}
		good := true
		for n := range x.results {
			if good = x.blockFactors(d, &x.results[n], b); !good || x.err != nil {
				break
			}
		}
		if good && x.err == nil && d.Wrong > 0 && float64(d.Explained) >= leastShare*float64(d.Elements) {
			return d
		}
	}
	return nil
}

// blockings are the blocks that are tried: the fewest first.
func blockings(cols int) (all []blocking) {
	if cols <= mostUnknowns {
		all = append(all, blocking{0, 1})
	}
	for size := 128; size > 1; size /= 2 {
		if cols%size == 0 && cols > size {
			all = append(all, blocking{size, size})
		}
	}
	for size := 128; size > 1; size /= 2 {
		if cols%size == 0 && cols > size {
			all = append(all, blocking{1, size})
		}
	}
	return all
}

// blockFactors solves the factors of an entry, and counts the elements that they give. It is not ok where the elements do not tell them, and where they do not give these.
func (x *difference) blockFactors(d *Description, o *observed, b blocking) bool {
	a := wideOf(x.search, o.e)
	if a == nil || len(o.want) != len(a.x)/a.cols*a.rows {
		return false
	}
	group := b.rows
	if group == 0 {
		group = a.rows
	}
	unknowns, tokens := a.cols/b.cols, len(a.x)/a.cols
	if tokens < 2 && group == 1 || tokens*min(group, a.rows) < perUnknown*unknowns {
		if tokens == 1 { // a step of decoding says too little, and the prompt says it
			return true
		}
		return false
	}
	terms, row := make([]float64, unknowns), make([]float64, a.cols)
	for from := 0; from < a.rows; from += group {
		gram, right := make([]float64, unknowns*unknowns), make([]float64, unknowns*unknowns)
		rows := min(group, a.rows-from)
		each := max(1, tokens*rows/(mostRowsEach*unknowns))
		visit := func(use func(i int)) bool {
			for r := from; r < from+rows; r++ {
				if x.failed(a.w.Row(row, r)) {
					return false
				}
				for t := range tokens {
					clear(terms)
					for c, w := range row {
						terms[c/b.cols] += w * a.x[t*a.cols+c]
					}
					use(t*a.rows + r)
				}
			}
			return true
		}
		k := 0
		ok := visit(func(i int) {
			if k++; k%each != 0 {
				return
			}
			x.m.work += unknowns
			for u, v := range terms {
				for w, z := range terms {
					gram[u*unknowns+w] += v * z
				}
				right[u*unknowns] += v * (o.want[i] - a.bias[i%a.rows])
			}
		})
		if !ok || !eliminated(gram, right, unknowns) {
			return false
		}
		left := 0
		ok = visit(func(i int) {
			sum, size := a.bias[i%a.rows], 0.0
			for u, v := range terms {
				sum += v * right[u*unknowns]
				size += math.Abs(v * right[u*unknowns])
			}
			if d.Elements++; math.Abs(sum-o.want[i]) <= off(o, i)+0x1p-20*size {
				d.Explained++
			} else {
				left++
			}
		})
		if !ok || float64(left) > (1-leastShare)*float64(tokens*rows) {
			return false
		}
		for u := range unknowns {
			f := right[u*unknowns]
			if d.Numbers++; math.Abs(f-1) > nearWhole {
				if d.Wrong++; len(d.Values) < mostValues {
					d.Values = append(d.Values, f)
				}
			}
			if math.Abs(f) > mostFactor {
				return false
			}
		}
	}
	return true
}

// wideOf is the product that ends the program of an entry, of any shape; nil where there is none.
func wideOf(s *search, e *Entry) *affine {
	end := &e.Program.Steps[e.Program.Source(e.Program.Out)]
	if e.Few != nil || end.Prim != program.Affine {
		return nil
	}
	a := &affine{w: e.Call.W[e.Program.Steps[e.Program.Source(end.Args[1])].Index]}
	a.rows, a.cols = a.w.Size()
	a.bias = make([]float64, a.rows)
	x, ok := s.valueAt(e, end.Args[0])
	if a.x = x; !ok || len(x)%a.cols != 0 {
		return nil
	}
	if len(end.Args) > 2 {
		b, ok := s.valueAt(e, end.Args[2])
		if !ok || len(b) < a.rows {
			return nil
		}
		copy(a.bias, b)
	}
	return a
}
