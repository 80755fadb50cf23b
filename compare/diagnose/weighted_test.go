package diagnose_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// grid is a matrix as rows, and a vector as one row.
type grid [][]float64

func (g grid) Size() (rows, cols int) { return len(g), len(g[0]) }

func (g grid) Row(dst []float64, i int) error {
	copy(dst, g[i])
	return nil
}

// someRows are some rows of a weight.
type someRows struct {
	program.Rows
	keep []int
}

func (w someRows) Size() (rows, cols int) {
	_, cols = w.Rows.Size()
	return len(w.keep), cols
}

func (w someRows) Row(dst []float64, i int) error   { return w.Rows.Row(dst, w.keep[i]) }
func (w someRows) All() program.Rows                { return w.Rows }
func (w someRows) Of(all program.Rows) program.Rows { return someRows{all, w.keep} }

// newGrid is a matrix of a function of its places.
func newGrid(rows, cols int, f func(i, j int) float64) grid {
	g := make(grid, rows)
	for i := range g {
		g[i] = make([]float64, cols)
		for j := range g[i] {
			g[i][j] = f(i, j)
		}
	}
	return g
}

// gridOf are the numbers of a weight: they depend on its name, and are others in each place.
func gridOf(w order.Weight) grid {
	seed := 0.0
	for k, c := range w.Name {
		seed += float64(c) * float64(k%7+1)
	}
	rows, cols := 1, w.Shape[0]
	if len(w.Shape) == 2 {
		rows, cols = w.Shape[0], w.Shape[1]
	}
	return newGrid(rows, cols, func(i, j int) float64 { return float64(float32(math.Sin(seed+float64(i*cols+j)*1.7) / 2)) })
}

// weighted is a model of two layers or more whose operations are right, for mistakes to be applied to.
func weighted(t *testing.T) *diagnose.Model {
	t.Helper()
	list := listOf(t, "qwen2-tiny")
	passes := []order.Pass{{Tokens: tokens}}
	return &diagnose.Model{
		List: list, Passes: passes, Has: func(order.Node) bool { return false },
		Weights: func(w order.Weight) (program.Rows, error) { return gridOf(w), nil },
		Read: func(n order.Node) (program.Value, error) {
			v := program.Value{Shape: list.Entries[n.Entry].Size(passes[n.Pass], list.Config.SlidingWindow)}
			size := 1
			for _, d := range v.Shape {
				size *= d
			}
			for i := range size {
				x := math.Cos(float64(3*i + 5*n.Entry))
				if list.Entries[n.Entry].Name == order.InputIDs {
					x = float64(3*i + 1)
				}
				v.Data = append(v.Data, float64(float32(x)))
			}
			return v, nil
		},
	}
}

// rightEntry is an entry of a model without a mistake.
func rightEntry(t *testing.T, m *diagnose.Model, name string) *diagnose.Entry {
	t.Helper()
	at := m.List.Index(name)
	entry := &m.List.Entries[at]
	e := &diagnose.Entry{Node: order.Node{Entry: at}, Weights: entry.Weights}
	e.Call.Arith = program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}
	var shapes [][]int
	var sizes [][2]int
	for _, r := range entry.Inputs {
		n := order.Node{Entry: m.List.Index(r.Name)}
		v, err := m.Read(n)
		if err != nil {
			t.Fatal(err)
		}
		e.Inputs, e.Items, e.Call.In, shapes = append(e.Inputs, n), append(e.Items, nil), append(e.Call.In, v), append(shapes, v.Shape)
	}
	for _, w := range entry.Weights {
		g := gridOf(w)
		rows, cols := g.Size()
		e.Call.W, sizes = append(e.Call.W, g), append(sizes, [2]int{rows, cols})
	}
	e.Call.Shape = entry.Size(m.Passes[0], m.List.Config.SlidingWindow)
	var err error
	if e.Program, err = program.Of(entry.Op, func(o program.Op) string { return o.Kind() }, 0, e.Call.Shape, shapes, sizes); err != nil {
		t.Fatal(err)
	}
	e.Judge = &honest{e: e}
	return e
}

// linear is a product with a matrix, and a bias, in plain loops.
func linear(x []float64, w grid, bias []float64) (y []float64) {
	_, cols := w.Size()
	for at := 0; at < len(x); at += cols {
		for i, row := range w {
			sum := 0.0
			for j, v := range row {
				sum += v * x[at+j]
			}
			if bias != nil {
				sum += bias[i]
			}
			y = append(y, sum)
		}
	}
	return y
}

