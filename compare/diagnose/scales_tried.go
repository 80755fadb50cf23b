package diagnose

import (
	"iter"
	"math"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order/program"
)

const (
	mostSampledRows   = 12   // rows of a matrix that a wrong scale is first tried on
	mostSampledTokens = 16   // tokens that a wrong scale is first tried on
	nearSampled       = 0.04 // the part of a row's squared error that a wrong scale may leave
)

// otherScales yields wrong scales and zero points for all blocks of a matrix. It computes a few outputs with each, and yields those that come near the
// elements.
func otherScales(s *search, k int) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		w := s.first.Call.W[k]
		if _, part := w.(someOf); part {
			return
		}
		rows, cols := w.Size()
		l, ok := linearIn(s, s.first, k)
		if !ok || rows < 2 || rows*cols > maxHeld {
			return
		}
		if w = inMemory(w); w == nil {
			return
		}
		o := outputsOf(s, w, l)
		if o == nil {
			return
		}
		for _, b := range scaledBlocks(rows, cols, s.m.List.Config.HeadDim) {
			t, low, high := rangesOf(w, b)
			if t == nil || len(low) < 2 {
				continue
			}
			s.m.work += rows * cols / 8
			for _, zeros := range []Codes{"", Int4Kept, Int8Kept} {
				if b.Coding.Numbers = zeros; zeros != "" && b.K == 0 && b.M != 1 {
					continue
				}
				if s.spent() || !o.of(s, w, t.coded(low, high, zeros), b, yield) {
					return
				}
			}
		}
		o.ofOthers(s, k, w, yield)
	}
}

// inMemory is a matrix whose rows are read once; nil if it cannot be held.
func inMemory(w program.Rows) program.Rows {
	rows, cols := w.Size()
	data := held(w)
	if data == nil {
		return nil
	}
	return made{rows, cols, func(dst []float64, i int) error {
		copy(dst, data[i*cols:][:cols])
		return nil
	}}
}

