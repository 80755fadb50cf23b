package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// A port that takes the other one of two experts with one score is right, and so is all that it goes on with, however far that is from the
// reference. One that takes the worst expert in place of the second is wrong in its choice.
func TestChoicesByAProgram(t *testing.T) {
	const folder = "../../fixtures/programs/mixtral-tiny/"
	compared := func(want int, local string) string {
		return told(t, want, "compare", "--model", folder+"model", "--dir", filepath.Join(t.TempDir(), "traces"), folder+local, folder+"bfloat16.safetensors")
	}
	report := compared(0, "bfloat16.tie.safetensors")
	for _, want := range []string{"MATCH: all 177 entries compared over 3 passes match", "rounding leaves this choice open", "160 EXACT, 11 ROUNDING"} {
		if !strings.Contains(report, want) {
			t.Errorf("another choice of one score: the report does not say %q:\n%s", want, report)
		}
	}
	report = compared(1, "bfloat16.wrong.safetensors")
	for _, want := range []string{"first divergence: layers.0.mlp.gate.2 (VALUE)", "9 of 18 elements differ", "22 EXACT, 1 ROUNDING, 1 BUG"} {
		if !strings.Contains(report, want) {
			t.Errorf("the worst expert: the report does not say %q:\n%s", want, report)
		}
	}
	for _, no := range []string{"is not used", "epsilon"} {
		if strings.Contains(report, no) {
			t.Errorf("the worst expert: the report names %q:\n%s", no, report)
		}
	}
}

// In bfloat16 a time step without its bias lies within what some roundings may give, and within the limits. That the missing bias gives every
// element, and no rounding does, is seen all the same.
func TestBiasThatWasNotLoaded(t *testing.T) {
	t.Parallel() // looking for its roundings takes seconds
	const folder = "../../fixtures/programs/mamba-tiny/"
	report := told(t, 1, "compare", "--model", folder+"model", "--dir", filepath.Join(t.TempDir(), "traces"),
		folder+"bfloat16.unbiased.safetensors", folder+"bfloat16.safetensors")
	for _, want := range []string{"first divergence: layers.0.mixer.out_proj.in (VALUE)", "backbone.layers.*.mixer.dt_proj.bias is 0"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report does not say %q:\n%s", want, report)
		}
	}
}
