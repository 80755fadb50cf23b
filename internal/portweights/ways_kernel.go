package portweights

import (
	"sync"

	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/order/program"
)

// multiplied is a dequantised weight with a kernel of the engine's.
type multiplied struct {
	program.Rows
	quant.Kernel
	steps program.Rows // rows of all steps, then all offsets; nil if the kernel needs no steps
	held  *sync.Pool   // memory for such a row
}

// inFloat32 returns dequantised rows, multiplied in float32 with unrounded inputs. If a format has offsets, the
// engine may add them separately.
func (w *Ways) inFloat32(rows, steps program.Rows, format string) program.Rows {
	if steps == nil {
		return rows
	}
	_, n := rows.Size()
	_, both := steps.Size()
	k, ok := quant.Unrounded(format, 2*n/both)
	if !ok {
		return rows
	}
	return multiplied{rows, k, steps, &w.held}
}

// Row is a row as the engine has it: of a lookup, too.
func (m multiplied) Row(dst []float64, i int) error { return m.row(dst, i) }

// row reads a row in the kernel's form. The steps and offsets follow the values if dst has room for them.
func (m multiplied) row(dst []float64, i int) error {
	_, n := m.Size()
	if err := m.Rows.Row(dst[:n], i); err != nil || m.steps == nil {
		return err
	}
	_, both := m.steps.Size()
	held, _ := m.held.Get().(*[]float64)
	if held == nil || cap(*held) < both {
		held = &[]float64{}
		*held = make([]float64, both)
	}
	defer m.held.Put(held)
	numbers := (*held)[:both]
	if err := m.steps.Row(numbers, i); err != nil {
		return err
	}
	groups := both / 2
	m.Weight(dst, n, n/groups, numbers[:groups], numbers[groups:])
	return nil
}

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
