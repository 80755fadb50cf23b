package isolate_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"
	"github.com/tracediff/tracediff/internal/testengine"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// additions is an order in which terms are added: a term by its number, or the sum of two of them.
type additions struct {
	term int
	of   []additions // two, or none
}

// drawAdditions joins two of what is left until one is.
func drawAdditions(rng *rand.Rand, terms int) additions {
	var left []additions
	for k := range terms {
		left = append(left, additions{term: k})
	}
	for len(left) > 1 {
		i := rng.IntN(len(left) - 1)
		j := i + 1 + rng.IntN(len(left)-1-i)
		both := additions{of: []additions{left[i], left[j]}}
		left = append(slices.Delete(slices.Delete(left, j, j+1), i, i+1), both)
	}
	return left[0]
}

// first is the first letter.
func (a additions) first(letters []byte) byte {
	if a.of == nil {
		return letters[a.term]
	}
	return min(a.of[0].first(letters), a.of[1].first(letters))
}

// text writes an order in letters; the sides of a sum are in the order of their first terms.
func (a additions) text(letters []byte) string {
	if a.of == nil {
		return string(letters[a.term])
	}
	sides := slices.Clone(a.of)
	slices.SortFunc(sides, func(x, y additions) int { return cmp.Compare(x.first(letters), y.first(letters)) })
	var said []string
	for _, s := range sides {
		if text := s.text(letters); s.of != nil {
			said = append(said, "("+text+")")
		} else {
			said = append(said, text)
		}
	}
	return strings.Join(said, " + ")
}

// add adds in float32, and rounds every sum to a dtype.
func (a additions) add(d hooks.DType, terms []singles.Array, i int) float32 {
	if a.of == nil {
		return terms[a.term].Data[i]
	}
	return float32(floats.Round(d, float64(a.of[0].add(d, terms, i)+a.of[1].add(d, terms, i))))
}

// additionLayers is how many sums a trace has, of as many terms each.
const additionLayers = 3

