package compare_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
)

// Positions of one decode step do not tell a rule: the name is the position that was taken, and the pass that has it. Two steps do.
func TestNamesOfPositionsSayNoMoreThanTheirStepsShow(t *testing.T) {
	ck, list := openModel(t, "qwen3-tiny")
	golden := open(t, "../fixtures/golden/qwen3-tiny/decode.float32.safetensors") // of 5 tokens and 4 decode steps
	for _, c := range []struct {
		taken map[int]float64 // the position that is taken, by pass
		want  string
	}{
		{map[int]float64{2: 15}, "position 6 is taken for 15: 9 too far, in pass 2 only"},
		{map[int]float64{3: 2}, "position 7 is taken for 2: 5 behind, in pass 3 only"},
		{map[int]float64{1: 0}, "position 5 is taken for 0: 5 behind, in pass 1 only"},
		{map[int]float64{2: 15, 3: 16}, "positions are +9: all are off by as much, in passes 2 to 3 only"},
		{map[int]float64{2: 15, 3: 15}, "every position is 15: it stands still, as that of a slot of a full cache, in passes 2 to 3 only"},
	} {
		local := tamper(t, golden, func(k string, r capture.Record, data []float64) ([]float64, hooks.DType) {
			p, wrong := c.taken[r.Pass]
			if !wrong || !strings.Contains(k, "rotary.") {
				return nil, 0
			}
			function := math.Cos
			if strings.HasSuffix(k, ".sin") {
				function = math.Sin
			}
			for i := range data {
				frequency := float32(1 / math.Pow(1e5, float64(2*(i%6))/12))
				data[i] = float64(float32(function(float64(frequency * float32(p)))))
			}
			return data, hooks.F32
		})
		found := alone(t, local, ck, list).Isolation.Findings
		at := slices.IndexFunc(found, func(f compare.Finding) bool { return strings.HasSuffix(f.First, "rotary.cos") })
		if at < 0 {
			t.Errorf("%v: %+v", c.taken, found)
		} else if f := found[at]; f.Kind != compare.NamedBug || f.What != c.want {
			t.Errorf("%v: %q, want %q", c.taken, f.What, c.want)
		}
	}
}
