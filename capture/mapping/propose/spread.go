package propose

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/permute"
)

// maxSpread bounds the layouts of a fused tensor that are tried.
const maxSpread = 48

// spread are the ways in which entries of some widths lie in a tensor that has an axis for them: [T, 3, H, D], [2, T, F], or with the queries
// of a key head beside its key and value, [T, K, 4, D]. The axes may stand in any order. Those of tokens first come first.
func (p *proposer) spread(shape []int, group []string, widths []int) (list []Line) {
	t, c := atom{"t", p.tokens}, p.list.Config
	add := func(split []int, inner ...atom) {
		atoms, right := append([]atom{t}, inner...), []string{}
		for _, a := range inner {
			right = append(right, a.name)
		}
		atoms = slices.DeleteFunc(atoms, func(a atom) bool { return a.size == 1 })
		if len(atoms) > 5 {
			return
		}
		var parts []string
		for _, n := range split {
			parts = append(parts, fmt.Sprint(n))
		}
		for order := range permute.All(len(atoms)) {
			var mine []atom
			for _, i := range order {
				mine = append(mine, atoms[i])
			}
			if left, ok := merged(shape, mine, cut{}, p.sizes); ok && len(list) < maxSpread {
				l := Line{Axes: left + " -> 1 " + p.token() + " " + spellItem(right), Split: "s: " + strings.Join(parts, " | ")}
				if !slices.ContainsFunc(list, func(o Line) bool { return o.Axes == l.Axes && o.Split == l.Split }) {
					list = append(list, l)
				}
			}
		}
	}
	n, ones := len(widths), []int{}
	for range widths {
		ones = append(ones, 1)
	}
	k := c.NumKVHeads
	switch alike := !slices.ContainsFunc(widths, func(w int) bool { return w != widths[0] }); {
	case alike:
		add(ones, atom{"s", n}, atom{"c", widths[0]})
		if d := c.HeadDim; d > 1 && widths[0]%d == 0 && widths[0] > d && strings.Contains(group[0], "self_attn") {
			heads := atom{"h", widths[0] / d}
			if heads.size == k && k != c.NumHeads {
				heads.name = "k"
			}
			add(ones, atom{"s", n}, heads, atom{"d", d})
		}
	case n == 3 && k > 1 && widths[1] == widths[2] && widths[0]%widths[1] == 0 && widths[1]%k == 0:
		each := widths[0] / widths[1]
		add([]int{each, 1, 1}, atom{"k", k}, atom{"s", each + 2}, atom{"d", widths[1] / k})
	}
	return list
}
