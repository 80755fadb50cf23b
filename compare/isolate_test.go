package compare_test

import (
	"context"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// A trace alone: every entry from its own inputs, and nothing else is needed to say that it is right, or which operations
// are wrong, however far apart.
func TestIsolateAlone(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	healthy := testengine.OpenGolden(t, "golden/"+dir+"/decode.bfloat16.safetensors")
	alone := func(trace *capture.Trace) *compare.Result {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, hooks.BF16), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return run(t, trace, nil, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: i}})
	}
	if r := alone(healthy); r.ExitCode() != 0 || r.Isolation.Bugs != 0 || r.Isolation.Certified < 2500 {
		t.Errorf("a healthy trace: exit %d, %d bugs, %d certified, %v", r.ExitCode(), r.Isolation.Bugs, r.Isolation.Certified, r.Incomplete)
	}
}

// How an engine writes its masks is its own: minus infinity, or booleans.
func TestMasksOfOtherEnginesAreNoBug(t *testing.T) {
	ck, list := ordertest.Embedded(t, "gemma3-tiny")
	ref := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	for name, bools := range map[string]bool{"minus infinity": false, "booleans": true} {
		t.Run(name, func(t *testing.T) {
			local := testengine.Tampered(t, ref, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
				mask := strings.HasPrefix(key, "mask.")
				if !mask && !strings.HasSuffix(key, "scores_masked") {
					return nil, 0
				}
				out := make([]float64, len(data))
				for i, v := range data {
					if out[i] = v; v < -1e37 {
						out[i] = math.Inf(-1)
					}
					if mask && bools {
						out[i] = 0
						if v == 0 {
							out[i] = 1
						}
					}
				}
				if mask && bools {
					return out, hooks.Bool
				}
				return out, hooks.F32
			})
			i, err := compare.NewIsolator(local, list, reference.Weights(ck, hooks.F32), isolate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, local, ref, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: i}})
			if r.ExitCode() != 0 || r.Isolation.Bugs != 0 {
				t.Errorf("exit %d, %d bugs, first divergence %+v", r.ExitCode(), r.Isolation.Bugs, r.Divergence)
			}
		})
	}
}

// An error that only accumulated is excused when both sides are right by themselves, and not when the reference is not: it
// is of another model then, or damaged.
func TestDriftIsExcusedByBothSides(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	isolator := func(trace *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	// bfloat16 against float32 goes past the table's limit, with nothing wrong on the way.
	local, ref := testengine.OpenGolden(t, "golden/"+dir+"/hello.bfloat16.safetensors"), testengine.OpenGolden(t, "golden/"+dir+"/hello.float32.safetensors")
	o := compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: isolator(local)}}
	if r := run(t, local, ref, o); r.ExitCode() != 1 || r.Isolation.Drift != 0 {
		t.Errorf("a reference that was not held to its inputs: exit %d, %d excused", r.ExitCode(), r.Isolation.Drift)
	}
	o.ReferenceIsolator = isolator(ref)
	if r := run(t, local, ref, o); r.ExitCode() != 0 || r.Isolation.Drift == 0 {
		t.Errorf("both sides right by themselves: exit %d, %d excused, first divergence %+v", r.ExitCode(), r.Isolation.Drift, r.Divergence)
	}
	// The same reference with other logits is right nowhere near them.
	broken := testengine.Tampered(t, ref, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
		if key != "layers.4.mlp.down_proj" {
			return nil, 0
		}
		out := make([]float64, len(data))
		for i := range out {
			out[i] = data[len(data)-1-i]
		}
		return out, hooks.F32
	})
	o.ReferenceIsolator = isolator(broken)
	r := run(t, local, broken, o)
	if r.ExitCode() != 1 || r.Divergence == nil || r.Divergence.Row.Name != "layers.4.mlp.down_proj" || !strings.Contains(r.Divergence.Row.Gap, "the reference: layers.4.mlp.down_proj: it is wrong on its own inputs") {
		t.Errorf("a damaged reference: exit %d, %+v", r.ExitCode(), r.Divergence)
	}
}

// An operation that has not reproduced transformers accuses nobody when it certifies either, and alone it passes nothing.
func TestUncertifiedOperationsIsolateNothing(t *testing.T) {
	const dir = "gemma3n-tiny"
	ck, list := ordertest.Embedded(t, dir)
	golden := testengine.OpenGolden(t, "golden/"+dir+"/hello.float32.safetensors")
	faulty := testengine.Tampered(t, golden, func(key string, _ capture.Record, data []float64) ([]float64, hooks.DType) {
		if key != "layers.2.mlp.act_fn" {
			return nil, 0
		}
		out := make([]float64, len(data))
		for i, v := range data {
			out[i] = v * (1 + 1e-5) // far below the table's limit
		}
		return out, hooks.F32
	})
	all := isolate.Certified{}
	reproduces(t, all, dir, hooks.F32, list, ck)
	for _, c := range []struct {
		name     string
		may      bool
		outcome  isolate.Outcome
		verdict  compare.Verdict
		thorough bool
	}{
		{"certified", true, isolate.Bug, compare.Mismatch, false},
		{"not certified", false, isolate.NotCertified, compare.Match, false},
		{"not certified, alone", false, isolate.NotCertified, compare.Unverified, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			may := maps.Clone(all)
			may["gelu_tanh"] = c.may
			o := isolate.Options{Thorough: c.thorough, Certified: func(context.Context) (isolate.Certified, error) { return may, nil }}
			i, err := compare.NewIsolator(faulty, list, reference.Weights(ck, hooks.F32), o)
			if err != nil {
				t.Fatal(err)
			}
			ref := golden
			if c.thorough {
				ref = nil
			}
			r := run(t, faulty, ref, compare.Options{Order: list, All: true, Certification: compare.Certification{Isolator: i}})
			for _, row := range r.Rows {
				if row.Name == "layers.2.mlp.act_fn" && (row.Isolated == nil || row.Isolated.Outcome != c.outcome || row.Verdict != c.verdict) {
					t.Errorf("%s, isolated %+v; want %s, %s", row.Verdict, row.Isolated, c.verdict, c.outcome)
				}
			}
			if c.thorough && r.ExitCode() != 1 {
				t.Error("a trace alone passed with an operation that certifies nothing")
			}
		})
	}
}
