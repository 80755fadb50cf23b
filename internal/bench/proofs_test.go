package main

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	numbers "github.com/tracediff/tracediff/compare/measure"
)

// A run proves that roundings give what it has where a certificate says so: not where an entry is a BUG, may not be accused, has
// elements that nothing bounds, or is moved by as much as would have been seen. What a proof lacks is not located.
func TestProofs(t *testing.T) {
	const known = "keeps product in float32, which transformers rounds"
	for _, c := range []struct {
		name   string
		c      isolate.Certificate
		proven bool
	}{
		{"every bit is right", isolate.Certificate{Outcome: isolate.Exact}, true},
		{"an arithmetic gives it", isolate.Certificate{Outcome: isolate.Rounding, Unequal: 3, Arithmetic: known}, true},
		{"an arithmetic without a name", isolate.Certificate{Outcome: isolate.Rounding, Unequal: 3}, false},
		{"below what is seen", isolate.Certificate{Outcome: isolate.Unidentified, Unequal: 3, RelL2: 0.007, Power: 0.08}, true},
		{"as much as is seen", isolate.Certificate{Outcome: isolate.Unidentified, Unequal: 3, RelL2: 0.08, Power: 0.08}, false},
		{"no scale is seen", isolate.Certificate{Outcome: isolate.Unidentified, Unequal: 3, Power: numbers.Number(math.NaN())}, false},
		{"nothing bounds it", isolate.Certificate{Outcome: isolate.Unidentified, Unequal: 3, Unbounded: 1, RelL2: 0.007, Power: 0.08}, false},
		{"a bug", isolate.Certificate{Outcome: isolate.Bug, Unequal: 3, Arithmetic: known, RelL2: 0.007, Power: 0.08}, false},
		{"may not accuse", isolate.Certificate{Outcome: isolate.NotCertified, Unequal: 3, Arithmetic: known, RelL2: 0.007, Power: 0.08}, false},
		{"another layout", isolate.Certificate{Outcome: isolate.OtherLayout, Unequal: 3, Arithmetic: known, RelL2: 0.007, Power: 0.08}, false},
	} {
		if _, got := proofOf("layers.0.mlp.act_fn", &c.c); got != c.proven {
			t.Errorf("%s: %t, want %t", c.name, got, c.proven)
		}
	}
	some := []proof{{Entry: "layers.0.mlp.act_fn", Elements: 8, Unequal: 3, Arithmetic: known}}
	for _, c := range []struct {
		r    result
		want string
	}{
		{result{Proofs: some}, "rounding"},
		{result{}, "**not located**"},
		{result{Proofs: some, Accused: []string{"norm"}}, "**accuses norm**"},
		{result{Proofs: some, Located: true}, "located"},
	} {
		c.r.Faults = []fault{{Name: "of an activation"}}
		if got := c.r.outcome(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.r, got, c.want)
		}
	}
}
