package inspect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// slice is which indexes of each axis are asked for.
type slice struct {
	text string
	axes []steps
}

// steps are the indexes of one axis: count of them, from start on, step apart.
type steps struct {
	start, step, count int
	dropped            bool // a bare index: the axis is not one of the result
}

func (s steps) indexes() []int {
	list := make([]int, s.count)
	for i := range list {
		list[i] = s.start + i*s.step
	}
	return list
}

// maxValues bounds the values of a slice: more than anybody reads, and enough for a script.
const maxValues = 1 << 16

// parseSlice reads a slice as Python and numpy do: for each axis an index, which drops the axis, or start:stop:step; "..." for
// as many whole axes as are left; axes that are not named are whole. Negative numbers count from the end, steps may be
// negative, ranges are cut to the axis and an index has to lie in it.
func parseSlice(text string, shape []int) (*slice, error) {
	parts := strings.Split(text, ",")
	named := len(parts)
	if strings.TrimSpace(text) == "" {
		parts, named = nil, 0
	}
	dots := -1
	for i, p := range parts {
		if strings.TrimSpace(p) != "..." {
			continue
		}
		if dots >= 0 {
			return nil, errors.New("it has \"...\" twice")
		}
		dots, named = i, named-1
	}
	if named > len(shape) {
		return nil, fmt.Errorf("it has %d indexes, and the tensor %d axes", named, len(shape))
	}
	whole := strings.Split(strings.Repeat(":,", len(shape)-named), ",")
	whole = whole[:len(whole)-1]
	if dots < 0 {
		dots, parts = len(parts), append(parts, "...")
	}
	parts = append(append(append([]string{}, parts[:dots]...), whole...), parts[dots+1:]...)
	s := &slice{text: text}
	for axis, p := range parts {
		st, err := parseSteps(strings.TrimSpace(p), shape[axis])
		if err != nil {
			return nil, fmt.Errorf("axis %d, of size %d: %w", axis, shape[axis], err)
		}
		s.axes = append(s.axes, st)
	}
	return s, nil
}

// parseSteps reads the part of one axis.
func parseSteps(text string, size int) (steps, error) {
	fields := strings.Split(text, ":")
	if len(fields) > 3 {
		return steps{}, fmt.Errorf("%q has more than start:stop:step", text)
	}
	var numbers [3]*int
	for i, f := range fields {
		f = strings.TrimSpace(f)
		if f == "" && len(fields) > 1 {
			continue
		}
		n, err := strconv.Atoi(f)
		if err != nil {
			return steps{}, fmt.Errorf("%q is neither an index nor start:stop:step", text)
		}
		numbers[i] = &n
	}
	if len(fields) == 1 {
		return oneIndex(*numbers[0], size)
	}
	return stepsOf(numbers, size)
}

func oneIndex(at, size int) (steps, error) {
	if at < -size || at >= size {
		return steps{}, fmt.Errorf("index %d is out of range", at)
	}
	if at < 0 {
		at += size
	}
	return steps{start: at, step: 1, count: 1, dropped: true}, nil
}

// stepsOf is Python's slice(start, stop, step).indices(size).
func stepsOf(n [3]*int, size int) (steps, error) {
	step := 1
	if n[2] != nil {
		step = *n[2]
	}
	if step == 0 {
		return steps{}, errors.New("a step of 0")
	}
	step = max(-size-1, min(step, size+1)) // the same indexes, and no sum overflows
	low, high := 0, size
	if step < 0 {
		low, high = -1, size-1
	}
	clamp := func(p *int, absent int) int {
		switch {
		case p == nil:
			return absent
		case *p < 0:
			return max(low, max(*p, -size-1)+size)
		}
		return min(*p, high)
	}
	if step > 0 {
		start, stop := clamp(n[0], low), clamp(n[1], high)
		return steps{start: start, step: step, count: max(0, (stop-start+step-1)/step)}, nil
	}
	start, stop := clamp(n[0], high), clamp(n[1], low)
	return steps{start: start, step: step, count: max(0, (start-stop-step-1)/-step)}, nil
}
