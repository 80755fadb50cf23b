package names

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
)

// Form is a way to get one tensor a layer from the tensors of a pattern: the tensors as they are, joined over ranks, or numbered through
// the stages of a pipeline.
type Form struct {
	Join    string      // "" for none, or one of [mapping.JoinSum], [mapping.JoinSame] and joinAxis
	Axis    int         // along which the parts are concatenated
	Ranks   int         // how many parts there are
	Copies  int         // number of consecutive ranks with the same part; 0 and 1 for one
	Last    bool        // the tensors have only the row of the last token
	Stages  map[int]int // by stage: how many layers are before it; nil for none
	agree   int         // for [mapping.JoinSame]: the layers in which all ranks are alike
	Layers  map[int]tensors.Tensor
	Written map[int]string // the numbers of the stages as the names have them
}

// Common is the tensor of the first layer whose shape more than half of the layers have, or of the first layer if no shape is that
// frequent.
func (f *Form) Common() tensors.Tensor {
	layers := keysOf(f.Layers)
	for _, l := range layers {
		same := 0
		for _, o := range layers {
			if slices.Equal(f.Layers[o].Shape, f.Layers[l].Shape) {
				same++
			}
		}
		if 2*same > len(layers) {
			return f.Layers[l]
		}
	}
	return f.Layers[layers[0]]
}

// lastRow returns the form of tensors that have only the row of the last token.
func (f *Form) lastRow() *Form {
	last := *f
	last.Last = true
	return &last
}

// Why says how a form was told from other forms, for a line's comment.
func (f *Form) Why() string {
	switch all := len(f.Layers); {
	case f.Join == mapping.JoinSame && f.agree == all:
		return "; the same on all ranks"
	case f.Join == mapping.JoinSame:
		return fmt.Sprintf("; the same on all ranks in %d of %d", f.agree, all)
	case f.Join == mapping.JoinSum:
		return "; the sum of all ranks"
	case f.Join == JoinAxis && f.Copies > 1:
		return fmt.Sprintf("; the ranks concatenated, %d have each part", f.Copies)
	case f.Join == JoinAxis:
		return "; the ranks concatenated"
	case f.Last:
		return "; the row of the last token"
	}
	return ""
}

// Certain reports whether a form needs no values to be told from others: ranks that are not alike may be partial sums, and rows other tokens'.
func (f *Form) Certain() bool { return f.Join == "" || f.Join == JoinAxis || f.agree == len(f.Layers) }

// Sharding returns the axis and the ranks of a form whose parts are concatenated along an axis; the zero value for another form.
func (f *Form) Sharding() axes.Sharding {
	if f.Join != JoinAxis {
		return axes.Sharding{}
	}
	return axes.Sharding{Axis: f.Axis, Ranks: f.Ranks}
}

// Uncommon are the layers of a form that have another shape than most.
func (f *Form) Uncommon() []int {
	shape := f.Common().Shape
	return slices.DeleteFunc(keysOf(f.Layers), func(l int) bool { return slices.Equal(f.Layers[l].Shape, shape) })
}

// JoinAxis is a join along an axis, which has no name yet.
const JoinAxis = "axis"

// joined are the joins over ranks that the shapes allow: equal tensors, partial sums, parts along an axis.
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

// parts is how a tensor is divided: along an axis, with so many consecutive ranks for each part.
type parts struct{ axis, copies int }

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

// cell is the place of a tensor among those of one pattern.
type cell struct{ layer, rank int }

// group are the tensors of one pattern.
type group struct {
	Template
	at map[cell]*Occurrence // of the first pass
}

func (g *group) add(x *Occurrence) {
	g.All = append(g.All, x)
	g.NeedsNoLine = g.NeedsNoLine && x.known
	c := cell{x.Best.Layer, x.Rank.Number}
	before := g.at[c]
	earlier := before != nil && x.Record.Pass < before.Record.Pass
	if before != nil && x.step >= 0 {
		earlier = x.step < before.step
	}
	if x.step >= 0 {
		g.First = min(g.First, x.step)
	}
	if before == nil || earlier {
		g.at[c] = x
	}
}

// forms are the templates of the tensors of a pattern, with the ways to take each.
func (g *group) forms(numbered map[string]numbering) ([]*Template, error) {
	ranks, layers := map[int]string{}, map[int][]int{}
	var m Rank
	cells := slices.SortedFunc(maps.Keys(g.at), func(a, b cell) int { return cmp.Or(a.layer-b.layer, a.rank-b.rank) })
	for _, c := range cells {
		m = g.at[c].Rank
		ranks[c.rank] = m.Written
		layers[c.layer] = append(layers[c.layer], c.rank)
		g.Sources = append(g.Sources, g.at[c].Source)
	}
	if m.group == "" {
		g.Template.Forms = []*Form{g.asTheyAre(cells)}
		return []*Template{&g.Template}, nil
	}
	letter := "{R}"
	if stageWords.MatchString(m.word) {
		letter = "{P}"
	}
	text := g.Text
	g.Text = strings.ReplaceAll(text, here, letter)
	n, staged := numbered[m.group]
	_, outside := layers[-1]
	if staged = staged && !outside; staged {
		g.Template.Forms = append(g.Template.Forms, g.asStages(cells, n, ranks))
	}
	same := len(ranks) > 1
	for _, of := range layers {
		same = same && slices.Equal(of, keysOf(ranks))
	}
	if same && !(staged && n.sure) {
		joined, err := g.joined(layers, len(ranks))
		if err != nil {
			return nil, err
		}
		g.Template.Forms = append(g.Template.Forms, joined...)
	}
	if len(g.Template.Forms) > 0 {
		return []*Template{&g.Template}, nil
	}
	var list []*Template // each rank separately
	for _, rank := range keysOf(ranks) {
		t := g.Template
		t.Text, t.Sources = strings.ReplaceAll(text, here, ranks[rank]), nil
		t.All = slices.DeleteFunc(slices.Clone(g.All), func(x *Occurrence) bool { return x.Rank.Number != rank })
		of := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.rank != rank })
		for _, c := range of {
			t.Sources = append(t.Sources, g.at[c].Source)
		}
		t.Forms = []*Form{g.asTheyAre(of)}
		list = append(list, &t)
	}
	return list, nil
}

func (g *group) asTheyAre(cells []cell) *Form {
	f := &Form{Layers: map[int]tensors.Tensor{}}
	for _, c := range cells {
		f.Layers[c.layer] = tensors.OfSource(&g.at[c].Source)
	}
	return f
}

func (g *group) asStages(cells []cell, n numbering, written map[int]string) *Form {
	f := &Form{Stages: n.offsets, Layers: map[int]tensors.Tensor{}, Written: written}
	for _, c := range cells {
		f.Layers[c.layer+n.offsets[c.rank]] = tensors.OfSource(&g.at[c].Source)
	}
	return f
}
