// Package op has the operations of a forward pass as values: one file an operation, its constants as fields, its formula
// in its comment with every rounding point, and its value in float64.
//
// An operation holds no weights, no tensors and no names. Two are the same when their values are equal, so a bug can be
// named by another value of the same type: another theta, window or gain. The order of the inputs is part of an
// operation's contract and stands in its comment.
//
// R(x) in the comments is rounding to the model's dtype, to nearest even; what is not under an R is float32. Nothing
// here is shared with a model that runs: these are the formulas to be judged by, so they are written to be read and
// checked against the reference's source, one at a time.
package op

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Op is one operation.
type Op interface {
	// Kind is the operation's name in listings and in JSON, such as "rms_norm".
	Kind() string
	// Eval computes the operation on inputs and weights of the shapes that the order gives them, which it trusts. The last R
	// of the formula is left to the caller, see [Arith.Round]: a judge wants the value before it. With Bounds the value has
	// them; how an operation's follows stands in the comment of its Eval. The error is that of an index out of range, or of
	// a weight that cannot be read.
	Eval(c Call) (Value, error)
}

// Call is what one evaluation of an operation is given.
type Call struct {
	Arith
	In    []Value
	W     []Rows
	Shape []int // of the result
}

// Value is a tensor in float64, row-major. Bound, where it is not nil, says for each element how far from Data a
// correct computation may be; see [Arith].
type Value struct {
	Shape       []int
	Data, Bound []float64
}

// Rows is a weight, read row by row so that no table is held whole. A vector is one row.
type Rows interface {
	Size() (rows, cols int)
	// Row writes row i to dst, which has cols elements. It may be called from several goroutines.
	Row(dst []float64, i int) error
}

// at returns element i with its bound.
func (v Value) at(i int) Num {
	n := Num{V: v.Data[i]}
	if v.Bound != nil {
		n.E = v.Bound[i]
	}
	return n
}

// last is the size of the last axis.
func (v Value) last() int { return v.Shape[len(v.Shape)-1] }

// sizeOf is the number of elements of a shape.
func sizeOf(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// result makes room for the result.
func (c Call) result() Value {
	n := sizeOf(c.Shape)
	v := Value{Shape: c.Shape, Data: make([]float64, n)}
	if c.Bounds {
		v.Bound = make([]float64, n)
	}
	return v
}

func (v Value) set(i int, n Num) {
	v.Data[i] = n.V
	if v.Bound != nil {
		v.Bound[i] = n.E
	}
}

// each computes the result element by element.
func (c Call) each(f func(i int) Num) (Value, error) {
	v := c.result()
	for i := range v.Data {
		v.set(i, f(i))
	}
	return v, nil
}

// eachRow computes one element from each n elements of x.
func (c Call) eachRow(x Value, n int, f func(row Value) Num) (Value, error) {
	return c.each(func(i int) Num { return f(x.slice(i*n, n)) })
}

// slice is n elements from i on, as a vector.
func (v Value) slice(i, n int) Value {
	s := Value{Shape: []int{n}, Data: v.Data[i : i+n]}
	if v.Bound != nil {
		s.Bound = v.Bound[i : i+n]
	}
	return s
}

// vector reads a weight of one row.
func (c Call) vector(i int) ([]float64, error) {
	_, n := c.W[i].Size()
	w := make([]float64, n)
	return w, c.W[i].Row(w, 0)
}

// index reads element i of ids as an index below n.
func (v Value) index(i, n int) (int, error) {
	id := v.Data[i]
	if !(id >= 0 && id < float64(n)) || id != float64(int(id)) {
		return 0, fmt.Errorf("index %v at %d is outside [0, %d)", id, i, n)
	}
	return int(id), nil
}

// Marshal writes an operation as one JSON object: its kind, then its fields.
func Marshal(o Op) ([]byte, error) {
	fields, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	kind, err := json.Marshal(o.Kind())
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"kind":`), kind...)
	if len(fields) > 2 { // more than "{}"
		out = append(out, ',')
		return append(out, fields[1:]...), nil
	}
	return append(out, '}'), nil
}

// Const is a scalar operand. A Python scalar takes part unrounded, as a float32; one that the reference cast
// to the model's dtype first is rounded before it is used.
type Const struct {
	Value float64 `json:"value"`
	Cast  bool    `json:"cast,omitempty"` // R(Value) is what is used
}

// in is the constant as an operation sees it.
func (k Const) in(a Arith) Num {
	if k.Cast {
		return a.castConst(k.Value)
	}
	return a.scalar(k.Value)
}

// Form is an operation without its numbers: its kind, its texts, its flags and which numbers it has, such as
// "rotary(dim, scaling=linear, sin, theta)". Two operations of one form run through the same arithmetic, so what is
// shown of one holds for the other.
func Form(o Op) string {
	fields, err := json.Marshal(o)
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(fields, &m)
	}
	if err != nil { // numbers, texts, flags and structs of them: a value that is none of these is a mistake in this package
		panic(fmt.Sprintf("op: %T does not marshal: %v", o, err))
	}
	parts := formOf(m)
	if len(parts) == 0 {
		return o.Kind()
	}
	return o.Kind() + "(" + strings.Join(parts, ", ") + ")"
}

func formOf(m map[string]any) []string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch v := m[key].(type) {
		case bool:
			if v {
				parts = append(parts, key)
			}
		case string:
			parts = append(parts, key+"="+v)
		case map[string]any:
			for _, part := range formOf(v) {
				parts = append(parts, key+"."+part)
			}
		default:
			parts = append(parts, key)
		}
	}
	return parts
}
