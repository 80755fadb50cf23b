package main

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
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
			"proof this mistake reproduces all 1024 elements of 1 entry; 48 of them rule out the correct operation; right in layers 0, 3, 5 see",
			"next correct this in your port, dump its tensors, compare again",
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

var manySpaces = regexp.MustCompile(`\s+`)

// unbroken is a report without its line breaks and columns.
func unbroken(text string) string { return manySpaces.ReplaceAllString(text, " ") }
