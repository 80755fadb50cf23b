package certify

import (
	"context"
	"fmt"
	"sync"

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

// torchKeys are those of a block of torch's kernel on a CPU, which alone has its function.
const torchKeys = 512

// fusedPresets are the arithmetics of the fused kernels that are known, or that of the one that is not, of a program with an attention that may be
// computed by one; none of any other. of is the program in the order of steps of a kernel.
func fusedPresets(own *program.Program, of func(program.Rewrite) (*program.Program, error), unknown bool) ([]*arithmetic, error) {
	if !own.Fuses() {
		return nil, nil
	}
	var all []*arithmetic
	seen := map[string]bool{}
	for k, kernel := range program.Kernels {
		if kernel.Unknown != unknown {
			continue
		}
		r := program.Rewrite(0).InKernel(k + 1)
		p, err := of(r)
		if err != nil {
			return nil, err
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
	a := &arithmetic{rewrites: r, at: map[program.Site]program.Choice{}, habit: fmt.Sprintf("fused %d, %d", r.Kernel(), way)}
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

// unknownKernel reports whether an arithmetic is that of a fused kernel whose blocks are not known: it has bounds, and gives no bits.
func (a *arithmetic) unknownKernel() bool {
	k := a.rewrites.Kernel()
	return k > 0 && program.Kernels[k-1].Unknown
}

// fused tries the fused kernels that are known, or the one that is not.
func (s *search) fused(unknown bool) (*arithmetic, error) {
	own, err := s.of(0)
	if err != nil {
		return nil, err
	}
	all, err := fusedPresets(own, s.of, unknown)
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		a.open = s.open
	}
	return s.all(all)
}

// kernelOf is the fused kernel of a form, nil where it has none. It is asked for before transformers' arithmetic is tried on an entry, so that each is
// computed once where a kernel gives all of them; where transformers' gives a few that are spread over the trace, there is nothing to ask for.
func (i *Isolator) kernelOf(ctx context.Context, name string) (*arithmetic, error) {
	i.mu.Lock()
	k := i.kernels[name]
	if k == nil {
		k = &kernel{}
		i.kernels[name] = k
	}
	i.mu.Unlock()
	k.once.Do(func() {
		nodes := i.capturedForms().nodes[name]
		nodes = permuted(nodes, scattered(len(nodes)))
		for _, n := range nodes[:min(len(nodes), minEntries)] {
			e, err := i.evidence(ctx, n)
			if err != nil {
				k.err = err
				return
			}
			if e == nil || len(e.left) == 0 {
				continue
			}
			f, err := i.form(ctx, name)
			if k.err = err; err == nil && f.own != nil && f.own.rewrites.Kernel() > 0 {
				k.own = f.own
			}
			return
		}
	})
	return k.own, k.err
}

// kernel is the fused kernel of a form, worked out once.
type kernel struct {
	once sync.Once
	own  *arithmetic
	err  error
}

// inKernel certifies an entry in the fused kernel of its form, where that is known and leaves nothing of it; nil where it is not so.
func (t *trial) inKernel() (*Certificate, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if t.i.o.Arithmetic != Auto || t.formula == nil || t.chooses() || !t.formula.Fuses() {
		return nil, nil
	}
	own, err := t.i.kernelOf(t.ctx, t.i.formOf(t.cut, t.node))
	if own == nil || err != nil {
		return nil, err
	}
	j, left, order, err := t.strict(own)
	if err != nil || len(left) > 0 {
		return nil, err
	}
	p, err := t.rewritten(own.rewrites)
	if err != nil {
		return nil, err
	}
	c, _ := newCertificate(j)
	c.Form = op.Form(t.entry.Op)
	c.Arithmetic, c.Where, c.Summation = own.words(p, t.i.env.DType), own.where(p, t), order
	w := newWeighed()
	w.add(j)
	w.say(c)
	c.settle(j, nil, t.entry)
	return c, t.verify(c)
}
