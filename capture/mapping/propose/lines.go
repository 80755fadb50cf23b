package propose

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
)

// layerOfTarget is what a target has of the number of a layer.
var layerOfTarget = regexp.MustCompile(`\{(L[^{}]*)\}`)

// oneByOne is a line for each layer. Those that are unfit get the name alone, or that of their first part, so that a comparison shows their shape.
func oneByOne(t *template, f *names.Form, l Line, unfit []int) (list []Line) {
	written := map[int]string{}
	for _, x := range t.All {
		written[x.Best.Layer] = x.Best.Digits
	}
	for _, layer := range keysOf(f.Layers) {
		now := l
		now.From, now.To = mapping.InLayer(l.From, written[layer]), nil
		for _, to := range l.To {
			now.To = append(now.To, mapping.InLayer(to, fmt.Sprint(layer)))
		}
		if slices.Contains(unfit, layer) {
			now.To, now.Axes, now.Split, now.Ring, now.Why = now.To[:1], "", "", "", "the axes of the other layers do not fit its shape"
		}
		list = append(list, put(f, now)...)
	}
	return list
}

// pairing is a tensor that has become an entry.
type pairing struct {
	t     *template
	r     *role // the first of several
	lines []Line
}

// take settles what a tensor is.
func (p *proposer) take(t *template, f *names.Form, roles []*role, l Line) error {
	lines := p.lines(t, f, roles, l)
	p.out.Lines = append(p.out.Lines, lines...)
	t.settled = true
	for _, r := range roles {
		r.taken = true
		for layer, e := range r.layers {
			if _, has := f.Layers[layer]; has {
				p.named[e.Name] = true
			}
		}
	}
	p.pairs = append(p.pairs, pairing{t, roles[0], lines})
	if p.computed == nil {
		return nil
	}
	return p.computed.take(t, lines)
}

// leaveOut adds a line for each tensor whose name is that of an entry for which another tensor has been found. Without the line the two would have the same name.
func (p *proposer) leaveOut() {
	for _, pair := range p.pairs {
		for _, h := range pair.r.held {
			if !pair.t.InPass(h.pass) {
				continue
			}
			for _, t := range p.open {
				if (t == h.by || t.of == h.by) && !t.settled {
					p.leaveOutAll(t, pair)
				}
			}
		}
	}
}

// leaveOutAll leaves out a tensor in favor of the one that has become the entry: with all of its firings, #0, #1, ..., by one line, unless one of them has a line of its own.
func (p *proposer) leaveOutAll(t *template, instead pairing) {
	text, _, _ := strings.Cut(t.Text, "#")
	alike := slices.DeleteFunc(slices.Clone(p.open), func(t *template) bool { return t.Text != text && !strings.HasPrefix(t.Text, text+"#") })
	if slices.ContainsFunc(alike, func(t *template) bool { return t.settled }) {
		text, alike = t.Text, []*template{t}
	}
	for _, t := range alike {
		t.settled = true
	}
	p.out.Lines = append(p.out.Lines, Line{From: text, Why: "left out: " + instead.t.Text + " is " + instead.r.text, at: instead.r.at})
}

// choose leaves what a tensor is to a person.
func (p *proposer) choose(t *template, c Choice) {
	p.out.Choices = append(p.out.Choices, c)
	t.settled = true
}

// withoutTensors are the layers whose number no tensor has, if some tensor has the number of a layer: a port may leave a layer out.
func (p *proposer) withoutTensors() (without []int) {
	has := map[int]bool{}
	for name := range p.named {
		if e, ok := p.list.Lookup(name); ok {
			has[e.Layer] = true
		}
	}
	for _, t := range p.open {
		for _, x := range t.All {
			has[x.Best.Layer] = true
		}
	}
	delete(has, -1)
	for layer := range p.list.Config.NumLayers {
		if len(has) > 0 && !has[layer] {
			without = append(without, layer)
		}
	}
	return without
}

// put completes a line with what a form does: the names of its stages, and how its ranks are joined. A pipeline whose stages are not
// even has a line for each.
func put(f *names.Form, l Line) []Line {
	switch {
	case f.Join == mapping.JoinSame, f.Join == mapping.JoinSum:
		l.Join = f.Join
	case f.Join == names.JoinAxis:
		if l.Join = firstName(l.Axes, f.Axis); f.Copies > 1 {
			l.Join += fmt.Sprintf("/%d", f.Copies)
		}
	}
	if f.Last {
		l.Rows = "last"
	}
	if f.Stages == nil {
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
	if step := f.Stages[1]; step > 0 && even(f, step) {
		return []Line{named(l, "{"+letter+"}", fmt.Sprintf("L+%d*%s", step, letter))}
	}
	var list []Line
	for _, stage := range keysOf(f.Written) {
		layer := "L"
		if n := f.Stages[stage]; n > 0 {
			layer = fmt.Sprintf("L+%d", n)
		}
		list = append(list, named(l, f.Written[stage], layer))
	}
	return list
}

// even reports whether each stage but the last has so many layers.
func even(f *names.Form, step int) bool {
	for stage, before := range f.Stages {
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

func keysOf[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