// by is a matrix with each number changed by itself.
func by(f func(x float64) float64) func(w grid) grid {
	return func(w grid) grid {
		rows, cols := w.Size()
		return newGrid(rows, cols, func(i, j int) float64 { return f32(f(w[i][j])) })
	}
}

// inGroups is a matrix with each n numbers of a row changed together. Top is the size of the largest.
func inGroups(n int, f func(g []float64, top float64)) func(w grid) grid {
	return func(w grid) grid {
		for _, row := range w {
			for at := 0; at < len(row); at += n {
				f(row[at:at+n], largest(grid{row[at : at+n]}))
			}
		}
		return w
	}
}

// largest is the size of the largest number of a matrix.
func largest(w grid) (top float64) {
	for _, row := range w {
		for _, x := range row {
			top = max(top, math.Abs(x))
		}
	}
	return top
}

// steps rounds numbers to codes times a step.
func steps(g []float64, step float64, code func(x float64) float64) {
	step = f32(step)
	for i, x := range g {
		g[i] = f32(code(f32(x/step)) * step)
	}
}

// nearest is the nearest of some codes.
func nearest(codes ...float64) func(x float64) float64 {
	return func(x float64) float64 {
		best := codes[0]
		for _, c := range codes {
			if math.Abs(x-c) < math.Abs(x-best) {
				best = c
			}
		}
		return best
	}
}

// packedInWords rounds numbers to codes that are added to words of some codes, and reads the bits of the words.
func packedInWords(lanes, bits int, most float64) func(g []float64, top float64) {
	return func(g []float64, top float64) {
		step := f32(top / most)
		for at := 0; at < len(g); at += lanes {
			word := int64(0)
			for k, x := range g[at:][:lanes] {
				word += int64(math.RoundToEven(f32(x/step))) << (k * bits)
			}
			for k := range lanes {
				g[at+k] = f32(float64(word>>(k*bits)<<(64-bits)>>(64-bits)) * step)
			}
		}
	}
}

// between rounds numbers to 15 steps between the least and the largest, with a zero point that is off.
func between(off float64) func(g []float64, _ float64) {
	return func(g []float64, _ float64) {
		low, step := slices.Min(g), f32(f32(slices.Max(g)-slices.Min(g))/15)
		zero := math.RoundToEven(f32(-low / step))
		for i, x := range g {
			g[i] = f32((min(max(math.RoundToEven(f32(x/step))+zero, 0), 15) - zero - off) * step)
		}
	}
}

// turn is a matrix transposed.
func turn(w grid) grid {
	rows, cols := w.Size()
	return newGrid(cols, rows, func(i, j int) float64 { return w[j][i] })
}

// tiled is a matrix with the numbers of each tile of a rows by b columns written one way and read the other.
func tiled(a, b int, byColumns bool) func(w grid) grid {
	return func(w grid) grid {
		rows, cols := w.Size()
		out := newGrid(rows, cols, func(int, int) float64 { return 0 })
		for i := 0; i < rows; i += a {
			for j := 0; j < cols; j += b {
				var columns, lines [][2]int // the places of a tile in the two orders
				for y := range a {
					for x := range b {
						lines = append(lines, [2]int{i + y, j + x})
					}
				}
				for x := range b {
					for y := range a {
						columns = append(columns, [2]int{i + y, j + x})
					}
				}
				from, to := columns, lines
				if !byColumns {
					from, to = lines, columns
				}
				for k := range from {
					out[to[k][0]][to[k][1]] = w[from[k][0]][from[k][1]]
				}
			}
		}
		return out
	}
}

// appliedTo is what an entry gives with a mistake; nil where it cannot have it.
func appliedTo(t *testing.T, m *diagnose.Model, e *diagnose.Entry, mistake diagnose.Mistake) []float64 {
	t.Helper()
	d, err := m.Apply(mistake, e)
	if err != nil {
		t.Fatal(err)
	}
	if d == nil {
		return nil
	}
	p, call := d.Whole(e.Call)
	v, err := p.Eval(call)
	if err != nil {
		t.Fatal(err)
	}
	return v.Data
}

// alike reports whether numbers differ by what orders of summation leave open.
func alike(got, want []float64) bool {
	if len(got) != len(want) {
		return false
	}
	for i, x := range want {
		if !(math.Abs(got[i]-x) <= 1e-4*(1+math.Abs(x))) {
			return false
		}
	}
	return true
}
