// Package spelling knows what engines call tensors and weights: one table, and the words for layers, ranks, passes and parts of names. Maps,
// dumps, weights and red flags read them. An engine that is to be known gets its names here.
//
// A role is a tensor or a weight by its name in the reference, without ".weight" and ".bias": an entry of the order, or a module of
// transformers. In roles and spellings {L} stands for the number of the layer, which is the first number in a name.
package spelling

import (
	"slices"
	"strings"
)

// Engine is who spells names in one way: a program, a library or a file format.
type Engine string

// The engines. Sources: the cb names of llama.cpp's graph and the tensor_mapping.py of its gguf-py; Meta's code of Llama, which the
// examples of MLX follow; the modules of TransformerLens, of the Gemma implementation of Flax, Keras Hub and TensorRT-LLM; the forward
// hooks of SGLang. vLLM and mlx-lm have the modules of transformers.
const (
	LlamaCpp        Engine = "llama.cpp" // its graph; #1 is the second firing of a name in one pass
	GGUF            Engine = "GGUF"
	Meta            Engine = "Meta"
	TransformerLens Engine = "TransformerLens"
	Flax            Engine = "Flax"
	KerasHub        Engine = "Keras Hub"
	TensorRTLLM     Engine = "TensorRT-LLM"
	SGLang          Engine = "SGLang"
	GPT2            Engine = "GPT-2"        // and what is written like it
	Transformers    Engine = "transformers" // families whose modules have names other than the order's
	Several         Engine = "several"      // ports of many writers
	// Words are the last parts of names, used by many recorders and checkpoints after various prefixes.
	Words Engine = "words"
)

// Kind is the kind of tensor a spelling names. It has both bits if an engine uses one name for a weight and for the
// tensor computed with it.
type Kind uint8

// The kinds.
const (
	Weight     Kind = 1 << iota // without ".weight" and ".bias"
	Activation                  // a tensor that is computed
)

// Spelling is a name in an engine.
type Spelling struct {
	Engine Engine
	Of     Kind
	Text   string
}

// row is a role with its names in engines. Of the names of one dump the first is meant.
type row struct {
	Role    string
	Spelled []Spelling
}

// names are what some engines call a role.
func (r row) names(of Kind, engines ...Engine) (all []string) {
	for _, s := range r.Spelled {
		if s.Of&of != 0 && slices.Contains(engines, s.Engine) {
			all = append(all, s.Text)
		}
	}
	return all
}

// ByRole returns the names of each role in some engines. It omits roles without a name in these engines.
func ByRole(of Kind, engines ...Engine) map[string][]string {
	all := map[string][]string{}
	for _, r := range rows {
		if names := r.names(of, engines...); len(names) > 0 {
			all[r.Role] = names
		}
	}
	return all
}

// Roles returns the possible meanings of a name in an engine, with the layer's number filled in. Meanings in other
// families of transformers come last. Roles returns nil for a name missing from the table.
func Roles(engine Engine, of Kind, name string) []string {
	pattern, layer := name, ""
	if from := strings.IndexAny(name, decimals); from >= 0 {
		end := from + len(name[from:]) - len(strings.TrimLeft(name[from:], decimals))
		pattern, layer = name[:from]+hole+name[end:], name[from:end]
	}
	var roles, others []string
	for _, r := range rows {
		for _, s := range r.Spelled {
			numbered := strings.Contains(s.Text, hole)
			if s.Engine != engine || s.Of&of == 0 || numbered && (layer == "" || s.Text != pattern) || !numbered && s.Text != name {
				continue
			}
			roles = append(roles, strings.Replace(r.Role, hole, layer, 1))
			for _, other := range r.names(of, Transformers) {
				others = append(others, strings.Replace(other, hole, layer, 1))
			}
		}
	}
	return append(roles, others...)
}

const (
	hole     = "{L}"
	decimals = "0123456789"
)

// Endings are the last parts of the names of roles: in the order, and then in an engine.
func Endings(of Kind, engine Engine, roles ...string) (all []string) {
	for _, role := range roles {
		all = append(all, last(role))
		for _, r := range rows {
			if r.Role != role {
				continue
			}
			for _, text := range r.names(of, engine) {
				all = append(all, last(text))
			}
		}
	}
	return all
}

func last(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
