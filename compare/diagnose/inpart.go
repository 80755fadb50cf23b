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

// inHeadsOrChannels yields mistakes in the heads, streams or channels with unexplained elements. The other ones are right, in all entries: a kernel that
// computes blocks of a result computes one block wrongly.
func inHeadsOrChannels(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		only := partOfAxis(s)
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

// partOfAxis lists the heads, streams or channels with unexplained elements. It is empty if all of them have some, on each of these axes.
func partOfAxis(s *search) Spots {
	for _, part := range partsOfAxes(s) {
		if !strings.HasPrefix(string(part), axisWords(order.AxisToken)) {
			return part
		}
	}
	return ""
}

// partsOfAxes lists the indexes with unexplained elements, for each axis that also has right indexes. The axes count heads, streams, channels, or tokens by
// their positions. The entries have the same axes.
func partsOfAxes(s *search) (parts []Spots) {
	axes, shape := s.m.List.Entries[s.first.Node.Entry].Axes, s.first.Program.Out.Shape
	if len(axes) != len(shape) {
		return nil
	}
	for k := range axes {
		if !strings.ContainsRune(partAxes, rune(axes[k])) {
			continue
		}
		var has, is []bool // of each index: whether it is wrong in some entry, and whether some entry has it
		for _, e := range s.entries {
			if s.m.List.Entries[e.Node.Entry].Axes != axes || axes[k] != order.AxisToken && e.Program.Out.Shape[k] != shape[k] {
				return nil
			}
			first, size := s.firstPosition(e, axes[k]), e.Program.Out.Shape[k]
			for len(has) < first+size {
				has, is = append(has, false), append(is, false)
			}
			for i := range size {
				is[first+i] = true
			}
			inner := product(e.Program.Out.Shape[k+1:])
			for _, i := range e.Left {
				has[first+i/inner%size] = true
			}
		}
		if n := trues(has); n > 0 && n < trues(is) {
			parts = append(parts, spotOf(axes[k], has))
		}
	}
	return parts
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

// along finds the axis of the spots in the result of an entry, and reports for each index of the axis whether it is one of the spots. The axis is
// negative where the result has no such axis.
func (m Spots) along(s *subject, e *Entry) (axis int, has []bool) {
	name, runs, _ := strings.Cut(string(m), "=")
	axes, shape := s.m.List.Entries[e.Node.Entry].Axes, e.Program.Out.Shape
	if len(axes) != len(shape) {
		return -1, nil
	}
	axis = slices.IndexFunc([]byte(axes), func(a byte) bool { return axisWords(a) == name })
	if axis < 0 {
		return -1, nil
	}
	has = make([]bool, shape[axis])
	past := s.firstPosition(e, axes[axis])
	for run := range strings.SplitSeq(runs, ",") {
		first, last, isRun := strings.Cut(run, "-")
		from, err := strconv.Atoi(first)
		to := from
		if isRun && err == nil {
			to, err = strconv.Atoi(last)
		}
		if err != nil {
			return -1, nil
		}
		for i := max(from-past, 0); i <= min(to-past, len(has)-1); i++ {
			has[i] = true
		}
	}
	return axis, has
}

// tokenAxis is the axis of the result that counts tokens; −1 if no axis does.
func tokenAxis(x *subject, e *Entry) int {
	axes := x.m.List.Entries[e.Node.Entry].Axes
	if len(axes) != len(e.Program.Out.Shape) {
		return -1
	}
	return strings.IndexByte(axes, order.AxisToken)
}

// leftTokens reports for each token along an axis whether the token has unexplained elements, and counts the tokens that have some.
func (e *Entry) leftTokens(axis int) (has []bool, n int) {
	if e.tokens == nil {
		shape := e.Program.Out.Shape
		inner := product(shape[axis+1:])
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

// onlyIn takes the result of an edited program at some indexes of an axis, and the entry's own result at the others. It is nil for a nil edit and for a
// negative axis.
func onlyIn(x *subject, e *Entry, d *program.Edited, axis int, has []bool) *program.Edited {
	if d == nil || axis < 0 || refused(x, e, func(some *program.Some) (program.Value, error) { return onlyInSome(x, e, d, some, axis, has) }) {
		return nil
	}
	own, ok := x.valueOf(e, nil)
	other, is := x.valueOf(e, d)
	if !ok || !is || len(own.Data) != len(other.Data) {
		return nil
	}
	shape := e.Program.Out.Shape
	inner := product(shape[axis+1:])
	for i := range own.Data {
		if has[i/inner%shape[axis]] {
			own.Data[i], own.Bound[i] = other.Data[i], other.Bound[i]
		}
	}
	return given(e, own)
}

// onlyInSome is the result of [onlyIn] for a few tokens: outside of the indexes, the elements are those of the trace, which the entry's own program gives.
func onlyInSome(x *subject, e *Entry, d *program.Edited, some *program.Some, axis int, has []bool) (program.Value, error) {
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
	inner, last := product(v.Shape[axis+1:]), len(v.Shape)-1
	for i := range v.Data {
		at := i / inner % v.Shape[axis]
		switch {
		case axis == some.Axis:
			at = some.Keep[at]
		case axis == last && some.Columns != nil:
			at = some.Columns[at]
		}
		if !has[at] {
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
