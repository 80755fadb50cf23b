package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// One setting that is wrong in several roles is one finding, with its numbers, its field of the configuration, its proof and its page.
func TestOneSettingIsOneFinding(t *testing.T) {
	ck, list := ordertest.Embedded(t, "qwen3-tiny")
	r := alone(t, open(t, filepath.Join(wildFolder, shippedFolder, "qwen3-tiny.float32.safetensors")), ck, list)
	var bugs []compare.Finding
	for _, f := range r.Isolation.Findings {
		if f.Kind == compare.NamedBug || f.Kind == compare.Unexplained {
			bugs = append(bugs, f)
		}
	}
	if len(bugs) != 1 {
		t.Fatalf("%d findings: %+v", len(bugs), bugs)
	}
	f := bugs[0]
	if f.Kind != compare.NamedBug || f.Rows != 30 || f.Where() != "self_attn.q_norm and self_attn.k_norm, layers 0 to 2" {
		t.Errorf("%s: %d rows of %s", f.Kind, f.Rows, f.Where())
	}
	b := f.Bug
	if b.Value == nil || *b.Value != 1e-5 || b.Right == nil || *b.Right != 1e-6 || b.Page != "docs/mistakes.md#epsilon" {
		t.Errorf("%+v", b)
	}
	if !slices.ContainsFunc(b.Fields, func(f diagnose.Field) bool { return f.Name == "rms_norm_eps" && f.Value == 1e-6 }) {
		t.Errorf("config: %v", b.Fields)
	}
	if b.Entries != 30 || b.Shown == 0 || b.Elements <= b.Shown {
		t.Errorf("%d entries, %d of %d elements", b.Entries, b.Shown, b.Elements)
	}
}

// A tensor of noise is a bug without a name: the finding says that nothing explains it, what was tried, and that its reader has not read the noise.
func TestNoiseIsUnexplained(t *testing.T) {
	ck, list := ordertest.Embedded(t, "qwen3-tiny")
	const key = "layers.1.mlp.down_proj"
	golden := open(t, "../fixtures/golden/qwen3-tiny/decode.float32.safetensors")
	noise := rand.New(rand.NewPCG(1, 2))
	local := testengine.Tampered(t, golden, func(k string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
		if k != key {
			return nil, 0
		}
		for i := range data {
			data[i] = noise.NormFloat64()
		}
		return data, hooks.F32
	})
	r := alone(t, local, ck, list)
	at := slices.IndexFunc(r.Isolation.Findings, func(f compare.Finding) bool { return f.Kind == compare.Unexplained })
	if at < 0 {
		t.Fatalf("%+v", r.Isolation.Findings)
	}
	f := r.Isolation.Findings[at]
	if f.First != key || f.Bug.Named() || !slices.Equal(f.Bug.DumpOnly, []string{"layers.*.out"}) || f.Bug.Tried < 100 || !strings.HasPrefix(f.What, "unexplained: no mistake that was tried reproduces all elements") || !strings.HasPrefix(f.Bug.Searched(), fmt.Sprintf("%d mistakes: ", f.Bug.Tried)) {
		t.Errorf("%+v: %+v", f, f.Bug)
	}
}

// A tensor that is zero throughout is called that, and no number or difference that happens to give zeros.
func TestZerosAreCalledZeros(t *testing.T) {
	ck, list := ordertest.Embedded(t, "qwen3-tiny")
	golden := open(t, "../fixtures/golden/qwen3-tiny/decode.float32.safetensors")
	for _, role := range []string{"self_attn.k_rope", "self_attn.probs", "mlp.act_fn"} {
		local := testengine.Tampered(t, golden, func(k string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
			if !strings.HasSuffix(k, "."+role) {
				return nil, 0
			}
			clear(data)
			return data, hooks.F32
		})
		found := alone(t, local, ck, list).Isolation.Findings
		at := slices.IndexFunc(found, func(f compare.Finding) bool { return strings.HasSuffix(f.First, "."+role) })
		if at < 0 || !strings.Contains(found[at].What, "rows are zeros") {
			t.Errorf("%s: %+v", role, found)
		}
	}
}

// One element that is not finite is no end of the search for a name.
func TestInfinityEndsNoSearch(t *testing.T) {
	ck, list := ordertest.Embedded(t, "llama-tiny")
	golden := open(t, "../fixtures/golden/llama-tiny/prefill.float32.safetensors")
	for _, role := range []string{"self_attn.q_proj", "mlp.up_proj", "mlp.act_fn"} {
		local := testengine.Tampered(t, golden, func(k string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
			if k != "layers.0."+role {
				return nil, 0
			}
			data[3] = math.Inf(1)
			return data, hooks.F32
		})
		if r := alone(t, local, ck, list); r.ExitCode() != 1 {
			t.Errorf("%s: exit status %d", role, r.ExitCode())
		}
	}
}
