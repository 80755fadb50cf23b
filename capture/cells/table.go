package cells

import (
	"math"
	"slices"
	"sync"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// layer is where the keys of one layer stand in the order, by names.
type layer struct {
	keys  string // all keys of a pass
	fresh string // those of the pass's own tokens
}

// layersOf finds the keys of each layer. A layer that shares the keys of another has that one's fresh keys.
func layersOf(list *order.List) map[int]layer {
	fresh := map[string]string{} // by the name of the cache
	layers := map[int]layer{}
	for i := range list.Entries {
		e := &list.Entries[i]
		if len(e.Inputs) == 0 {
			continue
		}
		switch from := e.Inputs[0].Name; op.KeysOf(e.Op) {
		case op.AppendKeys:
			fresh[e.Name] = from
			layers[e.Layer] = layer{e.Name, from}
		case op.HandOnKeys:
			if of, ok := fresh[from]; ok {
				fresh[e.Name] = of
				layers[e.Layer] = layer{e.Name, of}
			}
		}
	}
	return layers
}

// table says which cell has which key in the tensors of one place.
type table struct {
	cells int // of the axis
	total int // tokens up to the end of the pass
	keys  int // that the order has: the last ones of total

	find func() ([]int, error) // the key of each cell
	once sync.Once
	of   []int // the key of each cell; −1: it holds no token
	at   []int // the cell of each key of the order, oldest first
	err  error
}

// table is that of a place; nil where nothing says which cell has which key.
//
// Where there is a cell for each token, a key is in the cell of its own number, unless the keys themselves lie otherwise. With fewer cells
// than tokens the cells were used again, and the keys alone can say in which order.
func (f *fitter) table(layer, pass, cells, keys int) (*table, error) {
	p := place{layer, pass, cells}
	if t, ok := f.tables[p]; ok {
		return t, nil
	}
	t := &table{cells: cells, total: f.passes[pass].Past + f.passes[pass].Tokens, keys: keys}
	t.find = func() ([]int, error) { return f.byContent(layer, pass, t) }
	if cells < t.total {
		if of, err := t.find(); err != nil || of == nil {
			f.tables[p] = nil
			return nil, err
		}
	}
	f.tables[p] = t
	return t, nil
}

// read finds the cells once.
func (t *table) read() error {
	t.once.Do(func() {
		if t.of, t.err = t.find(); t.err != nil {
			return
		}
		if t.of == nil {
			t.of = t.appended()
		}
		t.at = make([]int, t.keys)
		for cell, key := range t.of {
			if at := key - (t.total - t.keys); at >= 0 {
				t.at[at] = cell
			}
		}
	})
	return t.err
}

// appended has each key in the cell of its own number.
func (t *table) appended() []int {
	of := make([]int, t.cells)
	for cell := range of {
		if of[cell] = cell; cell >= t.total {
			of[cell] = -1
		}
	}
	return of
}

// slots are the cells of the order's keys, oldest first.
func (t *table) slots() ([]int, error) {
	err := t.read()
	return t.at, err
}

// leftOff are the other cells.
func (t *table) leftOff() ([]capture.Cell, error) {
	if err := t.read(); err != nil {
		return nil, err
	}
	var off []capture.Cell
	for cell, key := range t.of {
		if key < t.total-t.keys {
			off = append(off, capture.Cell{At: cell, Key: key})
		}
	}
	return off, nil
}

// byContent finds the key of each cell by the cached keys themselves: the engine has shown each when it made it. nil where they were not
// captured, or fewer than half of the order's keys are there.
func (f *fitter) byContent(layer, pass int, t *table) ([]int, error) {
	names, ok := f.layers[layer]
	if !ok {
		return nil, nil
	}
	cached, err := f.rows(names.keys, pass, 0)
	if err != nil || cached == nil || cached.n != t.cells {
		return nil, err
	}
	var made []*rows
	for p := range pass + 1 {
		r, err := f.rows(names.fresh, p, cached.dtype)
		if err != nil || r == nil || r.n != f.passes[p].Tokens || r.heads != cached.heads || r.width != cached.width {
			return nil, err
		}
		made = append(made, r)
	}
	return assign(cached, joined(made), t), nil
}

// rows are keys, each of all heads.
type rows struct {
	n, heads, width int
	dtype           hooks.DType
	row             func(i int) []float64
}

// rows reads keys [1, heads, n, width] of a pass, rounded to a dtype unless that is 0; nil where there are none.
func (f *fitter) rows(name string, pass int, to hooks.DType) (*rows, error) {
	rec, ok := f.trace.Lookup(pass, name)
	if !ok || len(rec.Shape) != 4 || rec.Shape[0] != 1 || !rec.DType.Float() || rec.InOrder {
		return nil, nil
	}
	v, err := f.trace.Value(pass, name)
	if err != nil {
		return nil, err
	}
	h, n, d := rec.Shape[1], rec.Shape[2], rec.Shape[3]
	all := make([]float64, len(v.Data))
	for i := range all {
		from := i/(h*d)*d + i/d%h*n*d + i%d
		if all[i] = v.Data[from]; to != 0 {
			all[i] = floats.Round(to, all[i])
		}
	}
	return &rows{n, h, d, rec.DType, func(i int) []float64 { return all[i*h*d:][:h*d] }}, nil
}

// joined are the keys of several passes, one after the other.
func joined(parts []*rows) *rows {
	out := *parts[0]
	var of []int // the part of each key
	var in []int // its number there
	for p, r := range parts {
		for i := range r.n {
			of, in = append(of, p), append(in, i)
		}
	}
	out.n = len(of)
	out.row = func(i int) []float64 { return parts[of[i]].row(in[i]) }
	return &out
}

// assign gives each cell the key that it holds; nil where fewer than half of the order's keys are found. A key of the order that no cell
// holds takes the cell of those left over that is nearest to it: that one key of the cache is wrong is no reason to call it absent.
func assign(cached, made *rows, t *table) []int {
	first := t.total - t.keys
	of := t.appended()
	found := 0
	for key := first; key < t.total && key < t.cells; key++ {
		if slices.Equal(cached.row(key), made.row(key)) {
			found++
		}
	}
	if t.cells >= t.total && 2*found >= t.keys {
		return of
	}
	at := map[uint64][]int{} // cells by their content
	for cell := range of {
		of[cell] = -1
		at[hash(cached.row(cell))] = append(at[hash(cached.row(cell))], cell)
	}
	var missing []int
	found = 0
	for key := t.total - 1; key >= 0; key-- {
		has := func(cell int) bool { return of[cell] < 0 && slices.Equal(cached.row(cell), made.row(key)) }
		cell := key % t.cells // where a ring has it: of equal ones it is the usual
		if !has(cell) {
			cell = -1
			if like := at[hash(made.row(key))]; slices.ContainsFunc(like, has) {
				cell = like[slices.IndexFunc(like, has)]
			}
		}
		switch {
		case cell >= 0:
			of[cell] = key
			if key >= first {
				found++
			}
		case key >= first:
			missing = append(missing, key)
		}
	}
	if 2*found < t.keys {
		return nil
	}
	for _, key := range missing {
		if cell := nearest(cached, made.row(key), of, first); cell >= 0 {
			of[cell] = key
		}
	}
	return of
}

// nearest is the cell without a key of the order whose content is nearest to a key; −1 where there is none.
func nearest(cached *rows, key []float64, of []int, first int) int {
	best, least := -1, math.Inf(1)
	for cell, has := range of {
		if has >= first {
			continue
		}
		var sum float64
		for i, x := range cached.row(cell) {
			sum += float64((x - key[i]) * (x - key[i]))
		}
		if best < 0 || sum < least {
			best, least = cell, sum
		}
	}
	return best
}

// hash is FNV-1a of the bits of numbers; 0 and −0 are equal.
func hash(row []float64) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range row {
		h = (h ^ math.Float64bits(x+0)) * 1099511628211
	}
	return h
}
