package weights_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/quant"
	_ "github.com/tracediff/tracediff/internal/seeds"
)

// ggml stores a tensor in a block format, as its usual writer does.
func ggml(b quant.Block) func(*tensor) {
	return func(x *tensor) {
		q := b.Tensor("w", x.shape, bytes.NewReader(nil), 0)
		numbers := make([]float32, len(x.values))
		for i, v := range x.values {
			numbers[i] = float32(v)
		}
		var c quant.Codes
		if !q.Usual(&c, numbers) {
			panic(b.String())
		}
		x.grid(b.String(), q.Coding(q.Planes().Readers()).Data().Group)
		for i := range x.values {
			g := i / c.Group
			low, high := c.Step[g]*float64(c.Lo)+c.Offset[g], c.Step[g]*float64(c.Hi)+c.Offset[g]
			x.values[i] = float64(float32(c.Step[g]*float64(c.Code[i]) + c.Offset[g]))
			x.step[i], x.low[i], x.high[i], x.slack[i] = math.Abs(c.Step[g]), min(low, high), max(low, high), c.Slack(i)
		}
	}
}

// grid makes room for what codes could be.
func (x *tensor) grid(format string, group int) {
	n := len(x.values)
	x.format, x.group, x.dtype = format, group, hooks.F32
	x.step, x.low, x.high, x.slack = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
}

// affine stores groups of numbers as codes of some bits from their least one on; symmetric as codes around zero.
func affine(group, bits int, symmetric bool) func(*tensor) {
	return func(x *tensor) {
		group := group
		if group == 0 {
			_, group = x.size()
		}
		x.grid(fmt.Sprintf("int%d", bits), group)
		last := float64(int(1)<<bits - 1)
		for at := 0; at < len(x.values); at += group {
			w := x.values[at : at+group]
			low, high := slices.Min(w), slices.Max(w)
			step := (high - low) / last
			if symmetric {
				step = max(-low, high) / math.Floor(last/2)
				low = -math.Ceil(last/2) * step
			}
			step, low = float64(float32(step)), float64(float32(low))
			for i := range w {
				w[i] = low + step*min(max(math.Round((w[i]-low)/step), 0), last)
				x.step[at+i], x.low[at+i], x.high[at+i] = step, low, low+last*step
			}
		}
	}
}

// moving is affine as GPTQ and AWQ have it, with a part of each error in the next code.
func moving(x *tensor) {
	was := slices.Clone(x.values)
	affine(64, 4, false)(x)
	x.moves = true
	for at := 0; at < len(was); at += 64 {
		carry := 0.0
		for i := at; i < at+64; i++ {
			y := was[i] + carry
			x.values[i] = x.low[i] + x.step[i]*min(max(math.Round((y-x.low[i])/x.step[i]), 0), 15)
			carry = 0.5 * (y - x.values[i])
		}
	}
}

// codings are formats of codes.
var codings = map[string]func(*tensor){
	"Q8_0": ggml(quant.Q8_0), "Q4_0": ggml(quant.Q4_0), "Q4_1": ggml(quant.Q4_1), "Q5_0": ggml(quant.Q5_0), "Q5_1": ggml(quant.Q5_1),
	"Q4_K": ggml(quant.Q4_K), "Q5_K": ggml(quant.Q5_K), "Q6_K": ggml(quant.Q6_K),
	"MLX 4": affine(64, 4, false), "MLX 8": affine(64, 8, false), "int8 by row": affine(0, 8, true), "int4 by row": affine(0, 4, true), "int4 by group": affine(64, 4, true),
	"GPTQ": moving,
}

// Rows and columns of the tensors of these tests.
const codedRows, codedColumns = 64, 256

// normal is a matrix of normal numbers in bfloat16.
func normal(rows, columns int, seed uint64) *tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	x := &tensor{shape: []int{rows, columns}, values: make([]float64, rows*columns)}
	for i := range x.values {
		x.values[i] = r.NormFloat64() / 16
	}
	x.cast(hooks.BF16)
	return x
}

// exchanged are two places that have changed.
func exchanged(a, b int) func(int) int {
	return func(i int) int {
		switch i {
		case a:
			return b
		case b:
			return a
		}
		return i
	}
}

