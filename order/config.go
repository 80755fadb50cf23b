// Package order describes a model family as one list: its named tensors in execution order, each with the operation
// that makes it. TENSOR_ORDER is that list, and everything else reads it: what a capture reserves and records, what
// a comparison walks, where the transformers runner finds each tensor.
//
// A family is a function from a resolved [Config] to a [List], written as plain loops over layers and streams. The
// list for one configuration is a value: it can be printed, written as JSON and compared.
package order

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Layer types, as checkpoints spell them.
const (
	Sliding = "sliding_attention"
	Full    = "full_attention"
)

// Config is a model's configuration with every default resolved: what the arithmetic depends on and nothing else.
// Its JSON is canonical: two traces were made of the same architecture exactly when these are equal, see [SameConfig].
// Fields that a family does not have are zero and not written.
type Config struct {
	ModelType          string          `json:"model_type"` // of the text model: gemma3n_text, gemma3_text, gemma2, gemma, llama, qwen2, qwen3
	VocabSize          int             `json:"vocab_size"`
	HiddenSize         int             `json:"hidden_size"`
	IntermediateSize   []int           `json:"intermediate_size"` // one per layer
	NumLayers          int             `json:"num_hidden_layers"`
	NumHeads           int             `json:"num_attention_heads"`
	NumKVHeads         int             `json:"num_key_value_heads"`
	HeadDim            int             `json:"head_dim"`
	Activation         string          `json:"hidden_activation"`
	MaxPositions       int             `json:"max_position_embeddings"`
	RMSNormEps         float64         `json:"rms_norm_eps"`
	Rope               map[string]Rope `json:"rope_parameters"` // by layer type; single-RoPE families: Full only
	LayerTypes         []string        `json:"layer_types"`     // one per layer
	SlidingWindow      int             `json:"sliding_window,omitempty"`
	AttentionBias      bool            `json:"attention_bias,omitempty"`        // q, k, v (and o, but for Qwen2)
	MLPBias            bool            `json:"mlp_bias,omitempty"`              // gate, up, down
	QueryPreAttnScalar float64         `json:"query_pre_attn_scalar,omitempty"` // scores are scaled by its −1/2 power
	AttnSoftcap        float64         `json:"attn_logit_softcapping,omitempty"`
	FinalSoftcap       float64         `json:"final_logit_softcapping,omitempty"`
	Tied               bool            `json:"tie_word_embeddings"`
	Gemma3n            *Gemma3nConfig  `json:"gemma3n,omitempty"`
	Tokens             TokenIDs        `json:"-"` // not arithmetic: never compared
	DType              string          `json:"-"` // the dtype the file declares, as torch spells it; empty when it does not

	keys map[string]string // of rotary settings as the file spells them, see [Config.Key]
}

// Gemma3nConfig has what only Gemma 3n has.
type Gemma3nConfig struct {
	PerLayerVocab     int       `json:"vocab_size_per_layer_input"`
	PerLayerWidth     int       `json:"hidden_size_per_layer_input"`
	SharedLayers      int       `json:"num_kv_shared_layers"`
	Sparsity          []float64 `json:"activation_sparsity_pattern"` // one per layer, in [0, 1)
	LaurelRank        int       `json:"laurel_rank"`
	AltUpStreams      int       `json:"altup_num_inputs"`
	AltUpActive       int       `json:"altup_active_idx"`
	AltUpCoefClip     float64   `json:"altup_coef_clip"`
	AltUpCorrectScale bool      `json:"altup_correct_scale"`
}

// Rope has the settings of one rotary embedding. The scaling fields are zero for types that do not scale.
type Rope struct {
	Type              string  `json:"rope_type"` // default, linear, llama3
	Theta             float64 `json:"rope_theta"`
	Factor            float64 `json:"factor,omitempty"`
	LowFreq           float64 `json:"low_freq_factor,omitempty"`
	HighFreq          float64 `json:"high_freq_factor,omitempty"`
	OriginalPositions int     `json:"original_max_position_embeddings,omitempty"`
}

