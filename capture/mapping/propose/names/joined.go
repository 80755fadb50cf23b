package names

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
)

// parts says how ranks have a tensor in parts: along an axis, each part on so many ranks that follow one another.
type parts struct{ axis, copies int }

// joined are the ways to make one tensor of those of all ranks that fit their shapes: all alike, partial sums, parts along an axis.
func (g *group) joined(layers map[int][]int, ranks int) ([]*Form, error) {
	same, sums := &Form{Join: mapping.JoinSame, Ranks: ranks, Layers: map[int]tensors.Tensor{}}, &Form{Join: mapping.JoinSum, Ranks: ranks, Layers: map[int]tensors.Tensor{}}
	along := map[parts]*Form{}
	add := func(f *Form, layer int, key string, b layout.Block) {
		f.Layers[layer] = tensors.New(fmt.Sprintf("%s\x00%s%d/%d", key, f.Join, f.Axis, f.Copies), b.Shape, b.DType, b.Data)
	}
	for layer, of := range layers {
		blocks, plain, err := g.blocks(layer, of)
		if err != nil {
			return nil, err
		}
		key := g.at[cell{layer, of[0]}].Source.Key
		if b, err := layout.Sum(blocks); err == nil {
			add(sums, layer, key, b)
		}
		alike, err := inRuns(blocks, len(blocks))
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(blocks, func(b layout.Block) bool { return !b.Like(&blocks[0]) }) {
			add(same, layer, key, blocks[0])
			if alike {
				same.agree++
			}
		}
		if slices.ContainsFunc(blocks, func(b layout.Block) bool { return len(b.Shape) != len(blocks[0].Shape) }) {
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
			for axis := range blocks[0].Shape {
				at := parts{axis, n}
				if along[at] == nil {
					along[at] = &Form{Join: JoinAxis, Axis: axis, Ranks: ranks / n, Copies: n, Layers: map[int]tensors.Tensor{}}
				}
				if b, err := layout.Concat(layout.EveryNth(blocks, n), fmt.Sprintf("a%d", axis), plain); err == nil {
					add(along[at], layer, key, b)
					if agree && !alike {
						along[at].agree++
					}
				}
			}
		}
	}
	list := []*Form{same, sums}
	if same.agree == len(layers) { // those that are alike are no partial sums
		list = list[:1]
	}
	for _, at := range slices.SortedFunc(maps.Keys(along), func(a, b parts) int { return cmp.Or(a.copies-b.copies, a.axis-b.axis) }) {
		list = append(list, along[at])
	}
	return slices.DeleteFunc(list, func(f *Form) bool {
		return len(f.Layers) < len(layers) || f.Copies > 1 && 2*f.agree <= len(layers)
	}), nil
}

// blocks are the tensors of a layer, by rank, with names for their axes: a0, a1 and so on.
func (g *group) blocks(layer int, ranks []int) (list []layout.Block, plain *layout.Layout, err error) {
	for _, rank := range ranks {
		s := &g.at[cell{layer, rank}].Source
		var words []string
		for i := range s.Shape {
			words = append(words, fmt.Sprintf("a%d", i))
		}
		if plain, err = layout.New(strings.Join(words, " ")+" -> "+strings.Join(words, " "), ""); err != nil {
			return nil, nil, err
		}
		axes, err := plain.Apart(s.Shape, nil)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, layout.View(s, axes, s.Shape, 0))
	}
	return list, plain, nil
}

// like reports whether a block has the shape and the dtype of another.
// inRuns reports whether each run of n blocks has one tensor, bit for bit. Large ones are not looked at.
func inRuns(blocks []layout.Block, n int) (bool, error) {
	for i, b := range blocks {
		first := blocks[i/n*n]
		if i%n == 0 {
			continue
		}
		if !b.Like(&first) || tensors.Elements(b.Shape) > tensors.MaxValues {
			return false, nil
		}
		if how, err := layout.Differ(first, b); how != "" || err != nil {
			return false, err
		}
	}
	return true, nil
}
