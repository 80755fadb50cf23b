package weights

import (
	"regexp"
	"strings"
)

const (
	headName      = "lm_head.weight"
	embeddingName = "embed_tokens.weight"
)

// wrappers are what frameworks put in front of the names of a text model.
var wrappers = regexp.MustCompile(`^(?:state_dict\.|model_state_dict\.|params\.|model\.|language_model\.|text_model\.|module\.|_orig_mod\.|base_model\.model\.)+`)

// plainName is a name without what frameworks put in front of it.
func plainName(name string) string { return wrappers.ReplaceAllString(name, "") }

// ggufNames are the names of GGUF files, without ".weight" and ".bias", and those of transformers; of several the first that the
// original has. Source: gguf-py's tensor_mapping.py.
var ggufNames = map[string][]string{
	"token_embd":           {"embed_tokens"},
	"output_norm":          {"norm", "final_layernorm"},
	"output":               {"lm_head"},
	"altup_proj":           {"altup_projections"},
	"altup_unembd_proj":    {"altup_unembed_projections"},
	"per_layer_token_embd": {"embed_tokens_per_layer"},
	"per_layer_model_proj": {"per_layer_model_projection"},
	"per_layer_proj_norm":  {"per_layer_projection_norm"},

	"blk.*.attn_norm":           {"layers.*.input_layernorm"},
	"blk.*.attn_q":              {"layers.*.self_attn.q_proj"},
	"blk.*.attn_k":              {"layers.*.self_attn.k_proj"},
	"blk.*.attn_v":              {"layers.*.self_attn.v_proj"},
	"blk.*.attn_qkv":            {"layers.*.self_attn.qkv_proj", "layers.*.self_attn.query_key_value"},
	"blk.*.attn_output":         {"layers.*.self_attn.o_proj", "layers.*.self_attn.dense"},
	"blk.*.attn_q_norm":         {"layers.*.self_attn.q_norm"},
	"blk.*.attn_k_norm":         {"layers.*.self_attn.k_norm"},
	"blk.*.post_attention_norm": {"layers.*.post_attention_layernorm"},
	"blk.*.ffn_norm":            {"layers.*.pre_feedforward_layernorm", "layers.*.post_attention_layernorm"},
	"blk.*.post_ffw_norm":       {"layers.*.post_feedforward_layernorm"},
	"blk.*.ffn_gate":            {"layers.*.mlp.gate_proj"},
	"blk.*.ffn_up":              {"layers.*.mlp.up_proj", "layers.*.mlp.gate_up_proj", "layers.*.mlp.fc1"},
	"blk.*.ffn_down":            {"layers.*.mlp.down_proj", "layers.*.mlp.fc2"},
	"blk.*.ffn_gate_inp":        {"layers.*.mlp.gate", "layers.*.block_sparse_moe.gate", "layers.*.mlp.router"},
	"blk.*.inp_gate":            {"layers.*.per_layer_input_gate"},
	"blk.*.proj":                {"layers.*.per_layer_projection"},
	"blk.*.post_norm":           {"layers.*.post_per_layer_input_norm"},
	"blk.*.altup_correct_coef":  {"layers.*.altup.correction_coefs"},
	"blk.*.altup_correct_scale": {"layers.*.altup.correct_output_scale"},
	"blk.*.altup_predict_coef":  {"layers.*.altup.prediction_coefs"},
	"blk.*.altup_router":        {"layers.*.altup.modality_router"},
	"blk.*.altup_router_norm":   {"layers.*.altup.router_norm"},
	"blk.*.laurel_l":            {"layers.*.laurel.linear_left"},
	"blk.*.laurel_r":            {"layers.*.laurel.linear_right"},
	"blk.*.laurel_post_norm":    {"layers.*.laurel.post_laurel_norm"},
}

var ggufLayer = regexp.MustCompile(`^blk\.([0-9]+)\.`)

// candidates are the names that an original may have for a tensor of the port, best first.
func candidates(name string) []string {
	plain := plainName(name)
	list := []string{name, plain}
	stem, tail := plain, ""
	for _, t := range []string{".weight", ".bias"} {
		if s, ok := strings.CutSuffix(plain, t); ok {
			stem, tail = s, t
		}
	}
	layer := ""
	if m := ggufLayer.FindStringSubmatch(stem); m != nil {
		layer = m[1]
		stem = "blk.*." + stem[len(m[0]):]
	}
	for _, to := range ggufNames[stem] {
		to = strings.Replace(to, "*", layer, 1)
		list = append(list, to+tail, to)
	}
	return list
}

// buffers are tensors that a checkpoint may have or lack: what they hold is computed from the configuration.
var buffers = regexp.MustCompile(`(?:^|\.)(?:rotary_emb\.(?:inv_freq|cos_cached|sin_cached)|position_ids|rope_freqs\.weight|attn\.(?:bias|masked_bias)|attention\.(?:bias|masked_bias))$`)

// states are what a training keeps beside the weights in one file.
var states = regexp.MustCompile(`^(?:optimizer|optimizer_state_dict|optimizer_states|optim|lr_scheduler|lr_schedulers|scheduler|scaler)\.`)

// towers are the parts of a model that a port of its text model leaves out.
var towers = regexp.MustCompile(`^(?:model\.)?(vision_tower|vision_model|visual|audio_tower|multi_modal_projector|embed_vision|embed_audio|mtp)\.`)

// towerOf is the tower that a tensor is part of; "" for none.
func towerOf(name string) string {
	if m := towers.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// fusions are names of one tensor for several, and theirs, in the order in which their rows lie.
var fusions = []struct {
	name  *regexp.Regexp
	parts []string
}{
	{regexp.MustCompile(`self_attn\.(?:qkv_proj|query_key_value|qkv|Wqkv)\.`), []string{"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
	{regexp.MustCompile(`mlp\.(?:gate_up_proj|gate_up)\.`), []string{"mlp.gate_proj.", "mlp.up_proj."}},
}

// fusedParts are the names of the tensors that one of a name is made of; nil where it is none of several.
func fusedParts(name string) []string {
	for _, f := range fusions {
		at := f.name.FindStringIndex(name)
		if at == nil {
			continue
		}
		var all []string
		for _, p := range f.parts {
			all = append(all, name[:at[0]]+p+name[at[1]:])
		}
		return all
	}
	return nil
}
