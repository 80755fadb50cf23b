package pattern

import (
	"errors"
	"unicode/utf8"
)

// A Budget is the number of steps that searches may still take. Published expressions take a few for each character.
type Budget int

// NewBudget returns one for a text of n bytes.
func NewBudget(n int) *Budget {
	b := Budget(1<<21 + 1<<7*n)
	return &b
}

// ErrBudget is the error of a search that has used up its budget.
var ErrBudget = errors.New("its search takes too many steps on this text")

// Find returns the places of the matches in text, each as its start and its end, from left to right: the next search begins where a
// match ends.
func (p *Pattern) Find(text string, budget *Budget) ([][2]int, error) {
	m := &machine{program: p.program, text: text, budget: budget}
	var found [][2]int
	for at := 0; at < len(text); {
		end, ok := m.run(0, at)
		switch {
		case *budget < 0:
			return nil, ErrBudget
		case ok: // it is not empty, which Compile has seen to
			found = append(found, [2]int{at, end})
			at = end
		default:
			_, size := utf8.DecodeRuneInString(text[at:])
			at += size
		}
	}
	return found, nil
}

// A frame is a way that was not tried: at pc, from low on, or, where high is beyond it, from each place before high down to low.
type frame struct {
	pc, low, high int
}

// maxFrames bounds the memory of a search, to 96 MiB.
const maxFrames = 1 << 22

type machine struct {
	program []instruction
	text    string
	budget  *Budget
	frames  []frame
}

// run matches from instruction pc and place at on, and returns where it ends. It fails where the budget is used up.
func (m *machine) run(pc, at int) (end int, ok bool) {
	base := len(m.frames)
	for {
		if *m.budget--; *m.budget < 0 {
			return 0, false
		}
		in := &m.program[pc]
		matched := true
		switch in.op {
		case opSet:
			var size int
			if size, matched = in.set.start(m.text[at:]); matched {
				pc, at = pc+1, at+size
			}
		case opLoop, opTake:
			low, high, enough := m.loop(in, at)
			if matched = enough; matched {
				if pc++; in.op == opLoop && low < high {
					m.push(frame{pc, low, high})
				}
				at = high
			}
		case opSplit:
			m.push(frame{in.y, at, at})
			pc = in.x
		case opJump:
			pc = in.x
		case opAhead, opNot:
			_, found := m.run(pc+1, at)
			matched = found == (in.op == opAhead)
			pc = in.x
		case opAtomic:
			var behind int
			if behind, matched = m.run(pc+1, at); matched {
				pc, at = in.x, behind
			}
		case opEnd:
			m.frames = m.frames[:base]
			return at, true
		}
		if !matched {
			if len(m.frames) == base {
				return 0, false
			}
			pc, at = m.back()
		}
	}
}

// loop reads the characters of a set from at on. low is the place after the least number of them, high the place after all.
func (m *machine) loop(in *instruction, at int) (low, high int, enough bool) {
	count := 0
	for low, high = at, at; count != in.max && high < len(m.text); count++ {
		if count == in.min {
			low = high
		}
		size, ok := in.set.start(m.text[high:])
		if !ok {
			break
		}
		high += size
	}
	*m.budget -= Budget(count)
	if count <= in.min {
		low = high
	}
	return low, high, count >= in.min
}

// push keeps a way for later. Too many of them use up the budget.
func (m *machine) push(f frame) {
	if m.frames = append(m.frames, f); len(m.frames) > maxFrames {
		*m.budget = 0
	}
}

// back takes the last way that was not tried.
func (m *machine) back() (pc, at int) {
	f := &m.frames[len(m.frames)-1]
	if f.high > f.low {
		_, size := utf8.DecodeLastRuneInString(m.text[:f.high])
		f.high -= size
	}
	pc, at = f.pc, f.high
	if f.high == f.low {
		m.frames = m.frames[:len(m.frames)-1]
	}
	return pc, at
}
