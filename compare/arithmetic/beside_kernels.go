package arithmetic

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// A compiler that calls a fused kernel for attention fuses the operations in front of the kernel: inductor rotates queries and keys in one loop, in
// float32, and rounds the rotated tensors for the attention. Which rotary tables inductor rounds depends on the hooks. So a known kernel is
// also tried with float32 inside any of the operations in front of the kernel.

// maxInFront bounds the operations before a kernel whose combinations are all tried: two norms, two tables, the
// rotation and the mask.
const maxInFront = 6

// besideKernels looks for a kernel with float32 operations before it that explains all entries of a form, or else
// more than half of them and at least two. The operations need as much evidence as any arithmetic, against the
// kernel without them. rest are the unexplained entries. The arithmetic is nil if the search fails.
func besideKernels(ctx context.Context, f *Form, left []*isolate.Evidence, kernels []*isolate.Arithmetic) (own *isolate.Arithmetic, rest []*isolate.Evidence, err error) {
	s := newSearch(left, f.Entries)
	if s.dtype == hooks.F32 {
		return nil, nil, nil
	}
	searches := []*search{s}
	if len(left) > 1 {
		for _, e := range samples(left) {
			searches = append(searches, searchOf(e, left, f.Entries))
		}
	}
	shown := func(a *isolate.Arithmetic) (bool, error) { return provenBy(ctx, a, showIn(a, f.Entries, left)) }
	var given []ranked
	for _, s := range searches {
		if found, err := eachInFront(ctx, s, kernels, shown); found != nil || err != nil {
			return found, nil, err
		}
		given = append(given, s.given...)
	}
	own, rest, err = most(ctx, f.Entries, left, given)
	if held := len(f.Entries) - len(rest); err != nil || own.Strict() || held < thresholds.Majority.Held || !mostOf(held, len(f.Entries)) {
		return nil, nil, err
	}
	return own, rest, nil
}

// eachInFront tries float32 before each of some kernels. It returns the first proven arithmetic that explains all
// entries, or nil. Such kernels are known to the bit, so orders of summation carry no information: on the panel of
// a search, other orders are tried only for the nearest arithmetic.
func eachInFront(ctx context.Context, s *search, kernels []*isolate.Arithmetic, shown func(*isolate.Arithmetic) (bool, error)) (*isolate.Arithmetic, error) {
	first := func(some iter.Seq[*isolate.Arithmetic]) (*isolate.Arithmetic, error) {
		found, err := s.each(ctx, some)
		if found == nil || err != nil {
			return nil, err
		}
		if ok, err := shown(found); !ok || err != nil {
			return nil, err
		}
		return found, nil
	}
	s.inOrder = true
	for _, kernel := range kernels {
		if !toTheBit(kernel) {
			continue
		}
		p, err := s.of(kernel.Rewrites)
		if err != nil {
			return nil, err
		}
		if found, err := first(float32InFront(p, kernel)); found != nil || err != nil {
			return found, err
		}
	}
	if len(s.given) > 0 || len(s.best) == 0 {
		return nil, nil
	}
	s.inOrder, s.seen = false, map[string]bool{}
	return first(slices.Values([]*isolate.Arithmetic{s.best[0].Arithmetic}))
}

// float32InFront lists the arithmetics of a kernel in engines that keep float32 inside some of the operations in front of it, each combination of
// operations once.
func float32InFront(p *program.Program, kernel *isolate.Arithmetic) iter.Seq[*isolate.Arithmetic] {
	operations := roundedInFront(p)
	operations = operations[:min(len(operations), maxInFront)]
	return func(yield func(*isolate.Arithmetic) bool) {
		for some := 1; some < 1<<len(operations); some++ {
			a := *kernel
			a.Beside = kernel
			wide := &a
			for k, sites := range operations {
				for _, at := range sites {
					if some>>k&1 == 1 {
						wide = wide.With(at, program.Choice{Round: program.Plain})
					}
				}
			}
			if !yield(wide) {
				return
			}
		}
	}
}

// inFront are the arithmetics of the kernels that are known to the bit in engines that keep float32 inside some of the operations in front of them.
func inFront(s *search, kernels []*isolate.Arithmetic) ([]*isolate.Arithmetic, error) {
	var all []*isolate.Arithmetic
	for _, kernel := range kernels {
		if s.dtype == hooks.F32 || !toTheBit(kernel) {
			continue
		}
		p, err := s.of(kernel.Rewrites)
		if err != nil {
			return nil, err
		}
		all = slices.AppendSeq(all, float32InFront(p, kernel))
	}
	return all, nil
}

// roundedInFront lists the sites in front of a fused attention that are rounded to the model's dtype, by operation. Sites that only keys have are an
// operation of their own. Every engine rounds the operands of a product, such as rotated queries; these sites are left out.
func roundedInFront(p *program.Program) [][]program.Site {
	handed := map[int]bool{}
	for i := range p.Steps {
		if p.Steps[i].Prim == program.Dot {
			for _, operand := range p.Steps[i].Args {
				handed[operand.Step] = true
			}
		}
	}
	var operations [][]program.Site
	sites, steps := p.Sites()
	for _, at := range sites {
		s := &p.Steps[steps[at][0]]
		if at.Form == rewrite.FusedForm || s.Round != program.Model || s.Prim == program.Number || slices.ContainsFunc(steps[at], func(i int) bool { return handed[i] }) {
			continue
		}
		keys := strings.HasSuffix(at.Name, rewrite.OfKeys)
		k := slices.IndexFunc(operations, func(of []program.Site) bool {
			return of[0].Form == at.Form && strings.HasSuffix(of[0].Name, rewrite.OfKeys) == keys
		})
		if k < 0 {
			operations, k = append(operations, nil), len(operations)
		}
		operations[k] = append(operations[k], at)
	}
	return operations
}

// toTheBit reports whether an arithmetic has a kernel that is known to the bit, with its exponential.
func toTheBit(a *isolate.Arithmetic) bool {
	k := a.Rewrites.Kernel()
	return k > 0 && rewrite.Kernels[k-1].Keys == torchKeys
}
