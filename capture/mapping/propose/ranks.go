package propose

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/hooks"
)

// A name may say which rank, or which stage of a pipeline, has the tensor: "rank1/layers.0.out", "stage0.layers.1.out".
var rankText = regexp.MustCompile(`(?i)^(|.*?[-_./])((?:tp|mp|ep|pp)?_?rank|tp|shard|device|gpu|worker|stage|pp|pipe|pipeline)([-_=.]?)([0-9]{1,4})([-_./].*|)$`)

// stageWords are those of them that are stages: of each tensor of a layer one stage alone has any.
var stageWords = regexp.MustCompile(`(?i)^(stage|pp|pp_?rank|pipe|pipeline)$`)

// mark is the number of a rank or stage in a name. The zero mark is none.
type mark struct {
	group string // the text in front of the number; "" for none
	word  string
	rank  int
	text  string // the number as it is written
}

// here stands in a name for the number of its rank. No name that has it already is read as one of a rank.
const here = "\x00"

// marked puts a sign in the place of a rank's number.
func marked(name string) (string, mark) {
	m := rankText.FindStringSubmatch(name)
	if m == nil || len(name) > maxName || strings.Contains(name, here) {
		return name, mark{}
	}
	n, _ := strconv.Atoi(m[4])
	group := m[1] + m[2] + m[3]
	return group + here + m[5], mark{group, m[2], n, m[4]}
}

