package recorded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// ErrUnknown says that this package has no formula for an operation, or for a setting of the operation.
var ErrUnknown = errors.New("no formula is known for it")

// Op is one recorded operation, as a program's entry has it. Two are the same where they were recorded with the same operands'
// views, settings and results.
type Op struct {
	// Name is torch's, without the marks of variants: "mul" for mul.Tensor, mul.Scalar and mul_.
	Name string `json:"-"`
	// Of lists the source of each operand: the operation that made it, or "input" for a named tensor, "weight",
	// "constant", "number". Engines compute entries with equal Of alike.
	Of string `json:"of,omitempty"`
	// To is the dtype of the result, where it is not the model's.
	To string `json:"to,omitempty"`
	// Out is which of several results this is.
	Out int `json:"out,omitempty"`

	spec *spec
}

// Kind is the operation's name.
func (o Op) Kind() string { return o.Name }

// Steps adds the formula of the operation to a program.
func (o Op) Steps(b *program.Builder, in, w []program.Var) program.Var {
	f, ok := formulas[o.Name]
	if !ok {
		return b.Fail("%w", ErrUnknown)
	}
	m := &maker{b: b, o: o, s: o.spec, in: in, w: w}
	return m.shown(f(m))
}

// Call is the operation as a readable call: "mul(input, 0.125)", "softmax(mul, dim=-1)". An operand is named by its
// source, see Of.
func (o Op) Call() string {
	of := strings.Split(o.Of, ", ")
	var parts []string
	for k := range of {
		if k >= len(o.spec.operands) {
			break
		}
		p := &o.spec.operands[k]
		if n, ok := p.one(); ok {
			of[k] = strconv.FormatFloat(n, 'g', -1, 64)
		}
		parts = append(parts, of[k])
	}
	for _, name := range slices.Sorted(maps.Keys(o.spec.attr)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, o.spec.attr[name]))
	}
	if call := o.Name + "(" + strings.Join(parts, ", ") + ")"; printable(call, maxCall) {
		return call
	}
	return o.Name
}

// maxCall bounds the text of a call.
const maxCall = 200

// one returns the number of an operand that is a single number; ok is false for a tensor.
func (p *operand) one() (x float64, ok bool) {
	switch {
	case p.source == fromNumber:
		return p.number, true
	case p.source == fromConst && len(p.data.Numbers) == 1:
		return p.data.Numbers[0], true
	}
	return 0, false
}

// Unknown is an operation without a known formula: its results can be neither confirmed nor refuted.
type Unknown struct {
	Name string `json:"-"`
	Why  string `json:"why"`
}

// Kind is the operation's name.
func (o Unknown) Kind() string { return o.Name }

// Steps is an error.
func (o Unknown) Steps(b *program.Builder, _, _ []program.Var) program.Var {
	return b.Fail("%s: %s", o.Name, o.Why)
}

// Constants is a value of a program that depends on no tensor: the numbers are part of the program.
type Constants struct {
	// Sum is the digest of the recorded numbers. For a prompt of another length, a rule makes other numbers, and Sum
	// stays.
	Sum string `json:"sha256"`

	spec *spec
}

// Kind is "constants".
func (Constants) Kind() string { return "constants" }

// Steps shows the numbers.
func (o Constants) Steps(b *program.Builder, _, _ []program.Var) program.Var {
	m := &maker{b: b, s: o.spec}
	return m.shown(m.operand(0))
}

// Exact: numbers are copied.
func (Constants) Exact() {}

// Mask returns the window of a causal attention mask that is added to scores, 0 without a window. ok is false for
// other numbers, and for a part of a mask.
func (o Constants) Mask() (window int, ok bool) {
	p := &o.spec.operands[0]
	if p.source != fromConst || !slices.Equal(p.shape, atLeastOne(p.data.Shape)) || !slices.Equal(p.stride, RowMajor(p.shape)) {
		return 0, false
	}
	if p.data.mask != nil {
		return p.data.mask.window, true
	}
	// That of one query, the last, which sees all keys that are there.
	rows := program.Size(p.shape[:len(p.shape)-1])
	return 0, rows == 1 && !slices.ContainsFunc(p.data.Numbers, func(x float64) bool { return x != 0 })
}

