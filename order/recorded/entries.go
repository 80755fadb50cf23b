package recorded

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// Entry is a tensor of a pass, with the operation that computes the tensor: a named tensor, or a step that nobody
// captures.
type Entry struct {
	Name         string
	Layer, Level int // a step without a name has [Unnamed]
	Op           program.Op
	Inputs       []Input
	Weights      []Tensor
	Shape        []int
	DType        string // empty for the model's
	Source       Source // that computed it
}

// Unnamed is the level of a step without a name: more than any capture asks for.
const Unnamed = 4

// Input is an entry by name, of the pass itself or of one before.
type Input struct {
	Name string
	Back int // how many passes before
}

// Tensor is a tensor of the checkpoint.
type Tensor struct {
	Name  string
	Shape []int
	DType string // empty for the model's
}

// Entries returns the entries of each pass, in the order of computation. Every name of the program is an entry. A
// value without a name is an entry with a made name: the next tensor's name, and the operation. The error reports an
// operation whose operands do not go together.
func (p *Program) Entries() ([][]Entry, error) {
	x := &expander{
		p: p, specs: map[string]*spec{}, built: map[program.Op]formula{}, reps: map[int]*rep{}, formed: formed{shared: p.numbers()}, ranks: map[string]int{},
	}
	var all [][]Entry
	for i := range p.Passes {
		if err := x.pass(i); err != nil {
			return nil, fmt.Errorf("pass %d: %w", i, err)
		}
		all = append(all, x.entries)
	}
	return all, nil
}

// rep is the entry that represents a value: the last entry that shows the whole value.
type rep struct {
	name  string
	pass  int
	of    string // what an operation that reads it says it is
	view  *layout
	axes  []int
	parts map[string]string // entries that show a part of it, by view
}

// expander makes the entries of a program, pass by pass.
type expander struct {
	expanded
	formed
	p     *Program
	specs map[string]*spec
	built map[program.Op]formula
	reps  map[int]*rep
	ranks map[string]int     // the names of the passes before, by their order
	sized []map[string]sized // of all entries so far, by pass
}

// expanded is what is known of the pass that is being expanded.
type expanded struct {
	i       int
	entries []Entry
	names   map[string]bool
	counts  map[string]int // by made name, the last number that was appended to the name
	next    []string       // by line, the first name from it on
	first   map[int]*Name  // by value, the first name that shows all of it
	consts  map[int]given  // by constant, the entry that has it
	// arguments are the constants of the pass that are arguments of the model, by name.
	arguments map[string]*Constant
}

// formed counts the steps and numbers of the formulas that were built. Numbers of constants are shared, and do not
// count.
type formed struct {
	steps, numbers int
	shared         map[*float64]bool // by the first number
}