// unmark puts the numbers back where they are none of ranks: where no other tensor has another, and where a word such as stage
// stands for layers, because the names have no other number for them.
func unmark(all []*spelled, layers int) {
	ranks, layered := map[string]map[int]bool{}, map[string]bool{}
	for _, x := range all {
		g := x.mark.group
		if g == "" {
			continue
		}
		if ranks[g] == nil {
			ranks[g] = map[int]bool{}
		}
		ranks[g][x.mark.rank] = true
		layered[g] = layered[g] || slices.ContainsFunc(readings(x.rest, layers), func(n named) bool { return n.sure && !n.beyond })
	}
	for _, x := range all {
		if g := x.mark.group; g != "" && (len(ranks[g]) < 2 || stageWords.MatchString(x.mark.word) && !layered[g]) {
			x.rest, x.mark = x.r.Name, mark{}
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
func numberings(all []*spelled, layers int) map[string]numbering {
	sets := map[string]map[int]map[int]bool{}
	words := map[string]string{}
	for _, x := range all {
		g := x.mark.group
		if g == "" || x.best.layer < 0 {
			continue
		}
		if sets[g] == nil {
			sets[g] = map[int]map[int]bool{}
		}
		if sets[g][x.mark.rank] == nil {
			sets[g][x.mark.rank] = map[int]bool{}
		}
		sets[g][x.mark.rank][x.best.layer] = true
		words[g] = x.mark.word
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

// gathered are the tensors of one pattern.
type gathered struct {
	template
	at map[cell]*spelled // of the first pass
}

func (g *gathered) add(x *spelled) {
	g.all = append(g.all, x)
	g.isKnown = g.isKnown && x.known
	c := cell{x.best.layer, x.mark.rank}
	before := g.at[c]
	earlier := before != nil && x.r.Pass < before.r.Pass
	if before != nil && x.step >= 0 {
		earlier = x.step < before.step
	}
	if x.step >= 0 {
		g.first = min(g.first, x.step)
	}
	if before == nil || earlier {
		g.at[c] = x
	}
}

// form is a way to take the tensors of a pattern as one a layer: as they are, joined of those of all ranks, or of stages.
type form struct {
	join    string      // "" for none, or one of [mapping.JoinSum], [mapping.JoinSame] and joinAxis
	axis    int         // of the parts that stand behind each other
	ranks   int         // how many parts there are
	copies  int         // ranks that have the same part each, one after the other; 0 and 1 for one
	last    bool        // they have the row of the last token alone
	stages  map[int]int // by stage: how many layers are before it; nil for none
	agree   int         // for [mapping.JoinSame]: the layers in which all ranks are alike
	layers  map[int]tensor
	written map[int]string // the numbers of the stages as the names have them
}

// joinAxis is a join along an axis, which has no name yet.
const joinAxis = "axis"

// tensor is one that a form has in a layer, read from whatever it is made of.
type tensor struct {
	key   string // no other of its trace has it
	shape []int
	dtype hooks.DType
	data  io.ReaderAt
}

// common is the first tensor of the shape that more than half of the layers have, and the first of all where there is none.
func (f *form) common() tensor {
	layers := keysOf(f.layers)
	for _, l := range layers {
		same := 0
		for _, o := range layers {
			same += btoi(slices.Equal(f.layers[o].shape, f.layers[l].shape))
		}
		if 2*same > len(layers) {
			return f.layers[l]
		}
	}
	return f.layers[layers[0]]
}

func plainTensor(s *capture.Source) tensor {
	return tensor{s.Key, s.Shape, s.DType, s.Data}
}

// forms are the templates of the tensors of a pattern, with the ways to take each.
func (g *gathered) forms(numbered map[string]numbering) ([]*template, error) {
	ranks, layers := map[int]string{}, map[int][]int{}
	var m mark
	cells := slices.SortedFunc(maps.Keys(g.at), func(a, b cell) int { return cmp.Or(a.layer-b.layer, a.rank-b.rank) })
	for _, c := range cells {
		m = g.at[c].mark
		ranks[c.rank] = m.text
		layers[c.layer] = append(layers[c.layer], c.rank)
		g.sources = append(g.sources, g.at[c].source)
	}
	if m.group == "" {
		g.template.forms = []*form{g.asTheyAre(cells)}
		return []*template{&g.template}, nil
	}
	letter := "{R}"
	if stageWords.MatchString(m.word) {
		letter = "{P}"
	}
	text := g.text
	g.text = strings.ReplaceAll(text, here, letter)
	n, staged := numbered[m.group]
	_, outside := layers[-1]
	if staged = staged && !outside; staged {
		g.template.forms = append(g.template.forms, g.asStages(cells, n, ranks))
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
		g.template.forms = append(g.template.forms, joined...)
	}
	if len(g.template.forms) > 0 {
		return []*template{&g.template}, nil
	}
	var list []*template // each rank by itself
	for _, rank := range keysOf(ranks) {
		t := g.template
		t.text, t.sources = strings.ReplaceAll(text, here, ranks[rank]), nil
		t.all = slices.DeleteFunc(slices.Clone(g.all), func(x *spelled) bool { return x.mark.rank != rank })
		of := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.rank != rank })
		for _, c := range of {
			t.sources = append(t.sources, g.at[c].source)
		}
		t.forms = []*form{g.asTheyAre(of)}
		list = append(list, &t)
	}
	return list, nil
}

func (g *gathered) asTheyAre(cells []cell) *form {
	f := &form{layers: map[int]tensor{}}
	for _, c := range cells {
		f.layers[c.layer] = plainTensor(&g.at[c].source)
	}
	return f
}

func (g *gathered) asStages(cells []cell, n numbering, written map[int]string) *form {
	f := &form{stages: n.offsets, layers: map[int]tensor{}, written: written}
	for _, c := range cells {
		f.layers[c.layer+n.offsets[c.rank]] = plainTensor(&g.at[c].source)
	}
	return f
}

// lastRows are the forms of tensors that have the row of the last token alone.
func (f *form) lastRow() *form {
	last := *f
	last.last = true
	return &last
}

// put completes a line with what a form does: the names of its stages, and how its ranks are joined. A pipeline whose stages are not
// even has a line for each.
func (f *form) put(l Line) []Line {
	switch {
	case f.join == mapping.JoinSame, f.join == mapping.JoinSum:
		l.Join = f.join
	case f.join == joinAxis:
		if l.Join = firstName(l.Axes, f.axis); f.copies > 1 {
			l.Join += fmt.Sprintf("/%d", f.copies)
		}
	}
	if f.last {
		l.Rows = "last"
	}
	if f.stages == nil {
		return []Line{l}
	}
	letter := "R"
	if strings.Contains(l.From, "{P}") {
		letter = "P"
	}
	named := func(l Line, from, layer string) Line {
		l.From = strings.ReplaceAll(l.From, "{"+letter+"}", from)
		l.To = slices.Clone(l.To)
		for i := range l.To {
			l.To[i] = strings.ReplaceAll(l.To[i], "{L}", "{"+layer+"}")
		}
		return l
	}
	if step := f.stages[1]; step > 0 && f.even(step) {
		return []Line{named(l, "{"+letter+"}", fmt.Sprintf("L+%d*%s", step, letter))}
	}
	var list []Line
	for _, stage := range keysOf(f.written) {
		layer := "L"
		if n := f.stages[stage]; n > 0 {
			layer = fmt.Sprintf("L+%d", n)
		}
		list = append(list, named(l, f.written[stage], layer))
	}
	return list
}

// even reports whether each stage but the last has so many layers.
func (f *form) even(step int) bool {
	for stage, before := range f.stages {
		if before != stage*step {
			return false
		}
	}
	return true
}

// firstName is the first name that the left side of a layout has for an axis.
func firstName(axes string, axis int) string {
	l, err := layout.New(axes, "")
	if err != nil {
		return ""
	}
	return l.First(axis)
}
