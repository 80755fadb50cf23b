package compare_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// Positions of one decode step do not tell a rule: the name is the position that was taken, and the pass that has it. Two steps do.
func TestNamesOfPositionsSayNoMoreThanTheirStepsShow(t *testing.T) {
	ck, list := ordertest.Embedded(t, "qwen3-tiny")
	golden := open(t, "../fixtures/golden/qwen3-tiny/decode.float32.safetensors") // of 5 tokens and 4 decode steps
	for _, c := range []struct {
		taken map[int]float64 // the position that is taken, by pass
		want  string
		right string // where the step is right, and the mistake would show
	}{
		{map[int]float64{2: 15}, "position 6 has the angle of 15: 9 too far, in pass 2 only", "passes 0, 1, 3, 4"},
		{map[int]float64{3: 2}, "position 7 has the angle of 2: 5 too small, in pass 3 only", "passes 0, 1, 2, 4"},
		{map[int]float64{1: 0}, "position 5 has the angle of 0: 5 too small, in pass 1 only", "passes 0, 2, 3, 4"},
		{map[int]float64{2: 15, 3: 16}, "positions are off by +9, in passes 2 to 3 only", "passes 0, 1, 4"},
		{map[int]float64{2: 15, 3: 15}, "every position is 15: it does not advance, as for a full cache, in passes 2 to 3 only", "passes 0, 1, 4"},
	} {
		local := testengine.Tampered(t, golden, func(k string, r capture.Record, data []float64) ([]float64, hooks.DType) {
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
		const inDump = "; with the right values, self_attn.q_rope, self_attn.k_rope are right: wrong only in the dump, or two mistakes cancel" // nothing was computed from these tables
		found := alone(t, local, ck, list).Isolation.Findings
		at := slices.IndexFunc(found, func(f compare.Finding) bool { return strings.HasSuffix(f.First, "rotary.cos") })
		if at < 0 {
			t.Errorf("%v: %+v", c.taken, found)
		} else if f := found[at]; f.Kind != compare.NamedBug || f.What != c.want+inDump {
			t.Errorf("%v: %q, want %q", c.taken, f.What, c.want)
		} else if f.Bug.RightIn != c.right {
			t.Errorf("%v: right in %q, want %q", c.taken, f.Bug.RightIn, c.right)
		}
	}
}

// A name says in which layers and passes the same step is right, where the mistake would show too: of a wrong window those that have
// one, and of another layer's weight those that have their own.
func TestNamesSayWhereTheStepIsRight(t *testing.T) {
	ck, list := ordertest.Embedded(t, "qwen3-tiny")
	golden := open(t, "../fixtures/golden/qwen3-tiny/decode.float32.safetensors")
	for _, c := range []struct {
		role  string
		wrong func(layer string, pass int) bool
		want  string
	}{
		{"mlp.down_proj", func(layer string, _ int) bool { return layer == "1" }, "layers 0, 2"},
		{"mlp.down_proj", func(_ string, pass int) bool { return pass > 0 }, "pass 0 (the prompt)"},
		{"mlp.down_proj", func(layer string, pass int) bool { return layer != "1" && pass > 0 }, "layer 1, and the same layers in pass 0 (the prompt)"},
		{"mlp.down_proj", func(string, int) bool { return true }, ""},
	} {
		local := testengine.Tampered(t, golden, func(k string, r capture.Record, data []float64) ([]float64, hooks.DType) {
			layer, rest, _ := strings.Cut(strings.TrimPrefix(r.Name, "layers."), ".")
			if rest != c.role || !c.wrong(layer, r.Pass) {
				return nil, 0
			}
			for i := range data {
				data[i] *= 2
			}
			return data, hooks.F32
		})
		found := alone(t, local, ck, list).Isolation.Findings
		at := slices.IndexFunc(found, func(f compare.Finding) bool { return strings.HasSuffix(f.First, c.role) })
		if at < 0 || found[at].Kind != compare.NamedBug {
			t.Errorf("%q: %+v", c.want, found)
		} else if got := found[at].Bug.RightIn; got != c.want {
			t.Errorf("right in %q, want %q", got, c.want)
		}
	}
}
