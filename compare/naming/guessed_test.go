package naming_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A mask row has the lowest number of bfloat16 in it, whose square is infinite in float32. An edit that divides by the length of the row so has no bound for
// what it gives: any number is consistent with it, and it explains nothing. The window is one key too long here, and the edits of masks are not tried.
func TestAnEditThatGivesNoBoundIsNoName(t *testing.T) {
	const dir, name = "gemma3n-tiny", "mask.sliding"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/window.bfloat16.safetensors")
	var reg hooks.Registry
	if err := reg.Replace(name, testengine.Replacer(0, func(at []int, v float64) float64 {
		if at[2]-at[3] == 4 {
			return 0
		}
		return v
	})); err != nil {
		t.Fatal(err)
	}
	trace, list := testengine.LocalRun(t, dir, golden, &reg)
	ck, _ := ordertest.Embedded(t, dir)
	for _, without := range []string{"", "recognised"} {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.BF16), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		i.Names.Study = diagnose.Study{Without: without}
		found, err := i.Name(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case without == "" && (!found.Named() || !strings.Contains(found.String(), "the window is 5")):
			t.Errorf("with all edits it is named %q, want a window of 5", found)
		case without != "" && found.Named():
			t.Errorf("without the edits of masks it is named %q, want no name", found)
		}
	}
}
