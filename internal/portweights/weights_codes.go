package portweights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/internal/spelling"
)

// conventions undoes what llama.cpp's converters do to the weights of a family, in tensors that no line of a map is for.
func (o *openedWeights) conventions(m *mapping.Map, sizes map[string]int) error {
	var b strings.Builder
	o.turned, o.given, o.sizes = map[string]func(int) int{}, map[string]mapping.Weight{}, sizes
	for i := range o.list {
		w := &o.list[i]
		if m.NamesWeight(w.Name) || strings.ContainsAny(w.Name, "{}#\"\\") {
			continue
		}
		o.given[w.Name] = *w
		rule := o.convention(w.Name, w.Shape)
		if rule == "" {
			continue
		}
		fmt.Fprintf(&b, "%q = { to = %[1]q, %s }\n", w.Name, rule)
		if row := o.rows(w.Name, w.Shape); row != nil {
			o.turned[w.Key] = row
		}
	}
	if b.Len() == 0 {
		return nil
	}
	list, err := o.byRules(b.String(), o.list)
	if err == nil {
		o.list = list
	}
	return err
}

// byRules are tensors as lines of a map make them.
func (o *openedWeights) byRules(lines string, list []mapping.Weight) ([]mapping.Weight, error) {
	own, err := mapping.Parse("the rules for GGUF files of the architecture "+o.arch, []byte("[weights]\n"+lines))
	if err != nil {
		return nil, err
	}
	return own.Weights(o.path, list, o.sizes)
}

// convention is what the words of a map say of the layout in which llama.cpp's converters write a tensor, by its name, that of GGUF or that of
// transformers; empty for the layout of transformers. Rows of query and key are permuted for interleaved rotary pairs in files of the architecture
// llama, and norms have 1+w in those of Gemma 1 to 3. Source: convert_hf_to_gguf.py, LlamaModel.permute and GemmaModel.modify_tensors.
func (o *openedWeights) convention(name string, shape []int) string {
	switch heads, _ := o.headsOf(name); o.arch {
	case "llama":
		switch {
		case heads == "":
		case strings.HasSuffix(name, ".weight") && len(shape) == 2:
			return fmt.Sprintf(`axes = "(%s p r:2) c -> (%[1]s r p) c"`, heads)
		case strings.HasSuffix(name, ".bias"):
			return fmt.Sprintf(`axes = "(%s p r:2) -> (%[1]s r p)"`, heads)
		}
	case "gemma", "gemma2", "gemma3":
		if strings.HasSuffix(name, "norm.weight") {
			return `folded = "1+w"`
		}
	}
	return ""
}

// headsOf returns a map's word for the heads of a query or key tensor, and the number of heads. It returns "" for
// other tensors and for unknown sizes.
func (o *openedWeights) headsOf(name string) (word string, n int) {
	if o.sizes["h"] == 0 || o.sizes["k"] == 0 {
		return "", 0
	}
	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".weight"), ".bias")
	switch {
	case isOf(stem, "layers.{L}.self_attn.q_proj"):
		return "h", o.sizes["h"]
	case isOf(stem, "layers.{L}.self_attn.k_proj"):
		return "k", o.sizes["k"]
	}
	return "", 0
}

// isOf reports whether a name ends in the name of a role in transformers or in GGUF.
func isOf(stem, role string) bool {
	return slices.ContainsFunc(spelling.Endings(spelling.Weight, spelling.GGUF, role), func(end string) bool { return strings.HasSuffix(stem, "."+end) })
}

// rows returns the position of each row of a matrix in a file with the row order of llama.cpp. It returns nil for
// the row order of transformers.
func (o *openedWeights) rows(name string, shape []int) func(row int) int {
	if _, n := o.headsOf(name); n > 0 && o.arch == "llama" && len(shape) == 2 {
		return neighbours(shape[0] / n)
	}
	return nil
}

// neighbours is where the rows of a matrix of heads lie in a file that has the two of each rotary pair side by side.
func neighbours(head int) func(row int) int {
	return func(row int) int {
		at := row % head
		return row - at + at%(head/2)*2 + at/(head/2)
	}
}
