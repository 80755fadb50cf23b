package propose

import (
	"regexp"
	"strings"
)

// aliases are names of entries in other engines, as patterns; {L} is the layer. Each stands behind the entry's own name, first those
// that every family has; of several firings, the one that is meant where a dump has it. Sources: llama.cpp's graph (cb names), mlx-lm and Hugging Face modules, vLLM and SGLang, TransformerLens, the Gemma
// implementation of Flax, Keras Hub, TensorRT-LLM.
var aliases = map[string][]string{
	"embed_tokens":                          {"inp_scaled", "embd", "inp_embd", "embed", "embedder", "token_embedding", "transformer.vocab_embedding", "hook_embed", "wte", "tok_embeddings"},
	"embed_tokens.lookup":                   {"embd"},
	"layers.{L}.in":                         {"blocks.{L}.hook_resid_pre"},
	"layers.{L}.input_layernorm":            {"attn_norm-{L}", "blocks.{L}.ln1.hook_normalized", "layer_{L}.pre_attention_norm", "decoder_block_{L}.pre_attention_norm", "layers.{L}.attention_norm"},
	"layers.{L}.self_attn.q_proj":           {"Qcur-{L}#0", "blocks.{L}.attn.hook_q", "layer_{L}.attn.q_einsum", "layers.{L}.attention.wq", "layers.{L}.attention.query", "decoder_block_{L}.attention.query", "blk.{L}.attn_q"},
	"layers.{L}.self_attn.k_proj":           {"Kcur-{L}#0", "blocks.{L}.attn.hook_k", "layer_{L}.attn.k_einsum", "layers.{L}.attention.wk", "layers.{L}.attention.key", "decoder_block_{L}.attention.key", "blk.{L}.attn_k"},
	"layers.{L}.self_attn.v_proj":           {"Vcur-{L}", "Vcur-{L}#0", "blocks.{L}.attn.hook_v", "layer_{L}.attn.v_einsum", "layers.{L}.attention.wv", "layers.{L}.attention.value", "decoder_block_{L}.attention.value", "blk.{L}.attn_v"},
	"layers.{L}.self_attn.q_norm":           {"Qcur_normed-{L}", "layer_{L}.attn._query_norm"},
	"layers.{L}.self_attn.k_norm":           {"Kcur_normed-{L}", "layer_{L}.attn._key_norm"},
	"layers.{L}.self_attn.q_rope":           {"Qcur-{L}#3", "Qcur-{L}#2", "Qcur-{L}#1", "blocks.{L}.attn.hook_rot_q"},
	"layers.{L}.self_attn.k_rope":           {"Kcur-{L}#3", "Kcur-{L}#2", "Kcur-{L}#1", "blocks.{L}.attn.hook_rot_k"},
	"layers.{L}.self_attn.keys":             {"k_cache-{L}"},
	"layers.{L}.self_attn.values":           {"v_cache-{L}"},
	"layers.{L}.self_attn.scores":           {"blocks.{L}.attn.hook_attn_scores"}, // llama.cpp's kq has not the scale
	"layers.{L}.self_attn.probs":            {"kq_soft_max-{L}", "blocks.{L}.attn.hook_pattern"},
	"layers.{L}.self_attn.context":          {"kqv_out-{L}", "blocks.{L}.attn.hook_z"},
	"layers.{L}.self_attn.o_proj":           {"attn_out-{L}", "blocks.{L}.hook_attn_out", "layer_{L}.attn.attn_vec_einsum", "layers.{L}.attention.wo", "layers.{L}.attention.dense", "decoder_block_{L}.attention.attention_output", "blk.{L}.attn_output"},
	"layers.{L}.attn_residual":              {"ffn_inp-{L}", "blocks.{L}.hook_resid_mid"},
	"layers.{L}.post_attention_layernorm":   {"ffn_norm-{L}", "blocks.{L}.ln2.hook_normalized", "layer_{L}.post_attention_norm", "decoder_block_{L}.post_attention_norm", "layers.{L}.ffn_norm"},
	"layers.{L}.pre_feedforward_layernorm":  {"layer_{L}.pre_ffw_norm", "decoder_block_{L}.pre_ffw_norm"},
	"layers.{L}.post_feedforward_layernorm": {"layer_{L}.post_ffw_norm", "decoder_block_{L}.post_ffw_norm"},
	"layers.{L}.mlp.gate_proj":              {"ffn_gate-{L}", "blocks.{L}.mlp.hook_pre", "layers.{L}.feed_forward.w1", "blk.{L}.ffn_gate", "decoder_block_{L}.ffw_gating", "layers.{L}.mlp.fc"},
	"layers.{L}.mlp.up_proj":                {"ffn_up-{L}", "blocks.{L}.mlp.hook_pre_linear", "layers.{L}.feed_forward.w3", "blk.{L}.ffn_up", "decoder_block_{L}.ffw_gating_2", "layers.{L}.mlp.gate"},
	"layers.{L}.mlp.down_proj":              {"ffn_out-{L}", "ffn_down-{L}", "blocks.{L}.hook_mlp_out", "layers.{L}.feed_forward.w2", "layer_{L}.mlp.linear", "blk.{L}.ffn_down", "decoder_block_{L}.ffw_linear", "layers.{L}.mlp.proj"},
	"layers.{L}.out":                        {"l_out-{L}", "blocks.{L}.hook_resid_post", "layers.{L}"},
	"norm":                                  {"result_norm", "ln_final.hook_normalized", "final_norm", "transformer.ln_f", "ln_f"},
	"lm_head":                               {"result_output", "output"},
	"logits":                                {"result_output", "output", "unembed.hook_out"},
}

