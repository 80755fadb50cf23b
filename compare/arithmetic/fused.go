package arithmetic

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// A fused kernel hides every tensor between queries, keys, values and its result. It has its own form, see
// [rewrite.Fused]. Known kernels are tried before the general choices at each step.

// expWays are the functions that a kernel may take for its exponential, the likeliest first.
func expWays(k rewrite.Fused) []uint8 {
	switch {
	case k.Unknown:
		return []uint8{program.WayStatedError}
	case k.Keys == torchKeys:
		return []uint8{program.WayEightLanes, program.WaySixteen, program.WayLibrary}
	}
	return []uint8{program.WayLibrary, program.WayStatedError}
}

// torchKeys is how many keys a block has in torch's kernel on a CPU. No other kernel takes its function.
const torchKeys = 512

// fusedPresets are the arithmetics of the known fused kernels, or that of the unknown one. A program without an attention that a kernel may compute
// has no presets. of makes the program of a kernel; d is the dtype of the model.
func fusedPresets(own *program.Program, of func(program.Rewrite) (*program.Program, error), unknown bool, d hooks.DType) ([]*isolate.Arithmetic, error) {
	if !rewrite.Fuses(own) {
		return nil, nil
	}
	var all []*isolate.Arithmetic
	seen := map[string]bool{}
	for k, kernel := range rewrite.Kernels {
		if kernel.Unknown != unknown || !kernel.Computes(d) {
			continue
		}
		r := program.Rewrite(0).InKernel(k + 1)
		p, err := of(r)
		if err != nil {
			return nil, err
		}
		if rewrite.KernelOf(p) == nil {
			continue
		}
		for _, way := range expWays(kernel) {
			a := fusedPreset(p, r, way)
			if key := p.Text() + keyOf(a, p)[4:]; !seen[key] { // few keys are one block of any kernel
				seen[key] = true
				all = append(all, a)
			}
		}
	}
	return all, nil
}

// fusedPreset is a kernel with a function; it multiplies with the reciprocal of the sum.
func fusedPreset(p *program.Program, r program.Rewrite, way uint8) *isolate.Arithmetic {
	a := &isolate.Arithmetic{Rewrites: r, At: map[program.Site]program.Choice{}, Preset: isolate.Preset{Kind: isolate.PresetKernel, N: r.Kernel(), Way: int(way)}}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Form != rewrite.FusedForm {
			continue
		}
		switch at := (program.Site{Form: s.Form, Name: s.Site}); {
		case s.Site == rewrite.FusedExp && way != program.WayLibrary:
			a.At[at] = program.Choice{Way: way, Round: s.Round}
		case s.Prim == program.Div:
			a.At[at] = program.Choice{Way: program.WayReciprocal, Round: s.Round}
		}
	}
	return a
}

// inUnknownKernel tries the fused kernel that is not known.
func inUnknownKernel(ctx context.Context, s *search) (*isolate.Arithmetic, error) {
	own, err := s.of(0)
	if err != nil {
		return nil, err
	}
	all, err := fusedPresets(own, s.panel[0].Rewritten, true, s.dtype)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		a.Open = s.open
	}
	return s.all(ctx, all)
}

// kernels are the known fused kernels that the entries of a form may have.
func (f *Form) kernels() ([]*isolate.Arithmetic, error) {
	e := f.Entries[0]
	all, err := fusedPresets(e.Formula.Program, e.Rewritten, false, e.Isolator.Env().DType)
	for _, a := range all {
		a.Open = slices.ContainsFunc(f.Entries, func(e *isolate.Evidence) bool { return e.Wider() })
	}
	return all, err
}

