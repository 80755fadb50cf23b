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
	mostUnknowns = 128     // factors that are solved together
	perUnknown   = 2       // elements for each factor, at least
	mostRowsEach = 8       // elements for each factor in the solution
	mostFactor   = 1 << 10 // the largest factor that is reported
)

// blocking is the size of the blocks of a matrix that have one factor each, rows by columns. With 0 rows a block has all rows.
type blocking struct{ rows, cols int }

// factorsOfInputs describes products with a matrix that has a factor for each input, the same for all outputs, or a factor for each block. Causes are a
// scale that is folded into only one side, and blocks with the scales of other blocks. It takes the fewest factors that give the elements.
func factorsOfInputs(x *difference) *Description {
	p := x.first.Program
	end := &p.Steps[p.Out.Step]
	if end.Prim != program.Affine || p.Steps[end.Args[1].Step].Prim != program.Matrix {
		return nil
	}
	rows, cols := x.first.Call.W[p.Steps[end.Args[1].Step].Index()].Size()
	weight := weightTerm(x.first.Weights[p.Steps[end.Args[1].Step].Index()].Name)
	for _, b := range blockings(cols) {
		d := &Description{Kind: "described.blocks", Of: x.value(x.first, end.Args[0]), Like: weight}
		if d.Called = fmt.Sprintf(blockWords, b.rows, b.cols); b.rows == 0 {
			d.Kind, d.Called = "described.inputs", ""
		}
		good, name := true, x.first.Weights[p.Steps[end.Args[1].Step].Index()].Name
		of := layered{} // from the first entry of each layer
		for n := range x.results {
			factors, ok := x.blockFactors(d, &x.results[n], b)
			if good = ok; !good || x.err != nil {
				break
			}
			of.add(layerOf(x.subject, &x.results[n]), factors)
		}
		if good && x.err == nil && d.Wrong > 0 && float64(d.Explained) >= leastShare*float64(d.Elements) {
			x.draft(d).proposes = blockMistakes(d, of, name, b, rows, x.m.List.Config.NumLayers)
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

// blockMistakes are the mistakes of factors of a matrix: the same factors in all layers or different ones in each layer, as short numbers and as solved
// numbers.
func blockMistakes(d *Description, factors layered, name string, of blocking, rows, layers int) (all []Mistake) {
	if of.rows == 0 {
		of.rows = rows
	}
	m := Mistake{Kind: "weight.factors", Place: order.NameOf(name).Role(), Of: d.Like, M: of.rows, K: of.cols}
	if d.Kind == "described.inputs" {
		m.Kind = "weight.input-factors"
	}
	for _, solved := range [][]float64{factors.one(), factors.all(layers, 1)} {
		short, numbers := make([]float64, len(solved)), make([]float64, len(solved))
		for k, x := range solved {
			if short[k], numbers[k] = shortest(x-nearWhole*math.Abs(x), x+nearWhole*math.Abs(x)), x; short[k] == 1 {
				numbers[k] = 1
			}
		}
		for _, numbers := range [][]float64{short, numbers} {
			if m.Numbers = makeNumbers(numbers); len(numbers) > 0 && fewNumbers(numbers, 1) {
				all = append(all, m)
			}
		}
		m.Axis = layersAxis
	}
	return all
}

// blockings are the sizes of blocks to try, fewest factors first.
func blockings(cols int) (all []blocking) {
	if cols <= mostUnknowns {
		all = append(all, blocking{0, 1})
	}
	for size := 128; size > 1; size /= 2 {
		if cols%size == 0 && cols > size {
			all = append(all, blocking{size, size})
		}
	}
	for size := 128; size > 1; size /= 2 {
		if cols%size == 0 && cols > size {
			all = append(all, blocking{1, size})
		}
	}
	return all
}

// blocks has the terms of a product, summed over each block of inputs.
type blocks struct {
	*affine
	blocking
	tokens int
	row    []float64
	terms  []float64 // of one output: a sum for each block of inputs
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
				b.terms[c/b.blocking.cols] += w * b.x[t*b.affine.cols+c]
			}
			use(t*b.affine.rows + r)
		}
	}
	return true
}

// factors solves the factors of some rows by least squares; nil if the elements do not determine the factors.
func (b *blocks) factors(x *difference, o *observed, from, rows int) []float64 {
	n := len(b.terms)
	gram, right := make([]float64, n*n), make([]float64, n*n)
	each, k := max(1, b.tokens*rows/(mostRowsEach*n)), 0
	ok := b.visit(x, from, rows, func(i int) {
		if k++; k%each != 0 {
			return
		}
		x.m.work += n
		for u, v := range b.terms {
			for w, z := range b.terms {
				gram[u*n+w] += v * z
			}
			right[u*n] += v * (o.want[i] - b.bias[i%b.affine.rows])
		}
	})
	if !ok || !eliminated(gram, right, n) {
		return nil
	}
	factors := make([]float64, n)
	for u := range factors {
		factors[u] = right[u*n]
	}
	return factors
}

// given counts the outputs of some rows, and the outputs that the factors give.
func (b *blocks) given(x *difference, o *observed, from, rows int, factors []float64) (given, all int) {
	ok := b.visit(x, from, rows, func(i int) {
		sum, size := b.bias[i%b.affine.rows], 0.0
		for u, v := range b.terms {
			sum += v * factors[u]
			size += math.Abs(v * factors[u])
		}
		if all++; math.Abs(sum-o.want[i]) <= off(o, i)+0x1p-20*size {
			given++
		}
	})
	if !ok {
		return 0, all
	}
	return given, all
}

// blockFactors solves the factors of an entry, and counts the elements that the factors give. It is not ok if the elements do not determine the factors,
// or if the factors give too few elements.
func (x *difference) blockFactors(d *Description, o *observed, of blocking) (all []float64, ok bool) {
	a := wideOf(x.search, o.e)
	if a == nil || len(o.want) != len(a.x)/a.cols*a.rows {
		return nil, false
	}
	if of.rows == 0 {
		of.rows = a.rows
	}
	b := &blocks{affine: a, blocking: of, tokens: len(a.x) / a.cols, row: make([]float64, a.cols), terms: make([]float64, a.cols/of.cols)}
	if b.tokens*min(of.rows, a.rows) < perUnknown*len(b.terms) {
		return nil, b.tokens == 1 // a decode step has too few elements, and the prompt decides
	}
	for from := 0; from < a.rows; from += of.rows {
		rows := min(of.rows, a.rows-from)
		factors := b.factors(x, o, from, rows)
		if factors == nil {
			return nil, false
		}
		given, elements := b.given(x, o, from, rows, factors)
		if d.Explained, d.Elements = d.Explained+given, d.Elements+elements; float64(given) < leastShare*float64(elements) {
			return nil, false
		}
		for _, f := range factors {
			if math.Abs(f) > mostFactor {
				return nil, false
			}
			all = append(all, f)
			if d.Numbers++; math.Abs(f-1) > nearWhole {
				if d.Wrong++; len(d.Values) < mostValues {
					d.Values = append(d.Values, f)
				}
			}
		}
	}
	return all, true
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
