package propose

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/tracediff/tracediff/order"
)

// Copy is a pattern whose tensors have the numbers of tensors with a name: a module returns what its last operation returns, and a graph has a tensor before and after its axes are
// taken apart. It needs no line.
type Copy struct {
	From string
	Of   []string // the patterns of the tensors with a name
}

// copies finds, among the tensors that nothing tells, those that have, bit for bit, the numbers of a tensor of the same pass that is known or has a line.
func (p *proposer) copies(ctx context.Context) error {
	if !slices.ContainsFunc(p.open, func(t *template) bool { return !t.settled }) {
		return nil
	}
	named, seen := map[string]string{}, map[*template]bool{}
	for _, t := range p.of {
		if seen[t] || !t.isKnown && !t.lined {
			continue
		}
		seen[t] = true
		for _, x := range t.all {
			if err := ctx.Err(); err != nil {
				return err
			}
			key, err := p.content(t, x)
			if err != nil {
				return err
			}
			if _, has := named[key]; !has {
				named[key] = t.text
			}
		}
	}
	delete(named, "")
	for _, t := range p.open {
		if t.settled {
			continue
		}
		var err error
		c := Copy{From: t.text}
		for _, x := range t.all {
			if err := ctx.Err(); err != nil {
				return err
			}
			key, e := p.content(t, x)
			if err = e; err != nil {
				return err
			}
			of, has := named[key]
			if !has {
				c.Of = nil
				break
			}
			if !slices.Contains(c.Of, of) {
				c.Of = append(c.Of, of)
			}
		}
		if len(c.Of) == 0 {
			if c.Of, err = p.parts(ctx, t); err != nil {
				return err
			}
		}
		if len(c.Of) > 0 {
			p.out.Copies, t.settled = append(p.out.Copies, c), true
		}
	}
	return nil
}

// parts are the tensors with a name whose elements one tensor has, one part after the other: in a graph the product of query, key and value is one tensor, and is then split. It is
// empty for any other tensor.
func (p *proposer) parts(ctx context.Context, t *template) ([]string, error) {
	cuts, err := p.allCuttings(ctx, t, true)
	if err != nil || p.computed == nil {
		return nil, err
	}
	dumped := func(e *order.Entry) (tensor, bool, error) {
		x, ok := p.computed.have[e.Name]
		return x, ok, nil
	}
	for i := range cuts {
		if good, err := p.proven(t, &cuts[i], dumped); err != nil {
			return nil, err
		} else if good < len(cuts[i].f.layers) {
			continue
		}
		var of []string
		for _, r := range cuts[i].roles {
			if k := slices.IndexFunc(p.pairs, func(o pairing) bool { return o.r == r }); k >= 0 {
				of = append(of, p.pairs[k].t.text)
			}
		}
		return of, nil
	}
	return nil, nil
}

// content is a text of a tensor. Two tensors have the same text only if they are of one pass and have the same elements in the same order. The text is "" if all elements are equal,
// if there are too many, and if they are no floats.
func (p *proposer) content(t *template, x *spelled) (string, error) {
	if text, ok := p.contents[x.at]; ok {
		return text, nil
	}
	s := plainTensor(&x.source)
	n := elementsOf(s.shape)
	if !s.dtype.Float() || n < 2 || n > maxValues {
		return "", nil
	}
	raw, err := s.read(n)
	if err != nil {
		return "", err
	}
	text := ""
	if size := s.dtype.Size(); !bytes.Equal(raw[size:], raw[:len(raw)-size]) {
		text = fmt.Sprintf("%d %v %x", t.passOf(x), s.dtype, sha256.Sum256(raw))
	}
	p.contents[x.at] = text
	return text, nil
}

// isCopy reports whether the tensors of two templates have the same elements, layer by layer and pass by pass.
func (p *proposer) isCopy(a, b *template) (bool, error) {
	if len(a.all) != len(b.all) {
		return false, nil
	}
	for i, x := range a.all {
		one, err := p.content(a, x)
		if err != nil {
			return false, err
		}
		other, err := p.content(b, b.all[i])
		if one == "" || one != other || err != nil {
			return false, err
		}
	}
	return true, nil
}

// meansAnother reports whether a tensor is a copy of a tensor with an entry, and its name is not more like r than like that entry: the dump has one result twice. A port that leaves an
// operation out has a copy, too, but its name is more like the entry of that operation.
func (p *proposer) meansAnother(t *template, r *role) (bool, error) {
	for _, o := range p.pairs {
		if alikeness(t.text, o.r.text) < alikeness(t.text, r.text) {
			continue
		}
		if same, err := p.isCopy(t, o.t); same || err != nil {
			return same, err
		}
	}
	return false, nil
}
