package compare_test

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/testengine"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order/ordertest"
)

// pairSeeds names how many random models of each family are compared, each in two dtypes. The default is a sample of a
// few seconds; docs/results/certificate.md has the result of the full run.
const pairSeeds = "TRACEDIFF_PAIRS"

// samplePairs is the number of models without it.
const samplePairs = 4

// healthy adds up what was compared and found to be right.
type healthy struct {
	pairs, entries, elements, unequal, drift int
	byFloor                                  int // entries that the noise floor of the prompt limited
	beyondWindow, decoded                    int // pairs whose ids pass the sliding window, and that have passes after the prompt
}

// judge compares a port with the walk as `compare --isolate` does: each entry of either side is certified from its own side's
// inputs, and what accumulated is limited by the noise floor of this prompt. Anything that is flagged fails the test.
func (h *healthy) judge(t *testing.T, c ordertest.Case, local *capture.Trace) {
	t.Helper()
	dtype := local.Manifest().DType
	floor, ref := floorOf(t, c.Checkpoint, c.List, dtype, c.Passes)
	o := compare.Options{Order: c.List, All: true, Judging: compare.Judging{Noise: floor}}
	var err error
	for of, into := range map[*capture.Trace]**compare.Isolator{local: &o.Isolator, ref: &o.ReferenceIsolator} {
		if *into, err = compare.NewIsolator(of, c.List, reference.Weights(c.Checkpoint, dtype), isolate.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, local, ref, o)
	if r.ExitCode() != 0 {
		t.Errorf("%s %d in %s: exit %d, %d mismatches, %d bugs, %v", c.Family, c.Seed, r.Local.DType, r.ExitCode(), r.Mismatches, r.Isolation.Bugs, r.Incomplete)
	}
	for _, row := range r.Rows {
		if row.Verdict != compare.Match {
			t.Errorf("%s: %s %s: %s", row.Key(), row.Verdict, row.Class, row.Detail)
		}
		if !row.Derived && row.Gate != nil && strings.Contains(row.Gate.From, "noise floor") {
			h.byFloor++
		}
		if row.Isolated != nil {
			h.elements, h.unequal = h.elements+int(row.Isolated.Elements), h.unequal+int(row.Isolated.Unequal)
		}
	}
	h.pairs, h.entries, h.drift = h.pairs+1, h.entries+r.Isolation.Certified, h.drift+r.Isolation.Drift
	tokens := 0
	for _, n := range c.Tokens() {
		tokens += n
	}
	if w := c.List.Config.SlidingWindow; w > 0 && tokens > w {
		h.beyondWindow++
	}
	if len(c.Passes) > 1 {
		h.decoded++
	}
}

// log says what a family's pairs were. Without a single finding among n, the rate is below 3/n with 95 % confidence.
func (h *healthy) log(t *testing.T) {
	t.Logf("%d pairs (%d past the window, %d with decode), %d entries, %d limited by the noise floor, %d of %d elements not the rounded exact value, %d over their limit by drift; the rate of false alarms is below %.2g a pair and %.2g an entry",
		h.pairs, h.beyondWindow, h.decoded, h.entries, h.byFloor, h.unequal, h.elements, h.drift, 3/float64(h.pairs), 3/float64(h.entries))
}

// The built-in model against the walk on random models: whatever the shapes, the prompt and the dtype, a port without a
// mistake is never accused of one, neither by what accumulated nor entry by entry.
func TestHealthyPairs(t *testing.T) {
	seeds, err := strconv.Atoi(cmp.Or(os.Getenv(pairSeeds), strconv.Itoa(samplePairs)))
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range ordertest.Gemma {
		t.Run(family, func(t *testing.T) {
			var h healthy
			for seed := range seeds {
				c := ordertest.Draw(t, family, seed)
				for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16} {
					h.judge(t, c, testengine.LocalModel(t, c, dtype))
				}
			}
			h.log(t)
			if h.pairs != 2*seeds || h.entries < 100*h.pairs || 2*h.byFloor < h.entries || h.decoded == 0 || h.beyondWindow == 0 && family != "gemma" {
				t.Errorf("%+v is no sample of what is to be tested", h)
			}
		})
	}
}

// A softcap that saturates gives few values, each rounded one way in all its elements. That is no error of scale, however
// many there are of them.
func TestRoundingOfFewValuesIsNoScale(t *testing.T) {
	c := ordertest.Draw(t, "gemma2", 30)
	var h healthy
	h.judge(t, c, testengine.LocalModel(t, c, hooks.BF16))
}
