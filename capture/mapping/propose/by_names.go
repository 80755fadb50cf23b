package propose

import (
	"cmp"
	"context"
	"slices"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
)

// byNames takes tensors whose names are known ones, where their shapes fit.
func (p nameSearch) byNames(ctx context.Context) error {
	for _, t := range p.open {
		for _, r := range p.free {
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.settled || !r.freeFor(t) || !t.Called(r.text) || p.betterCalled(t, r) {
				continue
			}
			if ways := p.plainCandidates(t, r); len(ways) > 0 {
				if err := p.byName(t, r, ways); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// betterCalled reports whether another open tensor has a known name of an entry that comes earlier in the list of its names than this tensor's name.
func (p *board) betterCalled(t *template, r *role) bool {
	mine := t.Rank(r.text)
	return slices.ContainsFunc(p.open, func(o *template) bool {
		rank := o.Rank(r.text)
		return !o.settled && rank >= 0 && rank < mine && r.freeFor(o) && len(p.plainCandidates(o, r)) > 0
	})
}

// byName takes the only candidate of a tensor for an entry whose name it has, or offers all candidates.
func (p nameSearch) byName(t *template, r *role, ways []candidate) error {
	if len(ways) == 1 && ways[0].f.Certain() {
		l := Line{Why: "name"}
		if p.ref != nil {
			l.By, l.Why = mapping.ByName, "name; no layer has the values of the reference"
		}
		l.Why += ways[0].f.Why()
		return p.take(ways[0], l)
	}
	c := Choice{From: t.Text}
	for _, w := range ways {
		why := "name; its axes could be these"
		if len(t.Forms) > 1 {
			why = "name" + w.f.Why()
		}
		c.Lines = append(c.Lines, p.lines(w, Line{Why: why})...)
	}
	p.choose(t, c)
	return nil
}

// maxOffered bounds the lines that are offered for a tensor.
const maxOffered = 3

// byShapes offers what the shapes of the other tensors leave open, where there are no values: those of a reference say more than a shape.
func (p nameSearch) byShapes(ctx context.Context) error {
	if p.ref != nil {
		return nil
	}
	for _, t := range p.open {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.settled {
			continue
		}
		var fits []*role
		of := map[*role]candidate{}
		for _, r := range p.free {
			if !r.freeFor(t) {
				continue
			}
			ways := slices.DeleteFunc(p.plainCandidates(t, r), func(w candidate) bool { // any row could be of any entry
				return w.f.Last && !slices.Contains([]string{"logits", "lm_head"}, r.text)
			})
			if len(ways) > 0 {
				fits, of[r] = append(fits, r), ways[0]
			}
		}
		slices.SortStableFunc(fits, func(a, b *role) int {
			return cmp.Compare(names.Alikeness(t.Text, b.text), names.Alikeness(t.Text, a.text))
		})
		c := Choice{From: t.Text, More: max(len(fits)-maxOffered, 0)}
		for _, r := range fits[:len(fits)-c.More] {
			w := of[r]
			c.Lines = append(c.Lines, p.lines(w, Line{Why: "shape" + w.f.Why()})...)
		}
		if len(c.Lines) > 0 {
			p.choose(t, c)
		}
	}
	return nil
}