// TestCodesThatStandElsewhereAreNamed: in every format, with the row, and nothing else.
func TestCodesThatStandElsewhereAreNamed(t *testing.T) {
	type mistake struct {
		name  string
		rows  int
		plant func(x, other *tensor)
		kind  weights.Kind
		says  string
	}
	of := func(name string, kind weights.Kind, says string, rows int, plant func(x, other *tensor)) mistake {
		return mistake{name, rows, plant, kind, says}
	}
	order := func(name string, kind weights.Kind, says string, from func(int) int) mistake {
		return of(name, kind, says, codedRows, func(x, _ *tensor) { x.reorder(from) })
	}
	mistakes := []mistake{
		order("two rows exchanged", weights.RowOrder, "rows 17 and 40 have changed places", exchanged(17, 40)),
		order("five rows in a ring", weights.RowOrder, "5 of 64 rows stand in another order: the first is 3, which is the original's 11", func(i int) int {
			ring := []int{3, 11, 30, 31, 60}
			if k := slices.Index(ring, i); k >= 0 {
				return ring[(k+1)%5]
			}
			return i
		}),
		of("a row is the next", weights.ShiftedRows, "row 9 is the original's row 10; ", codedRows, func(x, _ *tensor) { copy(x.row(9), x.row(10)) }),
		order("rows from 50 on are the next", weights.ShiftedRows, "rows 50 to 62 are the original's rows 51 to 63", func(i int) int {
			if i >= 50 && i < 63 {
				return i + 1
			}
			return i
		}),
		order("rows in a ring", weights.ShiftedRows, "row i is the original's i+1, and the last 1 are its first", func(i int) int { return (i + 1) % 64 }),
		order("interleaved", weights.Interleaved, "interleaved RoPE in each head of 8", func(i int) int { return i/8*8 + i%2*4 + i%8/2 }),
		order("heads", weights.HeadOrder, "blocks of 8 rows stand in another order: block 0 is the original's 2", func(i int) int { return []int{2, 0, 1, 3, 4, 7, 6, 5}[i/8]*8 + i%8 }),
		of("two columns exchanged", weights.ColumnOrder, "columns 17 and 140 have changed places", codedRows, func(x, _ *tensor) { x.reorderColumns(exchanged(17, 140)) }),
		of("transposed", weights.Transposed, "[i, j] is the original's [j, i]", codedColumns, func(x, _ *tensor) { x.transpose() }),
		of("another layer", weights.OtherLayer, "layer 0 has the tensor of layer 1", codedRows, func(x, o *tensor) { copy(x.values, o.values) }),
		of("a row of elements one on", weights.Shifted, "row 12 has the original's elements 1 places to the left", codedRows, func(x, _ *tensor) { copy(x.row(12), slices.Clone(x.row(12)[1:])) }),
		of("read too far on", weights.Shifted, "256 elements too far on", codedRows, func(x, _ *tensor) {
			copy(x.values, slices.Clone(x.values[256:]))
			for i := range 256 {
				x.values[64*256-1-i] = x.values[i] // what lies behind it in the file
			}
		}),
	}
	for _, format := range slices.Sorted(maps.Keys(codings)) {
		for _, m := range mistakes {
			port, original := twoLayers(m.rows)
			m.plant(port[layered(0)], port[layered(1)])
			codings[format](port[layered(0)])
			codings[format](port[layered(1)])
			row := find(t, compare(t, port, original), layered(0))
			if row.Class != weights.Mistake || !strings.Contains(row.What, m.says) || row.Kind != m.kind {
				t.Errorf("%s, %s: %s %s: %s", format, m.name, row.Class, row.Kind, row.What)
			}
		}
		// a block of another row, and of the same
		for _, theirs := range []int{20*codedColumns + 64, 9*codedColumns + 192} {
			port, original := twoLayers(codedRows)
			x := port[layered(0)]
			codings[format](x)
			codings[format](port[layered(1)])
			n, mine := x.group, 9*codedColumns+64/min(x.group, 64)*min(x.group, 64)
			if n == codedColumns {
				mine, theirs = 9*codedColumns, 20*codedColumns
			}
			for _, plane := range [][]float64{x.values, x.step, x.low, x.high, x.slack} {
				copy(plane[mine:mine+n], plane[theirs:theirs+n])
			}
			row := find(t, compare(t, port, original), layered(0))
			want := fmt.Sprintf("row 9, columns %d to %d are the original's row %d, columns %d to %d", mine%codedColumns, mine%codedColumns+n-1, theirs/codedColumns, theirs%codedColumns, theirs%codedColumns+n-1)
			if n == codedColumns {
				want = "row 9 is the original's row 20"
			}
			if row.Class != weights.Mistake || !strings.Contains(row.What, want) {
				t.Errorf("%s, a block: %s %s: %s\nwant %s", format, row.Class, row.Kind, row.What, want)
			}
		}
		// healthy
		port, original := twoLayers(codedRows)
		codings[format](port[layered(0)])
		codings[format](port[layered(1)])
		if r := compare(t, port, original); !r.Right() {
			t.Errorf("%s: %+v", format, r.Findings)
		}
	}
}

