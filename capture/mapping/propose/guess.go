package propose

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"

	"github.com/tracediff/tracediff/capture/mapping/propose/axes"

	"github.com/tracediff/tracediff/capture/mapping"
)

// byNames takes tensors whose names are known ones, where their shapes fit.
func (p *proposer) byNames(ctx context.Context) error {
	for _, t := range p.open {
		for _, r := range p.free {
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.settled || !r.freeFor(t) || !t.Called(r.text) || p.betterCalled(t, r) {
				continue
			}
			if ways := p.plainWays(t, r); len(ways) > 0 {
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
func (p *proposer) betterCalled(t *template, r *role) bool {
	mine := t.Rank(r.text)
	return slices.ContainsFunc(p.open, func(o *template) bool {
		rank := o.Rank(r.text)
		return !o.settled && rank >= 0 && rank < mine && r.freeFor(o) && len(p.plainWays(o, r)) > 0
	})
}

// way is a form of a tensor in an arrangement.
type way struct {
	f   *names.Form
	how axes.Layout
}

// plainWays are the ways to take a tensor for an entry by the shapes of most layers, without rotary pairs as neighbours. Of a form whose axes are in the
// order of the entry's, that way is the only one. An axis is not taken apart where the axes are the entry's but for axes of 1: nothing but values says more.
func (p *proposer) plainWays(t *template, r *role) []way {
	var list []way
	for _, f := range t.Forms {
		ways := slices.DeleteFunc(p.fits(t, f, r), func(w fitting) bool { return w.Interleaved })
		most := 0
		for _, w := range ways {
			most = max(most, len(w.layers))
		}
		ways = slices.DeleteFunc(ways, func(w fitting) bool { return len(w.layers) < most })
		if i := slices.IndexFunc(ways, func(w fitting) bool { return w.Same }); i >= 0 {
			ways = ways[i : i+1]
		}
		if slices.ContainsFunc(ways, func(w fitting) bool { return w.InOrder() }) {
			ways = slices.DeleteFunc(ways, func(w fitting) bool { return strings.Contains(w.Text, "(") })
		}
		for _, w := range ways {
			list = append(list, way{f, w.Layout})
		}
	}
	nearest := 2
	for _, w := range list {
		if w.f.Join == names.JoinAxis {
			nearest = min(nearest, w.how.Distance())
		}
	}
	return slices.DeleteFunc(list, func(w way) bool { return w.f.Join == names.JoinAxis && w.how.Distance() > nearest })
}

// byName takes the one way there is to take a tensor for an entry whose name it has, or offers all of them.
func (p *proposer) byName(t *template, r *role, ways []way) error {
	if len(ways) == 1 && ways[0].f.Certain() {
		l := Line{Axes: ways[0].how.Text, Why: "name"}
		if p.ref != nil {
			l.By, l.Why = mapping.ByName, "name; no layer has the values of the reference"
		}
		l.Why += ways[0].f.Why()
		return p.take(t, ways[0].f, []*role{r}, l)
	}
	c := Choice{From: t.Text}
	for _, w := range ways {
		why := "name; its axes could be these"
		if len(t.Forms) > 1 {
			why = "name" + w.f.Why()
		}
		c.Lines = append(c.Lines, p.lines(t, w.f, []*role{r}, Line{Axes: w.how.Text, Why: why})...)
	}
	p.choose(t, c)
	return nil
}

// maxOffered bounds the lines that are offered for a tensor.
const maxOffered = 3

// byShapes offers what the shapes of the other tensors leave open, where there are no values: those of a reference say more than a shape.
func (p *proposer) byShapes(ctx context.Context) error {
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
		of := map[*role]way{}
		for _, r := range p.free {
			if !r.freeFor(t) {
				continue
			}
			ways := slices.DeleteFunc(p.plainWays(t, r), func(w way) bool { // any row could be of any entry
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
			c.Lines = append(c.Lines, p.lines(t, w.f, []*role{r}, Line{Axes: w.how.Text, Why: "shape" + w.f.Why()})...)
		}
		if len(c.Lines) > 0 {
			p.choose(t, c)
		}
	}
	return nil
}
