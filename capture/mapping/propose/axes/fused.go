package axes

import (
	"fmt"
	"slices"
	"strings"
)

// Parts are the entries [1, Tokens, width] of one tensor, in memory order.
type Parts struct {
	Tokens  int
	Widths  []int // of each entry
	Heads   bool  // the entries are projections of attention
	OfKeys  bool  // the first entry is that of the keys
	Queries int   // query heads
	Keys    int   // KV heads
	Head    int   // the width of a head
}

// Split says how a tensor becomes several: in the words of a map, its axes and the sizes of the parts.
type Split struct{ Axes, Split string }

// maxSpread bounds the layouts of a fused tensor that are tried.
const maxSpread = 48

// Spread are the splits of a shape that has an axis for the entries: [T, 3, H, D], [2, T, F], or with the queries of a KV head next to
// its key and value, [T, K, 4, D]. The axes may stand in any order. Layouts with tokens first come first.
func (p Parts) Spread(shape []int, sizes map[string]int) (list []Split) {
	add := func(parts []int, inner ...axis) {
		var right []string
		for _, a := range inner {
			right = append(right, a.Name)
		}
		all := append([]axis{{"t", p.Tokens}}, inner...)
		orders(slices.DeleteFunc(all, func(a axis) bool { return a.Size == 1 }), func(order []axis, _ bool) {
			left, ok := merged(shape, order, Sharding{}, sizes)
			s := p.split(left, spell(right), "s", parts)
			if ok && len(list) < maxSpread && !slices.Contains(list, s) {
				list = append(list, s)
			}
		})
	}
	n, w, k := len(p.Widths), p.Widths, p.Keys
	switch {
	case !slices.ContainsFunc(w, func(width int) bool { return width != w[0] }):
		ones := slices.Repeat([]int{1}, n)
		add(ones, axis{"s", n}, axis{"c", w[0]})
		if d := p.Head; d > 1 && w[0]%d == 0 && w[0] > d && p.Heads {
			heads := axis{"h", w[0] / d}
			if heads.Size == k && k != p.Queries {
				heads.Name = "k"
			}
			add(ones, axis{"s", n}, heads, axis{"d", d})
		}
	case n == 3 && k > 1 && w[1] == w[2] && w[0]%w[1] == 0 && w[1]%k == 0:
		each := w[0] / w[1]
		add([]int{each, 1, 1}, axis{"k", k}, axis{"s", each + 2}, axis{"d", w[1] / k})
	}
	return list
}

// Blocks are the splits of the last axis of a shape, which is divided among so many ranks: entry after entry, by KV heads, alternating.
func (p Parts) Blocks(shape []int, ranks int) (list []Split) {
	front := ""
	for _, n := range shape[:len(shape)-1] {
		if n == 1 {
			front += "1 "
		} else {
			front += "t "
		}
	}
	add := func(left, right, axis string, parts ...int) {
		list = append(list, p.split(front+left, right, axis, parts))
	}
	var w []int
	for _, n := range p.Widths {
		if n%ranks != 0 {
			return nil
		}
		w = append(w, n/ranks)
	}
	add("c", "c", "c", w...)
	if p.Keys%ranks != 0 { // then some ranks have the same heads
		return list
	}
	k := p.Keys / ranks
	if len(w) == 3 && k > 1 && w[1] == w[2] && w[0]%w[1] == 0 {
		n := w[0] / w[1]
		add(fmt.Sprintf("(k:%d s:%d d)", k, n+2), "(k s d)", "s", n, 1, 1)
	}
	if len(w) == 2 && w[0] == w[1] {
		add(fmt.Sprintf("(f:%d s)", w[0]), "(f s)", "s", 1, 1)
		if p.OfKeys && k > 1 {
			add(fmt.Sprintf("(k:%d s:2 d)", k), "(k s d)", "s", 1, 1)
		}
	}
	return list
}

// split is the text of one way.
func (p Parts) split(left, right, axis string, parts []int) Split {
	token := "t"
	if p.Tokens == 1 {
		token = "1"
	}
	var sizes []string
	for _, n := range parts {
		sizes = append(sizes, fmt.Sprint(n))
	}
	return Split{left + " -> 1 " + token + " " + right, axis + ": " + strings.Join(sizes, " | ")}
}