func layered(layer int) string { return fmt.Sprintf("model.layers.%d.mlp.up_proj.weight", layer) }

// twoLayers is a port with a matrix in each of two layers, and the original.
func twoLayers(rows int) (checkpoint, weights.Side) {
	port := checkpoint{}
	var side weights.Side
	for layer := range 2 {
		x := normal(rows, codedColumns, uint64(layer+7))
		port[layered(layer)] = x
		side.Tensors = append(side.Tensors, &weights.Tensor{Name: layered(layer), Shape: slices.Clone(x.shape), DType: hooks.BF16, Data: bytes.NewReader(encode(hooks.BF16, x.values))})
	}
	return port, side
}

// planting are things that happen to the elements of a matrix, wherever they come from.
var planting = map[string]func(*rapid.T, *tensor){
	"exchange rows": func(t *rapid.T, x *tensor) { x.reorder(exchanged(place(t, x.shape[0]), place(t, x.shape[0]))) },
	"a row for another": func(t *rapid.T, x *tensor) {
		to := place(t, x.shape[0])
		copy(x.row(to), slices.Clone(x.row(place(t, x.shape[0]))))
	},
	"rows on": func(t *rapid.T, x *tensor) {
		by := 1 + place(t, 3)
		x.reorder(func(i int) int { return (i + by) % x.shape[0] })
	},
	"interleave": func(_ *rapid.T, x *tensor) { x.reorder(func(i int) int { return i/8*8 + i%2*4 + i%8/2 }) },
	"blocks of rows": func(t *rapid.T, x *tensor) {
		move := exchanged(place(t, x.shape[0]/8), place(t, x.shape[0]/8))
		x.reorder(func(i int) int { return move(i/8)*8 + i%8 })
	},
	"exchange columns": func(t *rapid.T, x *tensor) {
		x.reorderColumns(exchanged(place(t, codedColumns), place(t, codedColumns)))
	},
	"a row one on": func(t *rapid.T, x *tensor) {
		r := x.row(place(t, x.shape[0]))
		copy(r, slices.Clone(r[1:]))
	},
	"clear a row": func(t *rapid.T, x *tensor) {
		r := x.row(place(t, x.shape[0]))
		for i := range r {
			r[i] = math.NaN() // comes from nowhere
		}
	},
	"a block for another": func(t *rapid.T, x *tensor) {
		from, to := 64*place(t, len(x.values)/64), 64*place(t, len(x.values)/64)
		copy(x.values[to:to+64], slices.Clone(x.values[from:from+64]))
	},
	"read on": func(t *rapid.T, x *tensor) { copy(x.values, slices.Clone(x.values[32*(1+place(t, 9)):])) },
}

func place(t *rapid.T, n int) int { return rapid.IntRange(0, n-1).Draw(t, "place") }

// from is where the elements of a matrix come from: by the words of a report, those of some rows and columns.
type from struct {
	words *regexp.Regexp
	// of the numbers in the words and an element, whether it is said of it, and where that comes from
	of func(n []int, row, column int) (said bool, fromRow, fromColumn int)
}

