package propose

import (
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
)

// close finishes a proposal after the last line is found: close leaves tensors out, joins the lines of single tensors, and lists the open
// patterns and the layers without a tensor.
func (p closing) close() {
	p.leaveOut()
	whole := p.isWhole()
	for _, q := range p.open {
		switch {
		case !q.settled && whole && !p.soundsLike(q):
			p.out.Others = append(p.out.Others, q.Text)
		case !q.settled:
			p.out.Left = append(p.out.Left, q.Text)
		}
	}
	p.joinLines()
	p.out.Without = p.withoutTensors()
	slices.SortStableFunc(p.out.Lines, func(a, b Line) int { return a.at - b.at })
}

// leaveOut adds a line for each tensor whose name is that of an entry for which another tensor has been found. Without the line the two would have the same name.
func (p *board) leaveOut() {
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

// leaveOutAll leaves a tensor out because another tensor has become its entry. One line is enough for all firings, #0, #1, ..., unless a
// firing has a line.
func (p *board) leaveOutAll(t *template, instead pairing) {
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

// withoutTensors are the layers whose number no tensor has, if some tensor has the number of a layer: a port may leave a layer out.
func (p closing) withoutTensors() (without []int) {
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

// joinLines writes one line for the single tensors of a pattern, if each tensor has become the entry of its own layer and all have one layout.
func (p closing) joinLines() {
	type split struct {
		t *template
		r *role
	}
	all := map[split][]pairing{}
	for _, o := range p.pairs {
		if o.t.of != nil && o.r.of != nil && len(o.lines) == 1 && len(o.t.All) == 1 {
			k := split{o.t.of, o.r.of}
			all[k] = append(all[k], o)
		}
	}
	for k, single := range all {
		line := single[0].lines[0]
		if len(single) < 2 || len(single) != len(k.t.All) || !mapping.OfLayers(k.t.Text) {
			continue
		}
		same := !slices.ContainsFunc(single, func(o pairing) bool {
			l, layer := o.lines[0], p.list.Entries[o.r.at].Layer
			own := slices.ContainsFunc(k.t.All, func(x *names.Occurrence) bool { return x.At == o.t.All[0].At && x.Best.Layer == layer+k.t.From })
			return !own || k.t.From > 0 || l.By != line.By || l.Axes != line.Axes || l.Split+l.Join+l.Ring+l.Pass+l.Rows != ""
		})
		i := slices.IndexFunc(p.out.Lines, func(l Line) bool { return l.From == line.From && slices.Equal(l.To, line.To) })
		if !same || i < 0 {
			continue
		}
		l := &p.out.Lines[i]
		l.From, l.To, l.Why = k.t.Text, []string{k.r.text}, line.Why+" ("+line.From+", and the other layers alike)"
		for _, o := range single[1:] {
			p.out.Lines = slices.DeleteFunc(p.out.Lines, func(l Line) bool { return l.From == o.lines[0].From && slices.Equal(l.To, o.lines[0].To) })
		}
	}
}

// isWhole reports whether no tensor can be a wrong entry: the dump has the reference's values in what is computed from each entry that no tensor has. The other tensors are then steps
// inside of entries.
func (p closing) isWhole() bool {
	found := false
	for _, r := range p.free {
		if r.taken || p.echoes(r) || p.another(r) {
			continue
		}
		for _, e := range r.layers {
			if e.Op == nil || p.named[e.Name] {
				continue
			}
			if !p.valuedBehind(e, 1, mostBehind) {
				return false
			}
			found = true
		}
	}
	return found && len(p.out.Choices) == 0
}

// soundsLike reports whether a tensor has the name and the shape of an entry that no tensor has.
func (p closing) soundsLike(t *template) bool {
	return slices.ContainsFunc(p.free, func(r *role) bool {
		return r.freeFor(t) && names.Alikeness(t.Text, r.text) > mostAlike && len(p.plainCandidates(t, r)) > 0
	})
}

// mostAlike is the alikeness above which a tensor is called like an entry.
const mostAlike = 0.8
