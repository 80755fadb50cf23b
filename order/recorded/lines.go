package recorded

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/program"
)

// caller is one use of a template.
type caller struct {
	*reader
	layer int
	holes []any
	first int // the number of the first value that it makes
}

// fill returns the value v of a template or, for a hole such as "$0", the call's value for the hole.
func (c *caller) fill(v any) (any, error) {
	text, ok := v.(string)
	if !ok || !strings.HasPrefix(text, "$") {
		return v, nil
	}
	n, err := strconv.Atoi(text[1:])
	if err != nil || n < 0 || n >= len(c.holes) {
		return nil, fmt.Errorf("hole %.20q of %d", text, len(c.holes))
	}
	return c.holes[n], nil
}

// text is a text of a template, with the layer's number.
func (c *caller) text(s string) string {
	if c.layer < 0 {
		return s
	}
	return strings.Replace(s, "{layer}", strconv.Itoa(c.layer), 1)
}

func (c *caller) line(l *line) (Line, error) {
	out := Line{Layer: c.layer}
	var err error
	switch {
	case l.Name != nil && l.Op == "":
		out.Name, err = c.name(l)
	case l.Op != "" && l.Name == nil:
		out.Step, err = c.step(l)
	default:
		err = errors.New("neither a step nor a name")
	}
	return out, err
}

func (c *caller) name(l *line) (*Name, error) {
	v, err := c.fill(l.Name)
	name, ok := v.(string)
	if err != nil || !ok {
		return nil, fmt.Errorf("its name is %.40v", l.Name)
	}
	if name = c.text(name); name == "" || !printable(name, 1<<10) || strings.ContainsAny(name, "/ ") {
		return nil, fmt.Errorf("%.60q is not a tensor name", name)
	}
	level, err := c.integer(l.Level)
	if err != nil || level < 1 || level > 3 {
		return nil, fmt.Errorf("the level of %s is %.20v, want 1 to 3", name, l.Level)
	}
	of, err := c.ref(l.Of)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if of.Kind == ToNothing || of.Kind == ToNumber {
		return nil, fmt.Errorf("%s is not the name of a tensor", name)
	}
	return &Name{Name: name, Of: of, Level: level}, nil
}

// printable reports whether a text of the file, which stands in reports, is one line without control characters.
func printable(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (c *caller) step(l *line) (*Step, error) {
	if !printable(l.Op, 1<<7) {
		return nil, fmt.Errorf("%.60q is not the name of an operation", l.Op)
	}
	s := &Step{Op: l.Op, First: c.reader.first + len(c.values), Source: -1}
	if len(l.In) > maxOperands || len(l.Out) > maxOperands {
		return nil, fmt.Errorf("%s of %d operands with %d results", l.Op, len(l.In), len(l.Out))
	}
	s.In = make([]Ref, 0, len(l.In))
	for k, in := range l.In {
		ref, err := c.ref(in)
		if err != nil {
			return nil, fmt.Errorf("operand %d of %s: %w", k, l.Op, err)
		}
		s.In = append(s.In, ref)
	}
	if len(l.Attr) > 0 {
		s.Attr = make(map[string]any, len(l.Attr))
	}
	for name, v := range l.Attr {
		var err error
		if s.Attr[name], err = c.setting(v, 0); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", name, l.Op, err)
		}
	}
	if l.At != nil {
		at, err := c.integer(l.At)
		if err != nil || at < 0 || at >= len(c.Lines) {
			return nil, fmt.Errorf("%s is of line %.20v of %d", l.Op, l.At, len(c.Lines))
		}
		s.Source = at
	}
	s.Out = make([]Value, 0, len(l.Out))
	for k, out := range l.Out {
		v, err := c.value(out)
		if err != nil {
			return nil, fmt.Errorf("result %d of %s: %w", k, l.Op, err)
		}
		s.Out = append(s.Out, v)
	}
	c.complex(s)
	c.values = append(c.values, s.Out...) // after the operands: no step reads itself
	return s, nil
}

