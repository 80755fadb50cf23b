package spelling

import "regexp"

// Buffers match optional tensors of a checkpoint: the configuration determines their values.
var Buffers = regexp.MustCompile(`(?:^|\.)(?:rotary_emb\.(?:inv_freq|cos_cached|sin_cached)|position_ids|rope_freqs\.weight|attn\.(?:bias|masked_bias)|attention\.(?:bias|masked_bias))$`)

// States match the tensors of a training run in the same file with the weights.
var States = regexp.MustCompile(`^(?:optimizer|optimizer_state_dict|optimizer_states|optim|lr_scheduler|lr_schedulers|scheduler|scaler)\.`)

// towers are the parts of a model that a port of its text model leaves out. Towers, buffers and states have no role, so no row in the table.
var towers = regexp.MustCompile(`^(?:model\.)?(vision_tower|vision_model|visual|audio_tower|multi_modal_projector|embed_vision|embed_audio|mtp)\.`)

// TowerOf is the tower that a tensor is part of; "" for none.
func TowerOf(name string) string {
	if m := towers.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// fusions are names of one tensor for several tensors, with the names of its parts in the order of their rows. They are not spellings of a
// role: the text before and after the match stays, and each fused name stands for several tensors.
var fusions = []struct {
	name  *regexp.Regexp
	parts []string
}{
	{regexp.MustCompile(`self_attn\.(?:qkv_proj|query_key_value|qkv|Wqkv)\.`), []string{"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}},
	{regexp.MustCompile(`mlp\.(?:gate_up_proj|gate_up)\.`), []string{"mlp.gate_proj.", "mlp.up_proj."}},
}

// FusedParts returns the names of the parts of a fused tensor; nil for a name of a tensor without parts.
func FusedParts(name string) []string {
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