// heldBy splits the entries of a form into the entries that an arithmetic explains and the rest. Parts of large entries are judged first. If the arithmetic
// fails in half of the entries, or if the account of the form ends, the arithmetic decides nothing, and no entry is held.
func (f *Form) heldBy(ctx context.Context, a *isolate.Arithmetic) (held, rest []*isolate.Evidence, err error) {
	for _, whole := range []bool{false, true} {
		asked := f.Entries
		if whole {
			asked = held
		}
		held = nil
		for _, e := range asked {
			if f.account.Spent() {
				return nil, f.Entries, nil
			}
			of := e
			if !whole {
				of = e.Focus()
			}
			_, left, _, err := of.Judge(ctx, a)
			if err != nil {
				return nil, nil, err
			}
			if len(left) == 0 {
				held = append(held, e)
			} else if rest = append(rest, e); !mostOf(len(f.Entries)-len(rest), len(f.Entries)) {
				return nil, rest, nil
			}
		}
	}
	return held, rest, nil
}

// givenBy reports whether an arithmetic gives every element of an entry: first of a part, if the entry is large.
func givenBy(ctx context.Context, e *isolate.Evidence, a *isolate.Arithmetic) (bool, error) {
	for _, of := range []*isolate.Evidence{e.Focus(), e} {
		if _, left, _, err := of.Judge(ctx, a); len(left) > 0 || err != nil {
			return false, err
		}
		if of.Trial == e.Trial {
			break
		}
	}
	return true, nil
}

// leftUnder are some entries with what an arithmetic leaves of them.
func leftUnder(ctx context.Context, some []*isolate.Evidence, a *isolate.Arithmetic) ([]*isolate.Evidence, error) {
	var all []*isolate.Evidence
	for _, e := range some {
		_, left, _, err := e.Judge(ctx, a)
		if err != nil {
			return nil, err
		}
		all = append(all, &isolate.Evidence{Trial: e.Trial, Left: left})
	}
	return all, nil
}

// inKernels decides the form by the known fused kernels. A kernel decides if it explains all entries, or more than half of them and two at least,
// and shows what transformers' arithmetic does not give. Else a kernel with another mask may explain all entries, a kernel with float32 in front of
// it, or a kernel with a change to the operation. Done is false if none of these decides.
func (f *Form) inKernels(ctx context.Context, left []*isolate.Evidence) (done bool, err error) {
	if proved, err := f.provedKernel(ctx); proved || err != nil {
		return proved, err
	}
	all, err := f.kernels()
	if err != nil || len(all) == 0 {
		return false, err
	}
	// Kernels known to the bit come first. A search for a wrong mask under these costs less than trying all other
	// kernels.
	known, others := split(all, toTheBit)
	var best heldMost
	if err := best.among(ctx, f, left, known); err != nil {
		return false, err
	}
	if !best.whole {
		if err := f.maskedUnder(ctx, left, known); f.Wrong != nil || err != nil {
			return f.Wrong != nil, err
		}
		if err := best.among(ctx, f, left, others); err != nil {
			return false, err
		}
	}
	switch {
	case best.own != nil && len(best.rest) == 0:
		f.Own = best.own
		return true, nil
	case best.own != nil && decides(len(best.held), len(f.Entries)):
		return true, f.mostIn(ctx, best.own, best.rest)
	}
	if all = known; best.whole || len(all) == 0 { // if roundings explain all entries, no mistake is looked for
		return false, nil
	}
	own, suspects, err := besideKernels(ctx, f, left, all)
	if err != nil {
		return false, err
	} else if own != nil {
		return true, f.mostIn(ctx, own, suspects)
	}
	fused, err := inFront(newSearch(left, f.Entries), all)
	if err != nil {
		return false, err
	}
	f.Wrong, err = f.changed(ctx, left, append(all, fused...))
	return f.Wrong != nil, err
}

// heldMost is the kernel that explains most entries of a form. The entries have to prove the kernel.
type heldMost struct {
	own        *isolate.Arithmetic // nil: the entries prove no kernel
	held, rest []*isolate.Evidence // the entries that own explains, and the others
	whole      bool                // some kernel explains all entries, proven or not
}

// among looks at some kernels, until one that is shown explains all entries.
func (h *heldMost) among(ctx context.Context, f *Form, left []*isolate.Evidence, kernels []*isolate.Arithmetic) error {
	for _, a := range kernels {
		held, rest, err := f.heldBy(ctx, a)
		if err != nil {
			return err
		}
		h.whole = h.whole || len(rest) == 0
		if len(held) <= len(h.held) {
			continue
		}
		if shown, err := shownByKernel(ctx, a, shownIn(held, left)); err != nil {
			return err
		} else if shown {
			h.own, h.held, h.rest = a, held, rest
		}
		if len(rest) == 0 {
			break
		}
	}
	return nil
}