// complex gives a step that computes with complex numbers the name of the operation on their parts.
func (c *caller) complex(s *Step) {
	is := func(r Ref) bool { return r.Kind == ToValue && c.made(r.Index).complex }
	if some := slices.ContainsFunc(s.In, is); !some && !slices.ContainsFunc(s.Out, func(v Value) bool { return v.complex }) {
		return
	}
	switch {
	case s.Op == "bits", s.Op == "polar", s.Op == "to":
	case s.Op == "mul" && len(s.In) == 2 && is(s.In[0]) && is(s.In[1]):
		s.Op = "complex_mul"
	case s.Op == "mul" && len(s.In) == 2 && s.In[1].Kind == ToNumber:
	default:
		s.Op = "complex_" + s.Op
	}
}

// value reads [dtype, shape] or [dtype, shape, strides].
func (c *caller) value(v any) (Value, error) {
	list, ok := v.([]any)
	if !ok || len(list) < 2 || len(list) > 3 {
		return Value{}, fmt.Errorf("%.60v: want a dtype, a shape and strides", v)
	}
	dtype, ok := list[0].(string)
	if !ok || !printable(dtype, 1<<6) {
		return Value{}, fmt.Errorf("its dtype is %.40q", list[0])
	}
	shape, err := c.integers(list[1])
	if err != nil {
		return Value{}, err
	}
	n, err := Elements(shape)
	if err != nil {
		return Value{}, err
	}
	out := Value{DType: dtype, Shape: shape, Stride: RowMajor(shape)}
	if len(list) == 3 {
		if out.Stride, err = c.integers(list[2]); err != nil {
			return Value{}, err
		}
		if _, ok := AxisOrder(shape, out.Stride); !ok && n > 0 {
			return Value{}, fmt.Errorf("the strides %v of %v do not show each element once", out.Stride, shape)
		}
	}
	if dtype != complexNumbers {
		return out, nil
	}
	out.DType, out.complex = hooks.F32.String(), true
	out.Shape, out.Stride, _ = ofParts(out.Shape, out.Stride, 0)
	_, err = Elements(out.Shape)
	return out, err
}

// complexNumbers is the dtype of complex numbers: a real part, followed by the imaginary part.
const complexNumbers = "complex64"

// ofParts turns a layout of complex numbers into a layout of real and imaginary parts, with the two parts as the last
// axis.
func ofParts(shape, stride []int, off int) (parts, strides []int, at int) {
	for _, s := range stride {
		strides = append(strides, 2*s)
	}
	return append(slices.Clone(shape), 2), append(strides, 1), 2 * off
}

// ref reads an operand.
func (c *caller) ref(v any) (Ref, error) {
	v, err := c.fill(v)
	if err != nil {
		return Ref{}, err
	}
	switch v := v.(type) {
	case nil:
		return Ref{Kind: ToNothing}, nil
	case string:
		return c.whole(v)
	case []any:
		return c.view(v)
	}
	x, err := c.setting(v, 0)
	if err != nil {
		return Ref{}, err
	}
	switch x := x.(type) {
	case int:
		return Ref{Kind: ToNumber, Number: float64(x)}, nil
	case float64:
		return Ref{Kind: ToNumber, Number: x}, nil
	case bool:
		ref := Ref{Kind: ToNumber}
		if x {
			ref.Number = 1
		}
		return ref, nil
	}
	return Ref{}, fmt.Errorf("%.60v is not an operand", v)
}

