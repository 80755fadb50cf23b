package naming

import (
	"context"

	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
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
