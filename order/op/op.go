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
	"sync"

	"github.com/tracediff/tracediff/order/program"
)

// Op is one operation: its constants are fields, its formula is its Steps.
type Op = program.Op

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

// in is the constant as an operation sees it. That of a cast is part of the model: it is a factor of the whole result, and a
// port that leaves it out, or has one of its own, is wrong by that factor.
func (k Const) in(b *program.Builder, name string) program.Var {
	if k.Cast {
		return b.Given(name, k.Value)
	}
	return b.Scalar(name, k.Value)
}

// Form is an operation without its numbers: its kind, its texts, its flags and which numbers it has, such as
// "rotary(dim, scaling=linear, sin, theta)". Two operations of one form run through the same arithmetic, so what is
// shown of one holds for the other.
func Form(o Op) string {
	if f, ok := forms.Load(o); ok {
		return f.(string)
	}
	f := form(o)
	forms.Store(o, f)
	return f
}

// forms caches the form of every operation. A process has few: one for each configuration of an operation.
var forms sync.Map

func form(o Op) string {
	fields, err := json.Marshal(o)
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(fields, &m)
	}
	if err != nil { // numbers, texts, flags and structs of them: a value that is not one of these is a mistake in this package
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
