package mapping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// parts says how ranks have a tensor in parts: along an axis, each part on so many ranks that follow one another.
type parts struct{ axis, copies int }

// joined are the ways to make one tensor of those of all ranks that fit their shapes: all alike, partial sums, parts along an axis.
func (g *gathered) joined(layers map[int][]int, ranks int) ([]*form, error) {
	same, sums := &form{join: joinSame, ranks: ranks, layers: map[int]tensor{}}, &form{join: joinSum, ranks: ranks, layers: map[int]tensor{}}
	along := map[parts]*form{}
	add := func(f *form, layer int, key string, b block) {
		f.layers[layer] = tensor{fmt.Sprintf("%s\x00%s%d/%d", key, f.join, f.axis, f.copies), b.shape, b.dtype, b.data}
	}
	for layer, of := range layers {
		blocks, plain, err := g.blocks(layer, of)
		if err != nil {
			return nil, err
		}
		key := g.at[cell{layer, of[0]}].source.Key
		if b, err := sum(blocks); err == nil {
			add(sums, layer, key, b)
		}
		alike, err := inRuns(blocks, len(blocks))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(blocks, func(b block) bool { return !b.like(blocks[0]) }) {
			add(same, layer, key, blocks[0])
			same.agree += btoi(alike)
		}
		if slices.ContainsFunc(blocks, func(b block) bool { return len(b.shape) != len(blocks[0].shape) }) {
			continue
		}
		for n := 1; n < len(blocks); n++ {
			if len(blocks)%n != 0 {
				continue
			}
			agree, err := inRuns(blocks, n)
			if err != nil {
				return nil, err
			}
			for axis := range blocks[0].shape {
				at := parts{axis, n}
				if along[at] == nil {
					along[at] = &form{join: joinAxis, axis: axis, ranks: ranks / n, copies: n, layers: map[int]tensor{}}
				}
				if b, err := concat(everyNth(blocks, n), fmt.Sprintf("a%d", axis), plain); err == nil {
					add(along[at], layer, key, b)
					along[at].agree += btoi(agree && !alike)
				}
			}
		}
	}
	list := []*form{same, sums}
	if same.agree == len(layers) { // those that are alike are no partial sums
		list = list[:1]
	}
	for _, at := range slices.SortedFunc(maps.Keys(along), func(a, b parts) int { return cmp.Or(a.copies-b.copies, a.axis-b.axis) }) {
		list = append(list, along[at])
	}
	return slices.DeleteFunc(list, func(f *form) bool {
		return len(f.layers) < len(layers) || f.copies > 1 && 2*f.agree <= len(layers)
	}), nil
}

// blocks are the tensors of a layer, by rank, with names for their axes: a0, a1 and so on.
func (g *gathered) blocks(layer int, ranks []int) (list []block, plain *layout, err error) {
	for _, rank := range ranks {
		s := &g.at[cell{layer, rank}].source
		var words []string
		for i := range s.Shape {
			words = append(words, fmt.Sprintf("a%d", i))
		}
		if plain, err = newLayout(strings.Join(words, " ")+" -> "+strings.Join(words, " "), ""); err != nil {
			return nil, nil, err
		}
		axes, err := plain.apart(s.Shape, nil)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, view(s, axes, s.Shape, 0))
	}
	return list, plain, nil
}

// like reports whether a block has the shape and the dtype of another.
func (b block) like(o block) bool { return slices.Equal(b.shape, o.shape) && b.dtype == o.dtype }

// inRuns reports whether each run of n blocks has one tensor, bit for bit. Large ones are not looked at.
func inRuns(blocks []block, n int) (bool, error) {
	for i, b := range blocks {
		first := blocks[i/n*n]
		if i%n == 0 {
			continue
		}
		if !b.like(first) || elementsOf(b.shape) > maxValues {
			return false, nil
		}
		if how, err := differ(first, b); how != "" || err != nil {
			return false, err
		}
	}
	return true, nil
}

// everyNth is the first block of each run of n.
func everyNth(blocks []block, n int) (list []block) {
	for i := 0; i < len(blocks); i += n {
		list = append(list, blocks[i])
	}
	return list
}
