package diagnose_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/internal/plantedtest"

	"github.com/tracediff/tracediff/compare/diagnose"
)

// namedFault is a line of the list of faults of compare/naming about a fault that has a name.
var namedFault = regexp.MustCompile(`(?m)^([^/\n]+)/\S+ (\S+): (.*); see (\S*)$`)

// otherPages are the pages that a name points to where the fault stands under another one: one tensor alone does not show all of it.
var otherPages = map[string]string{
	"residual-before-norm layers.*.attn_residual":  "missing-residual",
	"layout-interleaved layers.*.self_attn.q_proj": "permuted-query-and-key-rows",
	"layout-interleaved layers.*.self_attn.k_proj": "permuted-query-and-key-rows",
	"layout-interleaved layers.*.self_attn.q_rope": "rotary-pairs",
	"layout-interleaved layers.*.self_attn.k_rope": "rotary-pairs",
	"scale-in-queries layers.*.self_attn.scores":   "attention-scale",
	"rope-before-norm layers.*.self_attn.q_rope":   "missing-rotation",
	"rope-before-norm layers.*.self_attn.k_rope":   "missing-rotation",
}

// A name points to the page on which its mistake is explained: that under which the fault stands which has the name. Every page that a
// name may point to is there.
func TestNamesPointToTheirPages(t *testing.T) {
	_, anchors := mistakesOn(pagetest.Text(t, mistakesPage))
	for _, page := range diagnose.Pages() {
		if !slices.Contains(anchors, page) {
			t.Errorf("%s has no heading %q", mistakesPage, page)
		}
	}
	heading := map[string]string{}
	for page, names := range plantedtest.Headings(t) {
		for _, name := range names {
			heading[name] = page
		}
	}
	lines := namedFault.FindAllStringSubmatch(pagetest.Text(t, "../naming/testdata/fault-names.txt"), -1)
	if len(lines) < 300 {
		t.Fatalf("%d names", len(lines))
	}
	for _, m := range lines {
		want := heading[m[1]]
		if other := otherPages[m[1]+" "+m[2]]; other != "" {
			want = other
		}
		if got := strings.TrimPrefix(m[4], "docs/mistakes.md#"); got != want {
			t.Errorf("%s: %s: %q points to %q, want %q", m[1], m[2], m[3], got, want)
		}
	}
}
