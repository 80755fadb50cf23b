package diagnose_test

import (
	"testing"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// A place in a recorded model is said in the language of its source as far as it is known, and is no part of a key.
func TestPlacesInWords(t *testing.T) {
	for _, c := range []struct {
		code diagnose.Code
		want string
	}{
		{diagnose.Code{Operation: "mul", Line: "lib/models/net.py:213", Expression: "x * scale"}, "`x * scale` (net.py:213) is a sum, not 0.5"},
		{diagnose.Code{Operation: "softmax", Line: "net.py:7", Expression: "s.softmax(-1)", Within: "the division"}, "the division within `s.softmax(-1)` (net.py:7) is a sum, not 0.5"},
		{diagnose.Code{Operation: "mul", Line: "net.py:213"}, "torch's mul (net.py:213) is a sum, not 0.5"},
		{diagnose.Code{Operation: "mul"}, "torch's mul is a sum, not 0.5"},
		{diagnose.Code{Operation: "constants", Within: "the maximum"}, "the maximum within a constant is a sum, not 0.5"},
		{diagnose.Code{}, "step mul.product is a sum, not 0.5"},
	} {
		m := diagnose.Mistake{
			Kind: "step.exchanged", Of: diagnose.Term{Kind: diagnose.Step, Name: "mul.product"}, By: diagnose.Term{Kind: diagnose.Primitive, Name: "add"},
			For: diagnose.Term{Kind: diagnose.Literal, X: 0.5},
		}
		key := m.Key()
		if m.Of.Code = c.code; m.String() != c.want || m.Key() != key {
			t.Errorf("%+v: %q with the key %q, want %q and %q", c.code, m, m.Key(), c.want, key)
		}
		axis := diagnose.Mistake{Kind: "axis.wrong", Place: "mul.product", Code: c.code}
		want := c.want[:len(c.want)-len(" is a sum, not 0.5")] + " runs over the wrong axis"
		if axis.String() != want {
			t.Errorf("%+v: %q, want %q", c.code, axis, want)
		}
	}
}
