package weights

import (
	"regexp"
	"strings"

	"github.com/tracediff/tracediff/internal/spelling"
)

const (
	headName      = "lm_head.weight"
	embeddingName = "embed_tokens.weight"
)

// wrappers are what frameworks put in front of the names of a text model.
var wrappers = spelling.InFront(spelling.Weight)

// plainName is a name without what frameworks put in front of it.
func plainName(name string) string { return wrappers.ReplaceAllString(name, "") }

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
	for _, to := range spelling.Roles(spelling.GGUF, spelling.Weight, stem) {
		list = append(list, to+tail, to)
	}
	return list
}

// buffers are tensors that a checkpoint may have or lack: what they hold is computed from the configuration.
var buffers = regexp.MustCompile(`(?:^|\.)(?:rotary_emb\.(?:inv_freq|cos_cached|sin_cached)|position_ids|rope_freqs\.weight|attn\.(?:bias|masked_bias)|attention\.(?:bias|masked_bias))$`)

// states are what a training keeps beside the weights in one file.
var states = regexp.MustCompile(`^(?:optimizer|optimizer_state_dict|optimizer_states|optim|lr_scheduler|lr_schedulers|scheduler|scaler)\.`)

// towers are the parts of a model that a port of its text model leaves out. They, buffers and states have no role, so no row in [spelling].
var towers = regexp.MustCompile(`^(?:model\.)?(vision_tower|vision_model|visual|audio_tower|multi_modal_projector|embed_vision|embed_audio|mtp)\.`)

// towerOf is the tower that a tensor is part of; "" for none.
func towerOf(name string) string {
	if m := towers.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return ""
}

// fusions are names of one tensor for several, and theirs, in the order in which their rows lie. They are
// no spellings of a role: what a name has before and behind them stays, and each stands for several.
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
