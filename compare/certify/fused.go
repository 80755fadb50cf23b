package certify

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// A fused kernel shows nothing between queries, keys and values, and what it makes of them. It has a form of its own, see [program.Fused]: what one
// is known to do is tried before what any engine may do at any step.

// expWays are the functions that a kernel may take for its exponential, the likeliest first.
func expWays(k program.Fused) []uint8 {
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
func fusedPresets(own *program.Program, of func(program.Rewrite) (*program.Program, error), unknown bool, d hooks.DType) ([]*arithmetic, error) {
	if !own.Fuses() {
		return nil, nil
	}
	var all []*arithmetic
	seen := map[string]bool{}
	for k, kernel := range program.Kernels {
		if kernel.Unknown != unknown || !kernel.Computes(d) {
			continue
		}
		r := program.Rewrite(0).InKernel(k + 1)
		p, err := of(r)
		if err != nil {
			return nil, err
		}
		if p.Fused() == nil {
			continue
		}
		for _, way := range expWays(kernel) {
			a := fusedPreset(p, r, way)
			if key := p.Text() + a.key(p)[4:]; !seen[key] { // few keys are one block of any kernel
				seen[key] = true
				all = append(all, a)
			}
		}
	}
	return all, nil
}

// fusedPreset is a kernel with a function; it multiplies with the reciprocal of the sum.
func fusedPreset(p *program.Program, r program.Rewrite, way uint8) *arithmetic {
	a := &arithmetic{rewrites: r, at: map[program.Site]program.Choice{}, preset: preset{presetKernel, r.Kernel(), int(way)}}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Form != program.FusedForm {
			continue
		}
		switch at := (program.Site{Form: s.Form, Name: s.Site}); {
		case s.Site == program.FusedExp && way != program.WayLibrary:
			a.at[at] = program.Choice{Way: way, Round: s.Round}
		case s.Prim == program.Div:
			a.at[at] = program.Choice{Way: program.WayReciprocal, Round: s.Round}
		}
	}
	return a
}

// inUnknownKernel tries the fused kernel that is not known.
func inUnknownKernel(ctx context.Context, s *search) (*arithmetic, error) {
	own, err := s.of(0)
	if err != nil {
		return nil, err
	}
	all, err := fusedPresets(own, s.panel[0].rewritten, true, s.dtype)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		a.open = s.open
	}
	return s.all(ctx, all)
}

// kernels are the known fused kernels that the entries of a form may have.
func (f *form) kernels() ([]*arithmetic, error) {
	e := f.entries[0]
	all, err := fusedPresets(e.formula.Program, e.rewritten, false, e.i.env.DType)
	for _, a := range all {
		a.open = slices.ContainsFunc(f.entries, func(e *evidence) bool { return e.wider() })
	}
	return all, err
}

// heldBy splits the entries of a form into the entries that an arithmetic explains and the rest. Parts of large entries are judged first. If the arithmetic
// fails in half of the entries, or if the account of the form ends, the arithmetic decides nothing, and no entry is held.
func (f *form) heldBy(ctx context.Context, a *arithmetic) (held, rest []*evidence, err error) {
	for _, whole := range []bool{false, true} {
		asked := f.entries
		if whole {
			asked = held
		}
		held = nil
		for _, e := range asked {
			if f.account.spent() {
				return nil, f.entries, nil
			}
			of := e
			if !whole {
				of = e.focus()
			}
			_, left, _, err := of.strict(ctx, a)
			if err != nil {
				return nil, nil, err
			}
			if len(left) == 0 {
				held = append(held, e)
			} else if rest = append(rest, e); 2*len(rest) >= len(f.entries) {
				return nil, rest, nil
			}
		}
	}
	return held, rest, nil
}

// givenBy reports whether an arithmetic gives every element of an entry: first of a part, if the entry is large.
func (e *evidence) givenBy(ctx context.Context, a *arithmetic) (bool, error) {
	for _, of := range []*evidence{e.focus(), e} {
		if _, left, _, err := of.strict(ctx, a); len(left) > 0 || err != nil {
			return false, err
		}
		if of.trial == e.trial {
			break
		}
	}
	return true, nil
}

// leftUnder are some entries with what an arithmetic leaves of them.
func leftUnder(ctx context.Context, some []*evidence, a *arithmetic) ([]*evidence, error) {
	var all []*evidence
	for _, e := range some {
		_, left, _, err := e.strict(ctx, a)
		if err != nil {
			return nil, err
		}
		all = append(all, &evidence{e.trial, left})
	}
	return all, nil
}

