package compare_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/hooks"
)

// One setting that is wrong in several roles is one finding, with its numbers, its field of the configuration, its proof and its page.
func TestOneSettingIsOneFinding(t *testing.T) {
	ck, list := openModel(t, "qwen3-tiny")
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

// A tensor of noise is a bug without a name: the finding says that nothing explains it, and what was tried.
func TestNoiseIsUnexplained(t *testing.T) {
	ck, list := openModel(t, "qwen3-tiny")
	const key = "layers.1.mlp.down_proj"
	golden := open(t, "../fixtures/golden/qwen3-tiny/decode.float32.safetensors")
	noise := rand.New(rand.NewPCG(1, 2))
	local := tamper(t, golden, func(k string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
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
	if f.First != key || f.Bug.Named() || f.Bug.Page != "" || f.Bug.Tried < 100 || !strings.HasPrefix(f.What, fmt.Sprintf("unexplained: %d edits tried (", f.Bug.Tried)) {
		t.Errorf("%+v: %+v", f, f.Bug)
	}
}
