package arithmetic_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
)

// certificatesOfAll are those of all entries of a trace, each by itself, by key.
func certificatesOfAll(t *testing.T, c testengine.Case, local *capture.Trace) map[string]*isolate.Certificate {
	t.Helper()
	i, err := compare.NewIsolator(local, c.List, reference.Weights(c.Checkpoint, c.DType), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*isolate.Certificate{}
	for pass := range c.Passes {
		for k := range c.List.Entries {
			e := &c.List.Entries[k]
			if _, given := e.Op.(op.Given); given || !c.Captured(e) {
				continue
			}
			if _, ok := local.Lookup(pass, e.Name); !ok {
				continue
			}
			z, err := i.Certify(context.Background(), e.Name, pass)
			if err != nil {
				t.Fatalf("%s of pass %d: %v", e.Name, pass, err)
			}
			all[capture.Key(pass, e.Name, 0)] = z
		}
	}
	return all
}

// scenes are how long the prompts are, and where they begin.
var scenes = []struct{ tokens, first int }{{8, 0}, {600, 0}, {12, 30_000}}

// longCase is the one of the ordinary run that has a long prompt: most take minutes.
const longCase = 10

// doubleCase is an engine in double precision whose tables are others at positions from 30,000 on: they say nothing of its digits.
const doubleCase = 20

// rotaryFaults are mistakes in tables, as numbers of a port.
var rotaryFaults = []struct {
	name string
	of   func(o op.Rotary) op.Rotary
}{
	{"theta off by a tenth", func(o op.Rotary) op.Rotary { o.Theta *= 1.1; return o }},
	{"theta times 10", func(o op.Rotary) op.Rotary { o.Theta *= 10; return o }},
	{"no scaling, or one", func(o op.Rotary) op.Rotary {
		if o.Scaling == "default" {
			o.Scaling, o.Factor = "linear", 4
		} else {
			o.Scaling = "default"
		}
		return o
	}},
}

// Engines with the functions of other libraries have no bug, also in prompts of 600 tokens and at positions from 30,000 on, and mistakes in
// their tables are found. TRACEDIFF_TABLES is how many cases are drawn.
func TestEnginesWithOtherLibraries(t *testing.T) {
	n := pagetest.Samples(t, "TRACEDIFF_TABLES", len(testengine.Names))
	cases := []int{doubleCase}
	for k := range n {
		if k != doubleCase {
			cases = append(cases, k)
		}
	}
	for _, k := range cases {
		scene := scenes[(k+k/len(scenes))%len(scenes)]
		if scene.tokens > 100 && n == len(testengine.Names) && k != longCase {
			scene = scenes[0]
		}
		c := testengine.CaseOf(t, k)
		if c.Small() {
			continue
		}
		c = c.WithOtherLibraries(k).WithPrompt(scene.tokens, scene.first)
		t.Run(fmt.Sprintf("%d %s, %s, %s, %d tokens from %d", k, c.Name, c.DType, testengine.Turners[k%len(testengine.Turners)].Name, scene.tokens, scene.first), func(t *testing.T) {
			for key, z := range certificatesOfAll(t, c, c.Start(t, c.Case, c.Choose, nil).Trace()) {
				if z.Outcome == isolate.Bug {
					t.Errorf("healthy: %s: %s", key, singles.Charge(z))
				}
			}
			f := rotaryFaults[k%len(rotaryFaults)]
			m := testengine.Mistake{Name: f.name, Fits: testengine.KindOf[op.Rotary](nil), Compute: testengine.Another(func(o op.Rotary, _ *testengine.Call) op.Op { return f.of(o) })}
			d := &testengine.Damage{Mistake: m, At: map[string]bool{}}
			for _, e := range c.List.Entries {
				if _, rotary := e.Op.(op.Rotary); rotary {
					d.At[e.Name] = true
				}
			}
			r := c.Start(t, c.Case, c.Choose, d)
			wrong := r.Trace()
			changed, tables := 0, 0
			for _, a := range r.Differences {
				if strings.Contains(a.Name, "rotary") {
					tables += a.Elements
				}
				changed += a.Elements
			}
			found := false
			for key, z := range certificatesOfAll(t, c, wrong) {
				if z.Outcome != isolate.Bug {
					continue
				}
				found = true
				if !strings.Contains(key, "rotary") && !strings.Contains(key, "rope") && !strings.Contains(key, "self_attn") {
					t.Errorf("%s: %s is accused: %s", f.name, key, singles.Charge(z))
				}
			}
			if changed >= testengine.FewestChanged && !found {
				t.Errorf("%s: %d elements are others, %d of tables, and nothing is accused", f.name, changed, tables)
			}
		})
	}
}
