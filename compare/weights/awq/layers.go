package awq

import (
	"regexp"

	"github.com/tracediff/tracediff/internal/quant"
	"github.com/tracediff/tracediff/internal/spelling"
)

// Tensor is a tensor of the port and the original's of its name.
type Tensor struct {
	Name   string // the original's, without what frameworks put in front of it
	Called string // what a report calls it
	Shape  []int
	Fits   bool         // both sides can be read, and have one shape
	Coding quant.Coding // of the port; nil for numbers
}

// coded reports a tensor whose writer may have multiplied its columns.
func (t *Tensor) coded() bool { return t != nil && t.Coding != nil && t.Coding.MayMove() }

// scaling is a tensor whose elements, by its last axis or by rows, are divided by the scales of the columns of others.
type scaling struct {
	from string   // of a layer
	into []string // all that it is multiplied with
	rows bool     // from is a matrix
}

// scalings are those of layers in which every tensor has a name of layerTensors. Sources: the mappings of AutoAWQ, llmcompressor and mlx-lm.
var scalings = []scaling{
	{"input_layernorm", []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, false},
	{"post_attention_layernorm", []string{"mlp.gate_proj", "mlp.up_proj"}, false},
	{"self_attn.v_proj", []string{"self_attn.o_proj"}, true},
	{"mlp.up_proj", []string{"mlp.down_proj"}, true},
}

var (
	layerPrefix = regexp.MustCompile(`^(.*\b` + spelling.Layers + `\.[0-9]+\.)(.*)$`)
	normName    = regexp.MustCompile(`norm\.weight$`)
	// layerTensors are the tensors of a layer of Llama, Mistral, Qwen2 and Qwen3: it is known what they are multiplied with.
	layerTensors = regexp.MustCompile(`^(?:(?:input_layernorm|post_attention_layernorm|self_attn\.[qk]_norm|self_attn\.o_proj|mlp\.(?:gate|up|down)_proj)\.weight|self_attn\.[qkv]_proj\.(?:weight|bias))$`)
	// ofGGUF are formats whose codes may be too coarse for factors to be measured; the scales of AWQ are not written in them.
	ofGGUF = regexp.MustCompile(`^I?Q[0-9]`)
)

// layer is the tensors of a layer, by their names in it.
type layer map[string]*Tensor

// layersOf are those whose tensors all have a known name and a partner.
func layersOf(tensors []*Tensor) []layer {
	var order []string
	all, unknown := map[string]layer{}, map[string]bool{}
	for _, t := range tensors {
		m := layerPrefix.FindStringSubmatch(t.Name)
		if m == nil {
			continue
		}
		if all[m[1]] == nil {
			all[m[1]] = layer{}
			order = append(order, m[1])
		}
		all[m[1]][m[2]] = t
		if !layerTensors.MatchString(m[2]) || !t.Fits {
			unknown[m[1]] = true
		}
	}
	var list []layer
	for _, p := range order {
		if !unknown[p] {
			list = append(list, all[p])
		}
	}
	return list
}

// prefixOf is the name of the layer that a tensor is of; "" for none, and where it has no partner.
func prefixOf(t *Tensor) string {
	if m := layerPrefix.FindStringSubmatch(t.Name); t.Fits && m != nil {
		return m[1]
	}
	return ""
}
