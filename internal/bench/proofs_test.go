package main

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/compare/certify"
	numbers "github.com/tracediff/tracediff/compare/measure"
)

// A run proves that roundings give what it has where a certificate says so: not where an entry is a BUG, may not be accused, has
// elements that nothing bounds, or is moved by as much as would have been seen. What a proof lacks is not located.
func TestProofs(t *testing.T) {
	const known = "keeps product in float32, which transformers rounds"
	for _, c := range []struct {
		name   string
		c      certify.Certificate
		proven bool
	}{
		{"every bit is right", certify.Certificate{Outcome: certify.Exact}, true},
		{"an arithmetic gives it", certify.Certificate{Outcome: certify.Rounding, Unequal: 3, Arithmetic: known}, true},
		{"an arithmetic without a name", certify.Certificate{Outcome: certify.Rounding, Unequal: 3}, false},
		{"below what is seen", certify.Certificate{Outcome: certify.Unidentified, Unequal: 3, RelL2: 0.007, Power: 0.08}, true},
		{"as much as is seen", certify.Certificate{Outcome: certify.Unidentified, Unequal: 3, RelL2: 0.08, Power: 0.08}, false},
		{"no scale is seen", certify.Certificate{Outcome: certify.Unidentified, Unequal: 3, Power: numbers.Number(math.NaN())}, false},
		{"nothing bounds it", certify.Certificate{Outcome: certify.Unidentified, Unequal: 3, Unbounded: 1, RelL2: 0.007, Power: 0.08}, false},
		{"a bug", certify.Certificate{Outcome: certify.Bug, Unequal: 3, Arithmetic: known, RelL2: 0.007, Power: 0.08}, false},
		{"may not accuse", certify.Certificate{Outcome: certify.NotCertified, Unequal: 3, Arithmetic: known, RelL2: 0.007, Power: 0.08}, false},
		{"another layout", certify.Certificate{Outcome: certify.OtherLayout, Unequal: 3, Arithmetic: known, RelL2: 0.007, Power: 0.08}, false},
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
