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
	keys, made         string // all keys of a pass, and those of the pass's own tokens
	values, valuesMade string // and its values; empty where they are not known
}

// layersOf finds the keys of each layer. A layer that shares the cache of another layer has the keys that the other layer made.
func layersOf(list *order.List) map[int]layer {
	made := map[string]string{} // by the name of the cache
	layers := map[int]layer{}
	for i := range list.Entries {
		e := &list.Entries[i]
		if len(e.Inputs) == 0 {
			continue
		}
		_, cache := e.Op.(op.Cache)
		of, from := layers[e.Layer], e.Inputs[0].Name
		switch kind := op.KeysOf(e.Op); {
		case kind == op.AppendKeys:
			made[e.Name] = from
			layers[e.Layer] = layer{keys: e.Name, made: from}
		case kind == op.HandOnKeys && made[from] != "":
			if made[e.Name] = made[from]; of.keys == "" { // the values are handed on too, after the keys
				layers[e.Layer] = layer{keys: e.Name, made: made[from]}
			}
		case cache && of.keys != "":
			of.values, of.valuesMade = e.Name, from
			layers[e.Layer] = of
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

// table finds the cell of each key in a place; nil if the cells are unknown.
//
// With a cell for each token, a key is in the cell of its own number, unless the contents of the keys show another order. With fewer cells than
// tokens the cells were used again, and only the contents of the keys tell the order.
func (f *fitter) table(layer, pass, cells, keys int) (*table, error) {
	p := place{layer, pass, cells}
	if t, ok := f.tables[p]; ok {
		return t, nil
	}
	t := &table{cells: cells, total: f.passes[pass].Past + f.passes[pass].Tokens, keys: keys}
	if keys > t.total { // keys of something else than the tokens
		return nil, nil
	}
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
func (f *fitter) byContent(number, pass int, t *table) ([]int, error) {
	of, ok := f.layers[number]
	if !ok {
		return nil, nil
	}
	keys, err := f.cache(of.keys, of.made, pass, t)
	if err != nil || keys == nil {
		return nil, err
	}
	usual, other := t.appended(), keys.assign(t)
	if t.cells < t.total {
		return other, nil
	}
	inPlace := keys.found(usual, t)
	if other == nil || keys.found(other, t) <= inPlace {
		if 2*inPlace < t.keys {
			return nil, nil
		}
		return usual, nil
	}
	values, err := f.cache(of.values, of.valuesMade, pass, t)
	if err != nil || values == nil || values.found(other, t) >= values.found(usual, t) {
		return other, err
	}
	return usual, nil // the values lie as usual: it is the keys that are wrong
}

// cache has the keys, or values, in the cells of a pass, and all keys made so far.
type cache struct{ cells, made *rows }

// cache reads what a layer has cached; nil where a part of it was not captured.
func (f *fitter) cache(all, made string, pass int, t *table) (*cache, error) {
	cells, err := f.rows(all, pass, 0)
	if err != nil || cells == nil || cells.n != t.cells {
		return nil, err
	}
	var parts []*rows
	for p := range pass + 1 {
		r, err := f.rows(made, p, cells.dtype)
		if err != nil || r == nil || r.n != f.passes[p].Tokens || r.width != cells.width {
			return nil, err
		}
		parts = append(parts, r)
	}
	return &cache{cells, joined(parts)}, nil
}

// found is how many of the order's keys are in their cells.
func (c *cache) found(of []int, t *table) int {
	n := 0
	for cell, key := range of {
		if key >= t.total-t.keys && slices.Equal(c.cells.row(cell), c.made.row(key)) {
			n++
		}
	}
	return n
}

// rows are keys, each of all heads.
type rows struct {
	n, width int
	dtype    hooks.DType
	row      func(i int) []float64
}

// rows reads keys or values of a pass, rounded to a dtype unless that is 0; nil if they were not captured. They are [1, heads, n, width] where the
// order has their heads first, else [1, n, heads, width] or [1, n, heads·width].
func (f *fitter) rows(name string, pass int, to hooks.DType) (*rows, error) {
	rec, ok := f.trace.Lookup(pass, name)
	e, known := f.list.Lookup(name)
	if !ok || !known || len(rec.Shape) < 3 || len(rec.Shape) != len(e.Shape) || rec.Shape[0] != 1 || !rec.DType.Float() || rec.InOrder || rec.LastRow {
		return nil, nil
	}
	v, err := f.trace.Value(pass, name)
	if err != nil {
		return nil, err
	}
	heads, n, d := 1, rec.Shape[1], 1
	for _, k := range rec.Shape[2:] {
		d *= k
	}
	if e.Axes[1] == 'h' {
		heads, n, d = rec.Shape[1], rec.Shape[2], rec.Shape[3]
	}
	width := heads * d
	all := make([]float64, len(v.Data))
	for i := range all {
		from := (i%width/d*n+i/width)*d + i%d
		if all[i] = v.Data[from]; to != 0 {
			all[i] = floats.Round(to, all[i])
		}
	}
	return &rows{n, width, heldIn(rec.DType, all), func(i int) []float64 { return all[i*width:][:width] }}, nil
}

// heldIn is the dtype in which numbers were computed: bfloat16 or float16 if the dtype holds all numbers, whatever their storage.
func heldIn(stored hooks.DType, all []float64) hooks.DType {
	for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
		if !slices.ContainsFunc(all, func(x float64) bool { return floats.Round(d, x) != x }) {
			return d
		}
	}
	return stored
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

// assign gives each cell the key that it holds; nil if fewer than half of the order's keys are found. A key of the order that is found in no
// cell takes the nearest cell that is left: a wrong key in the cache is compared, and is not absent.
func (c *cache) assign(t *table) []int {
	first, of, at := t.total-t.keys, make([]int, t.cells), map[uint64][]int{} // cells by their content
	for cell := range of {
		of[cell] = -1
		at[hash(c.cells.row(cell))] = append(at[hash(c.cells.row(cell))], cell)
	}
	var missing []int
	for key := t.total - 1; key >= 0; key-- {
		has := func(cell int) bool { return of[cell] < 0 && slices.Equal(c.cells.row(cell), c.made.row(key)) }
		cell := key % t.cells // where a ring has it: of equal ones it is the usual
		if !has(cell) {
			cell = -1
			if like := at[hash(c.made.row(key))]; slices.ContainsFunc(like, has) {
				cell = like[slices.IndexFunc(like, has)]
			}
		}
		switch {
		case cell >= 0:
			of[cell] = key
		case key >= first:
			missing = append(missing, key)
		}
	}
	if 2*len(missing) > t.keys {
		return nil
	}
	for _, key := range missing {
		if cell := nearest(c.cells, c.made.row(key), of, first); cell >= 0 {
			of[cell] = key
		}
	}
	return of
}

// nearest returns the cell whose content is nearest to a key, among the cells that have no key of the order; −1 if all have one.
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
