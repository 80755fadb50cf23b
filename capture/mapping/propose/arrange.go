package propose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/permute"
)

// atom is an axis of an entry that a dump may have in another place: a letter and a size.
type atom struct {
	name string
	size int
}

// arrangement is a way to read a tensor of some shape as an entry: a layout, "" where only axes of 1 differ.
type arrangement struct {
	axes  string
	whole string // the layout of what the parts make, spelled also where only axes of 1 differ
	pairs bool   // rotary pairs are neighbours
	same  bool   // the axes are in the order of the entry's
	still bool   // the elements are in the order of the entry's
	odd   bool   // parts behind each other along an axis of theirs that is part of a wider one
}

// cut says that a tensor is the parts of several ranks behind each other along an axis. The zero cut is none.
type cut struct{ axis, ranks int }

// arrangements are the ways in which a tensor of shape have can hold an entry of shape want with these axes: its own order first, then
// the others, then those with the pairs of the last axis as neighbours. An axis of want that is as wide as several heads may be several in have.
// The layouts are those of each part, where have is made of parts. sizes are those that a layout may leave out. Of the layouts of a whole tensor that keep the order of its
// elements, only the first is listed: the others read the same entry.
func arrangements(have, want []int, letters string, sizes map[string]int, parts cut) []arrangement {
	if elementsOf(have) != elementsOf(want) || elementsOf(want) == 0 || len(want) == 0 || len(want) > maxAxes || len(letters) != len(want) {
		return nil
	}
	var list []arrangement
	add := func(atoms [][]atom) {
		for _, pairs := range []bool{false, true} {
			for _, a := range arranged(have, atoms, pairs, parts, sizes) {
				if !slices.ContainsFunc(list, func(b arrangement) bool {
					return b.axes == a.axes || b.same && a.same || b.still && a.still && parts.ranks == 0
				}) {
					list = append(list, a)
				}
			}
		}
	}
	groups := make([][]atom, len(want))
	called := axisNames(letters)
	for i, n := range want {
		if n != 1 {
			groups[i] = []atom{{called[i], n}}
		}
	}
	add(groups)
	last := len(want) - 1
	for _, n := range []int{sizes["h"], sizes["k"]} { // an axis of several heads
		if n > 1 && want[last] > n && want[last]%n == 0 {
			split := slices.Clone(groups)
			split[last] = []atom{{"h", n}, {"d", want[last] / n}}
			if !strings.ContainsAny(letters, "hd") {
				add(split)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b arrangement) int { return btoi(a.pairs) - btoi(b.pairs) })
	return list
}

// axisNames are the names of an entry's axes in a layout: their letters. An entry may have several axes of one letter, such as the streams of
// a residual and the channels of each, and a layout tells axes by their names: all but the last of a letter get another one, which no
// axis has and layouts have no meaning for.
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

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// arranged are the arrangements for one way to take an entry's axes apart.
func arranged(have []int, groups [][]atom, pairs bool, parts cut, sizes map[string]int) []arrangement {
	atoms := slices.Concat(groups...)
	if pairs {
		at := len(groups) - 1
		if len(groups[at]) == 0 || len(atoms) == 0 {
			return nil
		}
		last := groups[at][len(groups[at])-1]
		if last.size%2 != 0 {
			return nil
		}
		groups = slices.Clone(groups)
		groups[at] = append(slices.Clone(groups[at][:len(groups[at])-1]), atom{"r", 2}, atom{"p", last.size / 2})
		atoms = slices.Concat(groups...)
	}
	if len(atoms) > 5 {
		return nil
	}
	var list []arrangement
	for order := range permute.All(len(atoms)) {
		var mine []atom
		for _, i := range order {
			mine = append(mine, atoms[i])
		}
		if pairs { // neighbours: p and then r, of the last axis, wherever that is
			p := slices.IndexFunc(mine, func(a atom) bool { return a.name == "p" })
			if p+1 >= len(mine) || mine[p+1].name != "r" {
				continue
			}
		}
		left, ok := merged(have, mine, parts, sizes)
		if !ok {
			continue
		}
		whole, _ := merged(have, mine, cut{}, sizes)
		right := " -> " + spellGroups(groups)
		a := arrangement{axes: left + right, whole: whole + right, pairs: pairs, still: !pairs && trivial(order)}
		a.same = a.still && same(have, groups)
		if a.same && parts.ranks == 0 {
			a.axes = ""
		}
		a.odd = !a.same && strings.Contains(a.axes, ":1 ")
		list = append(list, a)
	}
	return list
}

// trivial reports whether an order is that of the numbers.
func trivial(order []int) bool { return slices.IsSorted(order) }

// same reports whether a shape is that of an entry but for axes of 1 in front.
func same(have []int, groups [][]atom) bool {
	var want []int
	for _, g := range groups {
		n := 1
		for _, a := range g {
			n *= a.size
		}
		want = append(want, n)
	}
	return len(have) <= len(want) && slices.Equal(have, want[len(want)-len(have):]) && elementsOf(want[:len(want)-len(have)]) == 1
}

// merged spells the axes of a shape as atoms in their order; ok is false where they do not fit.
func merged(have []int, atoms []atom, parts cut, sizes map[string]int) (text string, ok bool) {
	var words []string
	at := 0
	for i, n := range have {
		if n == 1 {
			words = append(words, "1")
			continue
		}
		var group []atom
		for product := 1; product < n; at++ {
			if at == len(atoms) || n%(product*atoms[at].size) != 0 {
				return "", false
			}
			product *= atoms[at].size
			group = append(group, atoms[at])
		}
		if parts.ranks > 0 && i == parts.axis && len(group) > 1 { // its size is written
			if group[0].size%parts.ranks != 0 {
				return "", false
			}
			group[0].size /= parts.ranks
		}
		words = append(words, spellSized(group, sizes))
	}
	return strings.Join(words, " "), at == len(atoms)
}

func spellGroups(groups [][]atom) string {
	var words []string
	for _, g := range groups {
		var names []string
		for _, a := range g {
			names = append(names, a.name)
		}
		words = append(words, spellItem(names))
	}
	return strings.Join(words, " ")
}

// spellSized writes an item of the left side of a layout. Of several atoms the size of one is left out, unless a model gives its name a different size: that of the tokens, whose
// number changes from pass to pass, or else that of the last atom.
func spellSized(group []atom, sizes map[string]int) string {
	open := slices.IndexFunc(group, func(a atom) bool { return a.name == "t" })
	if open < 0 {
		open = len(group) - 1
	}
	var words []string
	for i, a := range group {
		text := a.name
		if n := sizes[a.name]; len(group) > 1 && (i != open || n > 0 && n != a.size) {
			text = fmt.Sprintf("%s:%d", a.name, a.size)
		}
		words = append(words, text)
	}
	return spellItem(words)
}

func spellItem(words []string) string {
	switch len(words) {
	case 0:
		return "1"
	case 1:
		return words[0]
	}
	return "(" + strings.Join(words, " ") + ")"
}
