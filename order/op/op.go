// Package op has the operations of a forward pass as values: a type an operation, its constants as fields.
//
// An operation says what is computed, with every rounding point; it holds no weights, no tensors and no names. R(x)
// in the comments is rounding to the model's dtype, to nearest even; what is not under an R is float32. Two
// operations are the same when their values are equal, so a bug is named by another value of the same type:
// another theta, window or gain.
//
// The order of the inputs is part of an operation's contract and stands in its comment.
package op

import "encoding/json"

// Op is one operation.
type Op interface {
	// Kind is the operation's name in listings and in JSON, such as "rms_norm".
	Kind() string
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
