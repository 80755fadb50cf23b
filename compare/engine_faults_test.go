package compare_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
)

// planted is a run of an engine with a mistake in it that shows.
type planted struct {
	*damage
	trace  *capture.Trace
	guilty map[string]int // elements that are not what they would be without it, by key
	names  map[string]bool
}

// fewestChanged is how many elements a mistake has to change to be one that can be seen.
const fewestChanged = 8

// plantTries is how many cases, and entries in each, are tried for one mistake.
const plantTries, plantEntries = 2 * 7, 2

// faultOf plants fault n: engine and mistake are given by n, and the model is the first in which the mistake shows. Where none does,
// as of a mistake that the engine's models cannot have, it is the next one.
func faultOf(t *testing.T, n int) (engineCase, planted) {
	t.Helper()
	for next := range mistakesOf {
		m := mistakesOf[(n+4*(n/len(engineNames))+next)%len(mistakesOf)] // 16 an engine: any number but 13 brings all
		for k := range plantTries {
			c := engineCaseOf(t, n+k*len(engineNames))
			if p, ok := c.plant(t, n, m); ok {
				return c, p
			}
		}
	}
	t.Fatal("no mistake shows")
	return engineCase{}, planted{}
}

// plant puts a mistake into one entry, or into an entry of every layer, and reports whether it shows.
func (c engineCase) plant(t *testing.T, n int, m mistake) (planted, bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 53))
	var fit []*order.Entry
	for i := range c.List.Entries {
		if e := &c.List.Entries[i]; m.fits(e) {
			fit = append(fit, e)
		}
	}
	for range min(len(fit), plantEntries) {
		e := fit[rng.IntN(len(fit))]
		d := &damage{m, map[string]bool{e.Name: true}}
		if rng.IntN(2) == 0 && e.Layer >= 0 {
			for _, other := range fit {
				if other.Layer >= 0 && inLayer(other) == inLayer(e) {
					d.at[other.Name] = true
				}
			}
		}
		r := c.start(t, c.Case, c.choose, d)
		p := planted{d, r.run(), map[string]int{}, map[string]bool{}}
		changed := 0
		for _, a := range r.apart {
			p.guilty[capture.Key(a.pass, a.name, 0)], p.names[a.name] = a.elements, true
			changed += a.elements
		}
		if changed >= fewestChanged {
			return p, true
		}
	}
	return planted{}, false
}

// inLayer is the name of an entry below its layer.
func inLayer(e *order.Entry) string {
	return strings.TrimPrefix(e.Name, fmt.Sprintf("layers.%d.", e.Layer))
}

func (p planted) String() string {
	return fmt.Sprintf("%s at %s", p.mistake.name, strings.Join(slices.Sorted(maps.Keys(p.at)), ", "))
}

// faultTally counts what became of an engine's faults.
type faultTally struct{ planted, found, elsewhere, explained, unidentified, missed int }

// add judges a comparison of a run with a fault, and says what is wrong with it. A fault is found where the first entry that is
// wrong by itself, or has no certificate and does not match, is one that it spoils.
func (h *faultTally) add(p planted, r *compare.Result) string {
	h.planted++
	var first *compare.Row
	var explained, open []string
	for i := range r.Rows {
		row := &r.Rows[i]
		z := row.Isolated
		wrong := z != nil && z.Outcome == isolate.Bug || z == nil && row.Verdict == compare.Mismatch && !row.Derived
		if wrong && first == nil {
			first = row
		}
		spoilt := p.guilty[row.Key()]
		if z == nil || spoilt == 0 {
			continue
		}
		switch {
		case z.Outcome == isolate.Rounding && z.Arithmetic != "strict" && spoilt >= fewestChanged:
			explained = append(explained, fmt.Sprintf("%s is called %s", row.Key(), z.Arithmetic))
		case z.Outcome == unidentified:
			open = append(open, row.Key())
		}
	}
	switch {
	case first != nil && !p.names[first.Name]:
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
		c, p := faultOf(t, k)
		spoilt, open := 0, 0
		for _, row := range c.judge(t, p.trace, nil).Rows {
			if z := row.Isolated; z != nil && p.guilty[row.Key()] > 0 {
				if spoilt++; z.Outcome == unidentified || z.Outcome == isolate.Bug {
					open++
				}
			}
		}
		if spoilt == 0 || 2*open < spoilt {
			t.Errorf("%s %d in %s, %s: of %d spoilt entries %d are UNIDENTIFIED or BUG", c.Family, c.Seed, c.dtype, p, spoilt, open)
		}
	}
}

