package diagnose

import (
	"math"
	"slices"

	"github.com/tracediff/tracediff/order/program"
)

// maxMoved is how many channels that are others are looked at one by one.
const maxMoved = 256

// parts looks at parts of the result: channels that are 0, or are those of another channel, in all entries.
func (s *search) parts() error {
	if s.first != s.entries[0] || len(s.first.Program.Of(program.Mask)) > 0 { // some columns alone are kept of it
		return nil
	}
	from, err := s.channelsFrom()
	if from == nil || err != nil {
		return err
	}
	m, runs := channelMistake(from)
	if runs == 0 { // as where what is left is not finite
		return nil
	}
	return s.try(hypothesis{
		class: program.Mapped, solved: runs,
		make: func(e *Entry) *program.Edited { return moved(e, from) },
		say:  func(*Entry) Name { return m.name() },
	})
}

// channelsFrom says of each channel which one it is, −1 for 0; nil where one is none, or where too many are others.
func (s *search) channelsFrom() ([]int, error) {
	width := s.first.Program.Out.Last()
	wrong := map[int]bool{}
	for _, e := range s.entries {
		if e.Program.Out.Last() != width {
			return nil, nil
		}
		for _, i := range e.Left {
			wrong[i%width] = true
		}
	}
	if len(wrong) > maxMoved {
		return nil, nil
	}
	all := len(wrong) == width // then it is an order of all of them, or nothing
	from := make([]int, width)
	for c := range from {
		from[c] = c
		if !wrong[c] {
			continue
		}
		k, err := s.channel(c, width)
		if err != nil || k == none || all && (k < 0 || slices.Contains(from[:c], k)) {
			return nil, err
		}
		from[c] = k
	}
	return from, nil
}

// run is where channels end that begin at one and are zeros, or those of others in their order.
func run(from []int, at int) int {
	end := at + 1
	for end < len(from) && (from[at] < 0 && from[end] < 0 || from[at] >= 0 && from[end] == from[at]+end-at) {
		end++
	}
	return end
}

// channelMistake is the mistake of wrong channels, and the number of their runs.
func channelMistake(from []int) (m Mistake, n int) {
	var runs []Run
	for a := 0; a < len(from); {
		b := run(from, a)
		if from[a] != a {
			runs = append(runs, Run{From: a, To: b, Is: from[a]})
		}
		a = b
	}
	if len(runs) == 0 {
		return m, 0
	}
	m = Mistake{Kind: "channels.others", Runs: makeRuns(runs[:min(len(runs), mostRuns)]...)}
	switch more := len(runs) - mostRuns; {
	case more > 0 && isPermutation(from):
		m.Kind, m.N, m.M = "channels.reordered", len(runs), len(from)
	case more > 0:
		m.Kind, m.N = "channels.many-others", more
	}
	return m, len(runs)
}

// isPermutation reports whether every channel is somewhere.
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

const none = math.MinInt

// channel finds what a channel of all entries is: that of another channel, or 0, which is −1.
func (s *search) channel(c, width int) (int, error) {
	var columns []int
	for k := -1; k < width; k++ {
		columns = append(columns, k)
	}
	for _, e := range s.entries {
		k, err := s.m.values(e)
		if err != nil {
			return none, err
		}
		x, err := k.Own()
		if err != nil {
			return none, err
		}
		y, half := e.Target()
		columns = slices.DeleteFunc(columns, func(k int) bool {
			for row := 0; row < len(y); row += width {
				v, b := 0.0, 0.0
				if k >= 0 {
					if v = x.Data[row+k]; x.Bound != nil {
						b = x.Bound[row+k]
					}
				}
				if !(math.Abs(y[row+c]-v) <= half[row+c]+b) {
					return true
				}
			}
			return false
		})
	}
	if len(columns) == 0 {
		return none, nil
	}
	return columns[0], nil
}

// moved has channels of the result in the places of others, or 0.
func moved(e *Entry, from []int) *program.Edited {
	ed := e.Program.Edit()
	out := e.Program.Out
	last := len(out.Shape()) - 1
	var all []program.Var
	for a := 0; a < len(from); {
		b := run(from, a)
		if from[a] < 0 {
			all = append(all, ed.Mul("", ed.Slice(out, last, a, b), ed.Literal(0)))
		} else {
			all = append(all, ed.Slice(out, last, from[a], from[a]+b-a))
		}
		a = b
	}
	ed.Return(ed.Cat(last, all...))
	return ended(ed)
}