var froms = []from{
	{regexp.MustCompile(`row (\d+) is the original's row (\d+)`), func(n []int, r, c int) (bool, int, int) { return r == n[0], n[1], c }},
	{regexp.MustCompile(`rows (\d+) to (\d+) are the original's rows (\d+) to \d+`), func(n []int, r, c int) (bool, int, int) {
		return r >= n[0] && r <= n[1], r - n[0] + n[2], c
	}},
	{regexp.MustCompile(`row (\d+), columns (\d+) to (\d+) are the original's row (\d+), columns (\d+) to`), func(n []int, r, c int) (bool, int, int) {
		return r == n[0] && c >= n[1] && c <= n[2], n[3], c - n[1] + n[4]
	}},
	{regexp.MustCompile(`rows (\d+) to (\d+), columns (\d+) to (\d+) are the original's rows (\d+) to \d+, columns (\d+) to`), func(n []int, r, c int) (bool, int, int) {
		return r >= n[0] && r <= n[1] && c >= n[2] && c <= n[3], r - n[0] + n[4], c - n[2] + n[5]
	}},
	{regexp.MustCompile(`rows (\d+) and (\d+) have changed places`), func(n []int, r, c int) (bool, int, int) {
		return r == n[0] || r == n[1], n[0] + n[1] - r, c
	}},
	{regexp.MustCompile(`columns (\d+) and (\d+) have changed places`), func(n []int, r, c int) (bool, int, int) {
		return c == n[0] || c == n[1], r, n[0] + n[1] - c
	}},
	{regexp.MustCompile(`row (\d+) has the original's elements (\d+) places to the left`), func(n []int, r, c int) (bool, int, int) {
		return r == n[0] && c+n[1] < codedColumns, r, c + n[1]
	}},
	{regexp.MustCompile(`row (\d+) has the original's elements (\d+) places to the right`), func(n []int, r, c int) (bool, int, int) {
		return r == n[0] && c >= n[1], r, c - n[1]
	}},
	{regexp.MustCompile(`row i is the original's i([+-]\d+), and the`), func(n []int, r, c int) (bool, int, int) { return true, (r + n[0] + 32) % 32, c }},
	{regexp.MustCompile(`rows stand in another order: the first is (\d+), which is the original's (\d+)`), func(n []int, r, c int) (bool, int, int) { return r == n[0], n[1], c }},
	{regexp.MustCompile(`columns stand in another order: the first is (\d+), which is the original's (\d+)`), func(n []int, r, c int) (bool, int, int) { return c == n[0], r, n[1] }},
	{regexp.MustCompile(`blocks of (\d+) rows stand in another order: block (\d+) is the original's (\d+)`), func(n []int, r, c int) (bool, int, int) {
		return r/n[0] == n[1], r - r/n[0]*n[0] + n[2]*n[0], c
	}},
	{regexp.MustCompile(`interleaved RoPE in each head of (\d+)`), func(n []int, r, c int) (bool, int, int) {
		return true, r/n[0]*n[0] + r%2*n[0]/2 + r%n[0]/2, c
	}},
	{regexp.MustCompile(`RoPE in halves in each head of (\d+)`), func(n []int, r, c int) (bool, int, int) {
		return true, r/n[0]*n[0] + r%(n[0]/2)*2 + r%n[0]/(n[0]/2), c
	}},
	{regexp.MustCompile(`the two halves have changed places: row i`), func(_ []int, r, c int) (bool, int, int) { return true, (r + 16) % 32, c }},
	{regexp.MustCompile(`the rows stand in reverse`), func(_ []int, r, c int) (bool, int, int) { return true, 31 - r, c }},
	{regexp.MustCompile(`element i is the original's element i([+-]\d+)`), func(n []int, r, c int) (bool, int, int) {
		at := r*codedColumns + c + n[0]
		return at >= 0 && at < 32*codedColumns, at / codedColumns, at % codedColumns
	}},
}