// scaledBlocks are the sizes of blocks that may have a scale each, without a kind: rows and blocks of rows, groups of a row, columns and squares.
func scaledBlocks(rows, cols, head int) (all []Mistake) {
	sizes := []int{4, 5, 8, 16, 32, 64, 128}
	for _, n := range []int{head, cols / 2, cols / 4, rows / 2} {
		if n > 2 && !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	add := func(m, k int) {
		if m < rows && (k == 0 || cols%k == 0 && k < cols) {
			all = append(all, Mistake{M: m, K: k})
		}
	}
	add(1, 0)
	for _, n := range sizes {
		add(n, 0)
		add(1, n)
		add(n, n)
	}
	add(0, 1)
	return all
}

// outputs are some wrong outputs of a product, with the results of the right matrix and of the port.
type outputs struct {
	rows   []int       // of the matrix; right rows are last
	own    [][]float64 // the rows
	x      [][]float64 // the inputs of some tokens
	want   [][]float64 // for each row, the outputs of the tokens without the bias
	far    []float64   // for each row, the sum of squares of the errors of the right row
	unit   float64     // the size of roundings, relative to a product
	model  hooks.DType
	row    []float64
	before [][]float64 // wrong scales that were yielded, so that no table has two names
}

// outputsOf chooses the wrong rows of a matrix, and a few right rows.
func outputsOf(s *search, w program.Rows, l linear) *outputs {
	y, _ := s.first.Target()
	wrong, tokens := wrongChannels(s.first), len(y)/l.rows
	if len(wrong) == 0 || len(l.x) != tokens*l.cols {
		return nil
	}
	o := &outputs{unit: unitOf(s.first.Call.DType), model: s.first.Call.DType, row: make([]float64, l.cols)}
	for t := range min(tokens, mostSampledTokens) {
		o.x = append(o.x, l.x[t*l.cols:][:l.cols])
	}
	for n := range min(len(wrong), mostSampledRows) {
		o.rows = append(o.rows, wrong[n*len(wrong)/min(len(wrong), mostSampledRows)])
	}
	for r := range l.rows {
		if _, has := slices.BinarySearch(wrong, r); !has && len(o.rows) < 2*min(len(wrong), mostSampledRows) {
			o.rows = append(o.rows, r)
		}
	}
	for _, r := range o.rows {
		own, want, far := make([]float64, l.cols), make([]float64, len(o.x)), 0.0
		if s.failed(w.Row(own, r)) {
			return nil
		}
		for t := range want {
			want[t] = y[t*l.rows+r]
			if l.bias != nil {
				want[t] -= l.bias[r]
			}
			d := want[t] - dot(own, o.x[t])
			far += d * d
		}
		o.own, o.want, o.far = append(o.own, own), append(o.want, want), append(o.far, far)
	}
	return o
}

// unitOf is the size of the roundings of weights, relative to a product.
func unitOf(model hooks.DType) float64 {
	switch model {
	case hooks.BF16:
		return 0x1p-7
	case hooks.F16:
		return 0x1p-10
	}
	return 0x1p-20
}

// of yields the wrong scales or zero points of one table.
func (o *outputs) of(s *search, w program.Rows, t *scaleTable, b Mistake, yield func(Mistake) bool) bool {
	rows, cols := w.Size()
	for _, m := range scaleMistakes(t, b) {
		if o.near(s, t, t.wrong(m)) && o.isNew(t, m, rows, cols) && !o.rounded(m, yield) {
			return false
		}
	}
	if t.step != nil {
		return true
	}
	for _, m := range o.limits(s, t, b) {
		if o.near(s, t, t.wrong(m)) && !o.rounded(m, yield) {
			return false
		}
	}
	return true
}

// rounded yields a mistake in each order in which a port may compute a scaled weight.
func (o *outputs) rounded(m Mistake, yield func(Mistake) bool) bool {
	all := []Rounding{"", RatioFirst, ScaleFirst, InSteps}
	if o.model == hooks.F32 || m.Coding.Numbers != "" {
		all = all[:1]
	}
	for _, m.Rounding = range all {
		if !yield(m) {
			return false
		}
	}
	return true
}

// scaleMistakes are the mistakes of a table without a solved number.
func scaleMistakes(t *scaleTable, b Mistake) (all []Mistake) {
	add := func(kind Kind, n int, axis string) {
		m := b
		m.Kind, m.N, m.Axis = kind, n, axis
		all = append(all, m)
	}
	flat := t.rows == 1 || t.cols == 1
	add("weight.scales-of-further", 1, "")
	add("weight.scales-of-further", -1, "")
	add("weight.scales-of-first", 0, "")
	if t.step == nil {
		add("weight.scales-of-all", 0, "")
	}
	add("weight.scales-reversed", 0, "")
	if !flat {
		add("weight.scales-by-columns", 0, "")
		add("weight.scales-stored-by-columns", 0, "")
		add("weight.scales-of-further", t.cols, "")
		add("weight.scales-of-further", -t.cols, "")
		add("weight.scales-of-first", 0, columnAxis)
		add("weight.scales-of-first", 0, rowAxis)
	}
	for _, axis := range []string{rowAxis, columnAxis} {
		count, size := t.rows, t.m
		if axis == columnAxis {
			count, size = t.cols, t.k
		}
		if count < 2 {
			continue
		}
		add("weight.scales-of-neighbours", 0, axis)
		if count >= eightScales {
			add("weight.scales-in-turn", 2, axis)
			add("weight.scales-in-turn", 4, axis)
		}
		for _, n := range []int{size - 1, size + 1, size / 2, 2 * size} {
			if n > 0 && n != size {
				add("weight.scales-of-other-size", n, axis)
			}
		}
	}
	return append(all, computedMistakes(t, b)...)
}

const (
	rowAxis    = "row"
	columnAxis = "column"
)

// computedMistakes are the mistakes of scales that are computed otherwise, without a solved number.
func computedMistakes(t *scaleTable, b Mistake) (all []Mistake) {
	add := func(kind Kind, n int) {
		m := b
		m.Kind, m.N = kind, n
		all = append(all, m)
	}
	if t.step != nil {
		most := int(codesOf[b.Coding.Numbers].most)
		for _, n := range []int{0, most, most + 1, 2*most + 1} {
			add("weight.zero-points-all", n)
		}
		add("weight.zero-points-wrapped", 0)
		return all
	}
	for _, n := range []int{1, 6, 7, 8, 15, 31, 127, 128, 255, 448} {
		add("weight.scales-unused", n)
		add("weight.scales-squared", n)
		add("weight.scales-inverted", n)
		for _, b.DType = range []hooks.DType{hooks.BF16, hooks.F16} {
			add("weight.scales-rounded", n)
		}
		b.DType = 0
	}
	for _, n := range []int{0, 1, 2, 3, 7, 8, 15} {
		add("weight.scales-as-codes", n)
	}
	return all
}

// near reports whether wrong scales come near the elements of all rows that were chosen.
func (o *outputs) near(s *search, t *scaleTable, wrong func(i, j int) float64) bool {
	if wrong == nil {
		return false
	}
	all, far := 0.0, 0.0
	for n, i := range o.rows {
		copy(o.row, o.own[n])
		t.change(i, o.row, wrong, "")
		left, size := 0.0, 0.0
		for k, x := range o.x {
			sum := 0.0
			for j, v := range o.row {
				p := v * x[j]
				sum, size = sum+p, size+p*p
			}
			d := sum - o.want[n][k]
			left += d * d
		}
		s.m.work += len(o.x) * len(o.row) / 8
		if !(left <= nearSampled*o.far[n]+o.unit*o.unit*size) {
			return false
		}
		all, far = all+left, far+o.far[n]
	}
	return all < far/4
}

// isNew reports whether no earlier mistake has the same scales in all blocks.
func (o *outputs) isNew(t *scaleTable, m Mistake, rows, cols int) bool {
	wrong, is := t.wrong(m), make([]float64, 0, rows*cols)
	for i := range rows {
		for j := range cols {
			at, own := wrong(i, j), t.of[t.at(i, j)]
			if t.step != nil {
				is = append(is, (own-at)*t.step[t.at(i, j)])
			} else {
				is = append(is, at/own)
			}
		}
	}
	if slices.ContainsFunc(o.before, func(b []float64) bool { return slices.Equal(b, is) }) {
		return false
	}
	o.before = append(o.before, is)
	return true
}

// limits are the mistakes of scales that are cut off, and of scales that are raised, with the limits that come nearest to the elements.
func (o *outputs) limits(s *search, t *scaleTable, b Mistake) (all []Mistake) {
	sorted, sums := slices.Clone(t.of), o.blockSums(s, t)
	slices.Sort(sorted)
	for _, b.Kind = range []Kind{cutScales, raisedScales} {
		best, limit := math.Inf(1), 0.0
		for n := range limitsTried {
			at := sorted[n*len(sorted)/limitsTried] / t.largest
			if b.X = some(at); at <= 0 {
				continue
			}
			if left, x := o.limit(s, t, b, sums[:min(len(sums), firstRows)]); left < best && x > 0 && x < 1 {
				best, limit = left, x
			}
		}
		for range limitSteps {
			if b.X = some(limit); limit > 0 && limit < 1 {
				_, limit = o.limit(s, t, b, sums)
			}
		}
		if !(limit > 0 && limit < 1) {
			continue
		}
		for _, x := range append(fractionsNear(limit, 4*o.unit), limit) {
			b.X = some(x)
			all = append(all, b)
		}
	}
	return all
}

const (
	limitsTried = 24
	limitSteps  = 8
	firstRows   = 4 // rows that the first limits are tried on
)

// fractionsNear are numbers of a scale of some bits near a limit, as parts of the largest.
func fractionsNear(x, within float64) (all []float64) {
	for bits := 2; bits <= 8; bits++ {
		most := math.Exp2(float64(bits)) - 1
		if p := math.Round(x * most); p > 0 && p < most && math.Abs(p/most-x) <= within*x && !slices.Contains(all, p/most) {
			all = append(all, p/most)
		}
	}
	return all
}

// blockSums are the sums of products within each block of the chosen rows. Each row has the sums of all its blocks for one token after the other.
func (o *outputs) blockSums(s *search, t *scaleTable) [][]float64 {
	all := make([][]float64, len(o.rows))
	for n := range all {
		all[n] = make([]float64, len(o.x)*t.cols)
		for k, x := range o.x {
			to := all[n][k*t.cols:][:t.cols]
			for j, v := range o.own[n] {
				to[j/t.k] += v * x[j]
			}
		}
	}
	s.m.work += len(o.rows) * len(o.x) * len(o.row) / 8
	return all
}

// limit is the squared error with a limit in the first rows, and a better limit: outputs are linear in the limit as long as it is beyond the same scales.
// sums are the block sums of these rows.
func (o *outputs) limit(s *search, t *scaleTable, m Mistake, sums [][]float64) (left, better float64) {
	to, limit := computedScales[m.Kind], floats.Round(hooks.F32, m.X.Value*t.largest)
	var up, down float64
	for n, of := range sums {
		scales := t.of[o.rows[n]/t.m*t.cols:][:t.cols]
		for k := range o.x {
			var sum, moves float64
			for c, p := range of[k*t.cols:][:t.cols] {
				own := scales[c]
				is := to(own, t.largest, m)
				if own == 0 || is == own {
					sum += p
					continue
				}
				sum, moves = sum+p/own*is, moves+p/own
			}
			d := o.want[n][k] - sum
			left, up, down = left+d*d, up+d*moves, down+moves*moves
		}
	}
	s.m.work += len(sums) * len(o.x) * t.cols / 4
	if down == 0 {
		return math.Inf(1), 0
	}
	return left, (limit + up/down) / t.largest
}
