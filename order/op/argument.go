package op

import "errors"

// Argument is a tensor that the caller gives: token ids or positions, int64. No inputs.
type Argument struct{}

// Kind is "argument".
func (Argument) Kind() string { return "argument" }

// Eval is an error: an argument is given, not computed.
func (Argument) Eval(Call) (Value, error) {
	return Value{}, errors.New("an argument of the model is not computed from anything")
}

// Given: it is what the caller passes.
func (Argument) Given() {}
