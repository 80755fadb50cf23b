package diagnose

import (
	"math"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

// The kinds of weights that a converter rotates or repacks.
const (
	hadamardInputs  Kind = "weight.hadamard-inputs"
	hadamardOutputs Kind = "weight.hadamard-outputs"
	panelsAsRows    Kind = "weight.panels-as-rows"
	rowsAsPanels    Kind = "weight.rows-as-panels"
)

// The smallest and the largest size of a Hadamard matrix that is tried.
const (
	leastHadamard = 1 << 3
	mostHadamard  = 1 << 14
)

// rotatedWeights lists Hadamard rotations of a weight, the largest first, and repacked panels of rows.
func rotatedWeights() (all []Mistake) {
	for n := mostHadamard; n >= leastHadamard; n /= 2 {
		all = append(all, Mistake{Kind: hadamardInputs, N: n}, Mistake{Kind: hadamardOutputs, N: n})
	}
	for _, rows := range []int{4, 8} {
		for _, columns := range []int{4, 8, 16, 32} {
			all = append(all, Mistake{Kind: panelsAsRows, N: rows, M: columns}, Mistake{Kind: rowsAsPanels, N: rows, M: columns})
		}
	}
	return all
}

// hadamard multiplies each block of n inputs, or of n outputs, of a matrix by the symmetric Hadamard matrix of Sylvester's construction over √n. The products
// are rounded to the model's type.
func hadamard(w program.Rows, m Mistake, model hooks.DType) program.Rows {
	rows, cols := w.Size()
	if rows < 2 || m.N < 2 || m.N&(m.N-1) != 0 {
		return nil
	}
	scale := 1 / math.Sqrt(float64(m.N))
	if m.Kind == hadamardInputs {
		if cols%m.N != 0 {
			return nil
		}
		return changed(w, func(row []float64) {
			for at := 0; at < cols; at += m.N {
				walsh(row[at:][:m.N], 1)
			}
			for j, x := range row {
				row[j] = floats.Round(model, x*scale)
			}
		})
	}
	if rows%m.N != 0 {
		return nil
	}
	data := held(w)
	if data == nil {
		return nil
	}
	for at := 0; at < len(data); at += m.N * cols {
		for j := range cols {
			walsh(data[at+j:at+m.N*cols], cols)
		}
	}
	for i, x := range data {
		data[i] = floats.Round(model, x*scale)
	}
	return madeOf(data, rows, cols, func(i, j int) int { return i*cols + j })
}

// walsh replaces every stride-th number of x, as many as a power of two, by their Walsh-Hadamard transform without its scale.
func walsh(x []float64, stride int) {
	n := (len(x) + stride - 1) / stride
	for half := 1; half < n; half *= 2 {
		for i := 0; i < n; i += 2 * half {
			for k := i; k < i+half; k++ {
				a, b := x[k*stride], x[(k+half)*stride]
				x[k*stride], x[(k+half)*stride] = a+b, a-b
			}
		}
	}
}

// panels is a matrix in panels of N rows: a panel has M numbers of each of its rows in turn. The matrix is stored in panels and read row by row, or the
// reverse. It is nil for a matrix that has no whole panels, or whose panels are rows.
func panels(w program.Rows, m Mistake, _ hooks.DType) program.Rows {
	rows, cols := w.Size()
	a, b := m.N, m.M
	if a < 2 || b < 1 || rows%a != 0 || cols%b != 0 || cols == b {
		return nil
	}
	data := held(w)
	if data == nil {
		return nil
	}
	return madeOf(data, rows, cols, func(i, j int) int {
		panel := i / a * a * cols
		if m.Kind == rowsAsPanels {
			return panel + (j/b*a+i%a)*b + j%b
		}
		at := i%a*cols + j
		return panel + at/b%a*cols + at/(a*b)*b + at%b
	})
}
