package naming

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// kernelsOf returns the arithmetic of each of some entries, with the fused kernels under which changes were found that explain the forms of unknown arithmetic.
// It is nil if no form has such a change, or if some form has neither an arithmetic nor such a change. No fused kernel is among the arithmetics that
// [Names.nameIn] tries.
func kernelsOf(ctx context.Context, k *Names, left []*isolate.Evidence, own []*isolate.Arithmetic) ([]*isolate.Arithmetic, error) {
	var all []*isolate.Arithmetic
	some := false
	for at, e := range left {
		a := own[at]
		if a == nil {
			f, err := k.Forms.Verdict(ctx, k.i.FormOf(e.Cut, e.Node))
			if err != nil {
				return nil, err
			}
			wrong, ok := f.Wrong.(*searched)
			if !ok || wrong.under.Rewrites.Kernel() == 0 {
				return nil, nil
			}
			a, some = wrong.under, true
		}
		all = append(all, a)
	}
	if !some {
		return nil, nil
	}
	return all, nil
}

// entriesUnder prepares some entries for a search, each in its arithmetic. Those without unexplained elements are among the rest that a name is held to.
func entriesUnder(ctx context.Context, model *diagnose.Model, left []*isolate.Evidence, under []*isolate.Arithmetic, read func(order.Node) (*isolate.Evidence, error), right []order.Node) (entries []*diagnose.Entry, err error) {
	var given []*diagnose.Entry
	model.Unread = max(len(right)-mostRight, 0)
	model.Rest = func() ([]*diagnose.Entry, error) { return restOf(ctx, given, read, right) }
	for at, e := range left {
		a, rest := under[at], e.Left
		if !a.Strict() || e.Read != nil { // e.left says nothing of another arithmetic, nor of other leaves
			if _, rest, _, err = e.Judge(ctx, a); err != nil {
				return nil, err
			}
		}
		s, err := wrongOf(ctx, &isolate.Evidence{Trial: e.Trial, Left: rest}, a)
		if err != nil {
			return nil, err
		}
		if len(rest) == 0 {
			given = append(given, s)
		} else {
			entries = append(entries, s)
		}
	}
	return entries, nil
}

// mostPeers is how many entries of other roles a mistake is held to.
const mostPeers = 12

// peersOf prepares wrong entries of other roles. A peer has the form of one of the entries, and is judged in the arithmetic of that entry.
func peersOf(ctx context.Context, k *Names, entries []*diagnose.Entry, left []*isolate.Evidence, under []*isolate.Arithmetic) (peers []*diagnose.Entry, err error) {
	role := order.NameOf(k.i.List().At(left[0].Node).Name).Role()
	asked := map[isolate.FormKey]bool{}
	for at, e := range left {
		form := k.i.FormOf(e.Cut, e.Node)
		own := slices.IndexFunc(entries, func(o *diagnose.Entry) bool { return o.Node == e.Node })
		if asked[form] || own < 0 {
			continue
		}
		asked[form] = true
		sample, err := k.Forms.Sample(ctx, form)
		if err != nil {
			return nil, err
		}
		for _, other := range sample {
			if len(other.Left) == 0 || len(peers) >= mostPeers || order.NameOf(k.i.List().At(other.Node).Name).Role() == role {
				continue
			}
			_, rest, _, err := other.Judge(ctx, under[at])
			if err != nil {
				return nil, err
			}
			if len(rest) == 0 {
				continue
			}
			s, err := wrongOf(ctx, &isolate.Evidence{Trial: other.Trial, Left: rest}, under[at])
			if err != nil {
				return nil, err
			}
			if sameSteps(s.Program, entries[own].Program) {
				s.Like, s.Small().Like = entries[own], entries[own]
				peers = append(peers, s)
			}
		}
	}
	return peers, nil
}

// sameSteps reports whether two programs have the same steps, but for numbers.
func sameSteps(a, b *program.Program) bool {
	return slices.EqualFunc(a.Steps, b.Steps, func(x, y program.Step) bool {
		return x.Prim == y.Prim && x.Name == y.Name && len(x.Args) == len(y.Args)
	})
}

// mostRight is how many right entries a name is held to, to say where it is.
const mostRight = 64

// restOf adds the entries of some nodes without elements unexplained by transformers' arithmetic.
func restOf(ctx context.Context, all []*diagnose.Entry, read func(order.Node) (*isolate.Evidence, error), right []order.Node) ([]*diagnose.Entry, error) {
	for _, n := range right[:min(len(right), mostRight)] {
		e, err := read(n)
		if err != nil {
			return nil, err
		} else if e == nil {
			continue
		}
		s, err := suspectOf(ctx, e, &isolate.Arithmetic{})
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