func (x *expander) pass(i int) error {
	lines := x.p.Passes[i].Lines
	x.i, x.entries, x.names, x.first, x.consts = i, make([]Entry, 0, len(lines)), make(map[string]bool, len(lines)), map[int]*Name{}, map[int]given{}
	x.counts = map[string]int{}
	x.arguments = map[string]*Constant{}
	x.sized = append(x.sized, make(map[string]sized, len(lines)))
	x.next = make([]string, len(lines))
	next := "end"
	for k, l := range slices.Backward(lines) {
		if l.Name != nil {
			next = l.Name.Name
			x.names[next] = true
			if l.Name.Of.Kind == ToValue && x.reps[l.Name.Of.Index] == nil && l.Name.Of.covers() && !x.behind(l.Name, x.first[l.Name.Of.Index]) {
				x.first[l.Name.Of.Index] = l.Name
			}
		}
		x.next[k] = next
	}
	defer x.ranked(lines)
	for k := range lines {
		var err error
		if l := &lines[k]; l.Step != nil {
			err = x.step(k, l)
		} else {
			err = x.named(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// covers reports whether a reference shows each element of a value once.
func (r *Ref) covers() bool {
	if r.Off != 0 {
		return false
	}
	_, ok := AxisOrder(r.Shape, r.Stride)
	return ok
}

// step adds the entries of a step's results.
func (x *expander) step(k int, l *Line) error {
	s := l.Step
	for n := range s.Out {
		out := n
		if s.chooses() { // what was chosen is computed from the choice, which an engine may have made otherwise
			out = 1 - n
		}
		value := s.First + out
		e := Entry{Layer: l.Layer, Level: Unnamed, Shape: s.Out[out].inMemory()}
		if s.Source >= 0 {
			e.Source = x.p.Sources[s.Source]
		}
		view := (*layout)(nil)
		r := &rep{pass: x.i, of: s.Op, parts: map[string]string{}}
		if n := x.first[value]; n != nil && program.Size(n.Of.Shape) == program.Size(s.Out[out].Shape) {
			e.Name, e.Level, e.Shape = n.Name, n.Level, atLeastOne(n.Of.Shape)
			view = &layout{atLeastOne(n.Of.Shape), atLeastOne(n.Of.Stride), 0}
			r.of = "input"
			r.see(view)
		} else {
			delete(x.first, value)
			e.Name = x.unnamed(x.next[k], s.Op)
		}
		e.DType = x.dtype(s.Out[out].DType)
		if err := x.operation(&e, s, out, view); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		x.add(e)
		r.name = e.Name
		x.reps[value] = r
	}
	return nil
}

// chooses reports whether the second result of a step are the indexes of the first.
func (s *Step) chooses() bool {
	switch s.Op {
	case "topk", "sort", "max", "min":
		return len(s.Out) == 2
	}
	return false
}

// add adds an entry of the pass.
func (x *expander) add(e Entry) {
	x.entries = append(x.entries, e)
	x.sized[x.i][e.Name] = sized{e.Shape, x.source(&e)}
}

// see makes a representative one that shows memory through strides.
func (r *rep) see(view *layout) {
	order, _ := AxisOrder(view.shape, view.stride)
	if r.view, r.axes = view, order; slices.Equal(view.stride, RowMajor(view.shape)) {
		r.view, r.axes = nil, nil
	}
}

// dtype is that of an entry: nothing where it is the model's.
func (x *expander) dtype(name string) string {
	if name == x.p.DType.String() {
		return ""
	}
	return name
}

func (x *expander) valueOf(value int) *Value {
	return x.p.value(value)
}

// value is a result by its number.
func (p *Program) value(n int) *Value { return &p.Values[n] }

// operation gives an entry its operation.
func (x *expander) operation(e *Entry, s *Step, out int, view *layout) error {
	v := &s.Out[out]
	sp := &spec{attr: s.Attr, shape: atLeastOne(v.Shape), view: view, model: v.DType == x.p.DType.String()}
	sp.order, _ = AxisOrder(sp.shape, atLeastOne(v.Stride))
	if len(sp.order) == 0 {
		sp.order = ascending(len(sp.shape))
	}
	if view != nil && slices.Equal(view.shape, sp.shape) && slices.Equal(view.stride, atLeastOne(v.Stride)) {
		sp.view, sp.order = nil, ascending(len(sp.shape))
	}
	d, err := hooks.ParseDType(v.DType)
	if err != nil {
		e.Op = Unknown{s.Op, "its result is of dtype " + v.DType}
		return nil
	}
	sp.dtype = d
	var words []string
	in := s.In
	if s.chooses() && out == 0 {
		v := &s.Out[1]
		in = append(slices.Clone(in), Ref{Kind: ToValue, Index: s.First + 1, Shape: v.Shape, Stride: v.Stride})
	}
	for _, in := range in {
		o := x.ref(e, in)
		if why := o.lost; why != "" {
			e.Op = Unknown{s.Op, why}
		}
		sp.operands = append(sp.operands, o.operand)
		words = append(words, o.of)
	}
	if e.Op != nil {
		return nil
	}
	e.Op = Op{Name: s.Op, Of: strings.Join(words, ", "), To: e.DType, Out: out, spec: x.intern(sp)}
	return x.try(e)
}

// numbers are the constants and buffers, each by its first number.
func (p *Program) numbers() map[*float64]bool {
	all := map[*float64]bool{}
	see := func(c *Constant) {
		if c != nil && len(c.Numbers) > 0 {
			all[&c.Numbers[0]] = true
		}
	}
	for _, c := range p.Constants {
		see(c)
	}
	for _, w := range p.Weights {
		see(w.Data)
	}
	return all
}

func ascending(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// inMemory returns the shape of a value with the axes in memory order.
func (v *Value) inMemory() []int {
	shape := atLeastOne(v.Shape)
	order, ok := AxisOrder(shape, atLeastOne(v.Stride))
	if !ok {
		return shape
	}
	out := make([]int, len(shape))
	for i, a := range order {
		out[i] = shape[a]
	}
	return out
}