// namesOf are the words of which a mistake's name has some.
var namesOf = map[string][]string{
	"epsilon too large": {"epsilon is 0.0", "epsilon is 0.1", "epsilon is 1"}, "w for 1 + w": {"the +1 is left out", "has 1 taken off"},
	"1 + w for w": {"is taken as 1+w", "has 1 added", "the +1 is applied twice"}, "no weight": {"the weight", "is 1"}, "n - 1": {"terms, not"},
	"mean taken off": {"LayerNorm"}, "erf for tanh": {"the activation is gelu, not gelu_tanh"}, "tanh for erf": {"the activation is gelu_tanh, not gelu"},
	"SiLU for GELU": {"the activation is silu, not gelu_tanh"}, "GELU for SiLU": {"the activation is gelu_tanh, not silu"},
	"no soft cap": {"left out"}, "hard threshold": {"is not shifted by it"}, "deviation taken off": {"a difference, not a sum"},
	"no tanh": {"left out"}, "one factor missing": {"left out"}, "scaled by another size": {"the factor"}, "scaled twice": {"applied twice", "the factor is"},
	"heads read tiled": {"tiled"}, "cos for sin": {"exchanged"}, "interleaved pairs": {"neighbours are paired"},
	"another theta": {"theta is", "the base"}, "one key too many": {"one key ahead"}, "window too wide": {"the window is", "has a window"},
	"heads not merged": {"in another order", "in memory"}, "values one key off": {"is moved by"}, "no bias": {"bias"},
	"rows one off": {"is moved by", "channel"}, "one row twice": {"row 1 is row 0", "channel 1 is channel 0"}, "a column dropped": {"is 0"},
	"no residual": {"is not added", "left out"}, "sum not scaled": {"left out"}, "not rescaled": {"left out"}, "coefficient without 1": {"the +1 is left out"},
	"another layer's input": {"is moved by", "reads layer"}, "rows of other tokens": {"takes the row"}, "times 1.01": {"multiplied by 1.01"}, "clamped": {"clamped"}, "channels zero": {"0"},
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

// halfFaults are those of the first hundreds that one part of the rule decides.
var halfFaults = []int{
	64, // another activation in one of two layers: half of the entries are no majority
}

// A mistake inside an engine that has an arithmetic of its own is found where it is, and is not taken for an arithmetic.
// TRACEDIFF_ENGINE_FAULTS is how many are planted.
func TestFaultsInsideOtherEnginesAreFound(t *testing.T) {
	n := samples(t, "TRACEDIFF_ENGINE_FAULTS", 2*len(engineNames))
	all, used, named := map[string]*faultTally{}, map[string]bool{}, 0
	var cases []int
	for k := range n {
		cases = append(cases, k)
	}
	for _, k := range halfFaults {
		if k >= n {
			cases = append(cases, k)
		}
	}
	for _, k := range cases {
		t.Run(fmt.Sprint(k, " ", engineNames[k%len(engineNames)]), func(t *testing.T) {
			c, p := faultOf(t, k)
			used[p.mistake.name] = true
			if all[c.name] == nil {
				all[c.name] = &faultTally{}
			}
			r := c.judge(t, p.trace, nil)
			if wrong := all[c.name].add(p, r); wrong != "" {
				t.Errorf("%s %d in %s, %s: %s", c.Family, c.Seed, c.dtype, p, wrong)
			}
			name := nameOf(r)
			t.Logf("%s: %s", p, cmp.Or(name, "unnamed"))
			if name == "" {
				return
			}
			if named++; !slices.ContainsFunc(namesOf[p.mistake.name], func(words string) bool { return strings.Contains(name, words) }) {
				t.Errorf("%s %d in %s, %s: it is called %q", c.Family, c.Seed, c.dtype, p, name)
			}
		})
	}
	table, sum := faultsHead, &faultTally{}
	for _, name := range engineNames {
		if h := all[name]; h != nil {
			table += h.row(name)
			sum.merge(h)
		}
	}
	t.Logf("%s%sof %d kinds; %d are named", table, sum.row("all"), len(used), named)
	if 2*named < sum.found {
		t.Errorf("%d of %d are named", named, sum.found)
	}
	if sum.planted == len(cases) && n >= 5*len(mistakesOf) && len(used) < len(mistakesOf) {
		for _, m := range mistakesOf {
			if !used[m.name] {
				t.Errorf("no engine has the mistake: %s", m.name)
			}
		}
	}
}
