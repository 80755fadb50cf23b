package arithmetic_test

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/pagetest"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// placesTo are the last of some positions.
func placesTo(last, n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(last - n + 1 + i)
	}
	return all
}

// tableOf is a table that an engine made with some numbers, as an entry that the order makes with others.
func tableOf(k testengine.Turner, l testengine.Library, r testengine.Rope, o op.Rotary, positions []float32) singles.Single {
	return singles.Single{
		Op: o, In: []singles.Array{{Shape: []int{1, len(positions)}, Data: positions}}, Letter: "btd", About: k.Name,
		Out: singles.Array{Shape: []int{1, len(positions), o.Dim}, Data: k.Table(l, r, positions, o.Sin)},
	}
}

// ropeOf are the numbers of a rotary embedding.
func ropeOf(theta float64, dim int, scaling func(inv float64) float64) testengine.Rope {
	return testengine.Rope{Theta: theta, Dim: dim, Scaling: scaling}
}

// rotaries are the numbers of models, and of what a port takes them for.
var rotaries = []struct {
	name  string
	op    op.Rotary
	right testengine.Rope
	wrong map[string]testengine.Rope
}{
	{"SmolLM2", op.Rotary{Theta: 1e5, Dim: 64, Scaling: "default"}, ropeOf(1e5, 64, nil), map[string]testengine.Rope{
		"off by 1e-4": ropeOf(100010, 64, nil), "10000": ropeOf(1e4, 64, nil), "1000000": ropeOf(1e6, 64, nil), "linear scaling": ropeOf(1e5, 64, testengine.LinearScaling(2)), "another size": ropeOf(1e5, 128, nil),
	}},
	{"Gemma 3, sliding", op.Rotary{Theta: 1e4, Dim: 256, Scaling: "default"}, ropeOf(1e4, 256, nil), map[string]testengine.Rope{
		"off by 1e-4": ropeOf(10001, 256, nil), "1000": ropeOf(1e3, 256, nil), "that of full layers": ropeOf(1e6, 256, nil),
	}},
	{"Gemma 3, full", op.Rotary{Theta: 1e6, Dim: 256, Scaling: "linear", Factor: 8}, ropeOf(1e6, 256, testengine.LinearScaling(8)), map[string]testengine.Rope{
		"off by 1e-4": ropeOf(1000100, 256, testengine.LinearScaling(8)), "that of sliding layers": ropeOf(1e4, 256, testengine.LinearScaling(8)), "no scaling": ropeOf(1e6, 256, nil), "another factor": ropeOf(1e6, 256, testengine.LinearScaling(4)),
	}},
	{"Llama 3", op.Rotary{Theta: 5e5, Dim: 128, Scaling: "llama3", Factor: 32, LowFreq: 1, HighFreq: 4, Positions: 8192}, ropeOf(5e5, 128, testengine.Llama3Scaling(32, 1, 4, 8192)), map[string]testengine.Rope{
		"off by 1e-4": ropeOf(500050, 128, testengine.Llama3Scaling(32, 1, 4, 8192)), "100000": ropeOf(1e5, 128, testengine.Llama3Scaling(32, 1, 4, 8192)), "no scaling": ropeOf(5e5, 128, nil), "linear": ropeOf(5e5, 128, testengine.LinearScaling(32)), "another factor": ropeOf(5e5, 128, testengine.Llama3Scaling(8, 1, 4, 8192)),
	}},
	{"a head of 80", op.Rotary{Theta: 1e4, Dim: 80, Scaling: "default"}, ropeOf(1e4, 80, nil), map[string]testengine.Rope{"off by 1e-4": ropeOf(10001, 80, nil), "100000": ropeOf(1e5, 80, nil)}},
}

// libraries are one that rounds correctly, and some that are off by all that is allowed.
var libraries = []testengine.Library{{}, {Share: 1, Seed: 1}, {Share: 1, Seed: 2}}

// A table that is right has no mistake, in whichever way an engine made it; one of another base or scaling has.
func TestWaysOfTables(t *testing.T) {
	for _, model := range rotaries {
		for _, k := range testengine.Turners {
			t.Run(model.name+"/"+k.Name, func(t *testing.T) {
				var right, wrong []singles.Single
				var names []string
				for _, last := range []int{11, 600, 30_000} {
					for n, l := range libraries {
						o := model.op
						o.Sin = n%2 == 1
						right = append(right, tableOf(k, l, model.right, o, placesTo(last, 12)))
						for name, r := range model.wrong {
							if n != 1 || last == 11 && name == "no scaling" && o.Scaling == "llama3" { // the first 12 positions of long waves are alike
								continue
							}
							if r.Dim != o.Dim { // the exponents of another size
								r = ropeOf(math.Pow(r.Theta, float64(o.Dim)/float64(r.Dim)), o.Dim, r.Scaling)
							}
							wrong, names = append(wrong, tableOf(k, l, r, o, placesTo(last, 12))), append(names, fmt.Sprint(name, " at ", last))
						}
					}
				}
				for i, c := range eachAlone(t, right) {
					if !c.Good() || c.Outcome == isolate.Unidentified {
						t.Errorf("right %d: %s, %d elements outside, %s", i, c.Outcome, c.Outside, c.Arithmetic)
					}
				}
				for i, c := range eachAlone(t, wrong) {
					if c.Outcome != isolate.Bug {
						t.Errorf("theta %s: %s, %s", names[i], c.Outcome, c.Arithmetic)
					}
				}
			})
		}
	}
}

