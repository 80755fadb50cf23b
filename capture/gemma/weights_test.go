package gemma_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
)

// tinyTensors are the weights of the embedded tiny checkpoint under another prefix, each as format.
func tinyTensors(t *testing.T, m model, prefix string, format hooks.DType) []checkpointtest.Tensor {
	t.Helper()
	var all []checkpointtest.Tensor
	for _, w := range m.list.Weights() {
		x, ok := m.ck.Tensor(w.Name)
		if !ok { // the tied head
			continue
		}
		var data []byte
		for _, v := range values(x) {
			switch format {
			case hooks.F32:
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
			case hooks.F16:
				data = binary.LittleEndian.AppendUint16(data, floats.F16(float32(v)))
			default:
				data = binary.LittleEndian.AppendUint16(data, floats.BF16(float32(v)))
			}
		}
		all = append(all, checkpointtest.Tensor{Name: prefix + w.Name, Tensor: hooks.Tensor{DType: format, Shape: x.Shape, Data: data}})
	}
	return all
}

// openDir opens a model directory on disk.
func openDir(t *testing.T, dir string) model {
	t.Helper()
	ck, err := checkpoint.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, ck.Close()) })
	c, err := order.ReadConfig(ck.Config())
	must(t, err)
	l, err := order.New(c)
	must(t, err)
	return model{ck, l}
}

// The same weights give the same logits from every layout: each prefix, sharded or not, text settings nested or at top
// level, mapped from disk or embedded.
func TestLayoutsGiveTheSameLogits(t *testing.T) {
	m := openModel(t, "gemma3n-tiny")
	flat, err := fs.ReadFile(ondisk.Files(), "gemma3n-tiny/config.json")
	must(t, err)
	nested, err := json.Marshal(map[string]any{"model_type": "gemma3n", "text_config": json.RawMessage(flat)})
	must(t, err)
	passes := [][]int{{2, 1001, 5, 6, 7, 8}, {9}}
	want := logits(t, m, hooks.BF16, passes, false)
	for _, prefix := range []string{"model.language_model.", "language_model.model.", "model.", ""} {
		for shards, config := range map[int][]byte{1: flat, 3: nested} {
			dir := checkpointtest.Write(t, t.TempDir(), config, tinyTensors(t, m, prefix, hooks.BF16), shards)
			got := logits(t, openDir(t, dir), hooks.BF16, passes, false)
			for pass := range want {
				if !bytes.Equal(got[pass], want[pass]) {
					t.Errorf("prefix %q, %d shards: the logits of pass %d differ", prefix, shards, pass)
				}
			}
		}
	}
}

// Weights are read as the model's dtype, whatever the file's: bfloat16 ones widened to float32 give the same logits in
// every dtype, and float16 ones the same as their values in float32.
func TestWeightFormats(t *testing.T) {
	m := openModel(t, "gemma3n-tiny")
	passes := [][]int{{2, 5, 6, 7}}
	dir := func(all []checkpointtest.Tensor) model {
		return openDir(t, checkpointtest.Write(t, t.TempDir(), m.ck.Config(), all, 1))
	}
	wide, half := dir(tinyTensors(t, m, "model.", hooks.F32)), dir(tinyTensors(t, m, "model.", hooks.F16))
	halfWide := dir(tinyTensors(t, half, "model.", hooks.F32))
	for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
		for name, pair := range map[string][2]model{"bfloat16": {m, wide}, "float16": {half, halfWide}} {
			a, b := logits(t, pair[0], dtype, passes, false), logits(t, pair[1], dtype, passes, false)
			if !bytes.Equal(a[0], b[0]) {
				t.Errorf("%s weights in a %s model: logits differ from those of the same values in float32", name, dtype)
			}
		}
	}
}

// A head of its own is used, and an untied model without one is refused by name.
func TestHeads(t *testing.T) {
	m := openModel(t, "gemma3n-tiny")
	passes := [][]int{{2, 5}}
	all := tinyTensors(t, m, "model.", hooks.BF16)
	embedding := all[0]
	if embedding.Name != "model.embed_tokens.weight" {
		t.Fatalf("the first weight is %s", embedding.Name)
	}
	other := bytes.Clone(embedding.Data)
	for i := 1; i < len(other); i += 2 {
		other[i] ^= 0x80 // the sign
	}
	head := checkpointtest.Tensor{Name: "lm_head.weight", Tensor: hooks.Tensor{DType: hooks.BF16, Shape: embedding.Shape, Data: other}}
	own := openDir(t, checkpointtest.Write(t, t.TempDir(), m.ck.Config(), append(all, head), 1))
	a, b := logits(t, m, hooks.F32, passes, false), logits(t, own, hooks.F32, passes, false)
	x, y := values(hooks.Tensor{DType: hooks.F32, Data: a[0]}), values(hooks.Tensor{DType: hooks.F32, Data: b[0]})
	for i := range x {
		if x[i] != -y[i] {
			t.Fatalf("logit %d is %g with the head's sign turned, %g with the embedding", i, y[i], x[i])
		}
	}
	untied := strings.Replace(string(m.ck.Config()), `"tie_word_embeddings": true`, `"tie_word_embeddings": false`, 1)
	bare := openDir(t, checkpointtest.Write(t, t.TempDir(), []byte(untied), all, 1))
	if _, err := gemmaNew(bare); err == nil || !strings.Contains(err.Error(), "lm_head.weight [1024 32] is missing") {
		t.Errorf("an untied model without a head: %v", err)
	}
}

// A family without a forward pass here, or a list of names alone, is refused before any weight is looked for.
func TestOtherFamiliesAreRefused(t *testing.T) {
	for _, family := range []string{"llama", "qwen2", "qwen3"} {
		m := randomModel(t, `{"model_type": "`+family+`", "vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8,
			"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4}`, hooks.F32)
		_, err := gemmaNew(m)
		if want := `a model of type "` + family + `" has no built-in model; give a trace or a command with --local`; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", family, err, want)
		}
	}
	names, err := order.ReadNames(strings.NewReader("embed\nlogits\n"))
	must(t, err)
	if _, err := gemmaNew(model{openModel(t, "gemma-tiny").ck, names}); err == nil || !strings.HasPrefix(err.Error(), "a list of names has no built-in model") {
		t.Errorf("a list of names: %v", err)
	}
}
