package session

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

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

// groupOf is how many elements share a step, or a step of steps.
func groupOf(t *quant.Tensor) int {
	if t.Scheme.Moves && len(t.Shape) > 0 {
		return t.Shape[len(t.Shape)-1]
	}
	var c quant.Codes
	if err := t.Reader().Codes(&c, 0, int(min(int64(t.Unit), t.Elements()))); err != nil {
		return max(1, t.Unit) // the comparison meets the error, too
	}
	return max(1, t.Unit, c.Group)
}

// planes are what codes could be, one float32 an element: their steps, the lowest and the highest values of their groups, and how far they may
// be off beside that.
func planes(t *quant.Tensor) []io.ReaderAt {
	all := make([]io.ReaderAt, 4)
	for i := range all {
		all[i] = &plane{t: t, which: i, readers: &sync.Pool{New: func() any { return &codeReader{r: t.Reader()} }}}
	}
	return all
}

// plane reads one of them. Reads may begin anywhere.
type plane struct {
	t       *quant.Tensor
	which   int
	readers *sync.Pool // of *codeReader: several tensors are compared at once
}

type codeReader struct {
	r     *quant.Reader
	codes quant.Codes
}

// ReadAt reads float32 elements; off and len(p) are multiples of their size.
func (p *plane) ReadAt(into []byte, off int64) (int, error) {
	const size = 4
	first, n := off/size, int64(len(into))/size
	unit := int64(max(1, p.t.Unit))
	from := first / unit * unit
	to := min((first+n+unit-1)/unit*unit, p.t.Elements())
	if first+n > p.t.Elements() {
		return 0, io.ErrUnexpectedEOF
	}
	r := p.readers.Get().(*codeReader)
	defer p.readers.Put(r)
	if err := r.r.Codes(&r.codes, from, int(to-from)); err != nil {
		return 0, err
	}
	for i := range n {
		binary.LittleEndian.PutUint32(into[i*size:], math.Float32bits(float32(p.of(&r.codes, int(first+i-from)))))
	}
	return int(n) * size, nil
}

func (p *plane) of(c *quant.Codes, i int) float64 {
	g := i / c.Group
	step, offset := c.Step[g], c.Offset[g]
	a, b := step*float64(c.Lo)+offset, step*float64(c.Hi)+offset
	switch p.which {
	case 0:
		return math.Abs(step)
	case 1:
		return min(a, b)
	case 2:
		return max(a, b)
	}
	return c.Slack(i)
}
