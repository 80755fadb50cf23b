package diagnose

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

const (
	mostUnknowns = 128     // numbers that are solved together
	perUnknown   = 1.5     // elements for each number, at least
	mostRowsEach = 8       // elements for each number in the solution
	mostFactor   = 1 << 10 // the largest number that is reported
)

// shiftedBlocks is the mistake of a constant that is added to the weights of each block.
const shiftedBlocks Kind = "weight.shifted-in-blocks"

// blocking is the size of the blocks of a matrix that have one number each, rows by columns. With 0 rows a block has all rows. The number is a factor, or
// a constant that is added to the weights.
type blocking struct {
	rows, cols int
	added      bool
}

// right is the number that changes nothing.
func (of blocking) right() float64 {
	if of.added {
		return 0
	}
	return 1
}

// numbersOfBlocks describes products with a matrix that has a factor for each input, the same for all outputs, or a factor or an added constant for each
// block. Causes are a scale that is folded into only one side, and blocks with the scales or zero points of other blocks. It takes the fewest numbers that
// give the elements.
func numbersOfBlocks(x *difference) *Description {
	all := layerProducts(x)
	if all == nil {
		return nil
	}
	rows, cols := all[0].rows, all[0].cols
	name := weightAtEnd(x.first).Name
	of := x.value(x.first, x.first.Program.Steps[x.first.Program.Out.Step].Args[0])
	for _, b := range blockings(cols) {
		d := &Description{Kind: "described.blocks", Of: of, Like: weightTerm(name), Called: fmt.Sprintf(blockWords, b.rows, b.cols)}
		switch {
		case b.rows == 0:
			d.Kind, d.Called = "described.inputs", ""
		case b.added:
			d.Kind = "described.block-shifts"
		}
		good, numbers, short := true, layered{}, layered{}
		for n := range all {
			solved, near, ok := x.numbersOf(d, &all[n], b)
			if good = ok; !good || x.err != nil {
				break
			}
			numbers.add(all[n].layer, solved)
			short.add(all[n].layer, near)
		}
		if good && x.err == nil && d.Wrong > 0 && float64(d.Explained) >= leastShare*float64(d.Elements) {
			x.draft(d).proposes = blockMistakes(d, []layered{short, numbers}, name, b, rows, x.m.List.Config.NumLayers)
			return d
		}
	}
	return nil
}

// layered has the numbers of each layer. All layers have equally many.
type layered map[int][]float64

// add keeps the numbers of a layer that has no numbers yet.
func (l layered) add(layer int, numbers []float64) {
	if len(numbers) > 0 && l[layer] == nil {
		l[layer] = numbers
	}
}

// one returns the numbers of the first layer with numbers, to be used for all layers.
func (l layered) one() []float64 {
	for _, layer := range slices.Sorted(maps.Keys(l)) {
		return l[layer]
	}
	return nil
}

// all returns the numbers of all layers, layer after layer. A layer without numbers gets the right number, as many times as the first
// layer with numbers has numbers. The result is empty for numbers outside of layers and for the numbers of a single layer.
func (l layered) all(layers int, right float64) (all []float64) {
	if len(l) < 2 {
		return nil
	}
	for layer := range layers {
		numbers := l[layer]
		if numbers == nil {
			numbers = slices.Repeat([]float64{right}, len(l.one()))
		}
		all = append(all, numbers...)
	}
	return all
}

// blockMistakes are the mistakes of numbers of a matrix: the same numbers in all layers or different ones in each layer, as short numbers and as solved
// numbers.
func blockMistakes(d *Description, solved []layered, name string, of blocking, rows, layers int) (all []Mistake) {
	if of.rows == 0 {
		of.rows = rows
	}
	m := Mistake{Kind: "weight.factors", Place: order.NameOf(name).Role(), Of: d.Like, M: of.rows, K: of.cols}
	switch d.Kind {
	case "described.inputs":
		m.Kind = "weight.input-factors"
	case "described.block-shifts":
		m.Kind = shiftedBlocks
	}
	add := func(axis string, numbers []float64) {
		if m.Axis, m.Numbers = axis, makeNumbers(numbers); len(numbers) > 0 && fewNumbers(numbers, of.right()) {
			all = append(all, m)
		}
	}
	short := slices.Clone(solved[0].one())
	for k, x := range short {
		short[k] = shortest(x-nearWhole*math.Abs(x), x+nearWhole*math.Abs(x))
	}
	add("", short)
	for _, numbers := range solved {
		add("", numbers.one())
	}
	for _, numbers := range solved {
		add(layersAxis, numbers.all(layers, of.right()))
	}
	return all
}