// Seen is a tensor under another name, or a part of a tensor: a view of its input.
type Seen struct {
	Of string `json:"of,omitempty"` // what its input is, as [Op.Of] has it

	spec *spec
}

// Kind is "view".
func (Seen) Kind() string { return "view" }

// Steps shows the input.
func (o Seen) Steps(b *program.Builder, in, w []program.Var) program.Var {
	m := &maker{b: b, s: o.spec, in: in, w: w}
	return m.shown(m.operand(0))
}

// Exact: elements are copied.
func (Seen) Exact() {}

// spec holds the properties of an operation except its name. Operations that were recorded alike share a spec.
type spec struct {
	operands []operand
	attr     map[string]any
	shape    []int // of the result
	dtype    hooks.DType
	model    bool // the result is of the model's dtype
	// Axes of the result in memory order, the outermost axis first: the axes that the entry shows, if view is nil.
	order []int
	view  *layout // what the entry shows of the result's memory
}

// layout is a strided view of memory.
type layout struct {
	shape, stride []int
	off           int
}

// source is where an operand comes from.
type source uint8

const (
	fromInput  source = iota // an entry: of the program's inputs
	fromWeight               // a checkpoint tensor
	fromConst                // numbers of the program
	fromNumber               // one number
	fromNone                 // left out
)

// operand is one operand: a view of memory.
type operand struct {
	source source
	index  int     // of the inputs or weights
	more   []int   // weights whose rows follow those of the first
	turned bool    // the weight is the transpose of what was recorded
	number float64 // of a number
	data   *Constant
	axes   []int   // the axes of the input in memory's order; nil: the input is as memory is
	entry  *layout // the input's view of memory; nil for the whole memory in its order
	layout         // what the operand shows of memory
	dtype  hooks.DType
	scalar bool // it has no axes
}

// maker adds the steps of one operation.
type maker struct {
	b     *program.Builder
	o     Op
	s     *spec
	in, w []program.Var
}

// unknown makes the operation one without a formula.
func (m *maker) unknown(format string, args ...any) program.Var {
	return m.b.Fail("%s: %w", fmt.Sprintf(format, args...), ErrUnknown)
}

// has reports whether there is an operand k.
func (m *maker) has(k int) bool {
	return k < len(m.s.operands) && m.s.operands[k].source != fromNone
}

// operand returns operand k as the operation reads it. A Python number is a float32, unless the operation says
// otherwise.
func (m *maker) operand(k int) program.Var {
	if k >= len(m.s.operands) {
		return m.b.Fail("operand %d is not there", k)
	}
	p := &m.s.operands[k]
	switch p.source {
	case fromNumber:
		return m.b.Scalar(fmt.Sprintf("number %d", k), p.number)
	case fromConst:
		v := m.constant(p.data)
		return m.scalar(p, m.b.View(v, p.shape, p.stride, p.off))
	case fromWeight:
		return m.scalar(p, m.b.View(m.weight(p), p.shape, p.stride, p.off))
	case fromInput:
		v := m.in[p.index]
		if p.entry != nil {
			if slices.Equal(p.entry.shape, p.shape) && slices.Equal(p.entry.stride, p.stride) && p.off == 0 {
				return m.scalar(p, v)
			}
			v = m.b.Permute(v, p.axes...)
		}
		return m.scalar(p, m.b.View(v, p.shape, p.stride, p.off))
	}
	return m.b.Fail("operand %d was left out", k)
}

// constant returns the numbers of a constant. The numbers of a mask are computed from positions, so that an edit can
// change the mask.
func (m *maker) constant(c *Constant) program.Var {
	shape := atLeastOne(c.Shape)
	if c.mask == nil {
		return m.b.Constant("", c.Numbers, shape)
	}
	positions := m.b.Constant("positions", c.mask.positions, []int{len(c.mask.positions)})
	return m.b.Max(m.b.MaskOf(positions, c.mask.window, shape), m.b.Literal(c.mask.hidden))
}

