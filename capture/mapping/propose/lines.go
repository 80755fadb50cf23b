package propose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
)

// layerOfTarget is what a target has of the number of a layer.
var layerOfTarget = regexp.MustCompile(`\{(L[^{}]*)\}`)

// uncommon are the layers of a form that have another shape than most.
func (f *form) uncommon() []int {
	shape := f.common().shape
	return slices.DeleteFunc(keysOf(f.layers), func(l int) bool { return slices.Equal(f.layers[l].shape, shape) })
}

// oneByOne is a line for each layer. Those that are unfit get the name alone, or that of their first part, so that a comparison shows their shape.
func (t *template) oneByOne(f *form, l Line, unfit []int) (list []Line) {
	written := map[int]string{}
	for _, x := range t.all {
		written[x.best.layer] = x.best.digits
	}
	for _, layer := range keysOf(f.layers) {
		now := l
		now.From, now.To = mapping.InLayer(l.From, written[layer]), nil
		for _, to := range l.To {
			now.To = append(now.To, mapping.InLayer(to, fmt.Sprint(layer)))
		}
		if slices.Contains(unfit, layer) {
			now.To, now.Axes, now.Split, now.Ring, now.Why = now.To[:1], "", "", "", "the axes of the other layers do not fit its shape"
		}
		list = append(list, f.put(now)...)
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
func (p *proposer) take(t *template, f *form, roles []*role, l Line) error {
	lines := p.lines(t, f, roles, l)
	p.out.Lines = append(p.out.Lines, lines...)
	t.settled = true
	for _, r := range roles {
		r.taken = true
		for layer, e := range r.layers {
			if _, has := f.layers[layer]; has {
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
			if !pair.t.inPass(h.pass) {
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
	text, _, _ := strings.Cut(t.text, "#")
	alike := slices.DeleteFunc(slices.Clone(p.open), func(t *template) bool { return t.text != text && !strings.HasPrefix(t.text, text+"#") })
	if slices.ContainsFunc(alike, func(t *template) bool { return t.settled }) {
		text, alike = t.text, []*template{t}
	}
	for _, t := range alike {
		t.settled = true
	}
	p.out.Lines = append(p.out.Lines, Line{From: text, Why: "left out: " + instead.t.text + " is " + instead.r.text, at: instead.r.at})
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
		for _, x := range t.all {
			has[x.best.layer] = true
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
