package diagnose

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// inPart yields mistakes in the tokens with unexplained elements. The other tokens are right.
func inPart(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		for _, e := range s.entries {
			axis := tokenAxis(s.subject, e)
			if axis < 0 {
				return
			}
			size := e.Program.Out.Shape[axis]
			if _, n := e.leftTokens(axis); n == 0 || n == size && size > 1 {
				return
			}
		}
		tokens := someTokens(s)
		for _, all := range []generator{structure, productsLast, again, otherNumbers} {
			for m := range all(s) {
				if m.Tokens = tokens; !yield(m) {
					return
				}
			}
		}
	}
}

// inBlocks yields mistakes in the part of the result that has unexplained elements, some heads, streams, channels or tokens. The rest is right, in all
// entries: a kernel that computes a result in blocks computes one block wrongly.
func inBlocks(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		only := wrongPart(s)
		if only == "" {
			return
		}
		for _, all := range []generator{structure, productsLast, again, otherNumbers, meansOfParts, exchanged, inputs, apartInputs, weightsElsewhere, changedWeights, positions, rotary, shiftedSteps, operands} {
			for m := range all(s) {
				if m.Tokens.Some || m.Only != "" {
					continue
				}
				if m.Only = only; !yield(m) {
					return
				}
			}
		}
	}
}

// wrongPart is the part of the result with unexplained elements: the indexes with such elements, of each axis that also has right indexes. It is empty if
// no axis has both, and if fewer than half of the elements of the part are unexplained. The axes count heads, streams, channels, or tokens by their
// positions. The entries have the same axes.
func wrongPart(s *search) Spots {
	axes, shape := s.m.List.Entries[s.first.Node.Entry].Axes, s.first.Program.Out.Shape
	if len(axes) != len(shape) {
		return ""
	}
	var parts []string
	for k := range axes {
		if !strings.ContainsRune(partAxes, rune(axes[k])) {
			continue
		}
		var has, is []bool // of each index: whether it is wrong in some entry, and whether some entry has it
		for _, e := range s.entries {
			if s.m.List.Entries[e.Node.Entry].Axes != axes || axes[k] != order.AxisToken && e.Program.Out.Shape[k] != shape[k] {
				return ""
			}
			first, size := s.firstPosition(e, axes[k]), e.Program.Out.Shape[k]
			for len(has) < first+size {
				has, is = append(has, false), append(is, false)
			}
			for i := range size {
				is[first+i] = true
			}
			inner := program.Size(e.Program.Out.Shape[k+1:])
			for _, i := range e.Left {
				has[first+i/inner%size] = true
			}
		}
		if n := trues(has); n > 0 && n < trues(is) {
			parts = append(parts, string(spotOf(axes[k], has)))
		}
	}
	part, in, wrong := Spots(strings.Join(parts, ";")), 0, 0
	for _, e := range s.entries {
		of := part.of(s.subject, e)
		if of == nil {
			return ""
		}
		for i := range e.elements() {
			if of.has(i) {
				in++
			}
		}
		wrong += len(e.Left)
	}
	if 2*wrong < in {
		return ""
	}
	return part
}

// firstPosition is the position of the first token of an entry's pass for an axis of tokens; 0 for another axis.
func (s *subject) firstPosition(e *Entry, axis byte) int {
	if axis != order.AxisToken {
		return 0
	}
	return s.m.Passes[e.Node.Pass].Past
}

// partAxes are the axes of [Mistake.Only].
const partAxes = string(order.AxisToken) + string(order.AxisHead) + string(order.AxisStream) + string(order.AxisChannel)

// spotOf writes indexes of an axis in runs: "channels=0-7,12".
func spotOf(axis byte, has []bool) Spots {
	var runs []string
	for at := 0; at < len(has); at++ {
		if !has[at] {
			continue
		}
		end := at
		for end+1 < len(has) && has[end+1] {
			end++
		}
		run := strconv.Itoa(at)
		if end > at {
			run += "-" + strconv.Itoa(end)
		}
		runs, at = append(runs, run), end
	}
	return Spots(axisWords(axis) + "=" + strings.Join(runs, ","))
}

// tile is a part of a result: the indexes that belong to it, of some axes.
type tile struct {
	shape []int
	in    [][]bool // by axis; nil for all indexes
}

// has reports whether an element is in the part.
func (t *tile) has(i int) bool {
	for k := len(t.shape) - 1; k >= 0; k-- {
		if in := t.in[k]; in != nil && !in[i%t.shape[k]] {
			return false
		}
		i /= t.shape[k]
	}
	return true
}

// without are the spots of the other axes.
func (m Spots) without(axis byte) Spots {
	var all []string
	for part := range strings.SplitSeq(string(m), ";") {
		if !strings.HasPrefix(part, axisWords(axis)+"=") {
			all = append(all, part)
		}
	}
	return Spots(strings.Join(all, ";"))
}

// of is the part of an entry's result. It is nil for no spots, and where the result has no such axis.
func (m Spots) of(s *subject, e *Entry) *tile {
	axes, shape := s.m.List.Entries[e.Node.Entry].Axes, e.Program.Out.Shape
	if m == "" || len(axes) != len(shape) {
		return nil
	}
	t := &tile{shape, make([][]bool, len(shape))}
	for part := range strings.SplitSeq(string(m), ";") {
		name, runs, _ := strings.Cut(part, "=")
		k := slices.IndexFunc([]byte(axes), func(a byte) bool { return axisWords(a) == name })
		if k < 0 {
			return nil
		}
		if t.in[k] = runsIn(runs, s.firstPosition(e, axes[k]), shape[k]); t.in[k] == nil {
			return nil
		}
	}
	return t
}

