package isolate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/singles"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/op"
)

// The certificates of a trace do not depend on the order in which a pass fired its tensors.
func TestOrderOfEventsDoesNotMatter(t *testing.T) {
	for n := range len(testengine.Names) {
		c := testengine.CaseOf(t, n)
		t.Run(fmt.Sprint(n, c.Name), func(t *testing.T) {
			r := c.Start(t, c.Case, c.Strict, nil)
			local := r.Trace()
			a := singles.CertifyTrace(t, local, c.Case, c.DType, nil)
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			ev := slices.Clone(r.Events)
			rng.Shuffle(len(ev), func(i, j int) { ev[i], ev[j] = ev[j], ev[i] })
			slices.SortStableFunc(ev, func(a, b hooks.Event) int { return a.Pass - b.Pass })
			b := singles.CertifyTrace(t, testengine.Build(t, r.Manifest(), ev...), c.Case, c.DType, nil)
			for k, x := range a {
				if y := b[k]; y == nil || x.Outcome != y.Outcome || x.Arithmetic != y.Arithmetic || x.Outside != y.Outside {
					t.Fatalf("%s: %s %s %q, in another order %+v", k, x.Form, x.Outcome, x.Arithmetic, y)
				}
			}
		})
	}
}

// Numbers that no engine writes, and tensors that are missing, are judged: without a panic, and in little time.
func TestHostileNumbersAreJudged(t *testing.T) {
	for n := range len(testengine.Names) {
		c := testengine.CaseOf(t, n)
		t.Run(fmt.Sprint(n, c.Name), func(t *testing.T) {
			r := c.Start(t, c.Case, c.Strict, nil)
			r.Forward()
			rng := rand.New(rand.NewPCG(2, uint64(n)))
			var ev []hooks.Event
			mode := n % 6 // of spoiling
			for _, e := range r.Events {
				if e.Tensor.DType == hooks.I64 {
					ev = append(ev, e)
					continue
				}
				if rng.IntN(10) == 0 && mode != 0 {
					continue
				}
				x := e.Tensor
				x.Data = slices.Clone(x.Data)
				sz := len(x.Data) / max(sizeOf(x.Shape), 1)
				put := func(i int, v float64) { copy(x.Data[i*sz:], floats.Append(nil, x.DType, v)) }
				count := sizeOf(x.Shape)
				switch mode {
				case 0, 1:
					for range 3 {
						put(rng.IntN(count), []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat32, 1e-40, 0}[rng.IntN(6)])
					}
				case 2:
					for i := range count {
						put(i, math.NaN())
					}
				case 3:
					for i := range count {
						put(i, math.MaxFloat32*(rng.Float64()-0.5)*2)
					}
				case 4:
					for i := range count {
						put(i, 1e-39*rng.NormFloat64())
					}
				case 5:
					for i := range count {
						put(i, rng.NormFloat64())
					}
				}
				e.Tensor = x
				ev = append(ev, e)
			}
			judged := singles.CertifyTrace(t, testengine.Build(t, r.Manifest(), ev...), c.Case, c.DType, nil)
			if len(judged) == 0 {
				t.Error("no entry is judged")
			}
			bugs := 0
			for _, z := range judged {
				if z.Outcome == isolate.Bug {
					bugs++
				}
			}
			if bugs == 0 {
				t.Errorf("%s: of %d entries with such numbers none is wrong", c.Family, len(judged))
			}
		})
	}
}

func sizeOf(shape []int) int { n, _ := hooks.Elements(shape); return n }

// What is wrong with a cache that begins is looked for, too: it is joined from one tensor, whose heads it exchanges with its tokens.
func TestSpoiltCacheThatBegins(t *testing.T) {
	for n := range len(testengine.Names) {
		c := testengine.CaseOf(t, n)
		if c.Drop != nil { // its caches are not captured
			continue
		}
		t.Run(fmt.Sprint(c.Family, " ", n), func(t *testing.T) {
			r := c.Start(t, c.Case, c.Strict, nil)
			r.Forward()
			spoilt := ""
			for _, ev := range r.Events {
				if e, ok := c.List.Lookup(ev.Name); ok && ev.Pass == 0 && spoilt == "" {
					if _, cache := e.Op.(op.Cache); cache {
						spoilt = ev.Name
						copy(ev.Tensor.Data, floats.Append(nil, ev.Tensor.DType, 3.5))
					}
				}
			}
			z := singles.CertifyTrace(t, testengine.Build(t, r.Manifest(), r.Events...), c.Case, c.DType, func(key string) bool { return key == spoilt })
			if z[spoilt] == nil || z[spoilt].Outcome != isolate.Bug {
				t.Fatalf("%s is %+v", spoilt, z[spoilt])
			}
			i, err := compare.NewIsolator(testengine.Build(t, r.Manifest(), r.Events...), c.List, reference.Weights(c.Checkpoint, c.DType), isolate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if found, err := i.Name(t.Context(), spoilt); err != nil || found.Named() && found.Shown < 8 {
				t.Errorf("%s: %v, %v", spoilt, found, err)
			}
		})
	}
}
