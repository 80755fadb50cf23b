package propose

import (
	"slices"

	"github.com/tracediff/tracediff/capture/mapping/propose/names"
)

// whole reports whether no tensor can be a wrong entry: the dump has the reference's values in what is computed from each entry that no tensor has. The other tensors are then steps
// inside of entries.
func (p *proposer) whole() bool {
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
func (p *proposer) soundsLike(t *template) bool {
	return slices.ContainsFunc(p.free, func(r *role) bool {
		return r.freeFor(t) && names.Alikeness(t.Text, r.text) > mostAlike && len(p.plainWays(t, r)) > 0
	})
}

// mostAlike is the alikeness above which a tensor is called like an entry.
const mostAlike = 0.8