// runsIn reads runs of indexes from some first index on, and reports for each index whether it is in a run. It is nil for a text that is no run.
func runsIn(runs string, first, size int) []bool {
	has := make([]bool, size)
	for run := range strings.SplitSeq(runs, ",") {
		low, high, isRun := strings.Cut(run, "-")
		from, err := strconv.Atoi(low)
		to := from
		if isRun && err == nil {
			to, err = strconv.Atoi(high)
		}
		if err != nil {
			return nil
		}
		for i := max(from-first, 0); i <= min(to-first, size-1); i++ {
			has[i] = true
		}
	}
	return has
}

// tokenAxis is the axis of the result that counts tokens; −1 if no axis does.
func tokenAxis(x *subject, e *Entry) int {
	axes := x.m.List.Entries[e.Node.Entry].Axes
	if len(axes) != len(e.Program.Out.Shape) {
		return -1
	}
	return strings.IndexByte(axes, order.AxisToken)
}

// leftPart is the part of a result in the tokens with unexplained elements; nil for a result without an axis of tokens.
func leftPart(x *subject, e *Entry) *tile {
	axis := tokenAxis(x, e)
	if axis < 0 {
		return nil
	}
	part := &tile{e.Program.Out.Shape, make([][]bool, len(e.Program.Out.Shape))}
	part.in[axis], _ = e.leftTokens(axis)
	return part
}

// leftTokens reports for each token along an axis whether the token has unexplained elements, and counts the tokens that have some.
func (e *Entry) leftTokens(axis int) (has []bool, n int) {
	if e.tokens == nil {
		shape := e.Program.Out.Shape
		inner := program.Size(shape[axis+1:])
		e.tokens = make([]bool, shape[axis])
		for _, i := range e.Left {
			e.tokens[i/inner%shape[axis]] = true
		}
	}
	for _, left := range e.tokens {
		if left {
			n++
		}
	}
	return e.tokens, n
}

// onlyIn takes the result of an edited program in a part of the result, and the entry's own result elsewhere. It is nil for a nil edit, for no part, and for
// an edit that changes the shape.
func onlyIn(x *subject, e *Entry, d *program.Edited, part *tile) *program.Edited {
	if d == nil || part == nil || refused(x, e, func(some *program.Some) (program.Value, error) { return onlyInSome(x, e, d, some, part) }) {
		return nil
	}
	own, ok := x.valueOf(e, nil)
	other, is := x.valueOf(e, d)
	if !ok || !is || !slices.Equal(own.Shape, other.Shape) {
		return nil
	}
	for i := range own.Data {
		if part.has(i) {
			own.Data[i], own.Bound[i] = other.Data[i], other.Bound[i]
		}
	}
	return given(e, own)
}

// onlyInSome is the result of [onlyIn] for a few tokens: outside of the part, the elements are those of the trace, which the entry's own program gives.
func onlyInSome(x *subject, e *Entry, d *program.Edited, some *program.Some, part *tile) (program.Value, error) {
	k, err := x.m.values(e)
	if err != nil {
		return program.Value{}, err
	}
	v, err := k.EvalSome(d, some)
	if err != nil {
		return v, err
	}
	v = ownedValue(v)
	y, _ := e.Few.Target()
	few := &tile{v.Shape, slices.Clone(part.in)}
	for k, in := range few.in {
		var at []int
		switch {
		case in == nil:
			continue
		case k == some.Axis:
			at = some.Keep
		case k == len(few.in)-1 && some.Columns != nil:
			at = some.Columns
		default:
			continue
		}
		few.in[k] = make([]bool, len(at))
		for i, from := range at {
			few.in[k][i] = in[from]
		}
	}
	for k, size := range v.Shape {
		if len(v.Shape) != len(part.in) || few.in[k] != nil && len(few.in[k]) != size || len(y) != len(v.Data) {
			return v, program.ErrIndex
		}
	}
	for i := range v.Data {
		if !few.has(i) {
			v.Data[i], v.Bound[i] = y[i], 0
		}
	}
	return v, nil
}

// someTokens are the tokens with unexplained elements. If their ids are larger than the ids of all other tokens, the smallest id is known too. This
// happens past the end of a table that is shorter than the vocabulary.
func someTokens(s *search) Tokens {
	var left, right []float64
	for _, e := range s.entries {
		n := order.Node{Entry: s.m.List.Index(order.InputIDs), Pass: e.Node.Pass}
		axis := tokenAxis(s.subject, e)
		if n.Entry < 0 || axis < 0 || !s.m.Has(n) {
			return Tokens{Some: true}
		}
		v, err := s.m.Read(n)
		if s.failed(err) || len(v.Data) != e.Program.Out.Shape[axis] {
			return Tokens{Some: true}
		}
		has, _ := e.leftTokens(axis)
		for t, id := range v.Data {
			if has[t] {
				left = append(left, id)
			} else {
				right = append(right, id)
			}
		}
	}
	if len(left) == 0 || len(right) == 0 || slices.Min(left) <= slices.Max(right) {
		return Tokens{Some: true}
	}
	for _, f := range s.numbers {
		if f.plain && f.value > slices.Max(right) && f.value <= slices.Min(left) && strings.Contains(f.field, "vocab") {
			return Tokens{Some: true, From: some(f.value), Called: f.words}
		}
	}
	return Tokens{Some: true, From: some(slices.Min(left))}
}
