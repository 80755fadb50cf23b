package compare_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// What is fired a second time in a pass has nothing to be computed from: the order has one. Alone, it makes the result
// incomplete, whatever it holds; with a reference that has it too it is compared, and never certified.
func TestSecondFiringsAreNotCertified(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	twice := func(by float64) *capture.Trace {
		return testengine.Rewritten(t, golden, nil, func(key string, e hooks.Event) []hooks.Event {
			if key != "logits" {
				return []hooks.Event{e}
			}
			again := e
			again.Tensor = byFactor(by)(e.Tensor)
			return []hooks.Event{e, again}
		})
	}
	for _, by := range []float64{1, 1.5} {
		res := isolated(t, "gemma3-tiny", twice(by), nil)
		r := rowOfKey(t, res, "logits#1")
		if r.Verdict != compare.Unverified || r.Isolated != nil || !strings.Contains(r.NotIsolated, "second firing") || res.ExitCode() != 1 {
			t.Errorf("x %g alone: %s, not isolated: %q, exit %d", by, r.Verdict, r.NotIsolated, res.ExitCode())
		}
		if len(res.Incomplete) == 0 || !strings.Contains(strings.Join(res.Incomplete, "\n"), "logits#1: ") {
			t.Errorf("x %g alone: incomplete for %q", by, res.Incomplete)
		}
	}
	res := isolated(t, "gemma3-tiny", twice(1.5), twice(1))
	if r := rowOfKey(t, res, "logits#1"); r.Verdict != compare.Mismatch || r.NotIsolated == "" || res.ExitCode() != 1 {
		t.Errorf("with a reference: %s, not isolated: %q, exit %d", r.Verdict, r.NotIsolated, res.ExitCode())
	}
	res = isolated(t, "gemma3-tiny", twice(1), twice(1))
	if r := rowOfKey(t, res, "logits#1"); r.Verdict != compare.Match || r.NotIsolated == "" || res.ExitCode() != 0 {
		t.Errorf("with a reference, equal: %s, not isolated: %q, exit %d", r.Verdict, r.NotIsolated, res.ExitCode())
	}
}