// split is what of a list fits, and the rest.
func split[T any](all []T, fits func(T) bool) (some, rest []T) {
	for _, x := range all {
		if fits(x) {
			some = append(some, x)
		} else {
			rest = append(rest, x)
		}
	}
	return some, rest
}

// provedKernel gives the form the kernel proven by the prompt's passes, with its second arithmetic, and reports
// whether the two explain every entry of the form. Passes of one token have too few elements to prove a kernel.
func (f *Form) provedKernel(ctx context.Context) (bool, error) {
	if f.several == nil {
		return false, nil
	}
	g, err := f.several(ctx)
	if err != nil || g.Own == nil || g.Own.Rewrites.Kernel() == 0 {
		return false, err
	}
	for _, second := range []*isolate.Arithmetic{nil, g.Second} {
		if all, err := f.explainedBy(ctx, g.Own, second); all || err != nil {
			f.Own, f.Second = g.Own, second
			return all, err
		}
		if g.Second == nil {
			break
		}
	}
	return false, nil
}

// shownByKernel reports whether entries that a known kernel explains prove the kernel. Most entries do as they prove any arithmetic. The bounds of
// long products in float16 hold several numbers for every element, and such an element proves nothing in that way. There the kernel is proven by
// elements for which the intervals of the kernel and of transformers' arithmetic do not overlap. The number of an engine without this kernel
// lies on the kernel's side with a chance of a half, so there have to be as many elements as for a change.
func shownByKernel(ctx context.Context, a *isolate.Arithmetic, of []*isolate.Evidence) (bool, error) {
	if shown, err := provenBy(ctx, a, of); shown || err != nil {
		return shown, err
	}
	elements, rows := 0, 0
	for _, e := range of {
		j, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: a})
		if err != nil {
			return false, err
		}
		own, err := e.Evaluate(ctx, isolate.Evaluation{Arithmetic: &isolate.Arithmetic{Open: a.Open}})
		if err != nil {
			return false, err
		}
		shown := slices.DeleteFunc(slices.Clone(e.Left), func(i int) bool { return !j.Disjoint(own, i) })
		elements, rows = elements+len(shown), rows+isolate.RowsIn(e.Trial, shown)
		if elements >= thresholds.Proof.Change && rows >= thresholds.Proof.Rows {
			return true, nil
		}
	}
	return false, nil
}

// shownIn takes those of some entries that transformers' arithmetic leaves something of.
func shownIn(some, left []*isolate.Evidence) []*isolate.Evidence {
	return slices.DeleteFunc(slices.Clone(some), func(e *isolate.Evidence) bool { return !slices.Contains(left, e) })
}

// Kernel is the fused kernel of a form; nil for no kernel. It is asked for before transformers' arithmetic is tried on an entry, so that each is
// computed once where a kernel gives all of them; where transformers' gives a few that are spread over the trace, there is nothing to ask for.
func (k *Forms) Kernel(ctx context.Context, name isolate.FormKey) (*isolate.Arithmetic, error) {
	return k.kernels.Get(ctx, name, func(ctx context.Context) (*isolate.Arithmetic, error) {
		nodes := k.I.CapturedForms().Nodes[name]
		nodes = isolate.Permuted(nodes, isolate.Scattered(len(nodes)))
		for _, n := range nodes[:min(len(nodes), MinEntries)] {
			e, err := k.I.Evidence(ctx, n)
			if err != nil {
				return nil, err
			}
			if e == nil || len(e.Left) == 0 {
				continue
			}
			f, err := k.Verdict(ctx, name)
			if err == nil && f.Own != nil && f.Own.Rewrites.Kernel() > 0 {
				return f.Own, nil
			}
			return nil, err
		}
		return nil, nil
	})
}
