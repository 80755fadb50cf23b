package certify

import (
	"slices"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/program"
)

// mostReaders bounds the steps that read an operand of which every part is tried.
const mostReaders = 4

// partly makes some of the steps that read the result of one step read it rounded to the model's dtype, where the others read it as it is.
type partly struct {
	form, name string   // of the step
	readers    []string // sites
}

// readers lists the parts of the steps that read an operand which a program computes: neither none nor all.
func (t *trial) readers(operand string) ([]*partly, error) {
	s, err := t.stepOf(operand)
	if s == nil || err != nil {
		return nil, err
	}
	p := &partly{form: s.Form, name: s.Name}
	handed := p.handed(t.formula.Program)
	var sites []string
	for i := range t.formula.Steps {
		r := &t.formula.Steps[i]
		if !slices.Contains(handed, i) && slices.ContainsFunc(r.Args, func(v program.Var) bool { return slices.Contains(handed, t.formula.Source(v)) }) && !slices.Contains(sites, r.Site) {
			sites = append(sites, r.Site)
		}
	}
	if len(sites) > mostReaders {
		return nil, nil
	}
	var all []*partly
	for some := 1; some < 1<<len(sites)-1; some++ {
		q := *p
		for k, site := range sites {
			if some>>k&1 == 1 {
				q.readers = append(q.readers, site)
			}
		}
		all = append(all, &q)
	}
	return all, nil
}

// handed are the step in a program and those that hand its result on, as between two layers; nil where the program has none.
func (p *partly) handed(of *program.Program) []int {
	var all []int
	for i := range of.Steps {
		s := &of.Steps[i]
		if s.Form == p.form && s.Name == p.name || s.Prim == program.Round && slices.Contains(all, of.Source(s.Args[0])) {
			all = append(all, i)
		}
	}
	return all
}

// of is a formula with the change, or the formula itself for no change.
func (p *partly) of(f *order.Formula) (*order.Formula, error) {
	if p == nil {
		return f, nil
	}
	e := f.Edit()
	for _, at := range p.handed(f.Program) {
		e.ReadRounded(at, func(reader *program.Step) bool { return slices.Contains(p.readers, reader.Site) })
	}
	d, err := e.End()
	if err != nil {
		return nil, err
	}
	changed := *f
	changed.Program, _ = d.Whole(program.Call{})
	return &changed, nil
}

// with is an arithmetic that rounds what the readers read.
func (p *partly) with(a *arithmetic) *arithmetic {
	if p == nil {
		return a
	}
	return a.with(program.ReadRounded, program.Choice{Round: program.Model})
}