// TokenIDs has the special ids that a configuration declares; -1 where it does not.
type TokenIDs struct {
	BOS, PAD int
	EOS      []int
}

// FirstShared returns the first layer that uses another layer's keys and values, or NumLayers if every layer has its
// own.
func (c *Config) FirstShared() int {
	if c.Gemma3n == nil || c.NumLayers-c.Gemma3n.SharedLayers <= 0 {
		return c.NumLayers
	}
	return c.NumLayers - c.Gemma3n.SharedLayers
}

// KVSource returns the layer whose keys and values layer i attends to: i itself, or for a shared layer the last
// layer of its type before the shared ones.
func (c *Config) KVSource(i int) int {
	first := c.FirstShared()
	if i < first {
		return i
	}
	for j := first - 1; j >= 0; j-- {
		if c.LayerTypes[j] == c.LayerTypes[i] {
			return j
		}
	}
	return -1 // ruled out by validate
}

// Types returns the layer types that occur, sliding before full.
func (c *Config) Types() []string {
	var types []string
	for _, t := range []string{Sliding, Full} {
		if slices.Contains(c.LayerTypes, t) {
			types = append(types, t)
		}
	}
	return types
}

// singleRope reports whether all layers share the rotary tables of Full; validate has checked that the family allows
// this.
func (c *Config) singleRope() bool { _, local := c.Rope[Sliding]; return !local }

// Window returns the number of keys a query of layer type t sees, itself included; 0 for no limit.
func (c *Config) Window(t string) int {
	if t == Sliding {
		return c.SlidingWindow
	}
	return 0
}

// Canonical returns the JSON by which configurations are compared.
func (c *Config) Canonical() json.RawMessage {
	b, err := json.Marshal(c)
	if err != nil { // only numbers, texts and slices of them: cannot fail
		panic(err)
	}
	return b
}

// ParseCanonical reads and validates the output of [Config.Canonical], for example from a trace.
func ParseCanonical(data json.RawMessage) (*Config, error) {
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	if _, ok := families[c.ModelType]; !ok {
		return nil, fmt.Errorf("%w: %q", ErrModelType, c.ModelType)
	}
	if (c.ModelType == "gemma3n_text") != (c.Gemma3n != nil) {
		return nil, fmt.Errorf("a %q configuration with, or without, the settings of Gemma 3n", c.ModelType)
	}
	return &c, c.validate()
}