// isAlias has those names, without the firing.
var isAlias = func() map[string]bool {
	all := map[string]bool{}
	for _, list := range aliases {
		for _, name := range list {
			name, _, _ = strings.Cut(name, "#")
			all[name] = true
		}
	}
	return all
}()

// fused are entries that engines compute as one, in the order in which they lie.
var fused = [][]string{
	{"layers.{L}.self_attn.q_proj", "layers.{L}.self_attn.k_proj", "layers.{L}.self_attn.v_proj"},
	{"layers.{L}.self_attn.k_proj", "layers.{L}.self_attn.v_proj"},
	{"layers.{L}.mlp.gate_proj", "layers.{L}.mlp.up_proj"},
	{"layers.{L}.mlp.up_proj", "layers.{L}.mlp.gate_proj"},
}

// fusedNames are what engines call those.
var fusedNames = regexp.MustCompile(`(?i)(qkv|wqkv|c_attn|query_key_value|in_proj|kv_proj|kv_einsum|gate_?up|gating_einsum|w13|fc1)`)

var (
	nodeTail   = regexp.MustCompile(`/(MatMul|Gemm|Add|Mul|Sub|Div|Sqrt|Softmax|Transpose|Reshape|Gather|Cast|Concat|RMSNormalization|SimplifiedLayerNormalization|LayerNormalization)(_[0-9]+)?_output_0$`)
	modulePart = regexp.MustCompile(`^(Module\.|non_intrusive__)`)
	callTail   = regexp.MustCompile(`(\.[A-Z][A-Za-z0-9]*\.forward\.[0-9]+)?(\.output|_output|_out|\.out|:0|\[0\])?(\.0)?$`)
	rankPart   = regexp.MustCompile(`(?i)(^|[-_./])(?:(?:tp|mp|ep|pp)?_?rank|tp|shard|device|gpu|worker|stage|pp|pipe|pipeline)[-_=.]?(?:\{[RP]\}|[0-9]{1,4})(?:[-_./]|$)`)
	prefixText = regexp.MustCompile(`^(model\.|language_model\.|text_model\.|transformer\.|module\.|backbone\.|decoder\.)+`)
)

// plainNames are the names that a template may be another spelling of: its own, and without what frameworks put around it.
func plainNames(text string) []string {
	firing := ""
	if base, n, ok := strings.Cut(text, "#"); ok {
		text, firing = base, "#"+n
	}
	if at := strings.Index(text, "{S}"); at >= 0 { // the pass
		text = strings.TrimLeft(text[at+len("{S}"):], "-_./")
	}
	text = rankPart.ReplaceAllString(text, "$1")
	list := []string{text + firing, text}
	text = nodeTail.ReplaceAllString(strings.TrimPrefix(text, "/"), "")
	text = modulePart.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "/", ".")
	list = append(list, text)
	text = prefixText.ReplaceAllString(text, "")
	list = append(list, text, text+firing)
	if strings.HasPrefix(text, "{L}.") { // a list of layers
		list = append(list, "layers."+text)
	}
	text = callTail.ReplaceAllString(text, "")
	return append(list, text, prefixText.ReplaceAllString(text, ""))
}
