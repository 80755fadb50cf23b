package compare_test

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/pagetest"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
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
func floorOf(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, d hooks.DType, passes [][]int) (*gate.NoiseFloor, *capture.Trace) {
	t.Helper()
	emulated := walked(t, ck, list, d, passes, false)
	floor, err := compare.NewNoiseFloor(run(t, emulated, walked(t, ck, list, d, passes, true), compare.Options{Order: list, All: true}))
	if err != nil {
		t.Fatal(err)
	}
	return floor, emulated
}

// localWalk is the built-in model over passes. A sloppy one is another engine: of every tensor that an operation computes, one
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

func roundedElsewhere(list *order.List, e hooks.Event, rng *rand.Rand) hooks.Tensor {
	entry, _ := list.Lookup(e.Name)
	if _, exact := entry.Op.(op.Exact); !e.Tensor.DType.Float() || exact || entry.Compare == order.Pattern {
		return e.Tensor
	}
	values := testengine.ValuesOf(e.Tensor)
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
	past    int       // entries beyond their limit
	bad     int       // pairs with such an entry
	beyond  [5]int    // entries that need more than rateSteps
	some    int       // entries that need more than half of the floor
	limits  []float64 // on the tensor, of each entry
	worst   float64
	at      string
}

var rateSteps = [5]float64{1, 2, 4, 8, 16}

func (r *rates) add(t *testing.T, where string, l, ref *capture.Trace, list *order.List, floor *gate.NoiseFloor) {
	t.Helper()
	res := run(t, l, ref, compare.Options{Order: list, All: true, Judging: compare.Judging{Noise: floor}})
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
		for _, c := range row.Gate.Checks {
			if c.What == "tensor" {
				r.limits = append(r.limits, float64(c.Limit))
			}
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

// wilson is the 95 % interval of Wilson's score for n of m.
func wilson(n, m int) (low, high float64) {
	const z = 1.96
	p, size := float64(n)/float64(m), float64(m)
	if n == 0 {
		return 0, z * z / size / (1 + z*z/size)
	}
	middle, half := p+z*z/(2*size), z*math.Sqrt(p*(1-p)/size+z*z/(4*size*size))
	return (middle - half) / (1 + z*z/size), (middle + half) / (1 + z*z/size)
}

// quantile is the q-th of numbers that ascend.
func quantile(sorted []float64, q float64) float64 {
	return sorted[int(q*float64(len(sorted)-1))]
}

// row is what the pairs showed, as docs/results/limits.md has it: the limits that they were held to, and how often they were past one.
func (r *rates) row(pair, dtype string) string {
	slices.Sort(r.limits)
	var limits, beyond []string
	for _, q := range []float64{0.05, 0.5, 0.95, 1} {
		limits = append(limits, fmt.Sprintf("%.1e", quantile(r.limits, q)))
	}
	for _, n := range r.beyond {
		beyond = append(beyond, fmt.Sprint(n))
	}
	low, high := wilson(r.past, r.entries)
	lowPair, highPair := wilson(r.bad, r.pairs)
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %d | %.2g to %.2g | %d of %d | %.2g to %.2g |\n", pair, dtype, r.entries,
		strings.Join(limits, ", "), strings.Join(beyond, ", "), r.past, low, high, r.bad, r.pairs, lowPair, highPair)
}

const noiseHeader = `
| pair | dtype | entries | limits on tensors: 5 %, 50 %, 95 %, largest | more than 1, 2, 4, 8, 16 floors | past the limit | rate | pairs with one | rate |
|---|---|---|---|---|---|---|---|---|
`

// noisePrompts is how many prompts the table in docs/results/limits.md is of; -update rewrites it.
const noisePrompts = 40

const noiseDocs = "../docs/results/limits.md"

// noisePairs are the kinds of healthy pairs.
var noisePairs = []string{"local and the walk", "local and transformers", "transformers and the walk", "rounded elsewhere and the walk"}

// TestNoiseRate measures how far healthy pairs are from their noise floor. TRACEDIFF_NOISE_PROMPTS is the number of random
// prompts a checkpoint and dtype; docs/results/limits.md has what 40 of them show.
func TestNoiseRate(t *testing.T) {
	prompts := pagetest.Samples(t, "TRACEDIFF_NOISE_PROMPTS", 1)
	all := map[string]map[hooks.DType]*rates{}
	for _, pair := range noisePairs {
		all[pair] = map[hooks.DType]*rates{hooks.F32: {}, hooks.BF16: {}, hooks.F16: {}}
	}
	for n, dir := range []string{"gemma3n-tiny", "gemma3n-odd", "gemma3n-variant", "gemma3-tiny", "gemma2-tiny", "gemma-tiny"} {
		ck, list := ordertest.Embedded(t, dir)
		for _, d := range noiseDTypes {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(d)))
			for i := range prompts {
				passes := randomPasses(rng, list.Config.VocabSize)
				where := fmt.Sprintf("%s %d", dir, i)
				floor, walk := floorOf(t, ck, list, d, passes)
				all[noisePairs[0]][d].add(t, where, localOver(t, ck, list, d, passes, nil), walk, list, floor)
				all[noisePairs[3]][d].add(t, where, localOver(t, ck, list, d, passes, rng), walk, list, floor)
			}
			goldens := "hello"
			if prompts > 1 {
				goldens = "*"
			}
			names, err := fs.Glob(ondisk.Files(), "golden/"+dir+"/"+goldens+"."+d.String()+".safetensors")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				ref := testengine.OpenGolden(t, name)
				passes, err := ref.IDs()
				if err != nil {
					t.Fatal(err)
				}
				floor, walk := floorOf(t, ck, list, d, passes)
				all[noisePairs[2]][d].add(t, name, ref, walk, list, floor)
				all[noisePairs[1]][d].add(t, name, localOver(t, ck, list, d, passes, nil), ref, list, floor)
			}
		}
	}
	table := noiseHeader
	for _, pair := range noisePairs {
		for _, d := range noiseDTypes {
			r := all[pair][d]
			table += r.row(pair, d.String())
			r.judge(t, pair, d)
		}
	}
	t.Log(table)
	if prompts == noisePrompts {
		docs := pagetest.Section(t, noiseDocs, pagetest.Text(t, noiseDocs), "rates", table)
		if pagetest.Update() {
			pagetest.Write(t, noiseDocs, docs)
		}
	}
}

var noiseDTypes = []hooks.DType{hooks.F32, hooks.BF16, hooks.F16}

// judge holds healthy pairs to few alarms.
func (r *rates) judge(t *testing.T, pair string, d hooks.DType) {
	t.Helper()
	t.Logf("%s, %s: worst %.1f floors, at %s", pair, d, r.worst, r.at)
	if r.entries == 0 {
		t.Errorf("%s, %s: no entry was compared", pair, d)
	}
	most := 1e-3
	if strings.HasPrefix(pair, "rounded") {
		most = 5e-2
	}
	if rate := float64(r.past) / float64(r.entries); rate > most {
		t.Errorf("%s, %s: %d of %d healthy entries are over their limit", pair, d, r.past, r.entries)
	}
	if noisy := d == hooks.F32 || strings.HasPrefix(pair, "rounded"); noisy && 4*r.some < r.entries {
		t.Errorf("%s, %s: of %d entries only %d need more than half of their floor: it says nothing", pair, d, r.entries, r.some)
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