// SameConfig reports whether two canonical configurations have the same values. Writers in other languages spell
// numbers otherwise, 1e-06 for 0.000001, so bytes would not do.
func SameConfig(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Larger sizes occur in no text model. The limits bound the cost of a list for a hostile config.json.
const (
	maxLayers  = 1024
	maxSize    = 1 << 24 // hidden, intermediate, vocabulary ...
	maxStreams = 64
)

// validate reports the first thing that no model can have.
func (c *Config) validate() error {
	if c.NumLayers < 1 || c.NumLayers > maxLayers {
		return fmt.Errorf("num_hidden_layers is %d, want 1 to %d", c.NumLayers, maxLayers)
	}
	sizes := []struct {
		name string
		n    int
	}{
		{"vocab_size", c.VocabSize},
		{"hidden_size", c.HiddenSize},
		{"num_attention_heads", c.NumHeads},
		{"num_key_value_heads", c.NumKVHeads},
		{"head_dim", c.HeadDim},
		{"max_position_embeddings", c.MaxPositions},
	}
	for _, s := range sizes {
		if s.n < 1 || s.n > maxSize {
			return fmt.Errorf("%s is %d, want 1 to %d", s.name, s.n, maxSize)
		}
	}
	switch {
	case c.NumHeads%c.NumKVHeads != 0:
		return fmt.Errorf("num_attention_heads %d is not a multiple of num_key_value_heads %d", c.NumHeads, c.NumKVHeads)
	case c.HeadDim%2 != 0:
		return fmt.Errorf("head_dim is %d: rotary embeddings turn pairs, it has to be even", c.HeadDim)
	case !(c.RMSNormEps > 0 && c.RMSNormEps < 1):
		return fmt.Errorf("rms_norm_eps is %g, want a small positive number", c.RMSNormEps)
	case len(c.LayerTypes) != c.NumLayers:
		return fmt.Errorf("layer_types has %d entries for %d layers", len(c.LayerTypes), c.NumLayers)
	case len(c.IntermediateSize) != c.NumLayers:
		return fmt.Errorf("intermediate_size has %d entries for %d layers", len(c.IntermediateSize), c.NumLayers)
	}
	for i, n := range c.IntermediateSize {
		if n < 1 || n > maxSize {
			return fmt.Errorf("intermediate_size of layer %d is %d, want 1 to %d", i, n, maxSize)
		}
	}
	for _, check := range []func() error{c.validateArithmetic, c.validateLayers, c.validateRope} {
		if err := check(); err != nil {
			return err
		}
	}
	if c.Gemma3n != nil {
		return c.Gemma3n.validate(c)
	}
	return nil
}

// validateArithmetic reports constants for which a layer gives no numbers, and unknown activations.
func (c *Config) validateArithmetic() error {
	if _, ok := activations[c.Activation]; !ok {
		return fmt.Errorf("the activation %q is %w (%s are)", c.Activation, errSetting, strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	if s := c.QueryPreAttnScalar; !(s >= 0 && s <= maxSize) || (s == 0 && families[c.ModelType].scalar) {
		return fmt.Errorf("query_pre_attn_scalar is %g, want a positive number", s)
	}
	switch {
	case c.AttnSoftcap < 0:
		return fmt.Errorf("attn_logit_softcapping is %g, want a positive number or null", c.AttnSoftcap)
	case c.FinalSoftcap < 0:
		return fmt.Errorf("final_logit_softcapping is %g, want a positive number or null", c.FinalSoftcap)
	}
	return nil
}

func (c *Config) validateLayers() error {
	for i, t := range c.LayerTypes {
		if t != Sliding && t != Full {
			return fmt.Errorf("layer_types[%d] is %q, want %q or %q", i, t, Sliding, Full)
		}
		// With a window of 1 the reference's cache and its mask disagree on the number of keys.
		if t == Sliding && (c.SlidingWindow < 2 || c.SlidingWindow > maxSize) {
			return fmt.Errorf("layer %d is sliding and sliding_window is %d, want 2 or more", i, c.SlidingWindow)
		}
	}
	return nil
}

// validateRope wants the settings of every embedding that the family turns by, and no others.
func (c *Config) validateRope() error {
	types := []string{Full}
	if families[c.ModelType].localRope {
		types = []string{Sliding, Full}
	}
	if len(c.Rope) != len(types) {
		return fmt.Errorf("rope_parameters has %d embeddings, want %s", len(c.Rope), strings.Join(types, " and "))
	}
	for _, t := range types {
		r, ok := c.Rope[t]
		if !ok {
			return fmt.Errorf("rope_parameters has nothing for %s", t)
		}
		if !(r.Theta > 0) {
			return fmt.Errorf("rope_theta of %s is %g, want a positive number", t, r.Theta)
		}
		switch r.Type {
		case "default":
		case "linear", "llama3":
			if !(r.Factor > 0) {
				return fmt.Errorf("rope factor of %s is %g, want a positive number", t, r.Factor)
			}
		default:
			return fmt.Errorf("rope_type %q of %s is %w (default, linear and llama3 are)", r.Type, t, errSetting)
		}
		if r.Type == "llama3" && !(r.LowFreq > 0 && r.HighFreq > r.LowFreq && r.OriginalPositions > 0) {
			return fmt.Errorf("rope_type llama3 of %s needs 0 < low_freq_factor < high_freq_factor and original_max_position_embeddings", t)
		}
	}
	return nil
}

func (g *Gemma3nConfig) validate(c *Config) error {
	switch {
	case g.PerLayerVocab < 1 || g.PerLayerVocab > maxSize:
		return fmt.Errorf("vocab_size_per_layer_input is %d", g.PerLayerVocab)
	case g.PerLayerWidth < 1 || g.PerLayerWidth > maxSize:
		return fmt.Errorf("hidden_size_per_layer_input is %d", g.PerLayerWidth)
	case g.LaurelRank < 1 || g.LaurelRank > maxSize:
		return fmt.Errorf("laurel_rank is %d", g.LaurelRank)
	case g.AltUpStreams < 2 || g.AltUpStreams > maxStreams:
		return fmt.Errorf("altup_num_inputs is %d, want 2 to %d", g.AltUpStreams, maxStreams)
	case g.AltUpActive < 0 || g.AltUpActive >= g.AltUpStreams:
		return fmt.Errorf("altup_active_idx is %d of %d streams", g.AltUpActive, g.AltUpStreams)
	case g.SharedLayers < 0 || g.SharedLayers > c.NumLayers:
		return fmt.Errorf("num_kv_shared_layers is %d of %d layers", g.SharedLayers, c.NumLayers)
	case len(g.Sparsity) != c.NumLayers:
		return fmt.Errorf("activation_sparsity_pattern has %d entries for %d layers", len(g.Sparsity), c.NumLayers)
	case c.Activation != "gelu_pytorch_tanh":
		return fmt.Errorf("hidden_activation %q is %w for Gemma 3n (gelu_pytorch_tanh is)", c.Activation, errSetting)
	}
	for i, p := range g.Sparsity {
		if !(p >= 0 && p < 1) {
			return fmt.Errorf("activation_sparsity_pattern[%d] is %g, want 0 or more and less than 1", i, p)
		}
	}
	for i := c.FirstShared(); i < c.NumLayers; i++ {
		if c.KVSource(i) < 0 {
			return fmt.Errorf("layer %d shares keys and values of a %s layer, and none comes before layer %d", i, c.LayerTypes[i], c.FirstShared())
		}
	}
	return nil
}

// Key is how config.json spells a field of [Config.Canonical]: the settings of a rotary embedding stand in one of several places. A
// configuration that was not read from such a file, as that of a trace, has them by layer type only where it has two embeddings.
func (c *Config) Key(canonical string) string {
	if key, ok := c.keys[canonical]; ok {
		return key
	}
	if rest, ok := strings.CutPrefix(canonical, ropeKey+Full+"."); ok && c.singleRope() {
		return ropeKey + rest
	}
	return canonical
}

const ropeKey = "rope_parameters."

// ropeKeys maps the canonical key of each rotary setting to the key in the file: in the first object with this
// setting, in the order of [fields.rope].
func (f *fields) ropeKeys(c *Config) map[string]string {
	keys := map[string]string{}
	params, _ := f.object("rope_parameters")
	scaling, scaled := f.object("rope_scaling")
	set := fields{m: params}
	for _, t := range []string{Full, Sliding} {
		of, _ := set.object(t)
		for _, name := range []string{"rope_theta", "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"} {
			has := func(o map[string]json.RawMessage) bool { v, ok := o[name]; return ok && string(v) != "null" }
			canonical := ropeKey + t + "." + name
			theta := name == "rope_theta"
			switch {
			case t == Full && scaled && has(scaling):
				keys[canonical] = "rope_scaling." + name
			case c.singleRope() && !scaled && has(params):
				keys[canonical] = ropeKey + name
			case !c.singleRope() && has(of):
				keys[canonical] = canonical
			case theta && t == Sliding:
				keys[canonical] = "rope_local_base_freq"
			case theta:
				keys[canonical] = name
			}
		}
	}
	return keys
}