// TestNamesOfCodesAreTrue draws one or two mistakes and a format: what is said of where elements stand is so, for every element of which it
// is said.
func TestNamesOfCodesAreTrue(t *testing.T) {
	names := slices.Sorted(maps.Keys(planting))
	formats := slices.Sorted(maps.Keys(codings))
	rapid.Check(t, func(t *rapid.T) {
		x := normal(32, codedColumns, rapid.Uint64().Draw(t, "seed"))
		original := slices.Clone(x.values)
		for i := range x.values {
			x.values[i] = float64(i)
		}
		planted := rapid.SliceOfN(rapid.SampledFrom(names), 1, 2).Draw(t, "mistakes")
		for _, n := range planted {
			planting[n](t, x)
		}
		places := slices.Clone(x.values)
		moved := 0
		for i, at := range places {
			x.values[i] = 0
			if at == at {
				x.values[i] = original[int(at)]
			}
			if at != float64(i) {
				moved++
			}
		}
		format := rapid.SampledFrom(formats).Draw(t, "format")
		codings[format](x)
		side := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: x.shape, DType: hooks.BF16, Data: bytes.NewReader(encode(hooks.BF16, original))}}}
		r, err := weights.Compare(t.Context(), checkpoint{"w": x}.side(), side, weights.Options{Workers: 1, HeadDim: 8})
		if err != nil {
			t.Fatal(err)
		}
		row := r.Tensors[0]
		// Of a format that moves errors the size of those of each group is judged: a few elements of each are no mistake by that.
		if few := x.moves && moved < len(places)/4; row.Class.Right() && moved > 8 && !few {
			t.Fatalf("%s, %v: right, and %d elements stand elsewhere", format, planted, moved)
		}
		if row.Class != weights.Mistake {
			return
		}
		for _, f := range froms {
			for _, m := range f.words.FindAllStringSubmatch(row.What, -1) {
				var n []int
				for _, digits := range m[1:] {
					v, _ := strconv.Atoi(digits) // digits
					n = append(n, v)
				}
				wrong, all := 0, 0
				for i, at := range places {
					said, fromRow, fromColumn := f.of(n, i/codedColumns, i%codedColumns)
					if !said {
						continue
					}
					if all++; at != float64(fromRow*codedColumns+fromColumn) {
						wrong++
					}
				}
				if 32*wrong > all || all == 0 { // a few may be right codes by chance, or moved errors
					t.Fatalf("%s, %v: %d of %d elements are not what is said: %s", format, planted, wrong, all, row.What)
				}
			}
		}
	})
}

// What a name of a mistake says of some elements is no name where a second mistake is among them.
func TestNameOfCodesIsOfAllThatItSpeaksOf(t *testing.T) {
	interleave := func(x *tensor) { planting["interleave"](nil, x) }
	columns := func(x *tensor) { x.reorderColumns(exchanged(0, 4)) }
	rowOneOn := func(x *tensor) { copy(x.row(0), slices.Clone(x.row(0)[1:])) }
	for _, c := range []struct {
		what          string
		first, second func(*tensor)
		kind          weights.Kind
		named         bool
	}{
		{"pairs of heads", interleave, nil, weights.Interleaved, true},
		// which leaves rows 0 and 7 of a head where they are
		{"pairs of heads, of which two rows had changed places", func(x *tensor) { x.reorder(exchanged(0, 7)) }, interleave, weights.Interleaved, false},
		{"a row one on", rowOneOn, nil, weights.Shifted, true},
		{"a row one on, of which a block is another", rowOneOn, func(x *tensor) { copy(x.row(0)[64:128], slices.Clone(x.row(0)[:64])) }, weights.Shifted, false},
		{"columns", columns, nil, weights.ColumnOrder, true},
		{"columns, and rows", columns, func(x *tensor) { x.reorder(exchanged(0, 2)) }, weights.ColumnOrder, false},
	} {
		x := normal(32, codedColumns, 0x21a)
		original := slices.Clone(x.values)
		c.first(x)
		if c.second != nil {
			c.second(x)
		}
		codings["GPTQ"](x)
		side := weights.Side{Tensors: []*weights.Tensor{{Name: "w", Shape: x.shape, DType: hooks.BF16, Data: bytes.NewReader(encode(hooks.BF16, original))}}}
		r, err := weights.Compare(t.Context(), checkpoint{"w": x}.side(), side, weights.Options{Workers: 1, HeadDim: 8})
		if err != nil {
			t.Fatal(err)
		}
		if row := r.Tensors[0]; row.Class.Right() || (row.Kind == c.kind) != c.named {
			t.Errorf("%s: %s, %s: %s", c.what, row.Class, row.Kind, row.What)
		}
	}
}
