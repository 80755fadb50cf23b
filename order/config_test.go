package order_test

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/order"
)

// Configurations as found in the wild resolve to what transformers' own classes make of them; fixtures/configs.py ran
// those.
func TestReadConfigAsTransformersDoes(t *testing.T) {
	f, err := os.Open("testdata/configs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	n := 0
	for ; lines.Scan(); n++ {
		var c struct {
			Name             string
			Config, Resolved json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			got, err := order.ReadConfig(c.Config)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(decode(t, c.Resolved), decode(t, got.Canonical())); diff != "" {
				t.Errorf("-transformers +read:\n%s", diff)
			}
		})
	}
	if n < 25 {
		t.Errorf("%d configurations", n)
	}
}

func decode(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Ids and dtype come from where the files have them: of a multimodal file the outer object wins.
func TestTokensAndDType(t *testing.T) {
	for text, want := range map[string]order.Config{
		`{"model_type": "gemma2", "eos_token_id": 1, "bos_token_id": 2, "torch_dtype": "bfloat16"}`: {
			DType: "bfloat16", Tokens: order.TokenIDs{BOS: 2, PAD: -1, EOS: []int{1}},
		},
		`{"model_type": "gemma3", "eos_token_id": [1, 106], "dtype": "float16", "text_config": {"model_type": "gemma3_text", "eos_token_id": 1, "pad_token_id": 0}}`: {
			DType: "float16", Tokens: order.TokenIDs{BOS: -1, PAD: 0, EOS: []int{1, 106}},
		},
		`{"model_type": "gemma", "dtype": null}`: {Tokens: order.TokenIDs{BOS: -1, PAD: -1}},
	} {
		got, err := order.ReadConfig([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want.Tokens, got.Tokens); diff != "" || got.DType != want.DType {
			t.Errorf("%s: dtype %q, tokens (-want +got) %s", text, got.DType, diff)
		}
	}
}

// What no model can have is an error that names the field; a hostile file costs no memory.
func TestBadConfigs(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                     "reading config.json",
		`{"model_type": "bert"}`: `"bert"`,
		`{}`:                     `""`,
		`{"model_type": "gemma2", "hidden_size": "2304"}`:                                                                              "hidden_size",
		`{"model_type": "gemma2", "hidden_size": 2304.5}`:                                                                              "hidden_size is 2304.5",
		`{"model_type": "gemma2", "num_hidden_layers": 1000000000}`:                                                                    "num_hidden_layers is 1000000000",
		`{"model_type": "gemma2", "num_hidden_layers": -1}`:                                                                            "num_hidden_layers is -1",
		`{"model_type": "gemma2", "vocab_size": 1e30}`:                                                                                 "vocab_size",
		`{"model_type": "gemma2", "num_attention_heads": 3, "num_key_value_heads": 2}`:                                                 "multiple of num_key_value_heads",
		`{"model_type": "gemma2", "head_dim": 7}`:                                                                                      "head_dim is 7",
		`{"model_type": "gemma2", "rms_norm_eps": 0}`:                                                                                  "rms_norm_eps",
		`{"model_type": "gemma2", "layer_types": ["full_attention"]}`:                                                                  "layer_types has 1 entries for 26",
		`{"model_type": "gemma2", "num_hidden_layers": 1, "layer_types": ["conv"]}`:                                                    `layer_types[0] is "conv"`,
		`{"model_type": "gemma2", "sliding_window": 1}`:                                                                                "sliding_window is 1",
		`{"model_type": "llama", "rope_parameters": {"rope_type": "yarn", "factor": 4}}`:                                               `rope_type "yarn"`,
		`{"model_type": "llama", "rope_scaling": {"rope_type": "linear"}}`:                                                             "factor",
		`{"model_type": "llama", "rope_theta": -1}`:                                                                                    "rope_theta",
		`{"model_type": "gemma2", "hidden_activation": "relu"}`:                                                                        `the activation "relu" is not supported (gelu, gelu_pytorch_tanh, silu are)`,
		`{"model_type": "qwen3", "hidden_act": "swish"}`:                                                                               `the activation "swish"`,
		`{"model_type": "gemma2", "query_pre_attn_scalar": 0}`:                                                                         "query_pre_attn_scalar is 0",
		`{"model_type": "gemma3_text", "query_pre_attn_scalar": -4}`:                                                                   "query_pre_attn_scalar is -4",
		`{"model_type": "gemma2", "attn_logit_softcapping": 0}`:                                                                        "attn_logit_softcapping is 0",
		`{"model_type": "gemma2", "attn_logit_softcapping": -50}`:                                                                      "attn_logit_softcapping is -50",
		`{"model_type": "gemma3_text", "final_logit_softcapping": 0.0}`:                                                                "final_logit_softcapping is 0",
		`{"model_type": "gemma3n_text", "final_logit_softcapping": -30}`:                                                               "final_logit_softcapping is -30",
		`{"model_type": "qwen2", "layer_types": ["sliding_attention"], "num_hidden_layers": 1}`:                                        "layer 0 is sliding and sliding_window is 0",
		`{"model_type": "gemma3_text", "use_bidirectional_attention": true}`:                                                           "use_bidirectional_attention",
		`{"model_type": "gemma3_text", "sliding_window_pattern": 0}`:                                                                   "sliding_window_pattern",
		`{"model_type": "gemma3n_text", "altup_active_idx": 4}`:                                                                        "altup_active_idx is 4",
		`{"model_type": "gemma3n_text", "hidden_activation": "silu"}`:                                                                  `"silu"`,
		`{"model_type": "gemma3n_text", "num_hidden_layers": 2, "num_kv_shared_layers": 0, "activation_sparsity_pattern": [1.0, 0.0]}`: "activation_sparsity_pattern[0]",
		`{"model_type": "gemma3n_text", "num_hidden_layers": 2, "intermediate_size": [3]}`:                                             "intermediate_size has 1 entries",
		`{"model_type": "gemma3n_text", "num_hidden_layers": 5, "num_kv_shared_layers": 1, "sliding_window": 4}`:                       "shares keys and values of a full_attention",
		`{"model_type": "gemma3n_text", "text_config": 3}`:                                                                             "text_config",
	} {
		_, err := order.ReadConfig([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}

// A canonical configuration comes out of a file, too: what its family's list needs has to be there, and nothing else.
func TestBadCanonicalConfigs(t *testing.T) {
	spoil := func(modelType, key string, value any) []byte {
		c, err := order.ReadConfig([]byte(`{"model_type": "` + modelType + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		m := decode(t, c.Canonical()).(map[string]any)
		if m[key] = value; value == nil {
			delete(m, key)
		}
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	rope := map[string]any{"rope_type": "default", "rope_theta": 1e4}
	for _, c := range []struct {
		data []byte
		want string
	}{
		{spoil("gemma3_text", "rope_parameters", map[string]any{order.Full: rope}), "rope_parameters has 1 embeddings, want sliding_attention and full_attention"},
		{spoil("gemma2", "rope_parameters", map[string]any{order.Full: rope, order.Sliding: rope}), "rope_parameters has 2 embeddings, want full_attention"},
		{spoil("llama", "rope_parameters", map[string]any{order.Sliding: rope}), "rope_parameters has nothing for full_attention"},
		{spoil("llama", "rope_parameters", nil), "rope_parameters has 0 embeddings"},
		{spoil("gemma3_text", "query_pre_attn_scalar", nil), "query_pre_attn_scalar is 0"},
		{spoil("qwen2", "hidden_activation", nil), `the activation ""`},
		{spoil("gemma2", "gemma3n", map[string]any{}), "with, or without, the settings of Gemma 3n"},
		{spoil("gemma2", "model_type", "mamba"), `"mamba"`},
	} {
		if _, err := order.ParseCanonical(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.data, err, c.want)
		}
	}
}