// inKernels decides the form by the known fused kernels. A kernel decides if it explains all entries, or more than half of them and two at least,
// and shows what transformers' arithmetic does not give. Else a kernel with another mask may explain all entries, a kernel with float32 in front of
// it, or a kernel with a change to the operation. Done is false if none of these decides.
func (f *form) inKernels(ctx context.Context, left []*evidence) (done bool, err error) {
	if proved, err := f.provedKernel(ctx); proved || err != nil {
		return proved, err
	}
	all, err := f.kernels()
	if err != nil || len(all) == 0 {
		return false, err
	}
	// Kernels that are known to the bit come first. A search for a wrong mask under these kernels costs less than all other kernels do.
	known, others := split(all, (*arithmetic).toTheBit)
	var best heldMost
	if err := best.among(ctx, f, left, known); err != nil {
		return false, err
	}
	if !best.whole {
		if err := f.maskedUnder(ctx, left, known); f.wrong != nil || err != nil {
			return f.wrong != nil, err
		}
		if err := best.among(ctx, f, left, others); err != nil {
			return false, err
		}
	}
	switch {
	case best.own != nil && len(best.rest) == 0:
		f.own = best.own
		return true, nil
	case best.own != nil && len(best.held) >= 2 && 2*len(best.held) > len(f.entries):
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
	fused, err := inFront(newSearch(left, f.entries), all)
	if err != nil {
		return false, err
	}
	f.wrong, err = f.changed(ctx, left, append(all, fused...))
	return f.wrong != nil, err
}

// heldMost is the kernel that explains most entries of a form. The entries have to prove the kernel.
type heldMost struct {
	own        *arithmetic // nil: the entries prove no kernel
	held, rest []*evidence // the entries that own explains, and the others
	whole      bool        // some kernel explains all entries, proven or not
}

// among looks at some kernels, until one that is shown explains all entries.
func (h *heldMost) among(ctx context.Context, f *form, left []*evidence, kernels []*arithmetic) error {
	for _, a := range kernels {
		held, rest, err := f.heldBy(ctx, a)
		if err != nil {
			return err
		}
		h.whole = h.whole || len(rest) == 0
		if len(held) <= len(h.held) {
			continue
		}
		if shown, err := a.shownByKernel(ctx, shownIn(held, left)); err != nil {
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

// provedKernel gives the form the kernel that the prompt's passes prove, and the second arithmetic if they have one, and reports whether these explain
// all entries of this form. Passes of one token show too few elements to prove a kernel.
func (f *form) provedKernel(ctx context.Context) (bool, error) {
	if f.several == nil {
		return false, nil
	}
	g, err := f.several(ctx)
	if err != nil || g.own == nil || g.own.rewrites.Kernel() == 0 {
		return false, err
	}
	for _, second := range []*arithmetic{nil, g.second} {
		if all, err := f.explainedBy(ctx, g.own, second); all || err != nil {
			f.own, f.second = g.own, second
			return all, err
		}
		if g.second == nil {
			break
		}
	}
	return false, nil
}

// shownByKernel reports whether entries that a known kernel explains prove the kernel. Most entries do as they prove any arithmetic. The bounds of
// long products in float16 hold several numbers for every element, and such an element proves nothing in that way. There the kernel is proven by
// elements for which the intervals of the kernel and of transformers' arithmetic do not overlap. The number of an engine without this kernel
// lies on the kernel's side with a chance of a half, so there have to be as many elements as for a change.
func (a *arithmetic) shownByKernel(ctx context.Context, of []*evidence) (bool, error) {
	if shown, err := a.proven(ctx, of); shown || err != nil {
		return shown, err
	}
	elements, rows := 0, 0
	for _, e := range of {
		j, err := e.in(ctx, evaluated{arithmetic: a})
		if err != nil {
			return false, err
		}
		own, err := e.in(ctx, evaluated{arithmetic: &arithmetic{open: a.open}})
		if err != nil {
			return false, err
		}
		shown := slices.DeleteFunc(slices.Clone(e.left), func(i int) bool { return !j.disjoint(own, i) })
		elements, rows = elements+len(shown), rows+e.rowsIn(shown)
		if elements >= proofOfChange && rows >= proofRows {
			return true, nil
		}
	}
	return false, nil
}

// shownIn takes those of some entries that transformers' arithmetic leaves something of.
func shownIn(some, left []*evidence) []*evidence {
	return slices.DeleteFunc(slices.Clone(some), func(e *evidence) bool { return !slices.Contains(left, e) })
}

// kernelOf is the fused kernel of a form; nil for no kernel. It is asked for before transformers' arithmetic is tried on an entry, so that each is
// computed once where a kernel gives all of them; where transformers' gives a few that are spread over the trace, there is nothing to ask for.
func (k *forms) kernelOf(ctx context.Context, name formKey) (*arithmetic, error) {
	return k.kernels.Get(ctx, name, func(ctx context.Context) (*arithmetic, error) {
		nodes := k.i.capturedForms().nodes[name]
		nodes = permuted(nodes, scattered(len(nodes)))
		for _, n := range nodes[:min(len(nodes), minEntries)] {
			e, err := k.i.evidence(ctx, n)
			if err != nil {
				return nil, err
			}
			if e == nil || len(e.left) == 0 {
				continue
			}
			f, err := k.verdictOf(ctx, name)
			if err == nil && f.own != nil && f.own.rewrites.Kernel() > 0 {
				return f.own, nil
			}
			return nil, err
		}
		return nil, nil
	})
}

// inKernel certifies an entry in the fused kernel of its form. The certificate is nil where no kernel is known, or it leaves an element.
func (t *trial) inKernel(ctx context.Context) (*Certificate, error) {
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	if t.i.engine == nil || t.formula == nil || t.chooses() || !t.formula.Fuses() {
		return nil, nil
	}
	own, err := t.i.engine.kernelOf(ctx, t.i.formOf(t.cut, t.node))
	if own == nil || err != nil {
		return nil, err
	}
	j, left, order, err := t.strict(ctx, own)
	if err != nil || len(left) > 0 {
		return nil, err
	}
	p, err := t.rewritten(own.rewrites)
	if err != nil {
		return nil, err
	}
	l := look(j)
	c := l.ofAll()
	c.Form = op.Form(t.entry.Op)
	c.Arithmetic, c.Where, c.Summation = own.words(p, t.i.env.DType), own.where(p, t), order
	l.say(c)
	c.settle(j, nil, t.entry, l.guessed)
	return c, t.verify(c)
}