// blockings are the sizes of blocks to try, fewest numbers first.
func blockings(cols int) (all []blocking) {
	if cols <= mostUnknowns {
		all = append(all, blocking{0, 1, false})
	}
	for size := 128; size > 1; size /= 2 {
		if cols%size == 0 && cols > size {
			all = append(all, blocking{size, size, false})
		}
	}
	sizes := []int{128, 64, 32, 16, 8, 5, 4, 2}
	for _, parts := range []int{2, 4, 8} {
		if size := cols / parts; cols%parts == 0 && size > 1 {
			sizes = append(sizes, size)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	slices.Reverse(sizes)
	for _, size := range sizes {
		if cols%size == 0 && cols > size {
			all = append(all, blocking{1, size, false}, blocking{1, size, true})
		}
	}
	return all
}

// layerProduct is the product of a matrix with the operands of all entries of one layer.
type layerProduct struct {
	*affine
	observed
	layer int
}

// layerProducts are nil if an entry does not end with the product of a whole matrix.
func layerProducts(x *difference) (all []layerProduct) {
	for n := range x.results {
		o := &x.results[n]
		if !endsWithMatrix(o.e) {
			return nil
		}
		a := wideOf(x.search, o.e)
		if a == nil || len(o.want) != len(a.x)/a.cols*a.rows {
			return nil
		}
		layer := layerOf(x.subject, o)
		k := slices.IndexFunc(all, func(p layerProduct) bool { return p.layer == layer })
		if k < 0 {
			k, all = len(all), append(all, layerProduct{affine: a, observed: observed{e: o.e}, layer: layer})
			a.x = slices.Clone(a.x)
		} else {
			all[k].x = append(all[k].x, a.x...)
		}
		p := &all[k]
		p.value, p.off = append(p.value, o.value...), append(p.off, o.off...)
		p.want, p.half = append(p.want, o.want...), append(p.half, o.half...)
	}
	return all
}

// blocks has the terms of a product, summed over each block of inputs.
type blocks struct {
	*layerProduct
	blocking
	tokens int
	block  []int // of each input
	row    []float64
	terms  []float64 // of one output: a sum for each block of inputs
}

// newBlocks gives the terms of blocks of neighbours. If mixed is set, each block has inputs from everywhere instead, and as many.
func newBlocks(p *layerProduct, of blocking, mixed bool) *blocks {
	b := &blocks{layerProduct: p, blocking: of, tokens: len(p.x) / p.affine.cols, block: make([]int, p.affine.cols), row: make([]float64, p.affine.cols), terms: make([]float64, p.affine.cols/of.cols)}
	for c := range b.block {
		if b.block[c] = c / of.cols; mixed {
			b.block[c] = c % len(b.terms)
		}
	}
	return b
}

// visit calls use for each output of some rows of the matrix, with the terms of the output. It is not ok if the matrix cannot be read.
func (b *blocks) visit(x *difference, from, rows int, use func(i int)) bool {
	for r := from; r < from+rows; r++ {
		if x.failed(b.w.Row(b.row, r)) {
			return false
		}
		for t := range b.tokens {
			clear(b.terms)
			for c, w := range b.row {
				if b.added {
					w = 1
				}
				b.terms[b.block[c]] += w * b.x[t*b.affine.cols+c]
			}
			use(t*b.affine.rows + r)
		}
		x.m.work += b.tokens * b.affine.cols / 8
	}
	return true
}

// start is an output without the terms: the bias, or the right output if constants are added to the weights.
func (b *blocks) start(i int) float64 {
	if b.added {
		return b.value[i]
	}
	return b.bias[i%b.affine.rows]
}

// solve solves the numbers of some rows by least squares, in units of the errors of the elements; nil if the elements do not determine the numbers. A
// number that is right within its error is right. The numbers near the solved numbers are the shortest ones within the error.
func (b *blocks) solve(x *difference, from, rows int) (numbers, near []float64) {
	n := len(b.terms)
	gram, inverse, sums := make([]float64, n*n), make([]float64, n*n), make([]float64, n)
	each, k := max(1, b.tokens*rows/(mostRowsEach*n)), 0
	ok := b.visit(x, from, rows, func(i int) {
		if k++; k%each != 0 {
			return
		}
		by := 1 / (b.half[i] + b.off[i])
		if by *= by; !(by > 0) || math.IsInf(by, 0) {
			return
		}
		x.m.work += n
		for u, v := range b.terms {
			for w, z := range b.terms {
				gram[u*n+w] += by * v * z
			}
			sums[u] += by * v * (b.want[i] - b.start(i))
		}
	})
	for u := range n {
		inverse[u*n+u] = 1
	}
	if !ok || !eliminated(gram, inverse, n) {
		return nil, nil
	}
	numbers, near = make([]float64, n), make([]float64, n)
	for u := range numbers {
		v, e := dot(inverse[u*n:][:n], sums), math.Sqrt(inverse[u*n+u])
		if math.Abs(v-b.right()) <= operandSlack*e {
			v, e = b.right(), 0
		}
		numbers[u], near[u] = v, shortest(v-e, v+e)
	}
	return numbers, near
}

// given counts the outputs of some rows, and the outputs that the numbers give.
func (b *blocks) given(x *difference, from, rows int, numbers []float64) (given, all int) {
	ok := b.visit(x, from, rows, func(i int) {
		sum, size := b.start(i), 0.0
		for u, v := range b.terms {
			sum += v * numbers[u]
			size += math.Abs(v * numbers[u])
		}
		if all++; math.Abs(sum-b.want[i]) <= off(&b.observed, i)+0x1p-20*size {
			given++
		}
	})
	if !ok {
		return 0, all
	}
	return given, all
}

// numbersOf solves the numbers of a layer, and counts the elements that the numbers give. It is not ok if the elements do not determine the numbers, if
// the numbers give too few elements, or if blocks of other inputs do as well.
func (x *difference) numbersOf(d *Description, p *layerProduct, of blocking) (all, near []float64, ok bool) {
	if of.rows == 0 {
		of.rows = p.rows
	}
	b, mixed := newBlocks(p, of, false), newBlocks(p, of, true)
	if float64(b.tokens*min(of.rows, p.rows)) < perUnknown*float64(len(b.terms)) {
		return nil, nil, b.tokens == 1 // a decode step has too few elements, and the prompt decides
	}
	alike, varied := 0, 0 // elements of blocks with several numbers, and those that other blocks give
	for from := 0; from < p.rows; from += of.rows {
		rows := min(of.rows, p.rows-from)
		numbers, short := b.solve(x, from, rows)
		if numbers == nil {
			return nil, nil, false
		}
		given, elements := b.given(x, from, rows, numbers)
		if d.Explained, d.Elements = d.Explained+given, d.Elements+elements; float64(given) < leastShare*float64(elements) {
			return nil, nil, false
		}
		if few, _, _ := differentNumbers(numbers); few > 1 && of.cols > 1 {
			if others, _ := mixed.solve(x, from, rows); others != nil {
				given, elements = mixed.given(x, from, rows, others)
				alike += given
			}
			varied += elements
		}
		near = append(near, short...)
		for _, f := range numbers {
			if math.Abs(f) > mostFactor {
				return nil, nil, false
			}
			all = append(all, f)
			if d.Numbers++; f != of.right() {
				if d.Wrong++; len(d.Values) < mostValues {
					d.Values = append(d.Values, f)
				}
			}
		}
	}
	return all, near, varied == 0 || float64(alike) < leastShare*float64(varied)
}

// wideOf is the product at the end of an entry's program, with a matrix of any shape; nil if the program does not end with a product.
func wideOf(s *search, e *Entry) *affine {
	end := &e.Program.Steps[e.Program.Out.Step]
	if e.Few != nil || end.Prim != program.Affine {
		return nil
	}
	a := &affine{w: e.Call.W[e.Program.Steps[end.Args[1].Step].Index()]}
	a.rows, a.cols = a.w.Size()
	a.bias = make([]float64, a.rows)
	x, ok := s.valueAt(e, end.Args[0])
	if a.x = x; !ok || len(x)%a.cols != 0 {
		return nil
	}
	if len(end.Args) > 2 {
		b, ok := s.valueAt(e, end.Args[2])
		if !ok || len(b) < a.rows {
			return nil
		}
		copy(a.bias, b)
	}
	return a
}
