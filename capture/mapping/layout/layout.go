// Package layout moves the elements of tensors: it reads how the axes of a tensor become other axes, and makes views of tensors in the new
// order. No element is changed.
package layout

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Most bounds sizes, and products of them: nothing that is counted here has more.
const Most = 1 << 40

var name = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// IsName reports whether a text may name an axis: a letter, then letters, digits and underscores.
func IsName(text string) bool { return name.MatchString(text) }

// Layout rearranges the axes of a tensor, in the words of einops: "t (h d) -> 1 h t d". The left side has one item for each axis of the
// tensor, the right side one for each axis of the result: a name, several names in parentheses for an axis that combines them, the last name
// the fastest, or 1. A size that does not follow is written after its name on the left: "(h:4 d)".
type Layout struct {
	Text        string   // as it was written, with single spaces
	left, right [][]axis // the names of each item; 1 has none
}

type axis struct {
	name string
	size int // 0 where it is not written
}

// New reads a layout. It may leave out names on the right that a split makes 1; dropped has the one.
func New(text, dropped string) (*Layout, error) {
	left, right, ok := strings.Cut(text, "->")
	if !ok {
		return nil, fmt.Errorf("axes %q: want the axes of the tensor, ->, and the axes of the entry", text)
	}
	l := &Layout{Text: strings.Join(strings.Fields(text), " ")}
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
				return nil, fmt.Errorf("axes %q: %s is twice on one side", text, n)
			}
		}
	}
	for _, n := range from {
		if !slices.Contains(to, n) && n != dropped {
			return nil, fmt.Errorf("axes %q: %s is on the left only, and no element may be lost", text, n)
		}
	}
	for _, n := range to {
		if !slices.Contains(from, n) {
			return nil, fmt.Errorf("axes %q: %s is on the right only", text, n)
		}
	}
	return l, nil
}

// Left names the axes that there are.
func (l *Layout) Left() []string { return names(l.left) }

// First is the first name that the left side has for an axis of the tensor; empty where it has none.
func (l *Layout) First(axis int) string {
	if axis >= len(l.left) || len(l.left[axis]) == 0 {
		return ""
	}
	return l.left[axis][0].name
}

// Right names the axes that are wanted.
func (l *Layout) Right() []string { return names(l.right) }

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
				return nil, errors.New("the parentheses are empty")
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
	if !IsName(name) {
		return a, fmt.Errorf("%q is not a name of an axis", word)
	}
	if !written {
		return a, nil
	}
	if !sizes {
		return a, fmt.Errorf("%q: sizes are written on the left", word)
	}
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || n > Most {
		return a, fmt.Errorf("%q: want a size of 1 or more after the colon", word)
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

// Strided is an axis of a tensor that lies row-major in memory, or a part of one.
type Strided struct {
	Name         string
	Size, Stride int // stride in elements
}

// Apart takes the axes of a shape apart, as the left side says. sizes has those that the model gives.
func (l *Layout) Apart(shape []int, sizes map[string]int) ([]Strided, error) {
	if len(shape) != len(l.left) {
		return nil, fmt.Errorf("shape %v has %d axes, and %q is for %d", shape, len(shape), l.Text, len(l.left))
	}
	var all []Strided
	stride := 1
	for i := len(shape) - 1; i >= 0; i-- {
		parts, err := factors(l.left[i], shape[i], sizes)
		if err != nil {
			return nil, fmt.Errorf("%q of shape %v: %w", l.Text, shape, err)
		}
		for j := len(parts) - 1; j >= 0; j-- {
			parts[j].Stride = stride
			stride *= parts[j].Size
		}
		all = append(parts, all...)
	}
	return all, nil
}

// factors splits an axis into parts. A single part may lack a size: factors divides the size of the axis by the known sizes.
func factors(item []axis, size int, sizes map[string]int) ([]Strided, error) {
	if len(item) == 0 && size != 1 {
		return nil, fmt.Errorf("an axis of size %d is called 1", size)
	}
	parts := make([]Strided, len(item))
	known, open := 1, -1
	for i, a := range item {
		n := a.size
		if n == 0 && len(item) > 1 {
			n = sizes[a.name]
		}
		parts[i] = Strided{Name: a.name, Size: n}
		switch {
		case n > 0 && known <= Most/n:
			known *= n
		case n > 0:
			return nil, fmt.Errorf("the sizes of %s are too large", spell(item))
		case open >= 0:
			return nil, fmt.Errorf("%s: the sizes of %s and %s do not follow: write one after its name, such as %[2]s:4", spell(item), item[open].name, a.name)
		default:
			open = i
		}
	}
	switch {
	case open >= 0 && size%known == 0:
		parts[open].Size = size / known
	case open >= 0 || len(item) > 0 && known != size:
		return nil, fmt.Errorf("an axis of size %d is not %s: %s", size, spell(item), spellSizes(parts, open))
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

func spellSizes(parts []Strided, open int) string {
	var words []string
	for i, p := range parts {
		if i != open {
			words = append(words, fmt.Sprintf("%s is %d", p.Name, p.Size))
		}
	}
	return strings.Join(words, ", ")
}

// Together arranges the parts as the right side says: the Strided axes in their new order, and the shape.
func (l *Layout) Together(parts []Strided) (order []Strided, shape []int) {
	for _, item := range l.right {
		size := 1
		for _, a := range item {
			i := slices.IndexFunc(parts, func(p Strided) bool { return p.Name == a.name })
			order = append(order, parts[i])
			size *= parts[i].Size
		}
		shape = append(shape, size)
	}
	return order, shape
}
