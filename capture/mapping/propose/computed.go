package propose

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/propose/tensors"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// Weights reads a tensor of the checkpoint.
type Weights = func(order.Weight) (program.Rows, error)

// computed computes entries of the first pass from tensors that already have a name. A wrong port has the reference's values up to its
// mistake. After the mistake it computes from its own values, and the order computes the same results from them.
type computed struct {
	p       *evidence
	effort  *effort
	weights Weights
	have    map[string]tensors.Tensor // by the name of the entry, in its layout
	made    map[string]expected
}

// effort counts the computed entries, and their work as [program.Program.Time] measures it.
type effort struct{ entries, work int }

// expected is a computed entry. of has the keys of its operands.
type expected struct {
	tensors.Tensor
	of string
	ok bool
}

// mostSteps bounds the entries without a tensor that are computed on the way to one.
const mostSteps = 12

// hasOperands reports whether a list has all operands of its entries. The named steps of a recorded program, and names that somebody picked, lack some.
func hasOperands(list *order.List) bool {
	return !list.IsRecorded() && !slices.ContainsFunc(list.Entries, func(e order.Entry) bool {
		return slices.ContainsFunc(e.Inputs, func(in order.Ref) bool { return list.Index(in.Name) < 0 })
	})
}

// newComputed has the tensors that need no line. Token ids may be the reference's.
func newComputed(p *evidence, fitted *capture.Trace, weights Weights) *computed {
	c := &computed{p: p, effort: &effort{}, weights: weights, have: map[string]tensors.Tensor{}, made: map[string]expected{}}
	sources := fitted.Sources()
	for i, r := range fitted.Records() {
		if e, ok := p.list.Lookup(r.Name); ok && r.Pass == 0 && r.Firing == 0 && p.known(r) && slices.Equal(r.Shape, p.want(e)) {
			c.have[r.Name] = tensors.OfSource(&sources[i])
		}
	}
	for _, name := range []string{order.InputIDs, order.PositionIDs} {
		if _, ok := c.have[name]; ok || p.ref == nil {
			continue
		}
		if r, ok := p.ref.Lookup(0, name); ok {
			c.have[name] = tensors.OfTrace(p.ref, r)
		}
	}
	return c
}

// clone is a copy of c, which may be given other tensors.
func (c *computed) clone() *computed {
	more := *c
	more.have, more.made = maps.Clone(c.have), maps.Clone(c.made)
	return &more
}

// supposing are the tensors of c and those that lines make.
func (c *computed) supposing(t *template, lines []Line) (*computed, error) {
	more := c.clone()
	return more, more.take(t, lines)
}

// take gives tensors the names that lines give them.
func (c *computed) take(t *template, lines []Line) error {
	for _, l := range lines {
		made, err := c.p.applied(t, l)
		if err != nil {
			return err
		}
		for _, s := range made {
			if _, ok := c.p.list.Lookup(s.Name); ok && s.Pass == 0 && s.Firing == 0 {
				c.have[s.Name] = tensors.New("named\x00"+l.text()+"\x00"+s.Name, s.Shape, s.DType, s.Data)
			}
		}
	}
	return nil
}

// of computes an entry in float64, without roundings; ok is false where the tensors do not give it.
func (c *computed) of(e *order.Entry) (x tensors.Tensor, ok bool, err error) {
	cut := c.cut(e)
	if cut == nil {
		return x, false, nil
	}
	of := e.Name
	for _, n := range cut.Leaves {
		of += "\x00" + c.have[c.p.list.At(n).Name].Key
	}
	if known, is := c.made[e.Name]; is && known.of == of {
		return known.Tensor, known.ok, nil
	}
	x, ok = c.compute(e, cut)
	c.made[e.Name] = expected{x, of, ok}
	return x, ok, nil
}

// cut is what has to be computed for an entry; nil where it cannot be, or is too much.
func (c *computed) cut(e *order.Entry) *order.Plan {
	list := c.p.list
	at := order.Node{Entry: list.Index(e.Name)}
	if n := tensors.Elements(c.p.want(e)); at.Entry < 0 || c.p.past > 0 || n == 0 || n > tensors.MaxValues || e.Op == nil {
		return nil
	}
	if _, given := e.Op.(op.Argument); given {
		return nil
	}
	cut, err := list.Cut(func(n order.Node) bool {
		_, has := c.have[list.At(n).Name]
		return has || list.At(n).Name == order.PositionIDs
	}, at)
	if err != nil || len(cut.Steps) > mostSteps {
		return nil
	}
	for _, n := range cut.Steps { // those of another layer are its own affair
		if layer := list.At(n).Layer; layer >= 0 && e.Layer >= 0 && layer != e.Layer {
			return nil
		}
	}
	return cut
}

// compute evaluates a cut; ok is false where a weight is not there, or is of another model.
func (c *computed) compute(e *order.Entry, cut *order.Plan) (x tensors.Tensor, ok bool) {
	passes := c.p.passes[:1]
	formula, err := cut.Formula(passes, hooks.F32)
	if err != nil {
		return x, false
	}
	call, err := formula.Call(c.p.list, order.Env{Passes: passes, Read: c.read, Weights: c.weights})
	if err != nil {
		return x, false
	}
	v, err := formula.Eval(call)
	if err != nil {
		return x, false
	}
	c.effort.entries++
	c.effort.work += formula.Time()
	return tensors.OfValues(fmt.Sprintf("computed\x00%s\x00%d", e.Name, c.effort.entries), c.p.want(e), v.Data), true
}

// read is a tensor with a name as an operand. Positions that nobody dumped count from 0.
func (c *computed) read(n order.Node) (program.Value, error) {
	e := c.p.list.At(n)
	v := program.Value{Shape: c.p.want(e)}
	v.Data = make([]float64, tensors.Elements(v.Shape))
	x, ok := c.have[e.Name]
	if !ok {
		for t := range v.Data {
			v.Data[t] = float64(t)
		}
		return v, nil
	}
	if tensors.Elements(x.Shape) != len(v.Data) {
		return v, io.ErrUnexpectedEOF
	}
	var err error
	v.Data, err = x.Floats(len(v.Data))
	return v, err
}
