package main

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// noisyScores is no mistake that has a name: some scores are off by amounts that nothing explains.
var noisyScores = fault{
	what: "some scores are noise", golden: "window", entry: "layers.1.self_attn.scores", level2: "layers.1.self_attn.probs",
	make: func(f *faulty) []float32 {
		return f.each(func(i int, v float32) float32 {
			if i%7 != 3 {
				return v
			}
			return v + float32(math.Sin(float64(i*i)))
		})
	},
}

// A comparison below level 3 finds the fault in an entry that it does not compare. Where it has a name, the first divergence has it with
// its proof; where it has none, it says what was tried and what to do next.
func TestFaultsBelowTheLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault fault
		want  []string
	}{
		{faultNamed(t, "layers.1.self_attn.scores_masked"), []string{
			"bug in layers.1.self_attn.scores_masked: the window is 5, in layers.1 only; config.json: sliding_window 4 ",
			"proof this mistake reproduces all 1024 elements of 1 entry; correct code cannot give 48 of them; right elsewhere: layers 0, 3, 5 see",
			"next correct this in your port, dump its tensors and compare again",
		}},
		{noisyScores, []string{
			"bug in layers.1.self_attn.scores: unexplained: ",
			"next the fault is in layers.1.self_attn.scores, which was not compared: check that operation in your port; --level 3 compares it",
		}},
	} {
		t.Run(c.fault.what, func(t *testing.T) {
			local, reference := plant(t, t.TempDir(), hooks.F32, 3, c.fault)
			var out, errOut bytes.Buffer
			if code := run([]string{"tracediff", "compare", "--level", "2", local, reference}, nil, &out, &errOut); code != exitMismatch {
				t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
			}
			text := unbroken(out.String())
			for _, want := range append(c.want, "first divergence: "+c.fault.level2) {
				if !strings.Contains(text, want) {
					t.Errorf("does not say %q:\n%s", want, out.String())
				}
			}
		})
	}
}

// The report sends nobody to an operation that is right: where only the dump of a tensor is wrong, the next step is to dump it elsewhere.
func TestATensorThatIsWrongOnlyInTheDumpIsDumpedAgain(t *testing.T) {
	t.Parallel()
	golden := testengine.OpenGolden(t, "golden/llama-tiny/decode.float32.safetensors")
	local := testengine.Tampered(t, golden, func(_ string, r capture.Record, data []float64) ([]float64, hooks.DType) {
		if r.Name == "layers.1.self_attn.context" {
			for i := range data {
				data[i] *= 1.01
			}
		}
		return data, r.DType
	})
	var out, errOut bytes.Buffer
	if code := run([]string{"tracediff", "compare", local.Path(), "../../fixtures/golden/llama-tiny/decode.float32.safetensors"}, nil, &out, &errOut); code != exitMismatch {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errOut.String())
	}
	text := unbroken(out.String())
	for _, want := range []string{
		"first divergence: layers.1.self_attn.context", "; with the right values, self_attn.o_proj is right: wrong only in the dump, or two mistakes cancel", "see docs/mistakes.md#hooks-at-another-point",
		"next dump the tensor right after it is computed, before its memory is reused; what reads it is right with the right values",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "in your port") {
		t.Errorf("accuses the port:\n%s", out.String())
	}
}

var manySpaces = regexp.MustCompile(`\s+`)

// unbroken is a report without its line breaks and columns.
func unbroken(text string) string { return manySpaces.ReplaceAllString(text, " ") }
