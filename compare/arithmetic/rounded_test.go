package arithmetic_test

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// storedIn is a trace whose tensors of float32 were rounded as they were written.
func storedIn(t *testing.T, from *capture.Trace, d hooks.DType) *capture.Trace {
	t.Helper()
	sources := from.Sources()
	for i := range sources {
		s := &sources[i]
		if s.DType != hooks.F32 {
			continue
		}
		rec, _ := from.LookupFiring(s.Pass, s.Name, s.Firing)
		x, err := from.Read(rec)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]float64, len(x.Data)/4)
		if err := floats.Decode(values, hooks.F32, x.Data); err != nil {
			t.Fatal(err)
		}
		var data []byte
		for _, v := range values {
			bits := floats.BF16(float32(v))
			if d == hooks.F16 {
				bits = floats.F16(float32(v))
			}
			data = append(data, byte(bits), byte(bits>>8))
		}
		s.DType, s.Data = d, bytes.NewReader(data)
	}
	trace, err := capture.Assemble("stored", sources, capture.Manifest{}, from.Sequence(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// roundedAlone asks of a trace alone whether it was rounded as it was written.
func roundedAlone(t *testing.T, dir string, trace *capture.Trace, d hooks.DType) bool {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	made := func(o isolate.Options) *compare.Isolator {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, o.DType), o)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	is, err := made(isolate.Options{DType: d}).Forms.Rounded(t.Context(), made(isolate.Options{DType: hooks.F32, Stored: d}).Isolator)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// A dump with one place in a layer that is computed without weights shows it by its products, too. An engine that computes in bfloat16, with one
// such place in its dump, is not taken for one that does not.
func TestDumpsWithFewTensorsThatWereRounded(t *testing.T) {
	residual := []string{"input_ids", "embed_tokens", "input_layernorm", "q_proj", "q_norm", "k_norm", "values", "attn_residual", "post_attention_layernorm", "pre_feedforward_layernorm", "gate_proj", "down_proj", "post_feedforward_layernorm", "norm", "logits"}
	rotated := []string{"input_ids", "embed_tokens", "q_proj", "k_proj", "v_proj", "q_norm", "q_rope", "o_proj", "attn_residual", "pre_feedforward_layernorm", "up_proj", "down_proj", "norm", "logits"}
	for name, ends := range map[string][]string{"sums": residual, "rotated queries": rotated} {
		stored := storedIn(t, testengine.Open(t, "../../fixtures/golden/gemma3-tiny/decode.float32.safetensors"), hooks.BF16)
		if !roundedAlone(t, "gemma3-tiny", testengine.Only(t, stored, ends), hooks.BF16) {
			t.Errorf("gemma3-tiny with its %s was rounded as it was written", name)
		}
		for _, engine := range []string{
			"golden/gemma3-tiny/decode", "wild/mlx/gemma2-tiny", "wild/keras-preset/gemma2-tiny", "wild/mlx/gemma-tiny",
			"wild/mlx/qwen3-tiny", "golden/qwen3-tiny/decode", "wild/mlx/llama-tiny", "golden/llama-tiny/decode",
		} {
			dir := regexp.MustCompile(`[a-z0-9]+-tiny`).FindString(engine)
			if roundedAlone(t, dir, testengine.Only(t, testengine.Open(t, "../../fixtures/"+engine+".bfloat16.safetensors"), ends), hooks.BF16) {
				t.Errorf("%s with its %s computes in bfloat16", engine, name)
			}
		}
	}
}

// A dump alone shows whether it was computed in float32 and rounded as it was written. Engines that compute in bfloat16, right or wrong, with
// arithmetics of their own, are never taken for one.
func TestDumpsThatWereRoundedAsTheyWereWritten(t *testing.T) {
	for dir, trace := range map[string]string{
		"gemma2-tiny": "wild/keras-preset/gemma2-tiny", "gemma-tiny": "wild/mlx/gemma-tiny", "qwen3-tiny": "wild/mlx/qwen3-tiny", "llama-tiny": "golden/llama-tiny/prefill",
	} {
		if roundedAlone(t, dir, testengine.Open(t, "../../fixtures/"+trace+".bfloat16.safetensors"), hooks.BF16) {
			t.Errorf("%s computes in bfloat16", trace)
		}
	}
	for _, dir := range []string{"gemma3-tiny", "llama-tiny", "qwen3-tiny"} {
		trace := testengine.Open(t, "../../fixtures/golden/"+dir+"/prefill.float32.safetensors")
		for _, d := range []hooks.DType{hooks.BF16, hooks.F16} {
			if !roundedAlone(t, dir, storedIn(t, trace, d), d) {
				t.Errorf("%s was rounded to %s as it was written", dir, d)
			}
		}
	}
}
