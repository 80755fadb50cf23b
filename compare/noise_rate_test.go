package compare_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// walked is the walk over passes.
func walked(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, d hooks.DType, passes [][]int, exact bool) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	job := reference.Job{Checkpoint: ck, List: list, DType: d, Exact: exact, Passes: passes, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}}}
	if _, err := reference.Walk(context.Background(), job); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// floorOf is the noise floor of passes: the walk with every rounding point against the walk with none.
func floorOf(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, d hooks.DType, passes [][]int) (*compare.NoiseFloor, *capture.Trace) {
	t.Helper()
	emulated := walked(t, ck, list, d, passes, false)
	floor, err := compare.NewNoiseFloor(run(t, emulated, walked(t, ck, list, d, passes, true), compare.Options{Order: list, All: true}))
	if err != nil {
		t.Fatal(err)
	}
	return floor, emulated
}

// localWalk is the local model over passes. A sloppy one is another engine: of every tensor that an operation computes, one
// element in eight is one unit in the last place off, either way, as in an engine that rounds in other places.
func localOver(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, d hooks.DType, passes [][]int, sloppy *rand.Rand) *capture.Trace {
	t.Helper()
	var reg hooks.Registry
	if sloppy != nil {
		if err := reg.Replace("*", func(e hooks.Event) (hooks.Tensor, error) { return roundedElsewhere(list, e, sloppy), nil }); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "local.safetensors")
	_, err := gemma.Capture(context.Background(), gemma.Job{
		Checkpoint: ck, List: list, DType: d, Passes: passes, Path: path, Registry: &reg, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// copies are the kinds of operations that round nothing, in any engine.
var copies = []string{"lookup", "identity", "select", "argument", "mask", "cache", "cast"}

func roundedElsewhere(list *order.List, e hooks.Event, rng *rand.Rand) hooks.Tensor {
	entry, _ := list.Lookup(e.Name)
	if !e.Tensor.DType.Float() || slices.Contains(copies, entry.Op.Kind()) || entry.Compare == order.Pattern {
		return e.Tensor
	}
	values := valuesOf(e.Tensor)
	for i, v := range values {
		if rng.IntN(8) > 0 || math.Abs(v) > 1e30 { // masked
			continue
		}
		by := floats.Unit(e.Tensor.DType) * 1.5 // of any number, more than half a step and less than two
		values[i] = floats.Round(e.Tensor.DType, v*(1+by*float64(2*rng.IntN(2)-1)))
	}
	out := fire(e.Name, e.Tensor.DType, e.Tensor.Shape, values...).Tensor
	return out
}

// rates counts, for healthy pairs of one kind, the entries by the multiple of their noise floor that they needed.
type rates struct {
	entries int
	pairs   int
	past    int    // entries beyond their limit
	bad     int    // pairs with such an entry
	beyond  [5]int // entries that need more than rateSteps
	some    int    // entries that need more than half of the floor
	worst   float64
	at      string
}

var rateSteps = [5]float64{1, 2, 4, 8, 16}

func (r *rates) add(t *testing.T, where string, l, ref *capture.Trace, list *order.List, floor *compare.NoiseFloor) {
	t.Helper()
	res := run(t, l, ref, compare.Options{Order: list, All: true, Noise: floor})
	before := r.past
	for i := range res.Rows {
		row := &res.Rows[i]
		if row.Derived || row.Gate == nil || !strings.Contains(row.Gate.From, "noise floor") {
			continue
		}
		r.entries++
		k := float64(row.Gate.Noise)
		for i, step := range rateSteps {
			if k > step {
				r.beyond[i]++
			}
		}
		if !row.Gate.Passed() {
			r.past++
		}
		if k > 0.5 {
			r.some++
		}
		if k > r.worst {
			r.worst, r.at = k, where+" "+row.Key()
		}
	}
	r.pairs++
	if r.past > before {
		r.bad++
	}
}

// upper is the upper end of the 95 % interval of Wilson's score for n of m.
func upper(n, m int) float64 {
	const z = 1.96
	p, size := float64(n)/float64(m), float64(m)
	return (p + z*z/(2*size) + z*math.Sqrt(p*(1-p)/size+z*z/(4*size*size))) / (1 + z*z/size)
}

// TestNoiseRate measures how far healthy pairs are from their noise floor. TRACEDIFF_NOISE_PROMPTS is the number of random
// prompts a checkpoint and dtype; docs/tolerance.md has what 40 of them show.
func TestNoiseRate(t *testing.T) {
	prompts := 1
	if text := os.Getenv("TRACEDIFF_NOISE_PROMPTS"); text != "" {
		var err error
		if prompts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]*rates{}
	of := func(pair string, d hooks.DType) *rates {
		key := pair + ", " + d.String()
		if all[key] == nil {
			all[key] = &rates{}
		}
		return all[key]
	}
	for n, dir := range []string{"gemma3n-tiny", "gemma3n-odd", "gemma3n-variant", "gemma3-tiny", "gemma2-tiny", "gemma-tiny"} {
		ck, list := openModel(t, dir)
		for _, d := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
			for i := range prompts {
				passes := randomPasses(rng, list.Config.VocabSize)
				where := fmt.Sprintf("%s %d", dir, i)
				floor, walk := floorOf(t, ck, list, d, passes)
				of("local against the walk", d).add(t, where, localOver(t, ck, list, d, passes, nil), walk, list, floor)
				of("rounded elsewhere against the walk", d).add(t, where, localOver(t, ck, list, d, passes, rng), walk, list, floor)
			}
			names, err := fs.Glob(fixtures.Files, "golden/"+dir+"/hello."+d.String()+".safetensors")
			if prompts > 1 {
				names, err = fs.Glob(fixtures.Files, "golden/"+dir+"/*."+d.String()+".safetensors")
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				ref := golden(t, name)
				passes, err := ref.IDs()
				if err != nil {
					t.Fatal(err)
				}
				floor, walk := floorOf(t, ck, list, d, passes)
				of("transformers against the walk", d).add(t, name, ref, walk, list, floor)
				of("local against transformers", d).add(t, name, localOver(t, ck, list, d, passes, nil), ref, list, floor)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		r := all[key]
		t.Logf("%s: %d entries of %d pairs, more than %v times the floor in %v; past the limit %d entries (at 95%% less than %.2g) of %d pairs (%.2g); worst %.1f at %s",
			key, r.entries, r.pairs, rateSteps, r.beyond, r.past, upper(r.past, r.entries), r.bad, upper(r.bad, r.pairs), r.worst, r.at)
		most := 1e-3
		if strings.HasPrefix(key, "rounded") {
			most = 5e-2
		}
		if rate := float64(r.past) / float64(r.entries); rate > most {
			t.Errorf("%s: %d of %d healthy entries are past their limit", key, r.past, r.entries)
		}
		if noisy := strings.HasSuffix(key, "float32") || strings.HasPrefix(key, "rounded"); noisy && 4*r.some < r.entries {
			t.Errorf("%s: of %d entries only %d need more than half of their floor: it says nothing", key, r.entries, r.some)
		}
	}
}

func randomPasses(rng *rand.Rand, vocab int) [][]int {
	passes := make([][]int, 1+rng.IntN(3))
	for p := range passes {
		n := 1
		if p == 0 {
			n = 1 + rng.IntN(24)
		}
		for range n {
			passes[p] = append(passes[p], rng.IntN(vocab))
		}
	}
	return passes
}
