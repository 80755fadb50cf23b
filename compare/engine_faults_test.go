package compare_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/testengine"
)

// faultTally counts what became of an engine's faults.
type faultTally struct{ planted, found, elsewhere, explained, unidentified, missed int }

// add judges a comparison of a run with a fault, and says what is wrong with it. A fault is found where the first entry that is
// wrong by itself, or has no certificate and does not match, is one that it spoils.
func (h *faultTally) add(p testengine.Planted, r *compare.Result) string {
	h.planted++
	var first *compare.Row
	var explained, open []string
	for i := range r.Rows {
		row := &r.Rows[i]
		z := row.Isolated
		if z != nil && z.Outcome == isolate.Bug && p.Guilty[row.Key()] == 0 {
			h.elsewhere++
			return fmt.Sprintf("%s is accused, and it is what it would be without the fault", row.Key())
		}
		wrong := z != nil && z.Outcome == isolate.Bug || z == nil && row.Verdict == compare.Mismatch && !row.Derived
		if wrong && first == nil {
			first = row
		}
		spoilt := p.Guilty[row.Key()]
		if z == nil || spoilt == 0 {
			continue
		}
		switch {
		case z.Outcome == isolate.Rounding && z.Arithmetic != "strict" && spoilt >= testengine.FewestChanged:
			explained = append(explained, fmt.Sprintf("%s is called %s", row.Key(), z.Arithmetic))
		case z.Outcome == unidentified:
			open = append(open, row.Key())
		}
	}
	switch {
	case first != nil && !p.Names[first.Name]:
		h.elsewhere++
		return fmt.Sprintf("%s is accused", first.Key())
	case len(explained) > 0:
		h.explained++
		return fmt.Sprintf("%d spoilt entries pass as rounding: %s", len(explained), explained[0])
	case first != nil:
		h.found++
		return ""
	case len(open) > 0:
		h.unidentified++
		return fmt.Sprintf("%d spoilt entries are UNIDENTIFIED: %s", len(open), open[0])
	}
	h.missed++
	return "nothing is accused"
}

func (h *faultTally) merge(o *faultTally) {
	h.planted, h.found, h.elsewhere = h.planted+o.planted, h.found+o.found, h.elsewhere+o.elsewhere
	h.explained, h.unidentified, h.missed = h.explained+o.explained, h.unidentified+o.unidentified, h.missed+o.missed
}

const faultsHead = `
| engine | faults | found | another entry accused | passes as rounding | UNIDENTIFIED | nothing |
|---|---|---|---|---|---|---|
`

func (h *faultTally) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d |\n", name, h.planted, h.found, h.elsewhere, h.explained, h.unidentified, h.missed)
}

// hardFaults are those that an arithmetic of the search once gave beside the engine's own: too little of each is to be seen to
// find them.
var hardFaults = []int{98}

func TestHardFaultsAreNoArithmetic(t *testing.T) {
	for _, k := range hardFaults {
		c, p := testengine.Plant(t, k)
		spoilt, open := 0, 0
		for _, row := range judged(t, c, p.Trace, nil).Rows {
			if z := row.Isolated; z != nil && p.Guilty[row.Key()] > 0 {
				if spoilt++; z.Outcome == unidentified || z.Outcome == isolate.Bug {
					open++
				}
			}
		}
		if spoilt == 0 || 2*open < spoilt {
			t.Errorf("%s %d in %s, %s: of %d spoilt entries %d are UNIDENTIFIED or BUG", c.Family, c.Seed, c.DType, p, spoilt, open)
		}
	}
}

// namesOf are the words of which a mistake's name has some.
var namesOf = map[string][]string{
	"epsilon too large": {"epsilon is 0.0", "epsilon is 0.1", "epsilon is 1"}, "w for 1 + w": {"the +1 is missing", "has 1 subtracted"},
	"1 + w for w": {"is taken as 1+w", "has 1 added", "the +1 is applied twice"}, "no weight": {"the weight", "is 1"}, "n - 1": {"terms, not"},
	"mean taken off": {"LayerNorm"}, "erf for tanh": {"the activation is gelu, not gelu_tanh"}, "tanh for erf": {"the activation is gelu_tanh, not gelu"},
	"SiLU for GELU": {"the activation is silu, not gelu_tanh"}, "GELU for SiLU": {"the activation is gelu_tanh, not silu"},
	"no soft cap": {"missing"}, "hard threshold": {"are not reduced by the cutoff"}, "deviation taken off": {"a difference, not a sum"},
	"no tanh": {"missing"}, "one factor missing": {"missing"}, "scaled by another size": {"the factor", "is multiplied by"}, "scaled twice": {"applied twice", "the factor is"},
	"heads read tiled": {"tiled"}, "cos for sin": {"exchanged"}, "interleaved pairs": {"interleaved RoPE"},
	"another theta": {"theta is", "theta of RoPE is", "the base"}, "one key too many": {"one future key"}, "window too wide": {"the window is", "has a sliding window"},
	"heads not merged": {"in the wrong order", "in memory"}, "values one key off": {"is shifted by"}, "no bias": {"bias"},
	"rows one off": {"is shifted by", "channel", "rows 0 to"}, "one row twice": {"row 1 is row 0", "channel 1 is channel 0"}, "a column dropped": {"is 0", "0 at input 0", "by 0 at channel 0"},
	"no residual": {"is not added", "missing"}, "sum not scaled": {"missing"}, "not rescaled": {"missing"}, "coefficient without 1": {"the +1 is missing"},
	"another layer's input": {"is shifted by", "reads layer"}, "rows of other tokens": {"takes the embedding row", "has the row of id"}, "times 1.01": {"multiplied by 1.01"}, "clamped": {"clamped"}, "channels zero": {"0"},
	"constant not rounded": {"is not rounded to"},
}

