package isolate

import (
	"context"
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/program/edit"
	"github.com/tracediff/tracediff/order/program/rewrite"
)

// mostReaders is up to how many readers of an operand every subset of the readers is tried.
const mostReaders = 4

// PartlyRounded is a change to a program: some readers of a step receive its result rounded to the model's dtype,
// and the others in float32.
type PartlyRounded struct {
	Form, Name string   // of the step
	Readers    []string // the sites of those that get it rounded
	through    bool     // they get it through steps that all readers share
}

// Readers lists the changes by which some readers of an operand get it rounded, for every subset of the readers but the empty and the full one.
func Readers(t *Trial, operand string) ([]*PartlyRounded, error) {
	s, err := StepOf(t, operand)
	if s == nil || err != nil {
		return nil, err
	}
	p := &PartlyRounded{Form: s.Form, Name: s.Name}
	read := p.Handed(t.Formula.Program)
	if through := p.shared(t.Formula.Program); len(through) > 0 {
		p.through, read = true, through[len(through)-1:]
	}
	var sites []string
	for i := range t.Formula.Steps {
		r := &t.Formula.Steps[i]
		if !slices.Contains(read, i) && slices.ContainsFunc(r.Args, func(v program.Var) bool { return slices.Contains(read, v.Step) }) && !slices.Contains(sites, r.Site) {
			sites = append(sites, r.Site)
		}
	}
	if len(sites) > mostReaders {
		return nil, nil
	}
	var all []*PartlyRounded
	for some := 1; some < 1<<len(sites)-1; some++ {
		q := *p
		for k, site := range sites {
			if some>>k&1 == 1 {
				q.Readers = append(q.Readers, site)
			}
		}
		all = append(all, &q)
	}
	return all, nil
}

// Handed lists the step in a program and the steps that pass its result on unchanged, such as the input of the next layer. A program without the step
// has an empty list.
func (p *PartlyRounded) Handed(of *program.Program) []int {
	var all []int
	for i := range of.Steps {
		s := &of.Steps[i]
		if s.Form == p.Form && s.Name == p.Name || s.Prim == program.Round && slices.Contains(all, s.Args[0].Step) {
			all = append(all, i)
		}
	}
	return all
}

// shared lists the steps through which all readers get the result of the step, such as a sum in front of a norm. The list is empty if these steps pass the
// result on unchanged, or if the readers share no step.
func (p *PartlyRounded) shared(of *program.Program) []int {
	handed := p.Handed(of)
	if len(handed) == 0 {
		return nil
	}
	through := rewrite.Through(of, handed[0])
	if !slices.ContainsFunc(through, func(i int) bool { return !slices.Contains(handed, i) }) {
		return nil
	}
	return through
}

// of returns a formula with the change. A nil change returns the formula itself.
func (p *PartlyRounded) of(f *order.Formula) (*order.Formula, error) {
	if p == nil {
		return f, nil
	}
	e := edit.NewEditor(f.Program)
	some := func(reader *program.Step) bool { return slices.Contains(p.Readers, reader.Site) }
	through := p.shared(f.Program)
	for n, at := range p.Handed(f.Program) {
		switch {
		case !p.through:
			rewrite.ReadRounded(e, at, some)
		case n == 0 && len(through) > 0:
			rewrite.ReadRoundedThrough(e, at, through, some)
		}
	}
	d, err := e.End()
	if err != nil {
		return nil, err
	}
	changed := *f
	changed.Program, _ = d.Whole(program.Call{})
	return &changed, nil
}

// With returns an arithmetic that rounds what the readers get.
func (p *PartlyRounded) With(a *Arithmetic) *Arithmetic {
	if p == nil {
		return a
	}
	return a.With(rewrite.RoundedRead, program.Choice{Round: program.Model})
}

// formulaOf is the formula of the cut in another order of steps, with the trial's change.
func (t *Trial) formulaOf(r program.Rewrite) (*order.Formula, error) {
	f, err := t.Cut.FormulaOf(t.Passes(), t.Isolator.env.DType, r, nil)
	if err != nil {
		return nil, err
	}
	return t.change.of(f)
}

// pastCaches certifies an entry that is computed from cached keys or values of an earlier pass that are no tensor of the order's kind, such as
// keys of another shape. What a cache held is what each pass put into it: the cut goes on to the new keys and values of the earlier
// passes. Where these give every element the entry is right, whatever the tensor is that was captured in between. Where they do not the entry
// is not accused, since it may have been computed from that tensor: the certificate is nil. The error is that of reading the trace or the weights.
func pastCaches(ctx context.Context, i *Isolator, n order.Node) (*Certificate, *order.Plan, error) {
	through := 0
	has := func(at order.Node) bool {
		if !i.Has(at) {
			return false
		}
		if _, cache := i.list.At(at).Op.(op.Cache); cache && at.Pass < n.Pass && i.Misfit(at) != nil {
			through++
			return false
		}
		return true
	}
	t, err := i.Unread(n, has)
	if err == nil && through > 0 {
		err = t.ReadAll()
	}
	if Lacking(err) || through == 0 {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	_, left, _, err := t.Judge(ctx, &Arithmetic{})
	if len(left) > 0 || err != nil {
		return nil, nil, err
	}
	return certifiedTrial(ctx, t)
}
