package propose

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/axes"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/internal/spelling"
)

// provenFused finds tensors that are several entries in one: query, key and value, gate and up. Their parts have the values of the reference, or those that are computed.
func (p fusedSearch) provenFused(ctx context.Context) (found bool, err error) {
	for _, t := range p.open {
		if t.settled {
			continue
		}
		possible, err := p.allCuttings(ctx, t, false)
		if err != nil {
			return found, err
		}
		proven := slices.DeleteFunc(possible, func(c cutting) bool { return c.good == 0 })
		if len(proven) == 0 {
			continue
		}
		best := slices.MaxFunc(proven, func(a, b cutting) int { return a.good - b.good })
		best.Why = fmt.Sprintf("%s: %d of %d", best.by, best.good, len(best.f.Layers)) + best.f.Why()
		if err := p.takeParts(t, best.f, best.roles, best.Line); err != nil {
			return found, err
		}
		found = true
	}
	return found, nil
}

// fusedChoices offers the ways to cut a tensor that is called like several entries.
func (p fusedSearch) fusedChoices(ctx context.Context) error {
	for _, t := range p.open {
		if t.settled || !spelling.Fused.MatchString(t.Text) {
			continue
		}
		possible, err := p.allCuttings(ctx, t, false)
		if err != nil {
			return err
		}
		c := Choice{From: t.Text}
		for _, x := range possible {
			x.Why = "name and shape" + x.f.Why()
			c.Lines = append(c.Lines, p.linesOfParts(t, x.f, x.roles, x.Line)...)
		}
		if len(c.Lines) > 0 {
			p.choose(t, c)
		}
	}
	return nil
}

// allCuttings are the cuttings of all forms into all groups. If taken is true, the entries of a group have tensors; otherwise they are free.
func (p fusedSearch) allCuttings(ctx context.Context, t *template, taken bool) (all []cutting, err error) {
	for _, group := range names.Fused {
		for _, f := range t.Forms {
			cuts, err := p.cuttings(ctx, t, f, group, taken)
			if err != nil {
				return nil, err
			}
			all = append(all, cuts...)
		}
	}
	return all, nil
}

// cutting is a split of a tensor into entries.
type cutting struct {
	Line
	f     *names.Form
	roles []*role
	good  int    // number of layers in which all parts have the expected values
	by    string // source of the expected values: the reference, or computing
}

// cuttings are the splits of a form into a group of entries that its shape allows. A sharded tensor is split on each rank, and the shards
// are concatenated; other joins of fused tensors are not looked for.
func (p fusedSearch) cuttings(ctx context.Context, t *template, f *names.Form, group []string, taken bool) ([]cutting, error) {
	roles, widths := p.widths(t, f, group, taken)
	if roles == nil || f.Last || f.Join == mapping.JoinSum {
		return nil, nil
	}
	x, whole := f.Common(), 0
	for _, n := range widths {
		whole += n
	}
	last := len(x.Shape) - 1
	if last < 0 || !x.DType.Float() {
		return nil, nil
	}
	c := p.list.Config
	parts := axes.Parts{
		Tokens: p.tokens, Widths: widths, Heads: strings.Contains(group[0], "self_attn"), OfKeys: strings.Contains(group[0], "k_proj"),
		Queries: c.NumHeads, Keys: c.NumKVHeads, Head: c.HeadDim,
	}
	var splits []axes.Split
	switch {
	case x.Shape[last] != whole && f.Join == "":
		splits = parts.Spread(x.Shape, p.sizes)
	case x.Shape[last] != whole || f.Join == names.JoinAxis && f.Axis != last || !slices.Equal(tensors.WithoutOnes(x.Shape), tensors.WithoutOnes([]int{p.tokens, whole})):
	case f.Join == names.JoinAxis:
		splits = parts.Blocks(x.Shape, f.Ranks)
	default:
		splits = parts.Blocks(x.Shape, 1)
	}
	var list []cutting
	for _, s := range splits {
		list = append(list, cutting{Line: Line{Axes: s.Axes, Split: s.Split}, f: f, roles: roles})
	}
	return p.rated(ctx, t, list)
}

// rated counts the layers in which each cutting gives the values of the reference; of a cutting that gives them nowhere, the layers with the values that are computed.
func (p fusedSearch) rated(ctx context.Context, t *template, list []cutting) ([]cutting, error) {
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, s := range p.sources() {
			if list[i].good > 0 {
				break
			}
			var err error
			if list[i].good, err = p.proven(t, &list[i], s.of); err != nil {
				return nil, err
			}
			list[i].by = s.by
		}
	}
	return list, nil
}

// source has values of entries, and the word for them.
type source struct {
	by string
	of values
}

// sources are the reference, and then what is computed.
func (p fusedSearch) sources() (all []source) {
	if p.ref != nil {
		all = append(all, source{"values", p.ofReference})
	}
	if p.computed != nil {
		all = append(all, source{"recomputed", p.computed.of})
	}
	return all
}

// widths are the entries of a group and the width of each; nil if one has other axes, or has a tensor where taken is false, or has no tensor where taken is true.
func (p fusedSearch) widths(t *template, f *names.Form, group []string, taken bool) (roles []*role, widths []int) {
	layer := slices.Min(keysOf(f.Layers))
	for _, text := range group {
		of := p.free
		if taken {
			of = p.first
		}
		i := slices.IndexFunc(of, func(r *role) bool {
			if taken {
				return r.text == text && r.taken
			}
			return r.text == text && r.freeFor(t) && !slices.ContainsFunc(r.held, func(h held) bool { return h.by == t })
		})
		if i < 0 {
			return nil, nil
		}
		e := of[i].layers[layer]
		if e == nil || len(e.Shape) != 3 {
			return nil, nil
		}
		roles, widths = append(roles, of[i]), append(widths, p.want(e)[2])
	}
	return roles, widths
}

// proven applies the line of a cutting, and counts the layers in which all parts have the expected values.
func (p fusedSearch) proven(t *template, c *cutting, of values) (good int, err error) {
	right := map[int]int{}
	for _, l := range p.linesOfParts(t, c.f, c.roles, c.Line) {
		made, err := p.applied(t, l)
		if err != nil {
			return 0, err
		}
		for _, s := range made {
			e, ok := p.list.Lookup(s.Name)
			if !ok {
				continue
			}
			want, ok, err := of(e)
			if err != nil {
				return 0, err
			}
			if !ok {
				continue
			}
			part := tensors.Comparison{Dump: tensors.NewReader(), Expected: p.values.Expected} // the parts of a tensor have one key
			d, ok, err := part.Nearness(tensors.OfSource(&s), want, "")
			if !ok || err != nil {
				return 0, err
			}
			right[e.Layer] += btoi(d < tensors.Near)
		}
	}
	for _, n := range right {
		good += btoi(n == len(c.roles))
	}
	return good, nil
}
