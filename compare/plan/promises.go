package plan

import (
	"slices"

	"github.com/tracediff/tracediff/compare/sides"
	"github.com/tracediff/tracediff/order"
)

// promises are the entries a side should have.
type promises struct {
	asked   bool               // a user asked for the entries by name, so an absent entry is MISSING
	foreign bool               // the local side is a recording of another program than the reference
	absent  map[string]string  // entries that the map of the local side says it does not have
	unmade  [2]map[string]bool // what a fused kernel of a side keeps to itself: see [order.List.Unmade]
}

func promisesOf(pair *sides.Pair, list *order.List, o Options) promises {
	p := promises{asked: o.Named || list.Config == nil, absent: o.Absent}
	for n := range pair.Sides {
		fused := pair.Sides[n].Manifest.Fused
		if n == sides.Local || pair.Mode == sides.Alone {
			fused = append(slices.Clone(fused), o.Fused...)
		}
		p.unmade[n] = list.Unmade(fused)
	}
	l, r := &pair.Sides[sides.Local].Manifest, &pair.Sides[sides.Reference].Manifest
	p.foreign = l.Program != "" && l.Program != r.Program && (l.Producer.Name == "torch" || o.Mapped)
	return p
}

// Asked reports whether the entries were asked for by name.
func (p *Plan) Asked() bool { return p.promises.asked }

// promised reports whether a side should have an entry within every scope: the side declares a scope or lists the
// name, or a user asked for the name. A port with few hooks declares its names and no scope. A port recorded by a
// script has the outputs of its modules under its own names, so its level promises nothing about the entries of the
// reference.
func (p *Plan) promised(side, i int) bool {
	s := &p.Sides[side]
	switch {
	case side == sides.Local && p.promises.absent[p.Entries[i].Name] != "":
		return true
	case p.promises.unmade[side][p.Entries[i].Name]:
		return false
	case s.Manifest.Scope.Level > 0 && !(side == sides.Local && p.promises.foreign):
		return true
	case s.Entries != nil:
		return s.Entries[p.Entries[i].Name]
	}
	return p.promises.asked
}

// declines reports whether a side says that it does not have an entry.
func (p *Plan) declines(side, i int) bool {
	s := &p.Sides[side]
	return s.Manifest.Scope.Level == 0 && s.Entries != nil && !s.Entries[p.Entries[i].Name]
}

// Missing returns the side that should have an entry of a pass and does not: its label, "both", or "" when nobody
// is to blame.
func (p *Plan) Missing(i int, has [2]bool) string {
	var lacks [2]bool
	for side := range lacks {
		other := 1 - side
		lacks[side] = !has[side] && p.promised(side, i) && (has[other] || !p.declines(other, i))
	}
	switch {
	case lacks[sides.Local] && lacks[sides.Reference] && !p.Names.Alone():
		return "both"
	case lacks[sides.Local]:
		return p.Names[sides.Local].Label
	case lacks[sides.Reference]:
		return p.Names[sides.Reference].Label
	}
	return ""
}
