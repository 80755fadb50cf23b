package testengine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// Case is a model, its input, and the engine running it.
type Case struct {
	ordertest.Case
	*Engine
	Number int // that the case was drawn by
}

// enginePasses are a prompt and four steps.
const enginePasses = 5

// CaseOf is case n. Each engine meets each family.
func CaseOf(t *testing.T, n int) Case {
	t.Helper()
	families := slices.Concat(ordertest.Gemma, ordertest.Plain)
	family := familyOf(n, families)
	name := Names[n%later%len(Names)]
	dtypes := engineDTypes[name]
	d := dtypes[n/len(Names)%len(dtypes)]
	rng := rand.New(rand.NewPCG(uint64(n), 51))
	edit := func(config map[string]any) {
		ordertest.Acceptable(config)
		if name != "f16gelu" {
			return
		}
		for _, key := range []string{"hidden_act", "hidden_activation"} { // the table is of this one
			if config[key] != nil {
				config[key] = "gelu_pytorch_tanh"
			}
		}
	}
	seed := n
	c := ordertest.DrawWith(t, family, seed, edit)
	for name == "two" && c.List.Config.NumLayers < 4 {
		seed += 10_000
		c = ordertest.DrawWith(t, family, seed, edit)
	}
	c.Passes = nil
	for pass := range enginePasses {
		ids := make([]int, 1)
		if pass == 0 {
			ids = make([]int, 2+rng.IntN(10))
		}
		for i := range ids {
			ids[i] = rng.IntN(c.List.Config.VocabSize)
		}
		c.Passes = append(c.Passes, ids)
	}
	return Case{c, Draw(name, d, c.List, rng), n}
}

// The first families, as many as settled, share the case numbers below later. A family that is added gets the numbers from later to 2·later, the next
// family the numbers from 2·later on: no other case changes.
const settled, later = 7, 1 << 20

// familyOf returns the family of case n.
func familyOf(n int, families []string) string {
	if f := n / later; f > 0 {
		return families[settled+f-1]
	}
	return families[meeting(n, len(Names), settled)]
}

// LaterCases are the cases of the families after the settled ones: one of each engine, of a model that is not small.
func LaterCases(t *testing.T) []Case {
	t.Helper()
	var all []Case
	for f := settled; f < len(ordertest.Gemma)+len(ordertest.Plain); f++ {
		for e := range Names {
			n := (f-settled+1)*later + e
			c := CaseOf(t, n)
			for c.Small() {
				n += len(Names)
				c = CaseOf(t, n)
			}
			all = append(all, c)
		}
	}
	return all
}

// meeting is which of some families engine n%engines meets in case n. If the two numbers have a common factor, the families move on by one
// whenever both lists are through.
func meeting(n, engines, families int) int {
	a, b := engines, families
	for b > 0 {
		a, b = b, a%b
	}
	if a > 1 {
		n += n / (engines / a * families)
	}
	return n % families
}

// Strict is transformers' arithmetic with the engine's sums and library.
func (c Case) Strict(e *order.Entry, tokens int) Arithmetic {
	return Style("strict", c.Choose(e, tokens).Kernels, nil)
}

// fewChannels: a form of a model with fewer channels than this shows too little of an arithmetic, and limits decide. No model that is
// used has so few. Such pairs are drawn too, and counted by themselves.
const fewChannels = 4

// Small reports whether the model has too few channels to show its arithmetic.
func (c Case) Small() bool {
	return min(c.List.Config.HiddenSize, slices.Min(c.List.Config.IntermediateSize)) < fewChannels
}

// WithOtherLibraries gives an engine the functions of another library with the largest permitted errors, and
// another way to make rotary tables.
func (c Case) WithOtherLibraries(number int) Case {
	g := *c.Engine
	choose := g.Choose
	other, turner := Library{1, uint64(number)}, Turners[number%len(Turners)]
	g.Choose = func(e *order.Entry, tokens int) Arithmetic {
		a := choose(e, tokens)
		a.other, a.turner = &other, &turner
		return a
	}
	c.Engine = &g
	return c
}

// WithPrompt is a case with a prompt of some tokens whose first has some position. Of a long one what has a row a key is not captured.
func (c Case) WithPrompt(tokens, first int) Case {
	rng := rand.New(rand.NewPCG(uint64(tokens), 3))
	ids := make([]int, tokens)
	for i := range ids {
		ids[i] = rng.IntN(c.List.Config.VocabSize)
	}
	c.Passes = [][]int{ids, {ids[0]}}
	g := *c.Engine
	g.first = first
	if tokens > 100 {
		g.Drop = append(slices.Clone(g.Drop), "scores", "scores_masked", "scores_softcap", "probs", "probs_f32", "mask.full", "mask.sliding", "self_attn.keys", "self_attn.values")
	}
	c.Engine = &g
	return c
}
