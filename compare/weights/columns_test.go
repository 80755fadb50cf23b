package weights_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
)

// spreading is a matrix in codes of four bits, a group a row, whose errors are those of GPTQ with inputs that go together: so many steps, root
// mean square, beside what rounding makes.
func spreading(rng *rand.Rand, rows, columns int, steps float64) (port, original *tensor) {
	original = &tensor{shape: []int{rows, columns}, dtype: hooks.F32, values: make([]float64, rows*columns)}
	port = &tensor{shape: original.shape, dtype: hooks.F32, format: "GPTQ", group: columns, moves: true, values: make([]float64, rows*columns)}
	port.step, port.low, port.high = make([]float64, rows*columns), make([]float64, rows*columns), make([]float64, rows*columns)
	for row := 0; row < len(original.values); row += columns {
		most := 0.0
		for i := row; i < row+columns; i++ {
			original.values[i] = float64(float32(rng.NormFloat64()))
			most = max(most, math.Abs(original.values[i]))
		}
		step := float64(float32(2 * most / 15))
		for i := row; i < row+columns; i++ {
			code := math.Round(original.values[i]/step + rng.NormFloat64()*steps)
			port.values[i] = min(max(code, -8), 7) * step
			port.step[i], port.low[i], port.high[i] = step, -8*step, 7*step
		}
	}
	return port, original
}

func TestColumnsOfFormatsThatMoveErrors(t *testing.T) {
	const name, rows, columns = "model.layers.0.mlp.up_proj.weight", 256, 128
	at := func(x *tensor, column int, make func(row int) float64) {
		for r := range rows {
			x.values[r*columns+column] = make(r) * x.step[r*columns]
		}
	}
	exchange := func(x *tensor, list ...int) {
		for r := range rows {
			row := x.values[r*columns:][:columns]
			first := row[list[0]]
			for i, c := range list[:len(list)-1] {
				row[c] = row[list[i+1]]
			}
			row[list[len(list)-1]] = first
		}
	}
	tests := []struct {
		name  string
		steps float64
		plant func(x *tensor)
		class weights.Class
		says  string
	}{
		{"errors of rounding", 0, func(*tensor) {}, weights.Quantised, ""},
		{"errors of inputs that go together", 0.6, func(*tensor) {}, weights.Quantised, ""},
		{"two exchanged", 0, func(x *tensor) { exchange(x, 3, 77) }, weights.Mistake, "columns 3 and 77 have changed places"},
		{"two exchanged, larger errors", 0.5, func(x *tensor) { exchange(x, 3, 77) }, weights.Mistake, "columns 3 and 77 have changed places"},
		{"three in turn", 0, func(x *tensor) { exchange(x, 8, 10, 9) }, weights.Mistake, "3 of 128 columns stand in another order: the first is 8, which is the original's 10"},
		{"one of other codes", 0, func(x *tensor) { at(x, 17, func(r int) float64 { return float64(r*7%15 - 7) }) }, weights.Different, "1 column is not the original's: the cosine of column 17"},
		{"one of the other sign", 0, func(x *tensor) { at(x, 17, func(r int) float64 { return -x.values[r*columns+17] / x.step[r*columns] }) }, weights.Different, "1 column is not the original's: the cosine of column 17"},
		{"one of zeros", 0, func(x *tensor) { at(x, 17, func(int) float64 { return 0 }) }, weights.Quantised, "1 column is zero, the first is 17"},
		{"a scale half as large", 0, func(x *tensor) { x.rescale(5*columns, columns, 0.5) }, weights.Mistake, "row 5"},
		{"each scale smaller by 0.5 %", 0, func(x *tensor) { x.rescale(0, rows*columns, 0.995) }, weights.Quantised, "its numbers are 0.99"},
		{"a row of another place", 0.3, func(x *tensor) { copy(x.values[5*columns:6*columns], x.values[9*columns:]) }, weights.Mistake, "row 5 is the original's row 9"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port, original := spreading(rand.New(rand.NewPCG(1, 2)), rows, columns, tt.steps)
			tt.plant(port)
			row := find(t, compare(t, checkpoint{name: port}, checkpoint{name: original}.side()), name)
			if row.Class != tt.class || !strings.Contains(row.What+strings.Join(row.Notes, "\n"), tt.says) {
				t.Errorf("got %s %s: %s %q", row.Class, row.Kind, row.What, row.Notes)
			}
			if strings.Contains(tt.name, "two") && (row.Kind != weights.ColumnOrder || row.At == nil || row.At.Column != 3) {
				t.Errorf("%s at %+v", row.Kind, row.At)
			}
		})
	}
}
