package order

// family is a model architecture, with the reader of the configuration and the builder of the list.
type family struct {
	read func(*fields) *Config
	list func(*Config) *List
	// localRope: sliding layers have a rotary embedding of their own. Elsewhere all layers share that of Full.
	localRope bool
	scalar    bool // scores are scaled by query_pre_attn_scalar, not by the head size
}

// families by model_type. A multimodal file names the outer model; its text settings have a type of their own, which
// files may leave out.
var families = map[string]family{
	"gemma3n":      {read: readGemma3n, list: gemma3n, localRope: true},
	"gemma3n_text": {read: readGemma3n, list: gemma3n, localRope: true},
	"gemma3":       {read: readGemma3, list: gemma3, localRope: true, scalar: true},
	"gemma3_text":  {read: readGemma3, list: gemma3, localRope: true, scalar: true},
	"gemma2":       {read: readGemma2, list: gemma2, scalar: true},
	"gemma":        {read: readGemma, list: gemma},
	"llama":        {read: readLlama, list: llama},
	"qwen2":        {read: readQwen2, list: qwen2},
	"qwen3":        {read: readQwen3, list: qwen3},
}

// sizes are the class defaults that all families have.
type sizes struct {
	vocab, hidden, intermediate, layers, heads, kv, head, positions int
	activation                                                      string // the key
}

// common reads what all families have. A head count or head size of 0 in the defaults is derived: kv heads from heads,
// the head size from the hidden size. Outside Gemma an explicit null asks for that too, whatever the default.
func common(f *fields, modelType string, d sizes) *Config {
	if d.activation == "hidden_act" && modelType != "gemma" {
		if f.null("num_key_value_heads") {
			d.kv = 0
		}
		if f.null("head_dim") {
			d.head = 0
		}
	}
	c := &Config{
		ModelType:  modelType,
		VocabSize:  f.int("vocab_size", d.vocab),
		HiddenSize: f.int("hidden_size", d.hidden),
		NumLayers:  f.int("num_hidden_layers", d.layers),
		NumHeads:   f.int("num_attention_heads", d.heads),
	}
	if d.kv == 0 {
		d.kv = c.NumHeads
	}
	if d.head == 0 && c.NumHeads > 0 {
		d.head = c.HiddenSize / c.NumHeads
	}
	c.NumKVHeads = f.int("num_key_value_heads", d.kv)
	c.HeadDim = f.int("head_dim", d.head)
	c.IntermediateSize = f.perLayer("intermediate_size", d.intermediate, c.NumLayers)
	c.MaxPositions = f.int("max_position_embeddings", d.positions)
	c.RMSNormEps = f.float("rms_norm_eps", 1e-6)
	c.Activation = f.text(d.activation, "gelu_pytorch_tanh")
	c.AttentionBias = f.bool("attention_bias", false)
	c.Tied = f.bool("tie_word_embeddings", true)
	return c
}

func allFull(int) bool { return true }

// untied sets what Llama and Qwen have otherwise than Gemma.
func untied(f *fields, c *Config) {
	c.Tied = f.bool("tie_word_embeddings", false)
	c.Activation = f.text("hidden_act", "silu")
	c.Rope = f.ropeSingle(c.MaxPositions)
}

// softcap reads a cap. An explicit null means no cap, and gives 0. A cap of 0 is an error: the reference divides by
// the cap.
func (f *fields) softcap(key string, def float64) float64 {
	if f.null(key) {
		return 0
	}
	limit := f.float(key, def)
	if _, there := f.raw(key); there && limit == 0 {
		f.fail("%s is 0, want a positive number or null", key)
	}
	return limit
}
