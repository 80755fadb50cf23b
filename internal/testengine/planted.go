package testengine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/order"
)

// Planted is a run of an engine with a visible mistake.
type Planted struct {
	*Damage
	Trace  *capture.Trace
	Guilty map[string]int  // elements that are not what they would be without it, by key
	Names  map[string]bool // the names of the entries in Guilty
}

// FewestChanged is the number of elements a mistake has to change to count as detectable.
const FewestChanged = 8

// plantTries is how many cases, and entries in each, are tried for one mistake.
const plantTries, plantEntries = 2 * 7, 2

// Plant plants fault n. The number determines engine and mistake, and the model is the first model in which the
// mistake is visible. If the engine's models cannot have the mistake, Plant takes the next mistake.
func Plant(t *testing.T, n int) (Case, Planted) {
	t.Helper()
	for next := range Mistakes {
		m := Mistakes[(n+4*(n/len(Names))+next)%len(Mistakes)] // 16 an engine: any number but 13 brings all
		for k := range plantTries {
			c := CaseOf(t, n+k*len(Names))
			if p, ok := c.plant(t, n, m); ok {
				return c, p
			}
		}
	}
	t.Fatal("no mistake shows")
	return Case{}, Planted{}
}

// plant puts a mistake into one entry, or into an entry of every layer, and reports whether it shows.
func (c Case) plant(t *testing.T, n int, m Mistake) (Planted, bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(n), 53))
	var fit []*order.Entry
	for i := range c.List.Entries {
		if e := &c.List.Entries[i]; m.Fits(e) {
			fit = append(fit, e)
		}
	}
	for range min(len(fit), plantEntries) {
		e := fit[rng.IntN(len(fit))]
		d := &Damage{m, map[string]bool{e.Name: true}}
		if rng.IntN(2) == 0 && e.Layer >= 0 {
			for _, other := range fit {
				if other.Layer >= 0 && InLayer(other) == InLayer(e) {
					d.At[other.Name] = true
				}
			}
		}
		r := c.Start(t, c.Case, c.Choose, d)
		p := Planted{d, r.Trace(), map[string]int{}, map[string]bool{}}
		changed := 0
		for _, a := range r.Differences {
			p.Guilty[capture.Key(a.Pass, a.Name, 0)], p.Names[a.Name] = a.Elements, true
			changed += a.Elements
		}
		if changed >= FewestChanged {
			return p, true
		}
	}
	return Planted{}, false
}

// InLayer is the name of an entry below its layer.
func InLayer(e *order.Entry) string {
	return order.NameOf(e.Name).Module()
}

// String names the mistake and where it is.
func (p Planted) String() string {
	return fmt.Sprintf("%s at %s", p.Mistake.Name, strings.Join(slices.Sorted(maps.Keys(p.At)), ", "))
}
