package ordertest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Acceptable makes a drawn configuration loadable by transformers: a width divisible by the number of heads, fractions written as fractions,
// one intermediate size for all layers in families with a single size, and in Gemma 3n a cap on the logits, AltUp's scale, and keys to share
// for every type of sharing layer. See [DrawWith].
func Acceptable(config map[string]any) {
	heads := config["num_attention_heads"].(int)
	config["hidden_size"] = (config["hidden_size"].(int) + heads - 1) / heads * heads
	if config["model_type"] == "gemma3n_text" {
		config["altup_correct_scale"] = true
		if types, own := config["layer_types"].([]string), config["num_hidden_layers"].(int)-config["num_kv_shared_layers"].(int); !sameTypes(types[:own], types) {
			config["num_kv_shared_layers"] = 0
		}
		if config["final_logit_softcapping"] == nil {
			config["final_logit_softcapping"] = 30.0
		}
	} else if sizes, ok := config["intermediate_size"].([]int); ok {
		config["intermediate_size"] = sizes[0]
	}
	for key, value := range config {
		switch v := value.(type) {
		case float64:
			config[key] = fraction(v)
		case []float64:
			all := make([]json.Number, len(v))
			for i := range v {
				all[i] = fraction(v[i])
			}
			config[key] = all
		}
	}
}

// sameTypes reports whether two runs of layers have the same types of attention.
func sameTypes(a, b []string) bool {
	types := func(of []string) []string { return slices.Compact(slices.Sorted(slices.Values(of))) }
	return slices.Equal(types(a), types(b))
}

// fraction is a number that Python reads as a float.
func fraction(v float64) json.Number {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return json.Number(text)
}
