package kernel

import (
	"fmt"

	"github.com/tracediff/tracediff/hooks"
)

// rows are the products of a few rows of weights with tokens, in assembly that gen writes. A sum is that of tile: from its first column to
// its last, in runs of depth columns.
type rows struct {
	count   int // rows at once
	columns int // rows take a multiple of it

	// one, four and eight are for so many tokens: n columns of each row, rows stride bytes apart, with x [n, tokens], to sums [tokens, count].
	one, four, eight func(sums *float64, w *byte, stride, n int, x *float64)
	// runs is one for two runs of n columns, the second apart bytes of x after the first: sums [2, count].
	runs func(sums *float64, w *byte, stride, n int, x *float64, apart int)
}

// most is the most tokens that meet a row in registers.
const most = 8

// sumsRoom is for sums of most tokens with as many rows as any processor takes.
const sumsRoom = most * 8

// widest is the width in bits of the registers that may be used; a test sets it.
var widest = 512

// vectors returns the products for m, nil where the processor has none or a weight is rounded before it is used.
func (m *Matrix) vectors() *rows {
	if m.format != m.arith.DType && m.arith.DType != hooks.F32 {
		return nil
	}
	v := rowsOf(m.format)
	if v == nil || m.Rows < v.count || m.Cols < v.columns {
		return nil
	}
	return v
}

// group is some tokens of a product, multiplied with a row together: x [Cols, size] has zeros for missing tokens.
type group struct {
	first, tokens, size int
	x                   []float64
	of                  func(sums *float64, w *byte, stride, n int, x *float64)
}

// groups lays out the tokens of x [tokens, Cols] for v.
func (v *rows) groups(x []float32, tokens, cols int, room []float64) []group {
	var all []group
	for first := 0; first < tokens; first += most {
		g := group{first: first, tokens: min(most, tokens-first)}
		switch {
		case g.tokens == 1:
			g.size, g.of = 1, v.one
		case g.tokens <= 4:
			g.size, g.of = 4, v.four
		default:
			g.size, g.of = most, v.eight
		}
		g.x = room[first*cols:][:cols*g.size]
		clear(g.x)
		for t := range g.tokens {
			for k, w := range x[(first+t)*cols:][:cols] {
				g.x[k*g.size+t] = float64(w)
			}
		}
		all = append(all, g)
	}
	return all
}

// groupsRoom is how much room groups wants for so many tokens.
func groupsRoom(tokens, cols int) int { return (tokens + most - 1) / most * most * cols }

// piece is how many bytes of weights are read from a file at once: a share of a second-level cache.
const piece = 1 << 18

// output is where the sums of a product go.
type output struct {
	dst   []float32 // [tokens, rows]
	rows  int
	bias  []float32 // of each row; nil for none
	arith Arith
}

// set writes the sums of a token from one row on.
func (o *output) set(token, row int, sums []float64) {
	out := o.dst[token*o.rows+row:][:len(sums)]
	for r, sum := range sums {
		if o.bias != nil {
			sum += float64(o.bias[row+r])
		}
		out[r] = o.arith.R(float32(sum))
	}
}

// multiply computes the outputs of rows [from, to) for the tokens of all groups.
func (v *rows) multiply(dst output, m *Matrix, groups []group, from, to int) error {
	stride := m.Cols * m.format.Size()
	at := max(piece/stride/v.count, 1) * v.count // rows at once
	var buffer []byte
	if m.file == nil {
		at = to - from
	} else {
		buffer = bytePool.get(at * stride)
		defer bytePool.put(buffer)
	}
	s := tilePool.get(2*sumsRoom + depth)
	defer tilePool.put(s)
	for ; from < to; from += at {
		n := min(at, to-from)
		data := m.data[from*stride:][:n*stride]
		if m.file != nil {
			data = buffer[:n*stride]
			if _, err := m.file.ReadAt(data, m.begin+int64(from*stride)); err != nil {
				return fmt.Errorf("reading weights: %w", err)
			}
		}
		for row := 0; row < n; row += v.count {
			v.tile(&dst, m, data[row*stride:][:v.count*stride], groups, from+row, s)
		}
	}
	return nil
}

// tile computes the outputs of count rows, whose first is row, for the tokens of all groups. Scratch has room for two sums and for a row of
// weights of depth columns.
func (v *rows) tile(dst *output, m *Matrix, data []byte, groups []group, row int, scratch []float64) {
	for i := range groups {
		g := &groups[i]
		acc := scratch[:g.size*v.count]
		v.sum(m, g, data, acc, scratch[sumsRoom:])
		for t := range g.tokens {
			dst.set(g.first+t, row, acc[t*v.count:][:v.count])
		}
	}
}

// sum adds up the products of count rows with a group, run after run.
func (v *rows) sum(m *Matrix, g *group, data []byte, acc, scratch []float64) {
	sums, rest := scratch[:sumsRoom], scratch[sumsRoom:]
	size := m.format.Size()
	stride := m.Cols * size
	clear(acc)
	for from := 0; from < m.Cols; from += depth {
		if g.size == 1 && from+2*depth <= m.Cols {
			v.runs(&sums[0], &data[from*size], stride, depth, &g.x[from], 8*depth)
			add(acc, sums[:v.count])
			add(acc, sums[v.count:])
			from += depth
			continue
		}
		n := min(depth, m.Cols-from)
		whole := n - n%v.columns
		if whole > 0 {
			g.of(&sums[0], &data[from*size], stride, whole, &g.x[from*g.size])
		} else {
			clear(sums[:len(acc)])
		}
		for r := range v.count {
			w := rest[:n-whole]
			m.widen(w, data, r, from+whole)
			for k, w := range w {
				x := g.x[(from+whole+k)*g.size:]
				for t := range g.size {
					sums[t*v.count+r] += w * x[t]
				}
			}
		}
		add(acc, sums)
	}
}

func add(sum, x []float64) {
	for i := range sum {
		sum[i] += x[i]
	}
}
