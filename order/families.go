package order

// family reads the configuration of one model_type.
type family struct {
	read func(*fields) *Config
	list func(*Config) *List // nil: the configuration is read, the list is not described
}

// families by model_type. A multimodal file names the outer model; its text settings have a type of their own, which
// files may leave out.
var families = map[string]family{
	"gemma3n":      {readGemma3n, gemma3n},
	"gemma3n_text": {readGemma3n, gemma3n},
	"gemma3":       {readGemma3, nil},
	"gemma3_text":  {readGemma3, nil},
	"gemma2":       {readGemma2, nil},
	"gemma":        {readGemma, nil},
	"llama":        {readLlama, nil},
	"qwen2":        {readQwen2, nil},
	"qwen3":        {readQwen3, nil},
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

func readGemma3n(f *fields) *Config {
	c := common(f, "gemma3n_text", sizes{262400, 2048, 16384, 35, 8, 2, 256, 32768, "hidden_activation"})
	c.Rope = f.ropeByType(c.MaxPositions)
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return (i+1)%5 == 0 })
	c.SlidingWindow = f.int("sliding_window", 512)
	c.FinalSoftcap = f.softcap("final_logit_softcapping", 30)
	c.Gemma3n = &Gemma3nConfig{
		PerLayerVocab:     f.int("vocab_size_per_layer_input", 262144),
		PerLayerWidth:     f.int("hidden_size_per_layer_input", 256),
		SharedLayers:      f.int("num_kv_shared_layers", 15),
		Sparsity:          readSparsity(f, c.NumLayers),
		LaurelRank:        f.int("laurel_rank", 64),
		AltUpStreams:      f.int("altup_num_inputs", 4),
		AltUpActive:       f.int("altup_active_idx", 0),
		AltUpCoefClip:     f.float("altup_coef_clip", 120),
		AltUpCorrectScale: f.bool("altup_correct_scale", true),
	}
	return c
}

// readSparsity derives, where the pattern is absent: ten layers of 0.95 and then none if there are more than ten.
func readSparsity(f *fields, layers int) []float64 {
	var list []float64
	if f.value("activation_sparsity_pattern", &list, "a list of numbers") || layers < 0 || layers > maxLayers {
		return list
	}
	list = make([]float64, layers)
	if layers > 10 {
		for i := range 10 {
			list[i] = 0.95
		}
	}
	return list
}

func readGemma3(f *fields) *Config {
	c := common(f, "gemma3_text", sizes{262208, 2304, 9216, 26, 8, 4, 256, 131072, "hidden_activation"})
	c.Rope = f.ropeByType(c.MaxPositions)
	pattern := f.int("sliding_window_pattern", 6)
	if pattern < 1 {
		f.fail("sliding_window_pattern is %d, want 1 or more", pattern)
		pattern = 1
	}
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return (i+1)%pattern == 0 })
	c.SlidingWindow = f.int("sliding_window", 4096)
	c.QueryPreAttnScalar = f.float("query_pre_attn_scalar", 256)
	// attn_logit_softcapping is in the class and never reaches the attention call.
	c.FinalSoftcap = f.float("final_logit_softcapping", 0)
	if f.bool("use_bidirectional_attention", false) {
		f.fail("use_bidirectional_attention is true: embedding models with bidirectional masks are not supported")
	}
	return c
}

func readGemma2(f *fields) *Config {
	c := common(f, "gemma2", sizes{256000, 2304, 9216, 26, 8, 4, 256, 8192, "hidden_activation"})
	c.Rope = f.ropeSingle(c.MaxPositions)
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return i%2 == 1 })
	c.SlidingWindow = f.int("sliding_window", 4096)
	c.QueryPreAttnScalar = f.float("query_pre_attn_scalar", 256)
	c.AttnSoftcap = f.softcap("attn_logit_softcapping", 50)
	c.FinalSoftcap = f.softcap("final_logit_softcapping", 30)
	return c
}

func readGemma(f *fields) *Config {
	c := common(f, "gemma", sizes{256000, 3072, 24576, 28, 16, 16, 256, 8192, "hidden_act"})
	// Published files say "gelu" and were trained with its tanh form, which is what loading makes of it.
	if c.Activation == "gelu" {
		c.Activation = "gelu_pytorch_tanh"
	}
	c.Rope = f.ropeSingle(c.MaxPositions)
	c.LayerTypes = f.layerTypes(c.NumLayers, allFull)
	return c
}

func readLlama(f *fields) *Config {
	c := common(f, "llama", sizes{32000, 4096, 11008, 32, 32, 0, 0, 2048, "hidden_act"})
	untied(f, c)
	c.MLPBias = f.bool("mlp_bias", false)
	c.LayerTypes = f.layerTypes(c.NumLayers, allFull)
	return c
}

func readQwen2(f *fields) *Config {
	c := common(f, "qwen2", sizes{151936, 4096, 22016, 32, 32, 32, 0, 32768, "hidden_act"})
	untied(f, c)
	c.AttentionBias = true // on q, k and v; the class has no field for it
	qwenWindow(f, c)
	return c
}

func readQwen3(f *fields) *Config {
	c := common(f, "qwen3", sizes{151936, 4096, 22016, 32, 32, 32, 128, 32768, "hidden_act"})
	untied(f, c)
	qwenWindow(f, c)
	return c
}

// untied sets what Llama and Qwen have otherwise than Gemma.
func untied(f *fields, c *Config) {
	c.Tied = f.bool("tie_word_embeddings", false)
	c.Activation = f.text("hidden_act", "silu")
	c.Rope = f.ropeSingle(c.MaxPositions)
}

// qwenWindow: sliding layers exist only with use_sliding_window, and then from max_window_layers on.
func qwenWindow(f *fields, c *Config) {
	from := f.int("max_window_layers", 28)
	uses := f.bool("use_sliding_window", false)
	if uses {
		c.SlidingWindow = f.int("sliding_window", 4096)
	}
	c.LayerTypes = f.layerTypes(c.NumLayers, func(i int) bool { return !uses || i < from })
}

// softcap reads a cap of which an explicit null means none.
func (f *fields) softcap(key string, def float64) float64 {
	if f.null(key) {
		return 0
	}
	return f.float(key, def)
}
