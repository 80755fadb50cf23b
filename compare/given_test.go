package compare_test

import (
	"strings"
	"testing"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
)

// The positions of each pass follow from the token ids. Wrong ones move the rotation of queries and keys alike, so that
// everything behind them is right given them.
func TestPositionsAloneGoOnFromTheTokens(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	moved := func(key string, by float64, d hooks.DType) *compare.Result {
		return isolated(t, "gemma3-tiny", replaced(t, golden, []string{key}, func(x hooks.Tensor) hooks.Tensor {
			out := hooks.Tensor{DType: d, Shape: x.Shape}
			for _, v := range elementsOf(x) {
				out.Data = appendValue(out.Data, d, v+by)
			}
			return out
		}), nil)
	}
	for key, detail := range map[string]string{"position_ids": "token 0 is at 1, not 0", "pass1/position_ids": "token 0 is at "} {
		res := moved(key, 1, hooks.I64)
		if r := rowOfKey(t, res, key); r.Verdict != compare.Mismatch || r.Class != gate.Value || !strings.Contains(r.Detail, detail) || r.Blame != compare.Root || res.ExitCode() != 1 {
			t.Errorf("%s + 1: %s %s (%s), exit %d", key, r.Verdict, r.Class, r.Detail, res.ExitCode())
		}
		if res.Decided != "the order, which has another value there; nothing was computed" {
			t.Errorf("%s + 1: decided by %s", key, res.Decided)
		}
		if res := moved(key, 0, hooks.I32); res.ExitCode() != 0 {
			t.Errorf("%s as int32: exit %d, %+v", key, res.ExitCode(), res.Divergence)
		}
	}
}
