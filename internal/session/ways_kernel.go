package session

import (
	"sync"

	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order/program"
)

// multiplied is a dequantised weight whose engine multiplies by a kernel of its own.
type multiplied struct {
	program.Rows
	quant.Kernel
	steps program.Rows // rows of steps and of offsets behind them; nil where the kernel needs none
}

// inFloat32 are dequantised rows that an engine multiplies in float32 with numbers as they are. Where a format has offsets, the engine may add these apart.
func inFloat32(rows, steps program.Rows, format string) program.Rows {
	if steps == nil {
		return rows
	}
	_, n := rows.Size()
	_, both := steps.Size()
	k, ok := quant.Unrounded(format, 2*n/both)
	if !ok {
		return rows
	}
	return multiplied{rows, k, steps}
}

// Row is a row as the engine has it: of a lookup, too.
func (m multiplied) Row(dst []float64, i int) error { return m.row(dst, i) }

// row is a row as the kernel multiplies it: with what stands behind the blocks, where dst has room for that.
func (m multiplied) row(dst []float64, i int) error {
	_, n := m.Size()
	if err := m.Rows.Row(dst[:n], i); err != nil || m.steps == nil {
		return err
	}
	_, both := m.steps.Size()
	held, _ := stepsOf.Get().(*[]float64)
	if held == nil || cap(*held) < both {
		held = &[]float64{}
		*held = make([]float64, both)
	}
	defer stepsOf.Put(held)
	numbers := (*held)[:both]
	if err := m.steps.Row(numbers, i); err != nil {
		return err
	}
	groups := both / 2
	m.Weight(dst, n, n/groups, numbers[:groups], numbers[groups:])
	return nil
}

// stepsOf is memory for the steps and offsets of a row.
var stepsOf sync.Pool

// Product is what the kernel multiplies.
func (m multiplied) Product(x, bound []float64) program.Product {
	_, n := m.Size()
	values, bounds := m.Operand(n, x, bound)
	return program.Product{W: long{m}, X: values, Bound: bounds, Sum: m.Sum()}
}

// long are the rows that a kernel multiplies.
type long struct{ multiplied }

func (l long) Size() (rows, cols int) {
	rows, n := l.Rows.Size()
	return rows, l.Columns(n)
}

func (l long) Row(dst []float64, i int) error { return l.row(dst, i) }
