package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/order/program"
)

// maxMoved is how many channels that are others are looked at one by one.
const maxMoved = 256

// parts looks at parts of the result: channels that are 0, or are those of another channel, in all entries.
func (s *search) parts() error {
	if s.first != s.entries[0] || len(s.first.Program.Of(program.Mask)) > 0 { // some columns alone are kept of it
		return nil
	}
	width := s.first.Program.Out.Last()
	wrong := make([]bool, width)
	for _, e := range s.entries {
		if e.Program.Out.Last() != width {
			return nil
		}
		for _, i := range e.Left {
			wrong[i%width] = true
		}
	}
	n := 0
	for _, w := range wrong {
		if w {
			n++
		}
	}
	if n > maxMoved {
		return nil
	}
	all := n == width          // then it is an order of all of them, or nothing
	from := make([]int, width) // −1 for 0
	for c := range from {
		from[c] = c
		if !wrong[c] {
			continue
		}
		k, err := s.channel(c, width)
		if err != nil || k == none || all && (k < 0 || slices.Contains(from[:c], k)) {
			return err
		}
		from[c] = k
	}
	var words []string
	runs := 0
	for a := 0; a < width; {
		b := a + 1
		for b < width && (from[a] < 0 && from[b] < 0 || from[a] >= 0 && from[b] == from[a]+b-a) {
			b++
		}
		if from[a] != a {
			runs++
			where := fmt.Sprintf("channels %d to %d", a, b-1)
			if b == a+1 {
				where = fmt.Sprintf("channel %d", a)
			}
			switch {
			case from[a] < 0 && b == a+1:
				words = append(words, where+" is 0")
			case from[a] < 0:
				words = append(words, where+" are 0")
			case b == a+1:
				words = append(words, fmt.Sprintf("%s is channel %d", where, from[a]))
			default:
				words = append(words, fmt.Sprintf("%s are channels %d to %d", where, from[a], from[b-1]))
			}
		}
		a = b
	}
	if runs == 0 { // as where what is left is not finite
		return nil
	}
	text := words[0]
	if isPermutation(from) && len(words) > 3 {
		text = fmt.Sprintf("the channels are in another order: %d of %d are others (", runs, width) + text
	}
	permuted := strings.HasPrefix(text, "the channels are")
	for _, w := range words[1:min(len(words), 3)] {
		text += "; " + w
	}
	if permuted {
		text += "; ...)"
	} else if len(words) > 3 {
		text += fmt.Sprintf("; and %d more parts", len(words)-3)
	}
	return s.try(hypothesis{
		class: program.Mapped, solved: runs,
		make: func(e *Entry) *program.Edited { return moved(e, from) },
		say:  func(*Entry) Name { return Name{What: text} },
	})
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
		k, err := e.values()
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
		b := a + 1
		for b < len(from) && (from[a] < 0 && from[b] < 0 || from[a] >= 0 && from[b] == from[a]+b-a) {
			b++
		}
		if from[a] < 0 {
			all = append(all, ed.Mul("", ed.Slice(out, last, a, b), ed.Literal(0)))
		} else {
			all = append(all, ed.Slice(out, last, from[a], from[a]+b-a))
		}
		a = b
	}
	ed.Return(ed.Cat(last, all...))
	d, err := ed.End()
	if err != nil {
		return nil
	}
	return d
}
