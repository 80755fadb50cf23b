package propose

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/propose/names"
)

// A port that reads the weights of k_proj for v_proj, and those of v_proj for k_proj, has two tensors of one module with each other's values. A map by values would give each the
// name of the other, and would hide the place.

// exchange gives two tensors of one module each other's entry where they have each other's values: the words of their names say so, or the order in which they were written says so.
// What the dump computes from the two decides before that: the norm of the keys is computed from the keys.
func (p exchanges) exchange(ctx context.Context) error {
	found := false
	for k := 1; k < len(p.pairs); k++ {
		for _, a := range slices.Clone(p.pairs[:k]) {
			if err := ctx.Err(); err != nil {
				return err
			}
			b := p.pairs[k]
			why, by := p.opposite(a, b)
			if why == "" {
				continue
			}
			p.looking(b.t.Text)
			if is, err := p.readAsExchanged(a, b, by); err != nil {
				return err
			} else if !is {
				continue
			}
			if err := p.exchangePair(a, b, why, by); err != nil {
				return err
			}
			found, k = true, 0
			break
		}
	}
	if !found {
		return nil
	}
	clear(p.tried)
	p.supposed, p.turned = 0, nil
	return p.byComputing(ctx)
}

// opposite says why two tensors of one module may have each other's entry: each name is more like the entry of the other, or the names say nothing and the tensors were written in
// the opposite order. It is "" where they may not.
func (p exchanges) opposite(a, b pairing) (why, by string) {
	if !a.isPlain() || !b.isPlain() || moduleOf(a.r.text) != moduleOf(b.r.text) || len(p.plainCandidates(a.t, b.r)) == 0 || len(p.plainCandidates(b.t, a.r)) == 0 {
		return "", ""
	}
	ofA := names.Alikeness(a.t.Text, b.r.text) - names.Alikeness(a.t.Text, a.r.text)
	ofB := names.Alikeness(b.t.Text, a.r.text) - names.Alikeness(b.t.Text, b.r.text)
	switch {
	case ofA > 0 && ofB > 0:
		return "name", mapping.ByName
	case ofA == 0 && ofB == 0 && (a.t.All[0].At < b.t.All[0].At) != (a.r.at < b.r.at) && p.written():
		return "a guess by the order of the dump", mapping.ByGuess
	}
	return "", ""
}

// moduleOf is what stands before the last dot of a name.
func moduleOf(name string) string { return strings.TrimSuffix(name, names.LastPart(name)) }

// readAsExchanged reports whether what is computed from two tensors takes them for each other's entry. Where nothing is computed from them, names are enough, and an order is not.
func (p exchanges) readAsExchanged(a, b pairing, by string) (bool, error) {
	for _, o := range []pairing{a, b} {
		for _, e := range o.r.layers {
			if p.valuedBehind(e, 1, mostBehind) {
				return false, nil
			}
		}
	}
	if p.computed == nil {
		return by == mapping.ByName, nil
	}
	given, err := p.computed.supposing(a.t, p.asEntry(a.t, b.r))
	if err != nil {
		return false, err
	}
	if err := given.take(b.t, p.asEntry(b.t, a.r)); err != nil {
		return false, err
	}
	now, err := p.rightFrom(a.r, b.r, p.computed)
	if err != nil {
		return false, err
	}
	then, err := p.rightFrom(a.r, b.r, given)
	return then > now || then == now && by == mapping.ByName, err
}

// asEntry are the lines of a tensor for an entry whose shape it has.
func (p exchanges) asEntry(t *template, r *role) []Line {
	return p.lines(p.plainCandidates(t, r)[0], Line{})
}

// rightFrom counts the tensors that are recomputed right from two entries. A tensor may have an entry, or may be open.
func (p exchanges) rightFrom(a, b *role, c *computed) (right int, err error) {
	for _, r := range []*role{a, b} {
		n, err := p.rightBehind(r, c)
		if err != nil {
			return 0, err
		}
		right += n
	}
	before := p.turns().before
	for _, r := range p.free {
		if r.taken || p.echoes(r) || !before[r.at].has(a.at) && !before[r.at].has(b.at) {
			continue
		}
		f, err := p.matching(r, nil, c)
		if err != nil {
			return 0, err
		}
		if f != nil {
			right += f.good
		}
	}
	return right, nil
}

// exchangePair gives two tensors each other's entry.
func (p exchanges) exchangePair(a, b pairing, why, by string) error {
	p.forget(a)
	p.forget(b)
	for _, two := range [][2]pairing{{a, b}, {b, a}} {
		t, r := two[0].t, two[1].r
		says := fmt.Sprintf("%s; it has the values of %s, and %s has its values", why, two[0].r.text, two[1].t.Text)
		if err := p.take(p.plainCandidates(t, r)[0], Line{By: by, Why: says}); err != nil {
			return err
		}
	}
	return nil
}
