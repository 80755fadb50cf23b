package mapping

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// layout says how the axes of a tensor become others, in the words of einops: "t (h d) -> 1 h t d". The left side has one item for
// each axis that the tensor has, the right side one for each that it gets: a name, several names in parentheses where one axis is
// several, the last of them the fastest, or 1. A size that follows from nothing is written behind its name on the left: "(h:4 d)".
type layout struct {
	text        string
	left, right [][]axis // the names of each item; 1 has none
}

type axis struct {
	name string
	size int // 0 where it is not written
}

// newLayout reads a layout. It may leave out names on the right that a split makes 1; dropped has the one.
func newLayout(text, dropped string) (*layout, error) {
	left, right, ok := strings.Cut(text, "->")
	if !ok {
		return nil, fmt.Errorf("axes %q: want the axes that there are, ->, and those that are wanted", text)
	}
	l := &layout{text: strings.Join(strings.Fields(text), " ")}
	var err error
	if l.left, err = items(left, true); err != nil {
		return nil, fmt.Errorf("axes %q: %w", text, err)
	}
	if l.right, err = items(right, false); err != nil {
		return nil, fmt.Errorf("axes %q: %w", text, err)
	}
	from, to := names(l.left), names(l.right)
	for _, side := range [][]string{from, to} {
		for i, n := range side {
			if slices.Contains(side[:i], n) {
				return nil, fmt.Errorf("axes %q: %s stands twice on one side", text, n)
			}
		}
	}
	for _, n := range from {
		if !slices.Contains(to, n) && n != dropped {
			return nil, fmt.Errorf("axes %q: %s is on the left alone, and no element may be lost", text, n)
		}
	}
	for _, n := range to {
		if !slices.Contains(from, n) {
			return nil, fmt.Errorf("axes %q: %s is on the right alone", text, n)
		}
	}
	return l, nil
}

// items reads one side of a layout.
func items(side string, sizes bool) ([][]axis, error) {
	var list [][]axis
	inside := false
	for _, word := range strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(side)) {
		switch {
		case word == "(" && !inside:
			inside = true
			list = append(list, nil)
		case word == ")" && inside:
			if inside = false; len(list[len(list)-1]) == 0 {
				return nil, errors.New("nothing is in the parentheses")
			}
		case word == "(" || word == ")":
			return nil, errors.New("parentheses do not fit together")
		case word == "1":
			if !inside {
				list = append(list, nil)
			}
		default:
			a, err := newAxis(word, sizes)
			if err != nil {
				return nil, err
			}
			if inside {
				list[len(list)-1] = append(list[len(list)-1], a)
			} else {
				list = append(list, []axis{a})
			}
		}
	}
	if inside {
		return nil, errors.New("parentheses do not fit together")
	}
	return list, nil
}

func newAxis(word string, sizes bool) (axis, error) {
	name, size, written := strings.Cut(word, ":")
	a := axis{name: name}
	if !captureName.MatchString(name) {
		return a, fmt.Errorf("%q is no name of an axis", word)
	}
	if !written {
		return a, nil
	}
	if !sizes {
		return a, fmt.Errorf("%q: sizes are written on the left", word)
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || n > most {
		return a, fmt.Errorf("%q: want a size of 1 or more behind the colon", word)
	}
	a.size = n
	return a, nil
}

func names(side [][]axis) []string {
	var list []string
	for _, item := range side {
		for _, a := range item {
			list = append(list, a.name)
		}
	}
	return list
}

// strided is an axis of a tensor that lies row-major in memory, or a part of one.
type strided struct {
	name         string
	size, stride int // stride in elements
}

// apart takes the axes of a shape apart, as the left side says. sizes has those that the model gives.
func (l *layout) apart(shape []int, sizes map[string]int) ([]strided, error) {
	if len(shape) != len(l.left) {
		return nil, fmt.Errorf("shape %v has %d axes, and %q is for %d", shape, len(shape), l.text, len(l.left))
	}
	var all []strided
	stride := 1
	for i := len(shape) - 1; i >= 0; i-- {
		parts, err := factors(l.left[i], shape[i], sizes)
		if err != nil {
			return nil, fmt.Errorf("%q of shape %v: %w", l.text, shape, err)
		}
		for j := len(parts) - 1; j >= 0; j-- {
			parts[j].stride = stride
			stride *= parts[j].size
		}
		all = append(parts, all...)
	}
	return all, nil
}

// factors takes one axis apart. One of its sizes may follow from the others.
func factors(item []axis, size int, sizes map[string]int) ([]strided, error) {
	if len(item) == 0 && size != 1 {
		return nil, fmt.Errorf("an axis of %d is called 1", size)
	}
	parts := make([]strided, len(item))
	known, open := 1, -1
	for i, a := range item {
		n := a.size
		if n == 0 && len(item) > 1 {
			n = sizes[a.name]
		}
		parts[i] = strided{name: a.name, size: n}
		switch {
		case n > 0 && known <= most/n:
			known *= n
		case n > 0:
			return nil, fmt.Errorf("the sizes of %s are too large", spell(item))
		case open >= 0:
			return nil, fmt.Errorf("%s: the sizes of %s and %s do not follow: write one behind its name, such as %[2]s:4", spell(item), item[open].name, a.name)
		default:
			open = i
		}
	}
	switch {
	case open >= 0 && size%known == 0:
		parts[open].size = size / known
	case open >= 0 || len(item) > 0 && known != size:
		return nil, fmt.Errorf("an axis of %d is not %s: %s", size, spell(item), spellSizes(parts, open))
	}
	return parts, nil
}

func spell(item []axis) string {
	var words []string
	for _, a := range item {
		words = append(words, a.name)
	}
	return "(" + strings.Join(words, " ") + ")"
}

func spellSizes(parts []strided, open int) string {
	var words []string
	for i, p := range parts {
		if i != open {
			words = append(words, fmt.Sprintf("%s is %d", p.name, p.size))
		}
	}
	return strings.Join(words, ", ")
}

// together arranges the parts as the right side says: the strided axes in their new order, and the shape.
func (l *layout) together(parts []strided) (order []strided, shape []int) {
	for _, item := range l.right {
		size := 1
		for _, a := range item {
			i := slices.IndexFunc(parts, func(p strided) bool { return p.name == a.name })
			order = append(order, parts[i])
			size *= parts[i].size
		}
		shape = append(shape, size)
	}
	return order, shape
}
