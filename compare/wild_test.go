package compare_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/singles"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// wildFolder has traces of other engines; its README.md says how they were made, and what the engines round.
const wildFolder = "../fixtures/wild"

// wildDifferences are the entries at which an engine computes something else than transformers, by the names of traces and
// entries: there BUG is right.
var wildDifferences = []struct {
	trace, entry *regexp.Regexp
	must         bool // an entry of it has to be BUG: in the other traces rounding is as large as the difference
	why          string
}{
	{regexp.MustCompile(`^mlx/gemma-tiny\.float32$`), regexp.MustCompile(`\.mlp\.act_fn$`), true, "GELU by the error function"},
	{regexp.MustCompile(`^mlx/gemma-tiny\.bfloat16$`), regexp.MustCompile(`\.mlp\.act_fn$`), false, "GELU by the error function"},
	{regexp.MustCompile(`^mlx/gemma3-multimodal\.float32$`), regexp.MustCompile(`^embed_tokens$`), true, "√hidden rounded to bfloat16"},
	{regexp.MustCompile(`^mlx/gemma3n-odd\.`), regexp.MustCompile(`^altup\.(init|final\.mean)$`), true, "no floor under a magnitude"},
	{regexp.MustCompile(`^onnx-planted/`), regexp.MustCompile(`^layers\.1\.self_attn\.q_norm$`), true, "epsilon 1e-5, planted in the ONNX file"},
}

// Real engines that round elsewhere have no bug where they compute what transformers computes.
func TestWildEnginesHaveNoBug(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(wildFolder, "*", "*.safetensors"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("traces in %s: %d, %v", wildFolder, len(paths), err)
	}
	for _, path := range paths {
		if filepath.Base(filepath.Dir(path)) == shippedFolder {
			continue // these have bugs: TestShippedPorts
		}
		name := filepath.Base(filepath.Dir(path)) + "/" + strings.TrimSuffix(filepath.Base(path), ".safetensors")
		t.Run(name, func(t *testing.T) { wildEngine(t, name, open(t, path)) })
	}
}

// wildEngine certifies every entry of one trace by itself, and fails for those that are called wrong and are not.
func wildEngine(t *testing.T, name string, local *capture.Trace) {
	model, _, _ := strings.Cut(filepath.Base(name), ".")
	ck, list := ordertest.Embedded(t, model)
	r := alone(t, local, ck, list)
	forms, found := map[string]int{}, make([]bool, len(wildDifferences))
	for _, row := range r.Rows {
		z := row.Isolated
		if z == nil {
			continue
		}
		forms[fmt.Sprintf("%s: %s %s", z.Form, z.Outcome, z.Arithmetic)]++
		if z.Good() {
			continue
		}
		if n := wildDifference(name, row.Name); n < 0 {
			t.Errorf("%s, %s: %s", row.Key(), z.Form, singles.Charge(z.Certificate))
		} else {
			found[n] = true
		}
	}
	for n, d := range wildDifferences {
		if d.must && d.trace.MatchString(name) && !found[n] {
			t.Errorf("%s: nothing found wrong, and it is: %s", d.entry, d.why)
		}
	}
	if certified := r.Isolation.Certified; certified < 100 {
		t.Errorf("%d entries are no sample of what is to be tested", certified)
	}
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		t.Logf("%4d %s", forms[form], form)
	}
}

// alone certifies every entry of a trace by itself.
func alone(t *testing.T, local *capture.Trace, ck *checkpoint.Checkpoint, list *order.List) *compare.Result {
	t.Helper()
	return run(t, local, nil, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: isolator(t, local, ck, list)}})
}

func isolator(t *testing.T, local *capture.Trace, ck *checkpoint.Checkpoint, list *order.List) *compare.Isolator {
	t.Helper()
	i, err := compare.NewIsolator(local, list, reference.Weights(ck, local.Manifest().DType), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// wildDifference returns which of the differences an entry of a trace is, or −1.
func wildDifference(name, entry string) int {
	for n, d := range wildDifferences {
		if d.trace.MatchString(name) && d.entry.MatchString(entry) {
			return n
		}
	}
	return -1
}