// summed are layers that add terms in a model's order, of which a trace has the terms and their sum, and no sum on the way. The engine
// adds in its own order; wrong changes what it has of a layer.
func summed(t testing.TB, known *order.List, d hooks.DType, shape []int, terms int, model, engine additions, seed uint64, wrong func(layer int, out singles.Array, terms []singles.Array)) []*isolate.Certificate {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 41))
	input, _ := known.Lookup(order.InputIDs)
	entries, events := []*order.Entry{input}, []hooks.Event{tokensOf(2)}
	elements, _ := hooks.Elements(shape)
	for layer := range additionLayers {
		out := singles.Array{Shape: shape, Data: make([]float32, elements)}
		var of []singles.Array
		for k := range terms {
			x := singles.Array{Shape: shape, Data: make([]float32, elements)}
			for i := range x.Data {
				x.Data[i] = float32(floats.Round(d, rng.NormFloat64()*[]float64{1, 0.5, 2}[k%3]))
			}
			leaf := x.Entry(fmt.Sprintf("layers.%d.term.%d", layer, k), op.Identity{}, "")
			entries, events, of = append(entries, leaf), append(events, x.Event(leaf.Name, d)), append(of, x)
		}
		for i := range out.Data {
			out.Data[i] = engine.add(d, of, i)
		}
		if wrong != nil {
			wrong(layer, out, of)
		}
		made := 0
		var name func(a additions, top bool) string
		name = func(a additions, top bool) string {
			if a.of == nil {
				return fmt.Sprintf("layers.%d.term.%d", layer, a.term)
			}
			x, y := name(a.of[0], false), name(a.of[1], false)
			e := out.Entry(fmt.Sprintf("layers.%d.part.%d", layer, made), op.Add{}, "")
			if made++; top {
				e.Name = fmt.Sprintf("layers.%d.out", layer)
			}
			e.Inputs = []order.Ref{{Name: x}, {Name: y}}
			entries = append(entries, e)
			return e.Name
		}
		events = append(events, out.Event(name(model, true), d))
	}
	trace := testengine.Build(t, testengine.Manifest("local", d), events...)
	none := func(order.Weight) (program.Rows, error) { return nil, isolate.ErrNoWeights }
	i, err := compare.NewIsolator(trace, known.Keep(entries), none, isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var all []*isolate.Certificate
	for layer := range additionLayers {
		c, err := i.Certify(context.Background(), fmt.Sprintf("layers.%d.out", layer), 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// lettered are the terms in the order in which a formula has them.
func (a additions) lettered(letters []byte) []byte {
	if a.of == nil {
		return append(letters, byte('0'+a.term))
	}
	return a.of[1].lettered(a.of[0].lettered(letters))
}

// said is what a report says of an engine that adds in another order than the model; empty where it is the same.
func said(terms int, model, engine additions) string {
	letters := make([]byte, terms)
	for k, digit := range model.lettered(nil) {
		letters[digit-'0'] = byte('a' + k)
	}
	own, other := model.text(letters), engine.text(letters)
	if own == other {
		return ""
	}
	if terms > 6 {
		return fmt.Sprintf("adds %d terms in another order", terms)
	}
	return fmt.Sprintf("adds %d terms in another order, %s for %s", terms, other, own)
}

// A port may add three terms or more in another order than the model: each sum on the way is another one, and is rounded. That is
// an arithmetic with a name. A layer that has something else is a bug beside it. TRACEDIFF_ADDITIONS sets how many ports are drawn.
func TestOrderOfAdditionsIsNoBug(t *testing.T) {
	known := tiny(t)
	for seed := range uint64(pagetest.Samples(t, "TRACEDIFF_ADDITIONS", 30)) {
		rng := rand.New(rand.NewPCG(seed, 40))
		d := []hooks.DType{hooks.F32, hooks.BF16, hooks.F16}[seed%3]
		n := []int{3, 3, 4, 8}[rng.IntN(4)]
		model, engine := drawAdditions(rng, n), drawAdditions(rng, n)
		if n > 4 { // not every order is looked for
			model, engine = inTurn(n, false), inTurn(n, rng.IntN(4) > 0)
		}
		want := said(n, model, engine)
		for layer, c := range summed(t, known, d, []int{1, 6, 16}, n, model, engine, seed, nil) {
			switch {
			case c.Outcome != isolate.Exact && c.Outcome != isolate.Rounding:
				t.Errorf("%d, layer %d: %s, %d outside", seed, layer, c.Outcome, c.Outside)
			case want == "" && c.Arithmetic != string(isolate.Strict), c.Outside == 0 && c.Arithmetic != want && c.Arithmetic != string(isolate.Strict):
				t.Errorf("%d, layer %d: said to be %q, not %q", seed, layer, c.Arithmetic, want)
			}
		}
		bad := rng.IntN(additionLayers)
		by := 1 + 16*math.Ldexp(1, -floats.Precision(d))
		what := []string{"scaled", "a term left out", "a term twice"}[rng.IntN(3)]
		for layer, c := range summed(t, known, d, []int{1, 6, 16}, n, model, engine, seed, func(layer int, out singles.Array, terms []singles.Array) {
			for i := range out.Data {
				switch {
				case layer != bad:
				case what == "scaled":
					out.Data[i] = float32(floats.Round(d, float64(out.Data[i])*by))
				case what == "a term left out":
					out.Data[i] = float32(floats.Round(d, float64(out.Data[i]-terms[0].Data[i])))
				default:
					out.Data[i] = float32(floats.Round(d, float64(out.Data[i]+terms[0].Data[i])))
				}
			}
		}) {
			if (c.Outcome == isolate.Bug) != (layer == bad) || layer == bad && c.Arithmetic != string(isolate.Strict) && c.Arithmetic != want {
				t.Errorf("%d, layer %d, %s in layer %d: %s, %q", seed, layer, what, bad, c.Outcome, c.Arithmetic)
			}
		}
	}
}

// In float32 the bounds of the model's order hold nearly all that another order gives. Where few elements are outside of them, the bits
// of the others show the order.
func TestOrderOfAdditionsShowsInFewElements(t *testing.T) {
	model := additions{of: []additions{{term: 0}, {of: []additions{{term: 1}, {term: 2}}}}}
	engine := additions{of: []additions{{of: []additions{{term: 0}, {term: 2}}}, {term: 1}}}
	known := tiny(t)
	named, few := 0, 0
	for seed := range uint64(12) {
		outside := 0
		for _, c := range summed(t, known, hooks.F32, []int{1, 3, 16}, 3, model, engine, seed, nil) {
			if c.Outcome != isolate.Exact && c.Outcome != isolate.Rounding {
				t.Errorf("seed %d: %s, %d outside", seed, c.Outcome, c.Outside)
			}
			if c.Arithmetic == said(3, model, engine) {
				outside++
			}
		}
		if outside > 0 {
			named++
		}
		if outside == 1 {
			few++
		}
	}
	if named < 6 || few < 1 {
		t.Errorf("%d named, %d of them in one layer: no sample of what is to be tested", named, few)
	}
}

// inTurn adds from the first term to the last, or from the last to the first.
func inTurn(terms int, reversed bool) additions {
	at := func(k int) additions {
		if reversed {
			k = terms - 1 - k
		}
		return additions{term: k}
	}
	sum := at(0)
	for k := 1; k < terms; k++ {
		sum = additions{of: []additions{sum, at(k)}}
	}
	return sum
}
