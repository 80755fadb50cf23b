package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order"
)

const (
	leastWidth   = 4       // of a row that is recognised by its numbers
	leastOfRows  = 16      // elements of recognised rows, together
	mostCompared = 1 << 26 // pairs of rows
)

// rowFrom is a row that may be in the place of a wrong row.
type rowFrom struct {
	x    []float64
	of   Term
	pass int
	at   string // the name of the row
}

// rowsFromElsewhere describes results whose wrong rows are rows of the right result, of an input, of an earlier pass, or of the table that the operation
// reads.
func rowsFromElsewhere(x *difference) *Description {
	s, results := x.search, x.results
	if d := rowsAmong(s, results, theResult, func(o *observed) []rowFrom { return rowsBeside(s, o) }); d != nil || s.err != nil {
		return d
	}
	_, weight := tableOf(s.first)
	if weight < 0 {
		return nil
	}
	among := func(o *observed) []rowFrom { return rowsOfTable(s, o, weight) }
	if d := rowsAmong(s, results, theResult, among); d != nil || s.err != nil {
		return d
	}
	for _, inner := range x.inners() {
		if d := rowsAmong(s, inner.all, inner.of, among); d != nil || s.err != nil {
			if d != nil {
				x.draft(d).proposes = lookupMistakes(s, inner.all, among)
			}
			return d
		}
	}
	return nil
}

// rowsAmong describes values if at least half of the wrong rows are zeros or are found among candidate rows.
func rowsAmong(s *search, all []observed, of Term, among func(o *observed) []rowFrom) *Description {
	d := &Description{Kind: "described.rows", Of: of}
	strong := false
	for n := range all {
		o := &all[n]
		if len(o.shape) == 0 || !o.same() {
			return nil
		}
		width := o.shape[len(o.shape)-1]
		rows := len(o.want) / max(width, 1)
		from := among(o)
		if width < leastWidth || len(from)*rows > mostCompared {
			return nil
		}
		for r := range rows {
			if !o.wrongRow(r*width, width) {
				continue
			}
			d.Elements++
			if o.zeroRow(r*width, width) {
				d.Explained++
				strong = strong || d.Explained*width >= leastOfRows
				d.Cases = oneMore(d.Cases, zeroWords(rowAt(s, o, r)))
				continue
			}
			k := slices.IndexFunc(from, func(f rowFrom) bool { return o.isRow(r*width, width, f.x) })
			if k < 0 {
				continue
			}
			d.Explained++
			strong = strong || d.Explained*width >= leastOfRows
			d.Cases = oneMore(d.Cases, rowWords(rowAt(s, o, r), from[k], o.e.Node.Pass))
		}
	}
	if !strong || 2*d.Explained < d.Elements {
		return nil
	}
	d.Wrong = d.Explained
	return d
}

// same reports whether the wanted and the right value have equally many elements: the axes of the result then fit both.
func (o *observed) same() bool { return len(o.want) == len(o.value) }

// wrongRow reports whether at least half of the elements of a row are wrong by more than four times their error.
func (o *observed) wrongRow(at, width int) bool {
	n := 0
	for i := at; i < at+width; i++ {
		if math.Abs(o.want[i]-o.value[i]) > 4*off(o, i) {
			n++
		}
	}
	return 2*n >= width
}

// zeroRow reports whether a whole row is 0.
func (o *observed) zeroRow(at, width int) bool {
	return !slices.ContainsFunc(o.want[at:at+width], func(x float64) bool { return x != 0 })
}

// oneMore adds a new case to the cases while there are few.
func oneMore(cases []string, text string) []string {
	if len(cases) <= mostValues && !slices.Contains(cases, text) {
		return append(cases, text)
	}
	return cases
}

// isRow reports whether a row of the wanted value is x. A row of equal numbers, such as zeros, does not count.
func (o *observed) isRow(at, width int, x []float64) bool {
	same := true
	for k, v := range x {
		if !(math.Abs(o.want[at+k]-v) <= off(o, at+k)) {
			return false
		}
		same = same && v == x[0]
	}
	return !same && len(x) == width
}

// rowAt names a row by the indexes of its axes.
func rowAt(s *search, o *observed, r int) string {
	return rowOfShape(s, o.axes, o.shape, r, firstIndex(s, o, order.AxisToken))
}

// rowOfShape names a row of a tensor by the indexes of its axes; first is the index of the first token.
func rowOfShape(s *search, axes string, shape []int, r, first int) string {
	var all []string
	for k := len(shape) - 2; k >= 0; k-- {
		i := r % max(shape[k], 1)
		r /= max(shape[k], 1)
		if shape[k] > 1 || len(axes) == len(shape) && axes[k] == order.AxisToken {
			word := rowWord
			if len(axes) == len(shape) {
				word = oneOf(axes[k])
				if axes[k] == order.AxisToken {
					i += first
				}
			}
			all = append(all, ordinal(word, i))
		}
	}
	slices.Reverse(all)
	return listed(all)
}

// rowsBeside are the rows of the right result, of the inputs, and of the result in earlier passes.
func rowsBeside(s *search, o *observed) (all []rowFrom) {
	width := o.shape[len(o.shape)-1]
	add := func(x []float64, of Term, pass int, axes string, shape []int, first int) {
		if len(shape) == 0 || shape[len(shape)-1]%width != 0 {
			return
		}
		if n := shape[len(shape)-1] / width; n > 1 { // the channels of several heads
			shape = append(slices.Clone(shape[:len(shape)-1]), n, width)
			axes = splitAxes(axes)
		}
		for r := range len(x) / width {
			all = append(all, rowFrom{x: x[r*width:][:width], of: of, pass: pass, at: rowOfShape(s, axes, shape, r, first)})
		}
	}
	add(o.value, theResult, o.e.Node.Pass, o.axes, o.shape, firstIndex(s, o, order.AxisToken))
	for pass := o.e.Node.Pass - 1; pass >= 0; pass-- {
		if n := (order.Node{Entry: o.e.Node.Entry, Pass: pass}); s.m.Has(n) && !slices.ContainsFunc(s.entries, func(e *Entry) bool { return e.Node == n }) {
			v, err := s.m.Read(n)
			if s.failed(err) {
				return nil
			}
			add(v.Data, theResult, pass, o.axes, v.Shape, s.m.Passes[pass].Past)
		}
	}
	for k, in := range o.e.Inputs {
		if o.e.Items[k] != nil || !s.m.Has(in) {
			continue
		}
		v, err := s.m.Read(in)
		if s.failed(err) {
			return nil
		}
		entry := &s.m.List.Entries[in.Entry]
		add(v.Data, tensorTerm(entry.Name), in.Pass, entry.Axes, v.Shape, s.m.Passes[in.Pass].Past)
	}
	return all
}

// splitAxes splits the last axis into heads and channels.
func splitAxes(axes string) string {
	if axes == "" {
		return ""
	}
	return axes[:len(axes)-1] + string(rune(order.AxisHead)) + string(rune(order.AxisChannel))
}

// rowsOfTable are the rows of a matrix that an entry reads.
func rowsOfTable(s *search, o *observed, weight int) (all []rowFrom) {
	w := o.e.Call.W[weight]
	rows, cols := w.Size()
	if rows*cols > mostOfMatrices || cols != o.shape[len(o.shape)-1] {
		return nil
	}
	for r := range rows {
		x := make([]float64, cols)
		if s.failed(w.Row(x, r)) {
			return nil
		}
		all = append(all, rowFrom{x: x, of: weightTerm(o.e.Weights[weight].Name), pass: o.e.Node.Pass, at: ordinal(rowWord, r)})
	}
	return all
}
