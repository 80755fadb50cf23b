package certify

import (
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// A compiler that leaves attention to a fused kernel fuses what comes before it: inductor turns queries and keys in one kernel, in float32,
// and rounds them when they are handed to the attention. So a known kernel is also tried with float32 between any two steps in front of it.

// besideKernels looks for one of some kernels beside such steps. It returns nil if none explains all entries of a form and shows enough beside
// the kernel by itself.
func besideKernels(f *form, left []*evidence, kernels []*arithmetic) (*arithmetic, error) {
	s := newSearch(left, f.entries)
	if s.dtype == hooks.F32 {
		return nil, nil
	}
	for _, kernel := range kernels {
		if !kernel.toTheBit() {
			continue
		}
		p, err := s.of(kernel.rewrites)
		if err != nil {
			return nil, err
		}
		from := *kernel
		from.beside = kernel
		inFront := func(yield func(*arithmetic) bool) {
			for a := range newPresetter(p, kernel.rewrites).between(&from, true) {
				if a.sameInside(kernel) && !yield(a) {
					return
				}
			}
		}
		found, err := s.each(inFront)
		if found == nil || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		if shown, err := found.proven(found.showIn(f.entries, left)); shown || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// float32InFront is the arithmetic of a kernel in an engine that rounds nothing in front of it but what it is handed: queries, keys and values.
func float32InFront(p *program.Program, kernel *arithmetic) *arithmetic {
	handed := map[int]bool{}
	for i := range p.Steps {
		if p.Steps[i].Form == program.FusedForm {
			for _, operand := range p.Steps[i].Args {
				handed[p.Source(operand)] = true
			}
		}
	}
	a := *kernel
	a.beside = kernel
	wide := &a
	sites, steps := p.Sites()
	for _, at := range sites {
		s := &p.Steps[steps[at][0]]
		kept := at.Form == program.FusedForm || s.Round != program.Model || s.Prim == program.Number || s.Prim == program.Affine
		if !kept && !slices.ContainsFunc(steps[at], func(i int) bool { return handed[i] }) {
			wide = wide.with(at, program.Choice{Round: program.Plain})
		}
	}
	wide.habit = kernel.habit + ", float32 in front"
	return wide
}

// toTheBit reports whether an arithmetic is that of a kernel which is known to the bit, its exponential included.
func (a *arithmetic) toTheBit() bool {
	k := a.rewrites.Kernel()
	return k > 0 && program.Kernels[k-1].Keys == torchKeys
}

// sameInside reports whether two arithmetics make the same choices at all sites of a fused attention.
func (a *arithmetic) sameInside(kernel *arithmetic) bool {
	for at, c := range a.at {
		if own, ok := kernel.at[at]; at.Form == program.FusedForm && (!ok || own != c) {
			return false
		}
	}
	return true
}
