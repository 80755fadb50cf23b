package diagnose

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
)

// maxMoved is the largest number of wrong channels whose sources are searched for.
const maxMoved = 256

// otherChannels yields wrong channels of the result. In all entries a wrong channel is 0, or has the elements of another channel. A last axis of keys
// is looked at by [otherIndexes]. A result with one number everywhere does not show where its channels are from.
func otherChannels(s *search) iter.Seq[Mistake] {
	return func(yield func(Mistake) bool) {
		if s.first != s.entries[0] || len(edit.StepsOf(s.first.Program, program.Mask)) > 0 { // only some columns of the result are kept
			return
		}
		if s.isOneNumber() {
			return
		}
		if strings.HasSuffix(s.m.List.Entries[s.first.Node.Entry].Axes, string(order.AxisKey)) {
			return
		}
		if m := channelMistake(channelsFrom(s)); m.Kind != "" {
			yield(m)
		}
	}
}

// isOneNumber reports whether all elements of all entries are one number.
func (s *search) isOneNumber() bool {
	var number Number
	for _, e := range s.entries {
		y, _ := e.Target()
		for _, v := range y {
			if number.Has && v != number.Value {
				return false
			}
			number = some(v)
		}
	}
	return true
}

// channelsFrom gives for each channel of the result the channel of the right result that has its elements, −1 for zeros. It is nil if a wrong channel has
// no source, if more than [maxMoved] channels are wrong, and if all are wrong without being a permutation.
func channelsFrom(s *search) []int {
	width := s.first.Program.Out.Last()
	var wrong []int
	for _, e := range s.entries {
		if e.Program.Out.Last() != width {
			return nil
		}
		wrong = append(wrong, wrongChannels(e)...)
	}
	slices.Sort(wrong)
	if wrong = slices.Compact(wrong); len(wrong) > maxMoved {
		return nil
	}
	found := origins[int, int]{}
	channels := func(yield func(int) bool) {
		for k := -1; k < width && yield(k); k++ {
		}
	}
	for _, e := range s.entries {
		x, ok := s.valueOf(e, nil)
		if !ok {
			return nil
		}
		y, half := e.Target()
		if !found.narrow(wrong, channels, func(c, k int) bool {
			for row := 0; row < len(y); row += width {
				v, b := 0.0, 0.0
				if k >= 0 {
					v, b = x.Data[row+k], x.Bound[row+k]
				}
				if !(math.Abs(y[row+c]-v) <= half[row+c]+b) {
					return false
				}
			}
			return true
		}) {
			return nil
		}
	}
	from := make([]int, width)
	for c := range from {
		from[c] = c
	}
	for c, may := range found {
		from[c] = may[0]
	}
	if len(wrong) == width && !isPermutation(from) { // if all channels are wrong, only a permutation counts
		return nil
	}
	return from
}

// run returns the end of a run of channels: channels that are zeros, or channels whose sources follow each other.
func run(from []int, at int) int {
	end := at + 1
	for end < len(from) && (from[at] < 0 && from[end] < 0 || from[at] >= 0 && from[end] == from[at]+end-at) {
		end++
	}
	return end
}

// channelMistake is the mistake of wrong channels; it has no kind if all channels are right.
func channelMistake(from []int) Mistake {
	var runs []sourceRun
	for a := 0; a < len(from); {
		b := run(from, a)
		if from[a] != a {
			runs = append(runs, sourceRun{From: a, To: b, Is: from[a]})
		}
		a = b
	}
	if len(runs) == 0 {
		return Mistake{}
	}
	m := Mistake{Kind: "channels.others", Runs: makeRuns(runs...)}
	switch more := len(runs) - mostRuns; {
	case more > 0 && isPermutation(from):
		m.Kind, m.N, m.M = "channels.reordered", len(runs), len(from)
	case more > 0:
		m.Kind, m.N = "channels.many-others", more
	}
	return m
}

// isPermutation reports whether every channel is the source of exactly one channel.
func isPermutation(from []int) bool {
	seen := make([]bool, len(from))
	for _, k := range from {
		if k < 0 || seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}

// movedChannels puts channels of the result, or 0, in the places of wrong channels. It is nil for an entry that is computed with only some columns.
func movedChannels(s *subject, e *Entry, m Mistake) *program.Edited {
	out := e.Program.Out
	last, width := len(out.Shape)-1, out.Last()
	if all := s.shapeOf(order.Ref{Name: s.m.List.Entries[e.Node.Entry].Name}, e.Node.Pass); all[len(all)-1] != width {
		return nil
	}
	ed := edit.NewEditor(e.Program)
	var all []program.Var
	at := 0
	own := func(to int) {
		if at < to {
			all = append(all, ed.Slice(out, last, at, to))
		}
	}
	for _, r := range m.Runs.list() {
		if r.To > width || r.From < at {
			return nil
		}
		own(r.From)
		if at = r.To; r.Is < 0 {
			all = append(all, ed.Mul("", ed.Slice(out, last, r.From, r.To), ed.Literal(0)))
		} else {
			all = append(all, ed.Slice(out, last, r.Is, r.Is+r.To-r.From))
		}
	}
	own(width)
	ed.Return(ed.Cat(last, all...))
	return ended(ed)
}