// weight returns a parameter as memory has it: a tensor of the checkpoint, its transpose, or several tensors in
// sequence.
func (m *maker) weight(p *operand) program.Var {
	w := m.b.Whole(m.w[p.index])
	if p.turned {
		return m.b.Permute(w, 1, 0)
	}
	if len(p.more) == 0 {
		return w
	}
	all := []program.Var{m.b.Reshape(w, -1)}
	for _, k := range p.more {
		all = append(all, m.b.Reshape(m.b.Whole(m.w[k]), -1))
	}
	return m.b.Cat(0, all...)
}

// scalar returns a tensor without axes in the dtype of the other operand, as torch reads the tensor: the result has
// this dtype.
func (m *maker) scalar(p *operand, v program.Var) program.Var {
	if p.scalar && m.s.model && p.dtype != m.s.dtype && p.dtype.Float() && len(m.s.operands) > 1 {
		return m.b.R(v)
	}
	return v
}

// cast is operand k where an operation moves it into the result: a number is rounded to the result's dtype first.
func (m *maker) cast(k int) program.Var {
	if k < len(m.s.operands) && m.s.operands[k].source == fromNumber {
		return m.number(fmt.Sprintf("number %d", k), m.s.operands[k].number)
	}
	return m.operand(k)
}

// number is a number of the result's dtype.
func (m *maker) number(name string, x float64) program.Var {
	if m.s.model {
		return m.b.Given(name, x)
	}
	return m.b.Scalar(name, x)
}

// narrow is a rounding within an operation, to its result's dtype.
func (m *maker) narrow(v program.Var) program.Var {
	if m.s.model {
		return m.b.R(v)
	}
	return v
}

// shown is what the entry has of a result of the recorded shape.
func (m *maker) shown(v program.Var) program.Var {
	if !slices.Equal(v.Shape, m.s.shape) {
		v = m.b.Reshape(v, m.s.shape...)
	}
	if m.s.view == nil {
		return m.b.Permute(v, m.s.order...)
	}
	return m.b.View(m.b.Permute(v, m.s.order...), m.s.view.shape, m.s.view.stride, m.s.view.off)
}

// The settings of an operation. A setting whose type is not torch's makes the operation unknown.

func (m *maker) integer(name string, otherwise int) int {
	v, ok := m.s.attr[name]
	if !ok {
		return otherwise
	}
	n, ok := v.(int)
	if !ok {
		m.unknown("its %s is %v", name, v)
	}
	return n
}

func (m *maker) real(name string, otherwise float64) float64 {
	switch v := m.s.attr[name].(type) {
	case nil:
		return otherwise
	case int:
		return float64(v)
	case float64:
		return v
	default:
		m.unknown("its %s is %v", name, v)
	}
	return otherwise
}

func (m *maker) flag(name string, otherwise bool) bool {
	if v, ok := m.s.attr[name].(bool); ok {
		return v
	}
	return otherwise
}

func (m *maker) text(name, otherwise string) string {
	if v, ok := m.s.attr[name].(string); ok {
		return v
	}
	return otherwise
}

// integers is a list of whole numbers, or one.
func (m *maker) integers(name string) (all []int, ok bool) {
	switch v := m.s.attr[name].(type) {
	case int:
		return []int{v}, true
	case []any:
		for _, x := range v {
			n, is := x.(int)
			if !is {
				m.unknown("its %s is %v", name, v)
				return nil, false
			}
			all = append(all, n)
		}
		return all, true
	}
	return nil, false
}

// axisOf is an axis of a shape, counted from the end where it is below zero.
func axisOf(b *program.Builder, a int, shape []int) int {
	if a < 0 {
		a += len(shape)
	}
	if a < 0 || a >= len(shape) {
		b.Fail("axis %d of %v", a, shape)
		return 0
	}
	return a
}

// only makes the operation unknown if the operation has a setting outside names.
func (m *maker) only(names ...string) {
	for name := range m.s.attr {
		if !slices.Contains(names, name) {
			m.unknown("its setting %s", name)
		}
	}
}
