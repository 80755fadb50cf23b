package diagnose

import (
	"math"
	"testing"

	"github.com/tracediff/tracediff/order"
)

// A number is called by the field of the right number, by the same function of another field, by a product of both, or by the reciprocal of a short number.
func TestNumbersAreCalled(t *testing.T) {
	numbers := numbersOf(tiny(t, "gemma2-tiny").List.Config) // query_pre_attn_scalar 5, head_dim 8, intermediate_size 40
	for _, c := range []struct {
		v, right float64
		want     string
	}{
		{1 / math.Sqrt(40), 1 / math.Sqrt(5), "1/√query_pre_attn_scalar · 1/√head_dim, 1/√intermediate_size"},
		{1. / 5, 1 / math.Sqrt(5), "1/query_pre_attn_scalar"},
		{1 / 0.7, 1, "1/0.7"},
		{0.625, 1, ""},     // short itself
		{1 / 0.731, 1, ""}, // the reciprocal is not short
		{1 / 0.7, 2, ""},   // no factor
	} {
		if got := numbers.called(c.v, c.right, ""); got != c.want {
			t.Errorf("%g for %g is called %q, want %q", c.v, c.right, got, c.want)
		}
	}
}

// A factor that is the reciprocal of the scale of an input is that of an input that is read before it is scaled. No other factor is.
func TestFactorsThatUndoAScale(t *testing.T) {
	m := tiny(t, "gemma3n-tiny")
	scale := math.Sqrt(float64(m.List.Config.HiddenSize))
	embeds := node(m, "inputs_embeds", 0)
	s := &search{subject: newSubject(m), first: &Entry{Inputs: []order.Node{embeds}}}
	const undone = "as where inputs_embeds is read before it is scaled"
	for _, c := range []struct {
		m    Mistake
		want string
	}{
		{Mistake{Kind: "factor.inserted", X: some(float64(float32(1 / scale)))}, undone},
		{Mistake{Kind: "weight.multiplied", By: literal(float64(float32(1 / scale))), Called: "1/√hidden_size"}, "1/√hidden_size: " + undone},
		{Mistake{Kind: "factor.inserted", X: some(scale)}, ""},
		{Mistake{Kind: "factor.inserted", X: some(1)}, ""},
		{Mistake{Kind: "number.value", X: some(1 / scale)}, ""},
	} {
		if got := undoing(s, c.m).Called; got != c.want {
			t.Errorf("%s is called %q, want %q", c.m.Key(), got, c.want)
		}
	}
}
