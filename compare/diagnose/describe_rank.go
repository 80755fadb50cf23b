package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	mostOfRank  = 1 << 18 // elements of a matrix whose rank is computed
	rankSlack   = 16      // how many times its error an element may be off
	shareOfRank = 4       // wrong rows, and wrong columns, for each unit of rank, at least
)

// lowRank describes results with an error that is a matrix of low rank, tokens by channels. An example is an adapter that is merged into the weights by
// mistake. It is nil if the right result has a low rank as well, and if another operand gives the result.
func lowRank(x *difference) *Description {
	results, p := x.results, x.first.Program
	if p.Steps[p.Out.Step].Prim != program.Affine {
		return nil
	}
	d := &Description{Kind: "described.rank", Of: theResult}
	for n := range results {
		o := &results[n]
		last := len(o.shape) - 1
		if last < 1 || o.axes == "" || o.axes[last] != order.AxisChannel && o.axes[last] != order.AxisVocab || len(o.want) > mostOfRank {
			return nil
		}
		cols := o.shape[last]
		rows := len(o.want) / cols
		diff, most, has := make([]float64, len(o.want)), 0.0, 0
		wrongRows, wrongCols := make([]bool, rows), make([]bool, cols)
		for i := range diff {
			if most = max(most, off(o, i)); wrongElement(o, i) {
				wrongRows[i/cols], wrongCols[i%cols] = true, true
				has++
			}
			diff[i] = o.want[i] - o.value[i]
		}
		wide := min(trues(wrongRows), trues(wrongCols))
		if wide < shareOfRank { // too few tokens tell no rank
			continue
		}
		if 2*has < len(diff) || most-most != 0 {
			return nil
		}
		if sameRows(diff, cols, rankSlack*most) || sameColumns(diff, cols, rankSlack*most) { // a bias, or a constant that is added to the weights
			return nil
		}
		r := rankOf(diff, cols, rankSlack*most)
		if r == 0 || r*shareOfRank > wide || 2*rankOf(append([]float64(nil), o.value...), cols, rankSlack*most) < wide {
			return nil
		}
		d.Explained, d.Elements, d.Numbers = d.Explained+has, d.Elements+len(diff), d.Numbers+r*(rows+cols)
		d.Values = []float64{math.Max(float64(r), first(d.Values))}
	}
	if d.Numbers == 0 || d.Numbers > d.Elements {
		return nil
	}
	if o := x.operand(); o != nil && o.gives() { // a few wrong channels of the operand make such an error, too
		return nil
	}
	return d
}

// sameRows reports whether the rows of a matrix differ by a slack at most.
func sameRows(a []float64, cols int, slack float64) bool {
	for i := cols; i < len(a); i++ {
		if math.Abs(a[i]-a[i-cols]) > slack {
			return false
		}
	}
	return true
}

// sameColumns reports whether the columns of a matrix differ by a slack at most, but for their signs.
func sameColumns(a []float64, cols int, slack float64) bool {
	for i, x := range a {
		if math.Abs(math.Abs(x)-math.Abs(a[i/cols*cols])) > slack {
			return false
		}
	}
	return true
}

func trues(all []bool) (n int) {
	for _, x := range all {
		if x {
			n++
		}
	}
	return n
}

// first is the first number, 0 for none.
func first(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	return x[0]
}

// rankOf is the rank of a matrix whose elements may be off by a slack. It overwrites the matrix.
func rankOf(a []float64, cols int, slack float64) int {
	rows := len(a) / cols
	for r := range min(rows, cols) {
		at, most := 0, 0.0
		for i, x := range a {
			if math.Abs(x) > most {
				at, most = i, math.Abs(x)
			}
		}
		if most <= slack {
			return r
		}
		pr, pc := at/cols, at%cols
		for i := range rows {
			if i == pr {
				continue
			}
			by := a[i*cols+pc] / a[at]
			for c := range cols {
				a[i*cols+c] -= by * a[pr*cols+c]
			}
		}
		for c := range cols { // the row is used
			a[pr*cols+c] = 0
		}
	}
	return min(rows, cols)
}
