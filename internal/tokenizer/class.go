package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/files"
)

// modelFileName is the config of the model. transformers looks there for the class of a tokenizer that its own config does not name.
const modelFileName = "config.json"

// plainClasses are the values of tokenizer_class for which transformers takes tokenizer.json unchanged.
var plainClasses = []string{"", "PreTrainedTokenizer", "TokenizersBackend", "PythonBackend"}

// alwaysClass are the classes that transformers takes for a model_type whatever the configs say.
var alwaysClass = map[string]string{
	"qwen2": "Qwen2Tokenizer", "qwen3_5": "Qwen3_5Tokenizer", "qwen3_5_moe": "Qwen3_5Tokenizer", "qwen3_5_moe_text": "Qwen3_5Tokenizer",
	"qwen4_exp": "Qwen3_5Tokenizer", "siglip2": "Siglip2Tokenizer", "hyperclovax_vision_v2": "GPT2Tokenizer",
}

// classOfType are transformers' classes for a model_type without a class in its config; "" is a plain class. transformers has many more.
var classOfType = map[string]string{
	"": "", "llama": "", "mistral": "", "mixtral": "", "ministral": "", "phi3": "", "olmo2": "", "olmo3": "", "deepseek_v3": "", "granite": "",
	"falcon": "", "smollm3": "", "gpt_oss": "", "glm4": "", "stablelm": "",
	"gemma": "GemmaTokenizer", "gemma2": "GemmaTokenizer", "gemma3": "GemmaTokenizer", "gemma3_text": "GemmaTokenizer", "gemma3n": "GemmaTokenizer",
	"gemma3n_text": "GemmaTokenizer", "qwen2_moe": "Qwen2Tokenizer", "qwen3": "Qwen2Tokenizer", "qwen3_moe": "Qwen2Tokenizer", "gpt2": "GPT2Tokenizer",
}

// noteClass notes a class of transformers that may put a normaliser, a pre-tokenizer and a model of its own in the place of the file's. Where it
// puts the same, all of them together are in kinds.txt. c is the config of the tokenizer.
func (t *Tokenizer) noteClass(fsys fs.FS, c *config) error {
	if len(t.kinds) == 0 {
		return nil // a tokenizer.model
	}
	var model struct {
		Type  string  `json:"model_type"`
		Class *string `json:"tokenizer_class"`
	}
	data, err := files.ReadFS(fsys, modelFileName, maxFile)
	if err == nil {
		if err := json.Unmarshal(data, &model); err != nil {
			return fmt.Errorf("reading %s: %w", modelFileName, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the tokenizer: %w", err)
	}
	named := c.Class
	if named == "" && model.Class != nil {
		named = *model.Class
	}
	class, known := strings.TrimSuffix(named, "Fast"), true
	if always, ok := alwaysClass[model.Type]; ok {
		class = always
	} else if named == "" {
		class, known = classOfType[model.Type]
	}
	what := fmt.Sprintf("tokenizer_class %.60q", class)
	switch {
	case !known:
		what = fmt.Sprintf("no tokenizer_class for the model_type %.60q", model.Type)
	case slices.Contains(plainClasses, class) || class == "LlamaTokenizer" && t.byteLevel:
		return nil
	}
	if c.PrefixSpace {
		what += " with add_prefix_space"
	}
	t.kinds = append(t.kinds, fmt.Sprintf("%s over %s", what, strings.Join(t.kinds, ", ")))
	return nil
}
