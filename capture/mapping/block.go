package mapping

import (
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// block is a part of a tensor in its new layout.
func (a *application) block(r *rule, s *capture.Source, part, pass int) (layout.Block, error) {
	if r.layout == nil {
		return layout.Block{Shape: s.Shape, DType: s.DType, Data: s.Data}, nil
	}
	axes, err := r.layout.Apart(s.Shape, a.sizes)
	if err != nil {
		return layout.Block{}, err
	}
	from := 0
	if r.split != nil {
		if from, err = a.cut(r.split, axes, part); err != nil {
			return layout.Block{}, err
		}
	}
	kept := r.layout.Right()
	for _, x := range axes {
		if x.Size != 1 && !slices.Contains(kept, x.Name) {
			return layout.Block{}, fmt.Errorf("axes %q: %s is %d wide and on the left only, and no element may be lost", r.layout.Text, x.Name, x.Size)
		}
	}
	ordered, shape := r.layout.Together(axes)
	if r.ring == "" {
		return layout.View(s, ordered, shape, from), nil
	}
	return a.unrolled(r, s, ordered, shape, from, pass)
}

// cut reduces the axis of a split to one part, and returns the offset of the part.
func (a *application) cut(p *split, axes []layout.Strided, part int) (from int, err error) {
	at := slices.IndexFunc(axes, func(x layout.Strided) bool { return x.Name == p.axis })
	before, whole, size := 0, 0, 0
	for i, e := range p.sizes {
		n, err := e.value(func(name string) (int, bool) { n, ok := a.sizes[name]; return n, ok })
		if err != nil {
			return 0, fmt.Errorf("split: %w", err)
		}
		if n < 1 {
			return 0, fmt.Errorf("split: a part of %d", n)
		}
		if i == part {
			before, size = whole, n
		}
		whole += n
	}
	if whole != axes[at].Size {
		return 0, fmt.Errorf("split: the parts of %s add up to %d, and its size is %d", p.axis, whole, axes[at].Size)
	}
	axes[at].Size = size
	return before * axes[at].Stride, nil
}

// unrolled puts keys in a ring of slots into the order of their positions. Position p is in slot p mod the number of slots, so the oldest key
// stands after the newest key.
func (a *application) unrolled(r *rule, s *capture.Source, axes []layout.Strided, shape []int, from, pass int) (layout.Block, error) {
	at := slices.IndexFunc(axes, func(x layout.Strided) bool { return x.Name == r.ring })
	total, ok := a.written(pass)
	if !ok {
		return layout.Block{}, hint.Add(fmt.Errorf("ring: how many tokens came before is not known: the trace has no %s of pass %d", order.InputIDs, pass), "if the ids have another name, give them a line: \"my_ids\" = \"input_ids\"")
	}
	slots := axes[at].Size
	oldest := 0
	if slots > 0 && total > slots {
		oldest = total % slots
	}
	if oldest == 0 {
		return layout.View(s, axes, shape, from), nil
	}
	var halves []layout.Block
	for _, h := range [][2]int{{oldest, slots}, {0, oldest}} {
		part := slices.Clone(axes)
		part[at].Size = h[1] - h[0]
		halves = append(halves, layout.View(s, part, shape, from+h[0]*axes[at].Stride))
	}
	return layout.Concat(halves, r.ring, r.layout)
}

// written is the number of tokens in a cache after a pass; false if a pass has no token ids.
func (a *application) written(pass int) (int, bool) {
	if a.tokens == nil {
		a.tokens = map[int]int{}
		for _, s := range a.out {
			if s.Name == order.InputIDs && s.Firing == 0 && len(s.Shape) > 0 {
				a.tokens[s.Pass] = s.Shape[len(s.Shape)-1]
			}
		}
		for _, g := range a.order {
			if to, s := g.targets[0], g.members[0].source; to.name == order.InputIDs && len(s.Shape) > 0 {
				a.tokens[to.pass] = s.Shape[len(s.Shape)-1]
			}
		}
	}
	sum := 0
	for p := range pass + 1 {
		n, ok := a.tokens[p]
		if !ok {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

// join makes one tensor of several.
func (a *application) join(g *group, to key, blocks []layout.Block) (layout.Block, error) {
	switch g.rule.join {
	case "":
		return blocks[0], nil
	case JoinSum:
		return layout.Sum(blocks)
	case JoinSame:
		return blocks[0], a.alike(g, to, blocks, len(blocks))
	}
	if n := g.rule.copies; n > 1 {
		if len(blocks)%n != 0 {
			return layout.Block{}, fmt.Errorf("join: %q has %d parts, which is not a multiple of the %d ranks that have each part", to.name, len(blocks), n)
		}
		if err := a.alike(g, to, blocks, n); err != nil {
			return layout.Block{}, err
		}
		blocks = layout.EveryNth(blocks, n)
	}
	return layout.Concat(blocks, g.rule.join, g.rule.layout)
}

// alike notes each block that differs from the first block of its run of n: the ranks of a run have to agree.
func (a *application) alike(g *group, to key, blocks []layout.Block, n int) error {
	for i, b := range blocks {
		first := i / n * n
		how, err := layout.Differ(blocks[first], b)
		if err != nil {
			return err
		}
		if how == "" {
			continue
		}
		which := "all ranks"
		if n < len(blocks) {
			which = fmt.Sprintf("the %d ranks that have a part", n)
		}
		a.differ = append(a.differ, fmt.Sprintf("%s is not the same on %s: %s and %s differ in %s",
			capture.Key(to.pass, to.name, to.firing), which, a.called(g.rule, g.members[first].rank), a.called(g.rule, g.members[i].rank), how))
	}
	return nil
}
