package certify

import (
	"context"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// Compiled layers may read a rotary table differently, and so may queries and keys of one layer: in Gemma 3, compiled by inductor, one layer rounds a
// table for the queries only, since another kernel has written the rounded table. So entries that the form's arithmetic does not explain may have a
// second arithmetic under a known kernel, in which queries and keys have sites of their own.

// mostIn makes a kernel that explains most entries the arithmetic of the form. What the kernel leaves of the other entries is suspect, unless a
// second arithmetic explains it.
func (f *form) mostIn(ctx context.Context, own *arithmetic, others []*evidence) error {
	f.own = own
	if len(others) == 0 {
		return nil
	}
	var err error
	if f.second, err = apartFrom(ctx, own, others); f.second != nil || err != nil {
		return err
	}
	f.suspects = true
	held := len(f.entries) - len(others)
	if others, err = leftUnder(ctx, others, own); err != nil {
		return err
	}
	if held < proofElements*len(others) {
		f.thin, err = own.thin(ctx, others)
	}
	return err
}

// apartFrom looks for the second arithmetic of a form in a known kernel: float32 inside some operations in front of the kernel, where queries and keys
// have sites of their own. It has to explain all of some entries, and to show as much beside the form's own as beside transformers'. The result is nil
// if there is none.
func apartFrom(ctx context.Context, own *arithmetic, others []*evidence) (*arithmetic, error) {
	kernel := own
	if own.beside != nil {
		kernel = own.beside
	}
	left := (&form{entries: others}).left()
	if !kernel.toTheBit() || len(left) < len(others) {
		return nil, nil
	}
	s := newSearch(left, left)
	if s.dtype == hooks.F32 {
		return nil, nil
	}
	apart := *kernel
	apart.rewrites |= program.ReadApart
	return eachInFront(ctx, s, []*arithmetic{&apart}, func(a *arithmetic) (bool, error) {
		a.beside = own
		return a.proven(ctx, left)
	})
}

// keysOtherwise reports whether an arithmetic has another choice for keys than for queries, at a site that both have.
func (a *arithmetic) keysOtherwise(p *program.Program) bool {
	sites, _ := p.Sites()
	for _, at := range sites {
		name, keys := strings.CutSuffix(at.Name, program.OfKeys)
		if !keys {
			continue
		}
		own, some := a.at[at]
		if of, others := a.at[program.Site{Form: at.Form, Name: name}]; some != others || own != of {
			return true
		}
	}
	return false
}
