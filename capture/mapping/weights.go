package mapping

import (
	"fmt"
	"io"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// Weight is a tensor of a checkpoint, before or after a map.
type Weight struct {
	Name   string
	Key    string // the name in the file; of joined tensors, the name of the first
	DType  hooks.DType
	Shape  []int
	Data   io.ReaderAt
	Planes []io.ReaderAt // further float32 data of each element, in the tensor's shape; planes move with the elements
	Places io.ReaderAt   // eight bytes for each element, such as its position in the file, moved with the element; nil if an element is made of several tensors

	From   int    // the index of the tensor in the file; of joined tensors, the index of the first
	Folded bool   // the file has 1+w
	How    string // the changes of the layout, in the map's words; empty for no change
}

// HasWeights reports whether the map has a line for weights.
func (m *Map) HasWeights() bool { return m != nil && len(m.weights) > 0 }

// Weights gives the tensors of a checkpoint the names and layouts of the original, by the table [weights]. A tensor without a matching
// line stays unchanged. sizes are the sizes of axes for layouts and splits. path is the checkpoint, for errors, which name the line.
func (m *Map) Weights(path string, list []Weight, sizes map[string]int) ([]Weight, error) {
	shadow := &Map{name: m.name, tensors: m.weights}
	a := &application{m: shadow, sizes: sizes, groups: map[key]*group{}, ranks: map[*rule][][]int{}, path: path}
	at := map[string]int{} // by name
	for i, w := range list {
		if _, twice := at[w.Name]; twice {
			return nil, fmt.Errorf("%s has two tensors called %q", path, w.Name)
		}
		at[w.Name] = i
		a.sources = append(a.sources, capture.Source{Key: w.Name, Name: w.Name, DType: w.DType, Shape: w.Shape, Data: w.Data})
	}
	if err := a.match(); err != nil {
		return nil, err
	}
	var out []Weight
	for _, s := range a.out {
		out = append(out, list[at[s.Name]])
	}
	for _, g := range a.order {
		made, err := a.weights(g, list, at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.at(g.rule), err)
		}
		out = append(out, made...)
	}
	if len(a.differ) > 0 {
		return nil, fmt.Errorf("%s: %s", m.name, a.differ[0])
	}
	return out, nil
}

// weights makes the tensors of a group, with their planes and places.
func (a *application) weights(g *group, list []Weight, at map[string]int) ([]Weight, error) {
	first := at[g.members[0].source.Name]
	planes := len(list[first].Planes)
	for _, m := range g.members {
		if len(list[at[m.source.Name]].Planes) != planes || g.rule.join == JoinSum {
			planes = 0 // codes cannot be summed
		}
	}
	places := planes // the number of the plane with the places; −1 for no places
	several := g.rule.join == JoinSum || g.rule.join == JoinSame || g.rule.copies > 1
	if several || slices.ContainsFunc(g.members, func(m member) bool { return list[at[m.source.Name]].Places == nil }) {
		places = -1
	}
	var out []Weight
	for plane := -1; plane <= max(planes-1, places); plane++ {
		part := *g
		part.members = slices.Clone(g.members)
		for i, m := range part.members {
			s, of := *m.source, &list[at[m.source.Name]]
			switch {
			case plane < 0:
				continue
			case plane == places:
				s.DType, s.Data = hooks.I64, of.Places
			default:
				s.DType, s.Data = hooks.F32, of.Planes[plane]
			}
			part.members[i].source = &s
		}
		from := len(a.out)
		if err := a.make(&part); err != nil {
			return nil, err
		}
		for i, s := range a.out[from:] {
			if plane < 0 {
				out = append(out, Weight{Name: s.Name, Key: s.Key, DType: s.DType, Shape: s.Shape, Data: s.Data, From: list[first].From, Folded: g.rule.folded, How: a.how(g.rule)})
				continue
			}
			if plane == places {
				out[i].Places = s.Data
				continue
			}
			out[i].Planes = append(out[i].Planes, s.Data)
		}
		a.out = a.out[:from]
	}
	return out, nil
}

// how is the change of a rule to the layout of a tensor, in words.
func (a *application) how(r *rule) string {
	plain := *r
	plain.folded = false
	return plain.words()
}

// NamesWeight reports whether a line of the map matches the name of a weight. A nil map has no lines.
func (m *Map) NamesWeight(name string) bool {
	return m != nil && slices.ContainsFunc(m.weights, func(r *rule) bool { _, ok := r.from.of(name); return ok })
}
