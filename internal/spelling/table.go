package spelling

// rows are the table. Of the names of a role the first that a dump has is meant, so their order counts, also between engines.
var rows = []row{
	{"input_ids", []Spelling{
		{Words, Activation, "ids"},
		{Words, Activation, "token_ids"},
		{Words, Activation, "tokens"},
		{Words, Activation, "input_tokens"},
		{Words, Activation, "inp_tokens"},
		{SGLang, Activation, "model.forward_batch_info.input_ids"},
	}},
	{"position_ids", []Spelling{
		{SGLang, Activation, "model.forward_batch_info.positions"},
		{SGLang, Activation, "positions"},
	}},
	{"embed_tokens", []Spelling{
		{LlamaCpp, Activation, "inp_scaled"},
		{LlamaCpp, Activation, "embd"},
		{LlamaCpp, Activation, "inp_embd"},
		{Several, Activation, "embed"},
		{Flax, Activation, "embedder"},
		{KerasHub, Activation, "token_embedding"},
		{TensorRTLLM, Activation, "transformer.vocab_embedding"},
		{TransformerLens, Activation, "hook_embed"},
		{GPT2, Activation, "wte"},
		{Meta, Activation, "tok_embeddings"},
		{GGUF, Weight, "token_embd"},
		{Words, Weight | Activation, "wte"},
		{Words, Weight, "embed_in"},
		{Words, Weight, "word_embeddings"},
		{Words, Weight, "tok_embeddings"},
		{Words, Weight, "shared"},
	}},
	{"embed_tokens.lookup", []Spelling{
		{LlamaCpp, Activation, "embd"},
	}},
	{"embed_tokens_per_layer", []Spelling{
		{GGUF, Weight, "per_layer_token_embd"},
	}},
	{"per_layer_model_projection", []Spelling{
		{GGUF, Weight, "per_layer_model_proj"},
	}},
	{"per_layer_projection_norm", []Spelling{
		{GGUF, Weight, "per_layer_proj_norm"},
	}},
	{"altup_projections", []Spelling{
		{GGUF, Weight, "altup_proj"},
	}},
	{"layers.{L}.in", []Spelling{
		{TransformerLens, Activation, "blocks.{L}.hook_resid_pre"},
	}},
	{"layers.{L}.altup.router_norm", []Spelling{
		{GGUF, Weight, "blk.{L}.altup_router_norm"},
	}},
	{"layers.{L}.altup.modality_router", []Spelling{
		{GGUF, Weight, "blk.{L}.altup_router"},
	}},
	{"layers.{L}.altup.prediction_coefs", []Spelling{
		{GGUF, Weight, "blk.{L}.altup_predict_coef"},
	}},
	{"layers.{L}.input_layernorm", []Spelling{
		{LlamaCpp, Activation, "attn_norm-{L}"},
		{TransformerLens, Activation, "blocks.{L}.ln1.hook_normalized"},
		{Flax, Activation, "layer_{L}.pre_attention_norm"},
		{KerasHub, Activation, "decoder_block_{L}.pre_attention_norm"},
		{Meta, Activation, "layers.{L}.attention_norm"},
		{GGUF, Weight, "blk.{L}.attn_norm"},
	}},
	{"layers.{L}.laurel.linear_left", []Spelling{
		{GGUF, Weight, "blk.{L}.laurel_l"},
	}},
	{"layers.{L}.laurel.linear_right", []Spelling{
		{GGUF, Weight, "blk.{L}.laurel_r"},
	}},
	{"layers.{L}.laurel.post_laurel_norm", []Spelling{
		{GGUF, Weight, "blk.{L}.laurel_post_norm"},
	}},
	{"layers.{L}.self_attn.qkv_proj", []Spelling{
		{GGUF, Weight, "blk.{L}.attn_qkv"},
		{Transformers, Weight, "layers.{L}.self_attn.query_key_value"},
	}},
	{"layers.{L}.self_attn.q_proj", []Spelling{
		{LlamaCpp, Activation, "Qcur-{L}#0"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_q"},
		{Flax, Activation, "layer_{L}.attn.q_einsum"},
		{Meta, Activation, "layers.{L}.attention.wq"},
		{Several, Activation, "layers.{L}.attention.query"},
		{KerasHub, Activation, "decoder_block_{L}.attention.query"},
		{GGUF, Weight | Activation, "blk.{L}.attn_q"},
	}},
	{"layers.{L}.self_attn.k_proj", []Spelling{
		{LlamaCpp, Activation, "Kcur-{L}#0"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_k"},
		{Flax, Activation, "layer_{L}.attn.k_einsum"},
		{Meta, Activation, "layers.{L}.attention.wk"},
		{Several, Activation, "layers.{L}.attention.key"},
		{KerasHub, Activation, "decoder_block_{L}.attention.key"},
		{GGUF, Weight | Activation, "blk.{L}.attn_k"},
	}},
	{"layers.{L}.self_attn.v_proj", []Spelling{
		{LlamaCpp, Activation, "Vcur-{L}"},
		{LlamaCpp, Activation, "Vcur-{L}#0"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_v"},
		{Flax, Activation, "layer_{L}.attn.v_einsum"},
		{Meta, Activation, "layers.{L}.attention.wv"},
		{Several, Activation, "layers.{L}.attention.value"},
		{KerasHub, Activation, "decoder_block_{L}.attention.value"},
		{GGUF, Weight | Activation, "blk.{L}.attn_v"},
	}},
	{"layers.{L}.self_attn.q_norm", []Spelling{
		{LlamaCpp, Activation, "Qcur_normed-{L}"},
		{Flax, Activation, "layer_{L}.attn._query_norm"},
		{GGUF, Weight, "blk.{L}.attn_q_norm"},
	}},
	{"layers.{L}.self_attn.k_norm", []Spelling{
		{LlamaCpp, Activation, "Kcur_normed-{L}"},
		{Flax, Activation, "layer_{L}.attn._key_norm"},
		{GGUF, Weight, "blk.{L}.attn_k_norm"},
	}},
	{"layers.{L}.self_attn.q_rope", []Spelling{
		{LlamaCpp, Activation, "Qcur-{L}#3"},
		{LlamaCpp, Activation, "Qcur-{L}#2"},
		{LlamaCpp, Activation, "Qcur-{L}#1"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_rot_q"},
	}},
	{"layers.{L}.self_attn.k_rope", []Spelling{
		{LlamaCpp, Activation, "Kcur-{L}#3"},
		{LlamaCpp, Activation, "Kcur-{L}#2"},
		{LlamaCpp, Activation, "Kcur-{L}#1"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_rot_k"},
	}},
	{"layers.{L}.self_attn.keys", []Spelling{
		{LlamaCpp, Activation, "k_cache-{L}"},
		{Words, Activation, "k_cache"},
		{Words, Activation, "key_cache"},
	}},
	{"layers.{L}.self_attn.values", []Spelling{
		{LlamaCpp, Activation, "v_cache-{L}"},
		{Words, Activation, "v_cache"},
		{Words, Activation, "value_cache"},
	}},
	{"layers.{L}.self_attn.scores", []Spelling{ // llama.cpp's kq has not the scale
		{TransformerLens, Activation, "blocks.{L}.attn.hook_attn_scores"},
		{Words, Activation, "attn_scores"},
		{Words, Activation, "attention_scores"},
	}},
	{"layers.{L}.self_attn.probs", []Spelling{
		{LlamaCpp, Activation, "kq_soft_max-{L}"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_pattern"},
		{Words, Activation, "attn_probs"},
		{Words, Activation, "attn_weights"},
		{Words, Activation, "attention_probs"},
		{Words, Activation, "attention_weights"},
	}},
	{"layers.{L}.self_attn.context", []Spelling{
		{LlamaCpp, Activation, "kqv_out-{L}"},
		{TransformerLens, Activation, "blocks.{L}.attn.hook_z"},
	}},
	{"layers.{L}.self_attn.o_proj", []Spelling{
		{LlamaCpp, Activation, "attn_out-{L}"},
		{TransformerLens, Activation, "blocks.{L}.hook_attn_out"},
		{Flax, Activation, "layer_{L}.attn.attn_vec_einsum"},
		{Meta, Activation, "layers.{L}.attention.wo"},
		{TensorRTLLM, Activation, "layers.{L}.attention.dense"},
		{KerasHub, Activation, "decoder_block_{L}.attention.attention_output"},
		{GGUF, Weight | Activation, "blk.{L}.attn_output"},
		{Transformers, Weight, "layers.{L}.self_attn.dense"},
	}},
	{"layers.{L}.attn_residual", []Spelling{
		{LlamaCpp, Activation, "ffn_inp-{L}"},
		{TransformerLens, Activation, "blocks.{L}.hook_resid_mid"},
	}},
	{"layers.{L}.pre_feedforward_layernorm", []Spelling{ // of four norms; with two, the norm before the MLP is the next row
		{Flax, Activation, "layer_{L}.pre_ffw_norm"},
		{KerasHub, Activation, "decoder_block_{L}.pre_ffw_norm"},
		{GGUF, Weight, "blk.{L}.ffn_norm"},
	}},
	{"layers.{L}.post_attention_layernorm", []Spelling{
		{LlamaCpp, Activation, "ffn_norm-{L}"},
		{TransformerLens, Activation, "blocks.{L}.ln2.hook_normalized"},
		{Flax, Activation, "layer_{L}.post_attention_norm"},
		{KerasHub, Activation, "decoder_block_{L}.post_attention_norm"},
		{Meta, Activation, "layers.{L}.ffn_norm"},
		{GGUF, Weight, "blk.{L}.post_attention_norm"},
		{GGUF, Weight, "blk.{L}.ffn_norm"},
	}},
	{"layers.{L}.mlp.gate", []Spelling{ // which experts a token goes to
		{GGUF, Weight, "blk.{L}.ffn_gate_inp"},
		{Transformers, Weight, "layers.{L}.block_sparse_moe.gate"},
		{Transformers, Weight, "layers.{L}.mlp.router"},
	}},
	{"layers.{L}.mlp.gate_proj", []Spelling{
		{LlamaCpp, Activation, "ffn_gate-{L}"},
		{TransformerLens, Activation, "blocks.{L}.mlp.hook_pre"},
		{Meta, Activation, "layers.{L}.feed_forward.w1"},
		{GGUF, Weight | Activation, "blk.{L}.ffn_gate"},
		{KerasHub, Activation, "decoder_block_{L}.ffw_gating"},
		{TensorRTLLM, Activation, "layers.{L}.mlp.fc"},
	}},
	{"layers.{L}.mlp.up_proj", []Spelling{
		{LlamaCpp, Activation, "ffn_up-{L}"},
		{TransformerLens, Activation, "blocks.{L}.mlp.hook_pre_linear"},
		{Meta, Activation, "layers.{L}.feed_forward.w3"},
		{GGUF, Weight | Activation, "blk.{L}.ffn_up"},
		{KerasHub, Activation, "decoder_block_{L}.ffw_gating_2"},
		{TensorRTLLM, Activation, "layers.{L}.mlp.gate"},
		{Transformers, Weight, "layers.{L}.mlp.fc1"},
	}},
	{"layers.{L}.mlp.gate_up_proj", []Spelling{ // one tensor for both
		{GGUF, Weight, "blk.{L}.ffn_up"},
	}},
	{"layers.{L}.mlp.down_proj", []Spelling{
		{LlamaCpp, Activation, "ffn_out-{L}"},
		{LlamaCpp, Activation, "ffn_down-{L}"},
		{TransformerLens, Activation, "blocks.{L}.hook_mlp_out"},
		{Meta, Activation, "layers.{L}.feed_forward.w2"},
		{Flax, Activation, "layer_{L}.mlp.linear"},
		{GGUF, Weight | Activation, "blk.{L}.ffn_down"},
		{KerasHub, Activation, "decoder_block_{L}.ffw_linear"},
		{TensorRTLLM, Activation, "layers.{L}.mlp.proj"},
		{Transformers, Weight, "layers.{L}.mlp.fc2"},
	}},
	{"layers.{L}.post_feedforward_layernorm", []Spelling{
		{Flax, Activation, "layer_{L}.post_ffw_norm"},
		{KerasHub, Activation, "decoder_block_{L}.post_ffw_norm"},
		{GGUF, Weight, "blk.{L}.post_ffw_norm"},
	}},
	{"layers.{L}.altup.correction_coefs", []Spelling{
		{GGUF, Weight, "blk.{L}.altup_correct_coef"},
	}},
	{"layers.{L}.altup.correct_output_scale", []Spelling{
		{GGUF, Weight, "blk.{L}.altup_correct_scale"},
	}},
	{"layers.{L}.per_layer_input_gate", []Spelling{
		{GGUF, Weight, "blk.{L}.inp_gate"},
	}},
	{"layers.{L}.per_layer_projection", []Spelling{
		{GGUF, Weight, "blk.{L}.proj"},
	}},
	{"layers.{L}.post_per_layer_input_norm", []Spelling{
		{GGUF, Weight, "blk.{L}.post_norm"},
	}},
	{"layers.{L}.out", []Spelling{
		{LlamaCpp, Activation, "l_out-{L}"},
		{TransformerLens, Activation, "blocks.{L}.hook_resid_post"},
		{Several, Activation, "layers.{L}"},
	}},
	{"altup_unembed_projections", []Spelling{
		{GGUF, Weight, "altup_unembd_proj"},
	}},
	{"norm", []Spelling{
		{LlamaCpp, Activation, "result_norm"},
		{TransformerLens, Activation, "ln_final.hook_normalized"},
		{Flax, Activation, "final_norm"},
		{TensorRTLLM, Activation, "transformer.ln_f"},
		{GPT2, Activation, "ln_f"},
		{GGUF, Weight, "output_norm"},
		{Transformers, Weight, "final_layernorm"},
	}},
	{"lm_head", []Spelling{
		{LlamaCpp, Activation, "result_output"},
		{Meta, Activation, "output"},
		{GGUF, Weight, "output"},
		{Words, Weight, "embed_out"},
		{Words, Weight, "output"},
	}},
	{"logits", []Spelling{
		{LlamaCpp, Activation, "result_output"},
		{Meta, Activation, "output"},
		{TransformerLens, Activation, "unembed.hook_out"},
		{SGLang, Activation, "logits_processor"},
	}},
}
