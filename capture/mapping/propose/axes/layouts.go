package axes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/internal/permute"
)

// axis is an axis of an entry that a dump may have in another place: a letter and a size.
type axis struct {
	Name string
	Size int
}

// Layout is a way to read a tensor of some shape as an entry: a layout, "" where only axes of 1 differ.
type Layout struct {
	Text        string
	Whole       string // the layout of what the parts make, spelled also where only axes of 1 differ
	Interleaved bool   // rotary pairs are neighbours
	Same        bool   // the axes are in the order of the entry's
	still       bool   // the elements are in the order of the entry's
	odd         bool   // shards are concatenated along a part of a wider axis
}

// Moves is the layout by which the elements of a tensor change their order; "" where they do not.
func (a Layout) Moves() string {
	if a.Text == "" {
		return ""
	}
	return a.Whole
}

// Distance is how far a layout of parts is from what an engine would do: 0 is the entry's own axes. Where parts have one head each, the
// same elements in the same order can be called an axis of heads, or a part of another axis.
func (a Layout) Distance() int {
	switch {
	case a.Same:
		return 0
	case a.odd:
		return 2
	}
	return 1
}

// InOrder reports whether a layout only adds or drops axes of size 1.
func (a Layout) InOrder() bool {
	left, right, _ := strings.Cut(a.Text, "->")
	one := func(word string) bool { return word == "1" }
	return !strings.Contains(a.Text, "(") && slices.Equal(slices.DeleteFunc(strings.Fields(left), one), slices.DeleteFunc(strings.Fields(right), one))
}

// Sharding is the axis along which the shards of several ranks are concatenated. The zero value is an unsharded tensor.
type Sharding struct{ Axis, Ranks int }

// MaxAxes bounds the axes of a tensor that is read as an entry.
const MaxAxes = 16

// Layouts are the layouts by which a tensor of shape have can hold an entry of shape want with these axes: the entry's own order first,
// then the other orders, then those with interleaved rotary pairs. An axis of want that is as wide as several heads may be several axes in
// have. sizes are the sizes that a layout may leave out. Of the layouts of an unsharded tensor that keep the order of its elements, only
// the first is listed: the others read the same entry.
func Layouts(have, want []int, letters string, sizes map[string]int, parts Sharding) []Layout {
	if tensors.Elements(have) != tensors.Elements(want) || tensors.Elements(want) == 0 || len(want) == 0 || len(want) > MaxAxes || len(letters) != len(want) {
		return nil
	}
	var list []Layout
	add := func(groups [][]axis) {
		for _, pairs := range []bool{false, true} {
			for _, a := range arranged(have, groups, pairs, parts, sizes) {
				if !slices.ContainsFunc(list, func(b Layout) bool {
					return b.Text == a.Text || b.Same && a.Same || b.still && a.still && parts.Ranks == 0
				}) {
					list = append(list, a)
				}
			}
		}
	}
	groups := make([][]axis, len(want))
	called := axisNames(letters)
	for i, n := range want {
		if n != 1 {
			groups[i] = []axis{{called[i], n}}
		}
	}
	add(groups)
	last := len(want) - 1
	for _, n := range []int{sizes["h"], sizes["k"]} { // an axis of several heads
		if n > 1 && want[last] > n && want[last]%n == 0 {
			split := slices.Clone(groups)
			split[last] = []axis{{"h", n}, {"d", want[last] / n}}
			if !strings.ContainsAny(letters, "hd") {
				add(split)
			}
		}
	}
	plain := func(interleaved bool) []Layout {
		return slices.DeleteFunc(slices.Clone(list), func(l Layout) bool { return l.Interleaved != interleaved })
	}
	return append(plain(false), plain(true)...)
}

// axisNames are the names of an entry's axes in a layout: their letters. A layout tells axes by name, and an entry may have several axes
// of one letter, such as the streams of a residual and the channels of each. All but the last axis of a letter get a free letter, which
// has no meaning in layouts.
func axisNames(letters string) []string {
	const taken = "hkdevrp" // the sizes of the model, and the halves of rotary pairs
	called := strings.Split(letters, "")
	spare := slices.DeleteFunc(strings.Split("abcdefghijklmnopqrstuvwxyz", ""), func(l string) bool { return strings.Contains(letters+taken, l) })
	for i, letter := range called {
		if strings.LastIndex(letters, letter) > i {
			called[i], spare = spare[0], spare[1:]
		}
	}
	return called
}

