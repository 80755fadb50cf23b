package mapping

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Applied is a trace after a map.
type Applied struct {
	Trace *capture.Trace // closes the trace given to Apply
	// Differ has a sentence for each tensor that differs between ranks and should be equal on all ranks. The tensor of the
	// first rank is used.
	Differ []string
	// What the map did: its file or table, the number of patterns, and the pattern of each name with another layout and of each name
	// left out.
	File     string
	Patterns int
	Changes  []string
	// Absent has the line of each name that the map gives and no tensor has.
	Absent map[string]string
	// Unproven has the line of each name for which the map says by = "name" or "guess": no value proves the name.
	Unproven map[string]string
}

// Apply gives the tensors of a trace the names and layouts of the order. A tensor without a matching line stays unchanged. list has the sizes that
// layouts may leave out: h query heads, k KV heads, d the width of a head, e the hidden size, v the vocabulary; nil for an unknown model. t stays
// open while the new trace is used.
//
// It is an error if no line matches a tensor, a line matches no tensor and gives no name of the order, two lines match one tensor and not exactly one
// of the two gives names of the order, two tensors get one name, a name is not in the order, or a layout does not fit a shape. Errors name the line.
func (m *Map) Apply(t *capture.Trace, list *order.List) (*Applied, error) {
	a, err := m.applied(t.Path(), t.Sources(), list)
	if err != nil {
		return nil, err
	}
	m = a.m
	manifest := t.Manifest()
	manifest.Fused = append(slices.Clone(manifest.Fused), m.fused...)
	made, err := capture.Assemble(t.Path(), a.out, manifest, false, t.Notes(), t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	return &Applied{Trace: made, Differ: a.differ, File: m.name, Patterns: len(m.tensors), Changes: m.changes(), Absent: a.absent(), Unproven: a.unproven()}, nil
}

// changes has a sentence for each name that is left out, and for each name with another layout.
func (m *Map) changes() []string {
	var all []string
	for _, r := range m.tensors {
		if len(r.to) == 0 {
			all = append(all, hole.ReplaceAllString(r.from.text, "*")+" left out")
		}
		if words := r.words(); words != "" {
			all = append(all, fmt.Sprintf("%s from %s%s", r.names(), hole.ReplaceAllString(r.from.text, "*"), words))
		}
	}
	return all
}

// Made are the tensors after the map, for sources with the names of the dump. ok is false if a line of the map does not fit
// them.
func (m *Map) Made(sources []capture.Source, list *order.List) (made []capture.Source, ok bool) {
	a, err := m.applied("", sources, list)
	if err != nil {
		return nil, false
	}
	return a.out, true
}

// applied makes the tensors by the lines for the model of list.
func (m *Map) applied(path string, sources []capture.Source, list *order.List) (*application, error) {
	m, err := m.forModel(list)
	if err != nil {
		return nil, err
	}
	a := &application{m: m, list: list, sources: sources, sizes: SizesOf(list), groups: map[key]*group{}, ranks: map[*rule][][]int{}, path: path}
	if err := a.match(); err != nil {
		return nil, err
	}
	for _, g := range a.order {
		if err := a.make(g); err != nil {
			return nil, fmt.Errorf("%s: %w", m.at(g.rule), err)
		}
	}
	return a, nil
}

// SizesOf are the sizes of a model by the names of axes in a map.
func SizesOf(list *order.List) map[string]int {
	if list == nil || list.Config == nil {
		return nil
	}
	c := list.Config
	if list.IsRecorded() {
		return map[string]int{"h": heads(list, "q_rope"), "k": heads(list, "k_rope"), "v": c.VocabSize}
	}
	return map[string]int{"h": c.NumHeads, "k": c.NumKVHeads, "d": c.HeadDim, "e": c.HiddenSize, "v": c.VocabSize}
}

// heads is the number of heads of the entries of a recorded program whose names end in "."+end; 0 without such entries, or if layers
// differ.
func heads(list *order.List, end string) int {
	n := 0
	for i := range list.Entries {
		e := &list.Entries[i]
		at := strings.IndexByte(e.Axes, order.AxisHead)
		if at < 0 || !strings.HasSuffix(e.Name, "."+end) {
			continue
		}
		if here := int(e.Shape[at]); n == 0 || n == here {
			n = here
		} else {
			return 0
		}
	}
	return n
}

// maxPasses bounds the passes that a map gives: no comparison walks more.
const maxPasses = 1 << 16

// key is a tensor of the new trace.
type key struct {
	pass   int
	name   string
	firing int
}

// group is one tensor, or several tensors that are joined, and the targets made from the group.
type group struct {
	rule    *rule
	targets []key
	members []member
}

type member struct {
	source *capture.Source
	rank   []int // the numbers of the captures that differ between the members
}

type application struct {
	m       *Map
	list    *order.List
	path    string
	sources []capture.Source
	sizes   map[string]int
	tokens  map[int]int // tokens of each pass, for the position of keys in a ring

	groups map[key]*group // by each of the targets of the group
	order  []*group
	ranks  map[*rule][][]int // all ranks in the trace that match a line
	out    []capture.Source
	differ []string
	unused []*rule // lines that match no tensor
}

// match finds the line of each tensor. Tensors without a line stay unchanged.
func (a *application) match() error {
	used := make([]bool, len(a.m.tensors))
	latest := map[key]int{} // the last firing of a name in a pass
	for _, s := range a.sources {
		k := key{pass: s.Pass, name: s.Name}
		latest[k] = max(latest[k], s.Firing)
	}
	plain, others := a.m.lines()
	for i := range a.sources {
		s := &a.sources[i]
		by, leftOut, err := a.linesOf(s, append(slices.Clone(plain[s.Name]), others...), latest, used)
		if err != nil {
			return err
		}
		if len(by) > 1 {
			first, second := a.m.tensors[min(by[0].line, by[1].line)], a.m.tensors[max(by[0].line, by[1].line)]
			return hint.Add(fmt.Errorf("%s: it matches %q, and so does %s", a.m.at(second), s.Key, place(first.line, first.from.text)), "a tensor has one name: make one of the two patterns narrower")
		}
		for _, m := range by {
			used[m.line] = true
			if r := a.m.tensors[m.line]; len(r.to) > 0 {
				if err := a.add(r, m.captures, s); err != nil {
					return fmt.Errorf("%s: %w", a.m.at(r), err)
				}
			}
		}
		if len(by) == 0 && !leftOut {
			a.out = append(a.out, *s)
		}
	}
	return a.checkMatches(used)
}

// linesOf returns the lines, out of a list, that match a tensor; if several lines match, [application.known] chooses. A line gives way
// if the pass has the tensor named by the line's unless: linesOf omits the line, and leftOut is true. linesOf sets used for a line that
// gives way, and for a line that leaves the tensor out.
func (a *application) linesOf(s *capture.Source, lines []int, latest map[key]int, used []bool) (by []matched, leftOut bool, err error) {
	for _, n := range lines {
		r := a.m.tensors[n]
		c, ok := r.from.of(s.Name)
		if !ok || !r.from.fires(s.Firing, latest[key{pass: s.Pass, name: s.Name}]) {
			continue
		}
		if r.unless != nil {
			other, err := r.unless.name(c)
			if err != nil {
				return nil, false, fmt.Errorf("%s: unless: %w", a.m.at(r), err)
			}
			if _, there := latest[key{pass: s.Pass, name: other}]; there {
				used[n], leftOut = true, true
				continue
			}
		}
		used[n] = used[n] || len(r.to) == 0
		by = append(by, matched{n, c})
	}
	if len(by) > 1 {
		by = a.known(by)
	}
	return by, leftOut, nil
}

// checkMatches returns an error for a line that matches no tensor and gives no name of the order, and for a line that gives a name which
// another tensor has. It sorts the ranks of each line.
func (a *application) checkMatches(used []bool) error {
	for n, r := range a.m.tensors {
		if !used[n] {
			a.unused = append(a.unused, r)
		}
	}
	for _, r := range a.unused {
		if len(a.unused) == len(used) || len(r.to) > 0 && len(a.named(r)) == 0 { // a tensor that is left out may be absent
			return hint.Add(fmt.Errorf("%s: it matches no tensor of %s", a.m.at(r), a.path), "tracediff inspect FILE lists its names")
		}
	}
	for _, s := range a.out {
		if g := a.groups[key{s.Pass, s.Name, s.Firing}]; g != nil {
			return hint.Add(fmt.Errorf("%s: %q becomes %q, and a tensor has that name already", a.m.at(g.rule), g.members[0].source.Key, s.Key), "give that tensor another name in a line of its own")
		}
	}
	for r, ranks := range a.ranks {
		slices.SortFunc(ranks, slices.Compare)
		a.ranks[r] = slices.CompactFunc(ranks, slices.Equal)
	}
	return nil
}

// add adds a tensor to its group.
func (a *application) add(r *rule, c captures, s *capture.Source) error {
	g := &group{rule: r}
	pass, firing := s.Pass, s.Firing
	if r.from.firing != anyFiring {
		firing = 0
	}
	if r.pass != nil {
		var err error
		if pass, err = r.pass.value(c.number); err != nil {
			return fmt.Errorf("pass: %w", err)
		}
		if pass < 0 || pass >= maxPasses {
			return fmt.Errorf("pass: %q is %d for %q: want 0 to %d", r.pass.text, pass, s.Key, maxPasses-1)
		}
	}
	for _, t := range r.to {
		name, err := t.name(c)
		if err != nil {
			return err
		}
		if a.list != nil && a.list.Index(name) < 0 {
			return hint.Add(fmt.Errorf("%q becomes %q, which the order does not have", s.Key, name), "tracediff order lists its names")
		}
		g.targets = append(g.targets, key{pass, name, firing})
	}
	m := member{source: s}
	for _, n := range r.over {
		rank, ok := c.number(n)
		if !ok {
			return fmt.Errorf("{%s} tells the joined tensors apart, so it has to be a number: begin its name with a capital letter", n)
		}
		m.rank = append(m.rank, rank)
	}
	a.ranks[r] = append(a.ranks[r], m.rank)
	if before := a.groups[g.targets[0]]; before != nil && before.rule == r && len(r.over) > 0 && slices.Equal(before.targets, g.targets) {
		if i := slices.IndexFunc(before.members, func(o member) bool { return slices.Equal(o.rank, m.rank) }); i >= 0 {
			return fmt.Errorf("%q and %q are both %s of %q", before.members[i].source.Key, s.Key, a.called(r, m.rank), g.targets[0].name)
		}
		before.members = append(before.members, m)
		return nil
	}
	g.members = []member{m}
	for _, to := range g.targets {
		if before := a.groups[to]; before != nil {
			return fmt.Errorf("%q and %q both become %q", before.members[0].source.Key, s.Key, capture.Key(to.pass, to.name, to.firing))
		}
		a.groups[to] = g
	}
	a.order = append(a.order, g)
	return nil
}

// make makes the tensors of a group.
func (a *application) make(g *group) error {
	if len(g.members) > 1 && g.members[0].source.Printed != nil {
		return fmt.Errorf("%q and others are joined: tensors of a text of rounded numbers cannot be joined", g.members[0].source.Key)
	}
	slices.SortFunc(g.members, func(x, y member) int { return slices.Compare(x.rank, y.rank) })
	if err := a.complete(g); err != nil {
		return err
	}
	for part, to := range g.targets {
		var blocks []layout.Block
		for _, m := range g.members {
			b, err := a.block(g.rule, m.source, part, to.pass)
			if err != nil {
				return fmt.Errorf("%q: %w", m.source.Key, err)
			}
			blocks = append(blocks, b)
		}
		b, err := a.join(g, to, blocks)
		if err != nil {
			return err
		}
		a.out = append(a.out, capture.Source{
			Key: g.members[0].source.Key, Name: to.name, Pass: to.pass, Firing: to.firing, DType: b.DType, Shape: b.Shape, Data: b.Data,
			LastRow: g.rule.last || g.members[0].source.LastRow, Printed: g.printed(), Terms: b.Terms(), InOrder: g.rule.ring != "",
		})
	}
	return nil
}

// printed is the Printed of a tensor of a text; nil for other dumps. A part of the tensor has no sum, since the text has the sum of the
// whole tensor.
func (g *group) printed() *capture.Printed {
	whole := g.members[0].source.Printed
	if whole == nil || len(g.targets) == 1 {
		return whole
	}
	part := *whole
	part.HasSum = false
	return &part
}

// complete returns an error for a group that lacks a rank which the line has in another group: the joined tensor would be too small.
func (a *application) complete(g *group) error {
	if len(g.rule.over) == 0 {
		return nil
	}
	for i, rank := range a.ranks[g.rule] {
		if i >= len(g.members) || !slices.Equal(g.members[i].rank, rank) { // both are sorted
			return fmt.Errorf("%s of %q is missing in pass %d", a.called(g.rule, rank), g.targets[0].name, g.targets[0].pass)
		}
	}
	return nil
}

// called names a member by its captures, for people: "R 1".
func (a *application) called(r *rule, rank []int) string {
	text := ""
	for i, n := range r.over {
		if i > 0 {
			text += ", "
		}
		text += n + " " + strconv.Itoa(rank[i])
	}
	return text
}