// whole is a reference to all of a value, of a weight or of a constant, as it is.
func (c *caller) whole(text string) (Ref, error) {
	if text == "" {
		return Ref{}, errors.New("an empty operand")
	}
	n, err := strconv.Atoi(text[1:])
	switch text[0] {
	case 'w':
		name, ok := strings.CutPrefix(c.text(text), "w:")
		w := c.weights[name]
		if !ok || w == nil {
			return Ref{}, fmt.Errorf("there is no weight %.80q", text)
		}
		return Ref{Kind: ToWeight, Weight: name, Shape: w.Shape, Stride: RowMajor(w.Shape)}, nil
	case 'c':
		if err != nil || n < 0 || n >= len(c.constants) {
			return Ref{}, fmt.Errorf("%.20q of %d constants", text, len(c.constants))
		}
		shape := c.constants[n].Shape
		return Ref{Kind: ToConstant, Index: n, Shape: shape, Stride: RowMajor(shape)}, nil
	case 't':
		n += c.first
		if n < c.first {
			n = -1
		}
	case 'v':
	default:
		return Ref{}, fmt.Errorf("%.40q is not an operand", text)
	}
	at := n - c.reader.first
	if err != nil || n < 0 || at >= len(c.values) {
		return Ref{}, fmt.Errorf("%.20q is not a step before this one", text)
	}
	if at < 0 {
		return Ref{}, fmt.Errorf("%.20q is of another run", text)
	}
	return Ref{Kind: ToValue, Index: n, Shape: c.made(n).Shape, Stride: c.made(n).Stride}, nil
}

// made is a value that a step before has made in this run; values are numbered over all runs.
func (c *caller) made(n int) *Value { return &c.values[n-c.reader.first] }

// view reads [operand, shape, strides, offset], or ["none", shape].
func (c *caller) view(list []any) (Ref, error) {
	if len(list) > 0 {
		if text, ok := list[0].(string); ok && text == "none" {
			return Ref{Kind: ToNothing}, nil
		}
	}
	if len(list) != 4 {
		return Ref{}, fmt.Errorf("%.80v: want an operand, a shape, strides and an offset", list)
	}
	of, err := c.fill(list[0])
	if err != nil {
		return Ref{}, err
	}
	text, ok := of.(string)
	if !ok {
		return Ref{}, fmt.Errorf("a view of %.40v", list[0])
	}
	ref, err := c.whole(text)
	if err != nil {
		return Ref{}, err
	}
	n, _ := Elements(ref.Shape)
	if ref.Shape, err = c.integers(list[1]); err != nil {
		return Ref{}, err
	}
	if ref.Stride, err = c.integers(list[2]); err != nil {
		return Ref{}, err
	}
	if ref.Off, err = c.integer(list[3]); err != nil {
		return Ref{}, err
	}
	if _, err := Elements(ref.Shape); err != nil {
		return Ref{}, err
	}
	if ref.Kind == ToValue && c.made(ref.Index).complex && len(ref.Shape) == len(ref.Stride) {
		ref.Shape, ref.Stride, ref.Off = ofParts(ref.Shape, ref.Stride, ref.Off)
	}
	if len(ref.Shape) != len(ref.Stride) || !program.Within(n, ref.Shape, ref.Stride, ref.Off) {
		return Ref{}, fmt.Errorf("%s has %d elements: a view of %v by %v from %d does not fit", text, n, ref.Shape, ref.Stride, ref.Off)
	}
	return ref, nil
}

// setting is a setting's value: a number, a flag, a text, or a list of these.
func (c *caller) setting(v any, depth int) (any, error) {
	v, err := c.fill(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any:
		text, _ := v["number"].(string)
		if x, ok := named[text]; ok && len(v) == 1 {
			return x, nil
		}
		return nil, fmt.Errorf("%.60v is not a number", v)
	case []any:
		if depth > 2 {
			return nil, errors.New("lists of lists of lists")
		}
		list := make([]any, len(v))
		for i := range v {
			if list[i], err = c.setting(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return v, nil
}

func (c *caller) integer(v any) (int, error) {
	v, err := c.fill(v)
	if err != nil {
		return 0, err
	}
	n, ok := whole(v)
	if !ok {
		return 0, fmt.Errorf("%.40v is not a whole number", v)
	}
	return n, nil
}

func (c *caller) integers(v any) ([]int, error) {
	list, ok := v.([]any)
	if !ok || len(list) > maxRank {
		return nil, fmt.Errorf("%.60v: want a list of at most %d numbers", v, maxRank)
	}
	all := make([]int, len(list))
	for i := range list {
		var err error
		if all[i], err = c.integer(list[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// whole is a whole number of JSON.
func whole(v any) (int, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(n.String())
	return i, err == nil
}
