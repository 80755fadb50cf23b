package propose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/layout"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
)

// layerOfTarget is what a target has of the number of a layer.
var layerOfTarget = regexp.MustCompile(`\{(L[^{}]*)\}`)

// oneByOne has a line for each layer. A layer whose shape does not fit the axes gets only the name, or the name of its first part: a
// comparison then shows the shape.
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

// lines completes a line for a candidate. Unless the line has axes, it gets the candidate's.
func (p *model) lines(c candidate, l Line) []Line {
	l.Axes = cmp.Or(l.Axes, c.how.Text)
	return p.linesOfParts(c.t, c.f, []*role{c.r}, l)
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

// linesOfParts completes a line for a tensor of one or more entries. Uneven stages need several lines, as do layers whose shapes do not
// fit the axes.
func (p *model) linesOfParts(t *template, f *names.Form, roles []*role, l Line) []Line {
	l.From, l.at = t.Text, roles[0].at
	for _, r := range roles {
		l.To = append(l.To, r.text)
	}
	if t.Steps {
		l.Pass = "S"
		if t.First != 0 {
			l.Pass = fmt.Sprintf("S-%d", t.First)
		}
	}
	if f.Join == "" && f.Stages == nil {
		if mapping.OfLayers(t.Text) && slices.ContainsFunc(l.To, func(to string) bool { return !strings.Contains(to, "{L}") }) {
			return oneByOne(t, f, l, nil) // one layer computes what has the number of none
		}
		unfit := p.unfit(f, l.Axes)
		if l.Split != "" {
			unfit = f.Uncommon()
		}
		if len(unfit) > 0 {
			return oneByOne(t, f, l, unfit)
		}
	}
	list := put(f, l)
	if t.From > 0 {
		for _, l := range list {
			for i := range l.To {
				l.To[i] = layerOfTarget.ReplaceAllString(l.To[i], fmt.Sprintf("{$1-%d}", t.From))
			}
		}
	}
	return list
}

// applied is what a line makes of the tensors of a template; nothing where it does not fit.
func (p *model) applied(t *template, l Line) ([]capture.Source, error) {
	m, err := mapping.Parse("", []byte("[tensors]\n"+l.text()))
	if err != nil {
		return nil, err
	}
	made, _ := m.Made(t.Sources, p.list)
	return made, nil
}
