package arithmetic

import (
	"context"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// Compiled layers may read a rotary table differently, and so may queries and keys of one layer: in Gemma 3, compiled by inductor, one layer rounds a
// table for the queries only, since another kernel has written the rounded table. So entries that the form's arithmetic does not explain may have a
// second arithmetic under a known kernel, in which queries and keys have sites of their own.

// mostIn makes a kernel that explains most entries the arithmetic of the form. Unexplained elements of the other
// entries are suspect, unless a second arithmetic explains them.
func (f *Form) mostIn(ctx context.Context, own *isolate.Arithmetic, others []*isolate.Evidence) error {
	f.Own = own
	if len(others) == 0 {
		return nil
	}
	var err error
	if f.Second, err = apartFrom(ctx, own, others); f.Second != nil || err != nil {
		return err
	}
	f.Suspects = true
	held := len(f.Entries) - len(others)
	if others, err = leftUnder(ctx, others, own); err != nil {
		return err
	}
	if held < thresholds.Proof.Elements*len(others) {
		f.thin, err = tooThin(ctx, own, others)
	}
	return err
}

// apartFrom looks for the second arithmetic of a form with a known kernel: float32 inside some operations before
// the kernel, with separate sites for queries and keys. It has to explain some entries completely, with as much
// evidence against the form's own arithmetic as against transformers'. apartFrom returns nil if the search fails.
func apartFrom(ctx context.Context, own *isolate.Arithmetic, others []*isolate.Evidence) (*isolate.Arithmetic, error) {
	kernel := own
	if own.Beside != nil {
		kernel = own.Beside
	}
	left := (&Form{Entries: others}).Left()
	if !toTheBit(kernel) || len(left) < len(others) {
		return nil, nil
	}
	s := newSearch(left, left)
	if s.dtype == hooks.F32 {
		return nil, nil
	}
	apart := *kernel
	apart.Rewrites |= program.ReadApart
	return eachInFront(ctx, s, []*isolate.Arithmetic{&apart}, func(a *isolate.Arithmetic) (bool, error) {
		a.Beside = own
		return provenBy(ctx, a, left)
	})
}
