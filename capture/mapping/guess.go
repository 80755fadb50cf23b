package mapping

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// fused finds tensors that are several entries in one: query, key and value, gate and up.
func (p *proposer) fused(ctx context.Context) error {
	for _, t := range p.open {
		if t.settled {
			continue
		}
		var possible []cutting
		for _, group := range fused {
			cuts, err := p.cuttings(ctx, t, group)
			if err != nil {
				return err
			}
			possible = append(possible, cuts...)
		}
		proven := slices.DeleteFunc(slices.Clone(possible), func(c cutting) bool { return c.good == 0 })
		switch {
		case len(proven) > 0:
			best := slices.MaxFunc(proven, func(a, b cutting) int { return a.good - b.good })
			best.Why = fmt.Sprintf("values: %d of %d", best.good, len(t.layers))
			p.take(t, best.roles, best.Line)
		case len(possible) > 0 && fusedNames.MatchString(t.text):
			c := Choice{From: t.text}
			for _, x := range possible {
				x.Why = "name and shape"
				c.Lines = append(c.Lines, p.line(t, x.roles, x.Line))
			}
			p.choose(t, c)
		}
	}
	return nil
}

// cutting is a way to cut a tensor.
type cutting struct {
	Line
	roles []*role
	good  int // layers in which all parts have the values of the reference
}

// cuttings are the ways to cut a tensor into a group of entries, by its shape.
func (p *proposer) cuttings(ctx context.Context, t *template, group []string) ([]cutting, error) {
	var roles []*role
	for _, text := range group {
		i := slices.IndexFunc(p.free, func(r *role) bool { return !r.taken && r.text == text })
		if i < 0 {
			return nil, nil
		}
		roles = append(roles, p.free[i])
	}
	rec := t.any()
	layer := keysOf(t.layers)[0]
	var widths []int
	whole := 0
	for _, r := range roles {
		e := r.layers[layer]
		if e == nil || len(e.Shape) != 3 {
			return nil, nil
		}
		widths = append(widths, p.want(e)[2])
		whole += widths[len(widths)-1]
	}
	sizes := sizesWithoutOnes(rec.Shape)
	wanted := sizesWithoutOnes([]int{p.tokens, whole})
	if !slices.Equal(sizes, wanted) || rec.Shape[len(rec.Shape)-1] != whole || !rec.DType.Float() {
		return nil, nil
	}
	front := strings.Repeat("1 ", len(rec.Shape)-1)
	if p.tokens > 1 {
		front = ""
		for _, n := range rec.Shape[:len(rec.Shape)-1] {
			if n == 1 {
				front += "1 "
			} else {
				front += "t "
			}
		}
	}
	token := "t"
	if p.tokens == 1 {
		token = "1"
	}
	var list []cutting
	add := func(left, right, axis string, parts []int) {
		var words []string
		for _, n := range parts {
			words = append(words, fmt.Sprint(n))
		}
		list = append(list, cutting{Line: Line{
			Axes: front + left + " -> 1 " + token + " " + right, Split: axis + ": " + strings.Join(words, " | "),
		}, roles: roles})
	}
	add("c", "c", "c", widths)
	if k := p.list.Config.NumKVHeads; len(roles) == 3 && k > 1 && widths[1] == widths[2] && widths[0]%widths[1] == 0 {
		n := widths[0] / widths[1]
		add(fmt.Sprintf("(k:%d s:%d d)", k, n+2), "(k s d)", "s", []int{n, 1, 1})
	}
	if len(roles) == 2 && widths[0] == widths[1] {
		add(fmt.Sprintf("(f:%d s)", widths[0]), "(f s)", "s", []int{1, 1})
		if k := p.list.Config.NumKVHeads; strings.Contains(group[0], "k_proj") && k > 1 {
			add(fmt.Sprintf("(k:%d s:2 d)", k), "(k s d)", "s", []int{1, 1})
		}
	}
	if p.ref == nil {
		return list, nil
	}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if list[i].good, err = p.proven(t, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// proven counts the layers in which all parts of a cutting have the values of the reference.
func (p *proposer) proven(t *template, c *cutting) (good int, err error) {
	s, err := newSplit(c.Split)
	if err != nil {
		return 0, err
	}
	l, err := newLayout(c.Axes, s.axis)
	if err != nil {
		return 0, err
	}
	for layer, rec := range t.layers {
		n, err := p.local.of(rec)
		if n == nil || err != nil {
			return good, err
		}
		all := true
		for part, r := range c.roles {
			e := r.layers[layer]
			if e == nil {
				return good, nil
			}
			other, ok := p.ref.Lookup(0, e.Name)
			if !ok {
				return good, nil
			}
			far, err := p.far.of(other)
			if far == nil || err != nil {
				return good, err
			}
			all = all && distance(cutOut(n.plain, rec.Shape, l, s, part), far.plain) < near
		}
		good += btoi(all)
	}
	return good, nil
}

// cutOut is a part of a tensor's elements, arranged; nil where it does not fit.
func cutOut(plain []float64, shape []int, l *layout, s *split, part int) []float64 {
	axes, err := l.apart(shape, nil)
	if err != nil {
		return nil
	}
	from, err := (&application{}).cut(s, axes, part)
	if err != nil {
		return nil
	}
	order, out := l.together(axes)
	return elementsAt(plain[from:], order, elementsOf(out))
}

// byNames takes tensors whose names are known ones, where their shapes fit.
func (p *proposer) byNames(ctx context.Context) error {
	for _, t := range p.open {
		for _, r := range p.free {
			if err := ctx.Err(); err != nil {
				return err
			}
			if t.settled || r.taken || !t.called(r.text) {
				continue
			}
			ways := p.fits(t, r)
			if len(ways) == 0 {
				continue
			}
			why := "name"
			if p.ref != nil {
				why = "name; no layer has the values of the reference"
			}
			plain := slices.DeleteFunc(slices.Clone(ways), func(a arrangement) bool { return a.pairs })
			if i := slices.IndexFunc(plain, func(a arrangement) bool { return a.axes == "" }); i >= 0 {
				plain = plain[i : i+1]
			}
			if len(plain) == 1 {
				p.take(t, []*role{r}, Line{Axes: plain[0].axes, Why: why})
				break
			}
			c := Choice{From: t.text}
			for _, how := range plain {
				c.Lines = append(c.Lines, p.line(t, []*role{r}, Line{Axes: how.axes, Why: "name; its axes could be these"}))
			}
			if len(c.Lines) > 0 {
				p.choose(t, c)
				break
			}
		}
	}
	return nil
}

// maxOffered bounds the lines that are offered for a tensor.
const maxOffered = 6

// byShapes offers what the shapes of the other tensors leave open.
func (p *proposer) byShapes(ctx context.Context) error {
	for _, t := range p.open {
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.settled {
			continue
		}
		c := Choice{From: t.text}
		for _, r := range p.free {
			if r.taken {
				continue
			}
			for _, how := range p.fits(t, r) {
				if how.pairs {
					continue
				}
				if len(c.Lines) < maxOffered {
					c.Lines = append(c.Lines, p.line(t, []*role{r}, Line{Axes: how.axes, Why: "shape"}))
				} else {
					c.More++
				}
				break
			}
		}
		if len(c.Lines) > 0 {
			p.choose(t, c)
		}
	}
	return nil
}
