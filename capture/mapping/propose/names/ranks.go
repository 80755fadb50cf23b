package names

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"

	"github.com/tracediff/tracediff/capture/mapping"
)

// A name may say which rank, or which stage of a pipeline, has the tensor: "rank1/layers.0.out", "stage0.layers.1.out".
var rankText = regexp.MustCompile(`(?i)^(|.*?[-_./])((?:tp|mp|ep|pp)?_?rank|tp|shard|device|gpu|worker|stage|pp|pipe|pipeline)([-_=.]?)([0-9]{1,4})([-_./].*|)$`)

// stageWords are those of them that are stages: of each tensor of a layer one stage alone has any.
var stageWords = regexp.MustCompile(`(?i)^(stage|pp|pp_?rank|pipe|pipeline)$`)

// Rank is the number of a rank or stage in a name. The zero mark is none.
type Rank struct {
	group   string // the text in front of the number; "" for none
	word    string
	Number  int
	Written string // the number as it is written
}

// here stands in a name for the number of its rank. No name that has it already is read as one of a rank.
const here = "\x00"

// marked puts a sign in the place of a rank's number.
func marked(name string) (string, Rank) {
	m := rankText.FindStringSubmatch(name)
	if m == nil || len(name) > maxName || strings.Contains(name, here) {
		return name, Rank{}
	}
	n, _ := strconv.Atoi(m[4])
	group := m[1] + m[2] + m[3]
	return group + here + m[5], Rank{group, m[2], n, m[4]}
}

// unmark puts the numbers back where they are none of ranks: where no other tensor has another, and where a word such as stage
// stands for layers, because the names have no other number for them.
func unmark(all []*Occurrence, layers int) {
	ranks, layered := map[string]map[int]bool{}, map[string]bool{}
	for _, x := range all {
		g := x.Rank.group
		if g == "" {
			continue
		}
		if ranks[g] == nil {
			ranks[g] = map[int]bool{}
		}
		ranks[g][x.Rank.Number] = true
		layered[g] = layered[g] || slices.ContainsFunc(readings(x.rest, layers), func(n Reading) bool { return n.sure && !n.beyond })
	}
	for _, x := range all {
		if g := x.Rank.group; g != "" && (len(ranks[g]) < 2 || stageWords.MatchString(x.Rank.word) && !layered[g]) {
			x.rest, x.Rank = x.Record.Name, Rank{}
		}
	}
}

// numbering is how the stages of a pipeline count their layers: offsets has how many layers are before each stage. Those of
// stages that count all layers are 0.
type numbering struct {
	offsets map[int]int
	sure    bool // they are stages, and not ranks that have all layers
}

// numberings finds the groups of names that may be stages.
func numberings(all []*Occurrence, layers int) map[string]numbering {
	sets := map[string]map[int]map[int]bool{}
	words := map[string]string{}
	for _, x := range all {
		g := x.Rank.group
		if g == "" || x.Best.Layer < 0 {
			continue
		}
		if sets[g] == nil {
			sets[g] = map[int]map[int]bool{}
		}
		if sets[g][x.Rank.Number] == nil {
			sets[g][x.Rank.Number] = map[int]bool{}
		}
		sets[g][x.Rank.Number][x.Best.Layer] = true
		words[g] = x.Rank.word
	}
	out := map[string]numbering{}
	for g, of := range sets {
		if len(of) < 2 {
			continue
		}
		sum, seen := 0, map[int]bool{}
		fromZero, apart := true, true
		n := numbering{offsets: map[int]int{}, sure: stageWords.MatchString(words[g])}
		for _, rank := range keysOf(of) {
			n.offsets[rank] = sum
			sum += len(of[rank])
			for layer := range of[rank] {
				fromZero = fromZero && layer < len(of[rank])
				apart = apart && !seen[layer]
				seen[layer] = true
			}
		}
		switch {
		case apart:
			n.offsets, n.sure = zeros(n.offsets), true
			out[g] = n
		case fromZero && sum == layers:
			out[g] = n
		}
	}
	return out
}

func zeros(of map[int]int) map[int]int {
	out := maps.Clone(of)
	for k := range out {
		out[k] = 0
	}
	return out
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

// Form is a way to take the tensors of a pattern as one a layer: as they are, joined of those of all ranks, or of stages.
type Form struct {
	Join    string      // "" for none, or one of [mapping.JoinSum], [mapping.JoinSame] and joinAxis
	Axis    int         // of the parts that stand behind each other
	Ranks   int         // how many parts there are
	Copies  int         // ranks that have the same part each, one after the other; 0 and 1 for one
	Last    bool        // they have the row of the last token alone
	Stages  map[int]int // by stage: how many layers are before it; nil for none
	agree   int         // for [mapping.JoinSame]: the layers in which all ranks are alike
	Layers  map[int]tensors.Tensor
	Written map[int]string // the numbers of the stages as the names have them
}

// JoinAxis is a join along an axis, which has no name yet.
const JoinAxis = "axis"

// Common is the first tensor of the shape that more than half of the layers have, and the first of all where there is none.
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
	var list []*Template // each rank by itself
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

// lastRows are the forms of tensors that have the row of the last token alone.
func (f *Form) lastRow() *Form {
	last := *f
	last.Last = true
	return &last
}

// Why says how a form was told from others.
func (f *Form) Why() string {
	switch all := len(f.Layers); {
	case f.Join == mapping.JoinSame && f.agree == all:
		return "; the same on all ranks"
	case f.Join == mapping.JoinSame:
		return fmt.Sprintf("; the same on all ranks in %d of %d", f.agree, all)
	case f.Join == mapping.JoinSum:
		return "; the sum of all ranks"
	case f.Join == JoinAxis && f.Copies > 1:
		return fmt.Sprintf("; the ranks behind each other, %d have each part", f.Copies)
	case f.Join == JoinAxis:
		return "; the ranks behind each other"
	case f.Last:
		return "; the row of the last token"
	}
	return ""
}

// Certain reports whether a form needs no values to be told from others: ranks that are not alike may be partial sums, and rows other tokens'.
func (f *Form) Certain() bool { return f.Join == "" || f.Join == JoinAxis || f.agree == len(f.Layers) }

// Sharding is that of a form whose parts stand behind each other.
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