// A frequency that is off by 60 units in one row is within the bounds of another way. But the other rows have transformers' frequencies to the bit, so
// that no other way of making tables explains the row.
func TestAWrongRowIsNoWayOfMakingTables(t *testing.T) {
	model, places := rotaries[0], placesTo(30_000, 64)
	table := tableOf(testengine.Turners[0], libraries[0], model.right, model.op, places)
	const frequency = 20
	half := model.op.Dim / 2
	last := len(table.Out.Data) - model.op.Dim
	angle := testengine.Turners[0].Angles(libraries[0], model.right, float64(places[len(places)-1]))[frequency] * (1 + 60*0x1p-24)
	for _, at := range []int{frequency, frequency + half} {
		table.Out.Data[last+at] = float32(math.Cos(angle))
	}
	if c := eachAlone(t, []singles.Single{table})[0]; c.Good() {
		t.Errorf("%s: %s", c.Outcome, c.Arithmetic)
	}
}

// eachAlone certifies tables of float32, each in a trace of its own: they are no entries of one engine.
func eachAlone(t *testing.T, all []singles.Single) []*isolate.Certificate {
	var certs []*isolate.Certificate
	for _, s := range all {
		certs = append(certs, singles.CertifyAll(t, hooks.F32, isolate.Options{}, []singles.Single{s})...)
	}
	return certs
}

const powerPage = "../../docs/results/power.md"

// smallestBelow is [smallest] of sizes that are not above some.
func smallestBelow(most float64, found func(size float64) bool) float64 {
	return singles.Smallest(func(size float64) bool { return size > most*1.01 || found(size) })
}

const thetaBegin, thetaEnd = "<!-- errors of theta: go test ./compare/arithmetic -run SmallestErrorOfTheta -update -->\n", "<!-- end of errors of theta -->\n"

// docs/results/power.md has the smallest error of theta that is found, by way and position.
func TestSmallestErrorOfTheta(t *testing.T) {
	var b strings.Builder
	places := []int{12, 600, 30_000}
	b.WriteString("\n| way | model |")
	for _, p := range places {
		fmt.Fprintf(&b, " position %d |", p)
	}
	b.WriteString("\n|---|---|---|---|---|\n")
	for _, k := range testengine.Turners {
		for _, model := range rotaries[:2] {
			fmt.Fprintf(&b, "| %s | theta %.0f, %d in a head |", k.Name, model.op.Theta, model.op.Dim)
			for _, last := range places {
				least := smallestBelow(2e-4, func(size float64) bool {
					for _, sign := range []float64{1, -1} {
						r := model.right
						r.Theta *= 1 + sign*size
						for _, l := range libraries[:2] {
							s := tableOf(k, l, r, model.op, placesTo(last, 12))
							if singles.CertifyAll(t, hooks.F32, isolate.Options{}, []singles.Single{s})[0].Outcome != isolate.Bug {
								return false
							}
						}
					}
					return true
				})
				if least > 1e-4 {
					t.Errorf("%s, %s: at position %d an error of %g is the smallest that is found", model.name, k.Name, last, least)
				}
				fmt.Fprintf(&b, " %.0e |", least)
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n")
	have, err := os.ReadFile(powerPage)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(have), thetaBegin)
	old, tail, ended := strings.Cut(rest, thetaEnd)
	switch {
	case !found || !ended:
		t.Fatalf("%s has no place for the table", powerPage)
	case pagetest.Update():
		if err := os.WriteFile(powerPage, []byte(head+thetaBegin+b.String()+thetaEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	case old != b.String():
		t.Errorf("%s has another table than this run:\n%s", powerPage, b.String())
	}
}

// A scale of attention that is off by 0.00009 moves few elements beyond the bounds of float32. The bounds of another way to make rotary tables hold
// these elements, but so few of them tell nothing of tables: the entries are neither right nor wrong.
func TestFewElementsAreNoWayOfMakingTables(t *testing.T) {
	ck, list := ordertest.Embedded(t, "qwen3-tiny")
	trace := attention{result: 1, alike: true, rounded: true, f32: true, tokens: 24, off: 9e-5}.trace(t, "qwen3-tiny")
	i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.F32), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	open := 0
	for _, name := range []string{"layers.0.self_attn.o_proj", "layers.1.self_attn.o_proj", "layers.2.self_attn.o_proj"} {
		z, err := i.Certify(t.Context(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if z.Good() && z.Arithmetic != string(isolate.Strict) {
			t.Errorf("%s: %s: %s", name, z.Outcome, z.Arithmetic)
		}
		if !z.Good() {
			open++
		}
	}
	if open == 0 {
		t.Error("the scale shows nowhere")
	}
}
