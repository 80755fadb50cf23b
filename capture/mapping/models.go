package mapping

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/order"
)

// Lines are the lines of a map for the models of one model_type.
type Lines struct {
	Tensors map[string]any `toml:"tensors"`
}

// forModel returns the map for the model of a list: the lines for all models and the lines for the model's model_type. An engine may use one name for
// different entries, or different layouts, in different families of models.
func (m *Map) forModel(list *order.List) (*Map, error) {
	if len(m.models) == 0 {
		return m, nil
	}
	known := strings.Join(slices.Sorted(maps.Keys(m.models)), ", ")
	if list == nil || list.Config == nil {
		return nil, hint.Add(fmt.Errorf("%s: it has lines for %s, and the model is not known", m.name, known), "name the checkpoint with --model DIR")
	}
	own, ok := m.models[list.Config.ModelType]
	if !ok {
		return nil, hint.Add(fmt.Errorf("%s: it has lines for %s, and no lines for %s", m.name, known, list.Config.ModelType),
			fmt.Sprintf("write the lines of this model in a table [model.%s.tensors]; leave the table empty if the model needs none", list.Config.ModelType))
	}
	all := *m
	all.models, all.tensors = nil, slices.Concat(m.tensors, own)
	return &all, nil
}

// checkModels refuses a table whose name cannot be a model_type, and a map with too many lines.
func checkModels(t Tables) error {
	all := len(t.Tensors)
	for name, lines := range t.Models {
		all += len(lines.Tensors)
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return hint.Add(errors.New("the NAME of a table [model.NAME.tensors] is not a model_type"), "config.json has the model_type, such as llama, qwen3 or gemma3_text")
		}
	}
	if all > MaxRules {
		return hint.Add(fmt.Errorf("%d lines in [tensors] and the tables of models: %d are allowed", all, MaxRules), oneLine)
	}
	return nil
}
