package compare_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
)

// otherLibraries gives an engine the functions of another library, off by as much as they may be, and another way of making tables.
func (c engineCase) otherLibraries(number int) engineCase {
	g := *c.namedEngine
	choose := g.choose
	other, turner := library{1, uint64(number)}, turners[number%len(turners)]
	g.choose = func(e *order.Entry, tokens int) arith {
		a := choose(e, tokens)
		a.other, a.turner = &other, &turner
		return a
	}
	c.namedEngine = &g
	return c
}

// longOf is a case with a prompt of some tokens whose first has some position. Of a long one what has a row a key is not captured.
func (c engineCase) longOf(tokens, first int) engineCase {
	rng := rand.New(rand.NewPCG(uint64(tokens), 3))
	ids := make([]int, tokens)
	for i := range ids {
		ids[i] = rng.IntN(c.List.Config.VocabSize)
	}
	c.Passes = [][]int{ids, {ids[0]}}
	g := *c.namedEngine
	g.first = first
	if tokens > 100 {
		g.drop = append(slices.Clone(g.drop), "scores", "scores_masked", "scores_softcap", "probs", "probs_f32", "mask.full", "mask.sliding", "self_attn.keys", "self_attn.values")
	}
	c.namedEngine = &g
	return c
}

// outcomes are those of all entries of a trace, each by itself, by key.
func (c engineCase) outcomes(t *testing.T, local *capture.Trace) map[string]*isolate.Certificate {
	t.Helper()
	i, err := compare.NewIsolator(local, c.List, reference.Weights(c.Checkpoint, c.dtype), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*isolate.Certificate{}
	for pass := range c.Passes {
		for k := range c.List.Entries {
			e := &c.List.Entries[k]
			if _, given := e.Op.(op.Given); given || !c.captured(e) {
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
	n := samples(t, "TRACEDIFF_TABLES", len(engineNames))
	cases := []int{doubleCase}
	for k := range n {
		if k != doubleCase {
			cases = append(cases, k)
		}
	}
	for _, k := range cases {
		scene := scenes[(k+k/len(scenes))%len(scenes)]
		if scene.tokens > 100 && n == len(engineNames) && k != longCase {
			scene = scenes[0]
		}
		c := engineCaseOf(t, k)
		if c.small() {
			continue
		}
		c = c.otherLibraries(k).longOf(scene.tokens, scene.first)
		t.Run(fmt.Sprintf("%d %s, %s, %s, %d tokens from %d", k, c.name, c.dtype, turners[k%len(turners)].name, scene.tokens, scene.first), func(t *testing.T) {
			for key, z := range c.outcomes(t, c.start(t, c.Case, c.choose, nil).run()) {
				if z.Outcome == isolate.Bug {
					t.Errorf("healthy: %s: %s", key, charge(z))
				}
			}
			f := rotaryFaults[k%len(rotaryFaults)]
			d := &damage{mistake{f.name, kindOf[op.Rotary](nil), another(func(o op.Rotary, _ *calc) op.Op { return f.of(o) })}, map[string]bool{}}
			for _, e := range c.List.Entries {
				if _, rotary := e.Op.(op.Rotary); rotary {
					d.at[e.Name] = true
				}
			}
			r := c.start(t, c.Case, c.choose, d)
			wrong := r.run()
			changed, tables := 0, 0
			for _, a := range r.apart {
				if strings.Contains(a.name, "rotary") {
					tables += a.elements
				}
				changed += a.elements
			}
			found := false
			for key, z := range c.outcomes(t, wrong) {
				if z.Outcome != isolate.Bug {
					continue
				}
				found = true
				if !strings.Contains(key, "rotary") && !strings.Contains(key, "rope") && !strings.Contains(key, "self_attn") {
					t.Errorf("%s: %s is accused: %s", f.name, key, charge(z))
				}
			}
			if changed >= fewestChanged && !found {
				t.Errorf("%s: %d elements are others, %d of tables, and nothing is accused", f.name, changed, tables)
			}
		})
	}
}
