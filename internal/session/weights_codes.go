package session

import (
	"fmt"
	"io"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/internal/quant"
)

// conventions undoes what llama.cpp's converters do to the weights of a family, in tensors that no line of a map is for: rows of query and
// key are permuted for interleaved rotary pairs in files of the architecture llama, and norms have 1+w in those of Gemma 1 to 3. Source:
// convert_hf_to_gguf.py, LlamaModel.permute and GemmaModel.modify_tensors.
func (o *openedWeights) conventions(m *mapping.Map, sizes map[string]int) error {
	var b strings.Builder
	b.WriteString("[weights]\n")
	lines := 0
	o.turned = map[string]func(int) int{}
	for i := range o.list {
		name, rule := o.list[i].Name, ""
		matrix := len(o.list[i].Shape) == 2
		switch o.arch {
		case "llama":
			switch {
			case sizes["h"] == 0 || sizes["k"] == 0:
			case strings.HasSuffix(name, ".attn_q.weight") && matrix:
				rule = `axes = "(h p r:2) c -> (h r p) c"`
			case strings.HasSuffix(name, ".attn_k.weight") && matrix:
				rule = `axes = "(k p r:2) c -> (k r p) c"`
			case strings.HasSuffix(name, ".attn_q.bias"):
				rule = `axes = "(h p r:2) -> (h r p)"`
			case strings.HasSuffix(name, ".attn_k.bias"):
				rule = `axes = "(k p r:2) -> (k r p)"`
			}
		case "gemma", "gemma2", "gemma3":
			if strings.HasSuffix(name, "norm.weight") {
				rule = `folded = "1+w"`
			}
		}
		if rule == "" || m.NamesWeight(name) || strings.ContainsAny(name, "{}#\"\\") {
			continue
		}
		fmt.Fprintf(&b, "%q = { to = %[1]q, %s }\n", name, rule)
		lines++
		if heads := sizes["h"]; matrix && o.arch == "llama" {
			if strings.HasSuffix(name, ".attn_k.weight") {
				heads = sizes["k"]
			}
			o.turned[o.list[i].Key] = neighbours(o.list[i].Shape[0] / heads)
		}
	}
	if lines == 0 {
		return nil
	}
	own, err := mapping.Parse("the rules for GGUF files of the architecture "+o.arch, []byte(b.String()))
	if err != nil {
		return err
	}
	list, err := own.Weights(o.path, o.list, sizes)
	if err == nil {
		o.list = list
	}
	return err
}

// groupOf is how many elements share a step, or a step of steps: a row where each element has its own, since its group is not consecutive.
func groupOf(t *quant.Tensor) int {
	if t.Group() == 1 && len(t.Shape) > 0 {
		return t.Shape[len(t.Shape)-1]
	}
	return t.Group()
}

// planes are what codes could be, one float32 an element: their steps, the lowest and the highest values of their groups, how far they may
// be off beside that; and their steps with a sign, and offsets.
func planes(t *quant.Tensor) []io.ReaderAt {
	p := t.Planes()
	return []io.ReaderAt{p.Step, p.Low, p.High, p.Slack, p.Unit, p.Offset}
}

// neighbours is where the rows of a matrix of heads lie in a file that has the two of each rotary pair side by side.
func neighbours(head int) func(row int) int {
	return func(row int) int {
		at := row % head
		return row - at + at%(head/2)*2 + at/(head/2)
	}
}