// nameOf is the name of the first entry that is wrong; empty where it has none.
func nameOf(r *compare.Result) string {
	for i := range r.Rows {
		if z := r.Rows[i].Isolated; z != nil && z.Outcome == isolate.Bug {
			if !z.Finding.Named() {
				return ""
			}
			return z.Finding.String()
		}
	}
	return ""
}

// hardEngines are cases in which right entries were accused, each for one part of the rule.
var hardEngines = []int{
	64,  // another activation in one of two layers: half of the entries are no majority
	200, // no residual in any layer of a trace of double precision
	442, // a norm that no roundings give, in steps of few elements: it hid the arithmetic of the other norms
	503, // the same in an engine with two arithmetics
	608, // a column dropped in one layer of a trace of double precision
	654, // too few elements to show the arithmetic of a right entry
}

// The arithmetic of right entries is found if other entries are wrong in any arithmetic: it is the one of the engine's healthy run.
func TestArithmeticOfRightEntriesIsFoundWithWrongOnes(t *testing.T) {
	c, p := testengine.Plant(t, 442)
	for _, row := range judged(t, c, p.Trace, nil).Rows {
		z := row.Isolated
		if row.Pass == 0 || z == nil || p.Guilty[row.Key()] > 0 || z.Arithmetic == "strict" || !strings.HasSuffix(row.Name, "norm") {
			continue
		}
		if z.Arithmetic != "rounds 1+w, product to bfloat16, transformers does not" {
			t.Errorf("%s: %s", row.Key(), z.Arithmetic)
		}
	}
}

// A mistake inside an engine that has an arithmetic of its own is found where it is, and is not taken for an arithmetic.
// TRACEDIFF_ENGINE_FAULTS is how many are planted.
func TestFaultsInsideOtherEnginesAreFound(t *testing.T) {
	n := pagetest.Samples(t, "TRACEDIFF_ENGINE_FAULTS", len(testengine.Names))
	all, used, named := map[string]*faultTally{}, map[string]bool{}, 0
	var cases []int
	for k := range n {
		cases = append(cases, k)
	}
	for _, k := range hardEngines {
		if k >= n {
			cases = append(cases, k)
		}
	}
	for _, k := range cases {
		t.Run(fmt.Sprint(k, " ", testengine.Names[k%len(testengine.Names)]), func(t *testing.T) {
			c, p := testengine.Plant(t, k)
			used[p.Mistake.Name] = true
			if all[c.Name] == nil {
				all[c.Name] = &faultTally{}
			}
			r := judged(t, c, p.Trace, nil)
			if wrong := all[c.Name].add(p, r); wrong != "" {
				t.Errorf("%s %d in %s, %s: %s", c.Family, c.Seed, c.DType, p, wrong)
			}
			name := nameOf(r)
			t.Logf("%s: %s", p, cmp.Or(name, "unnamed"))
			if name == "" {
				return
			}
			if named++; !slices.ContainsFunc(namesOf[p.Mistake.Name], func(words string) bool { return strings.Contains(name, words) }) {
				t.Errorf("%s %d in %s, %s: it is called %q", c.Family, c.Seed, c.DType, p, name)
			}
		})
	}
	table, sum := faultsHead, &faultTally{}
	for _, name := range testengine.Names {
		if h := all[name]; h != nil {
			table += h.row(name)
			sum.merge(h)
		}
	}
	t.Logf("%s%sof %d kinds; %d are named", table, sum.row("all"), len(used), named)
	if 2*named < sum.found {
		t.Errorf("%d of %d are named", named, sum.found)
	}
	if sum.planted == len(cases) && n >= 5*len(testengine.Mistakes) && len(used) < len(testengine.Mistakes) {
		for _, m := range testengine.Mistakes {
			if !used[m.Name] {
				t.Errorf("no engine has the mistake: %s", m.Name)
			}
		}
	}
}
