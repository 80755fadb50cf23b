package diagnose

import "testing"

// A page of a kind comes before the page of a role, and the last page of a kind after it.
func TestPagesOfKindsAndRoles(t *testing.T) {
	weight := Mistake{Kind: "weight.left-out", Of: Term{Kind: TheWeight, Name: "correct_output_scale"}}
	for _, c := range []struct {
		m          Mistake
		role, page string
	}{
		{weight, "layers.*.input_layernorm", "weight-not-loaded"},
		{weight, "layers.*.self_attn.q_norm", "missing-norm"},
		{weight, "layers.*.altup.scale_corrected_output", "altup-coefficients"}, // the role's, before the kind's last
		{weight, "layers.*.mlp.down_proj", "weight-not-loaded"},
		{Mistake{Kind: "number.zero", Of: Term{Kind: Epsilon}}, "layers.*.altup.correct", "branch-of-zeros"}, // the kind's, before the role's
		{Mistake{Kind: "axis.read"}, "layers.*.altup.correct", "altup-coefficients"},
		{Mistake{Kind: "axis.read"}, "layers.*.mlp.down_proj", ""},
		{Mistake{Kind: "division.twice", Of: Term{Kind: TheDivisor, X: 1.5}}, "layers.*.attn_laurel", "laurel"},
		{Mistake{Kind: "steps.left-out", By: Term{Kind: TheDivisor, X: 1.5}}, "layers.*.attn_laurel", "laurel"},
		{Mistake{Kind: "operand.other", For: stepTerm("rms_norm.1+w")}, "norm", "one-plus-the-weight"},
	} {
		want := c.page
		if want != "" {
			want = mistakesPage + want
		}
		if got := c.m.page(c.role); got != want {
			t.Errorf("%s of %s: page %q, want %q", c.m.Kind, c.role, got, want)
		}
	}
}