// arranged are the layouts for one way to take an entry's axes apart.
func arranged(have []int, groups [][]axis, interleaved bool, parts Sharding, sizes map[string]int) (list []Layout) {
	if interleaved {
		at := len(groups) - 1
		if len(groups[at]) == 0 {
			return nil
		}
		heads, last := groups[at][:len(groups[at])-1], groups[at][len(groups[at])-1]
		if last.Size%2 != 0 {
			return nil
		}
		groups = slices.Clone(groups)
		groups[at] = append(slices.Clone(heads), axis{"r", 2}, axis{"p", last.Size / 2})
	}
	right := " -> " + spellGroups(groups)
	orders(slices.Concat(groups...), func(order []axis, sorted bool) {
		if interleaved { // neighbours: p and then r, of the last axis, wherever that is
			p := slices.IndexFunc(order, func(a axis) bool { return a.Name == "p" })
			if p+1 >= len(order) || order[p+1].Name != "r" {
				return
			}
		}
		left, ok := merged(have, order, parts, sizes)
		if !ok {
			return
		}
		whole, _ := merged(have, order, Sharding{}, sizes)
		a := Layout{Text: left + right, Whole: whole + right, Interleaved: interleaved, still: !interleaved && sorted}
		a.Same = a.still && same(have, groups)
		if a.Same && parts.Ranks == 0 {
			a.Text = ""
		}
		a.odd = !a.Same && strings.Contains(a.Text, ":1 ")
		list = append(list, a)
	})
	return list
}

// mostAxes bounds the axes whose orders are tried.
const mostAxes = 5

// orders calls each with the orders of some axes, the sorted order first. It does nothing for more than mostAxes.
func orders(all []axis, each func(order []axis, sorted bool)) {
	if len(all) > mostAxes {
		return
	}
	for at := range permute.All(len(all)) {
		order := make([]axis, len(all))
		for i, k := range at {
			order[i] = all[k]
		}
		each(order, slices.IsSorted(at))
	}
}

// same reports whether a shape is that of an entry but for axes of 1 in front.
func same(have []int, groups [][]axis) bool {
	var want []int
	for _, g := range groups {
		n := 1
		for _, a := range g {
			n *= a.Size
		}
		want = append(want, n)
	}
	return len(have) <= len(want) && slices.Equal(have, want[len(want)-len(have):]) && tensors.Elements(want[:len(want)-len(have)]) == 1
}

// merged spells the axes of a shape as atoms in their order; ok is false where they do not fit.
func merged(have []int, atoms []axis, parts Sharding, sizes map[string]int) (text string, ok bool) {
	var words []string
	at := 0
	for i, n := range have {
		if n == 1 {
			words = append(words, "1")
			continue
		}
		var group []axis
		for product := 1; product < n; at++ {
			if at == len(atoms) || n%(product*atoms[at].Size) != 0 {
				return "", false
			}
			product *= atoms[at].Size
			group = append(group, atoms[at])
		}
		if parts.Ranks > 0 && i == parts.Axis && len(group) > 1 { // its size is written
			if group[0].Size%parts.Ranks != 0 {
				return "", false
			}
			group[0].Size /= parts.Ranks
		}
		words = append(words, spellSized(group, sizes))
	}
	return strings.Join(words, " "), at == len(atoms)
}

func spellGroups(groups [][]axis) string {
	var words []string
	for _, g := range groups {
		var names []string
		for _, a := range g {
			names = append(names, a.Name)
		}
		words = append(words, spell(names))
	}
	return strings.Join(words, " ")
}

// spellSized writes an item of the left side of a layout. Of several atoms the size of one is left out, unless a model gives its name a different size: that of the tokens, whose
// number changes from pass to pass, or else that of the last atom.
func spellSized(group []axis, sizes map[string]int) string {
	open := slices.IndexFunc(group, func(a axis) bool { return a.Name == "t" })
	if open < 0 {
		open = len(group) - 1
	}
	var words []string
	for i, a := range group {
		text := a.Name
		if n := sizes[a.Name]; len(group) > 1 && (i != open || n > 0 && n != a.Size) {
			text = fmt.Sprintf("%s:%d", a.Name, a.Size)
		}
		words = append(words, text)
	}
	return spell(words)
}

func spell(words []string) string {
	switch len(words) {
	case 0:
		return "1"
	case 1:
		return words[0]
	}
	return "(" + strings.Join(words, " ") + ")"
}
