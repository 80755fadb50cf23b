package weights

import (
	"context"
	"encoding/binary"
	"math"
	"regexp"
	"slices"
	"sync/atomic"

	"github.com/tracediff/tracediff/hooks"
)

// AWQ multiplies the columns of a matrix by scales before it rounds them, and divides by the same scales what the columns are multiplied with:
// the weight of the norm before it, or the rows of the matrix whose result they take. The port computes what the original does, and neither
// tensor is the original's. So both are right where their factors cancel.

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

// layerTensors are the tensors of a layer of which it is known what they are multiplied with: that of Llama, Mistral, Qwen2 and Qwen3.
var layerTensors = regexp.MustCompile(`^(?:(?:input_layernorm|post_attention_layernorm|self_attn\.[qk]_norm|self_attn\.o_proj|mlp\.(?:gate|up|down)_proj)\.weight|self_attn\.[qkv]_proj\.(?:weight|bias))$`)

var layerPrefix = regexp.MustCompile(`^(.*\blayers\.[0-9]+\.)(.*)$`)

// layer is the tensors of a layer, by their names in it.
type layer map[string]*job

// layersOf are those whose tensors all have a known name and a partner.
func layersOf(jobs []*job) []layer {
	var order []string
	all := map[string]layer{}
	for _, j := range jobs {
		name := j.row.Name
		if j.original != nil {
			name = plainName(j.original.Name)
		}
		m := layerPrefix.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		if all[m[1]] == nil {
			all[m[1]] = layer{}
			order = append(order, m[1])
		}
		if !layerTensors.MatchString(m[2]) || j.local == nil || j.original == nil || j.local.check() != nil || j.original.check() != nil || !slices.Equal(j.local.Shape, j.original.Shape) {
			delete(all, m[1])
			all[m[1]] = layer{"": nil}
			continue
		}
		all[m[1]][m[2]] = j
	}
	var list []layer
	for _, p := range order {
		if _, unknown := all[p][""]; !unknown {
			list = append(list, all[p])
		}
	}
	return list
}

// rescale looks for factors that cancel, in layers of codes in a format whose writers may use them, and says of these tensors that they are right.
func (c *comparison) rescale(ctx context.Context, jobs []*job, rows []Row) error {
	at := map[*job]*Row{}
	for i, j := range jobs {
		j.row.Name = rows[i].Name
		at[j] = &rows[i]
	}
	r := &reader{done: new(atomic.Int64)}
	known := map[*job]bool{}
	for _, l := range layersOf(jobs) {
		for _, j := range l {
			known[j] = true
		}
		if err := c.rescaleLayer(ctx, r, l, at); err != nil {
			return err
		}
	}
	return c.unknownLayers(ctx, r, jobs, known, at)
}

// factors are those of a tensor: each element is one of the original times that of its column, divided by that of its row. nil: none.
type factors struct{ columns, rows []float64 }

// of is a tensor with the factors, in float32.
func (f *factors) of(t *Tensor) *Tensor {
	if f.columns == nil && f.rows == nil {
		return t
	}
	scaled := *t
	scaled.DType, scaled.Data = hooks.F32, &scaledData{t: t, factors: f}
	return &scaled
}

// scaledData reads the numbers of a tensor with factors, as float32.
type scaledData struct {
	*factors
	t *Tensor
}

// ReadAt reads whole numbers.
func (d *scaledData) ReadAt(into []byte, at int64) (int, error) {
	const size = 4
	_, columns := d.t.flat()
	from := int(at / size)
	values := make([]float64, len(into)/size)
	var buf buffer
	if err := buf.read(values, d.t.Data, d.t.DType, from); err != nil {
		return 0, err
	}
	for i, x := range values {
		if d.columns != nil {
			x *= d.columns[(from+i)%columns]
		}
		if d.rows != nil {
			x /= d.rows[(from+i)/columns]
		}
		binary.LittleEndian.PutUint32(into[size*i:], math.Float32bits(float32(x)))
	}
	return len(into), nil
}

// rescaling is the search for factors in one layer.
type rescaling struct {
	*comparison
	r     *reader
	l     layer
	found map[*job]*factors
}

func (s *rescaling) job(name string) *job { return s.l[name+".weight"] }

// of are the factors of a tensor of the layer.
func (s *rescaling) of(name string) *factors {
	j := s.job(name)
	if s.found[j] == nil {
		s.found[j] = &factors{}
	}
	return s.found[j]
}

// may reports whether a scaling may be one of the layer: what it is multiplied with are codes, and a norm that is right has no factors.
func (s *rescaling) may(x scaling, at map[*job]*Row) bool {
	from := s.job(x.from)
	for _, name := range x.into {
		if j := s.job(name); j == nil || j.local.Coding == nil || !j.local.Coding.Moves && !j.local.Coding.Mixed {
			return false
		}
	}
	switch {
	case from == nil:
		return false
	case !x.rows:
		return !at[from].Class.Right()
	}
	return from.local.Coding != nil && from.local.Shape[0] == s.job(x.into[0]).local.Shape[1] && s.l[x.from+".bias"] == nil
}

// rescaleLayer looks for the factors of a layer. Those of norms are known; with them those of rows are measured; and without these, those of the
// columns behind the norms.
func (c *comparison) rescaleLayer(ctx context.Context, r *reader, l layer, at map[*job]*Row) error {
	s := &rescaling{c, r, l, map[*job]*factors{}}
	var rows, norms []scaling
	for _, x := range scalings {
		if !s.may(x, at) {
			continue
		}
		if x.rows {
			rows = append(rows, x)
			continue
		}
		scales, err := c.quotients(ctx, r, s.job(x.from), 0)
		if err != nil {
			return err
		}
		if scales == nil {
			continue
		}
		for _, name := range x.into {
			s.of(name).columns = scales
		}
		s.of(x.from).rows = scales
		norms = append(norms, x)
	}
	for _, x := range rows {
		scales, err := c.rowScales(ctx, r, s.job(x.from), s.of(x.from).columns)
		if err != nil {
			return err
		}
		if scales, err = c.cancel(ctx, r, scales, []*job{s.job(x.into[0])}, s.found); err != nil {
			return err
		}
		if scales != nil {
			s.of(x.from).rows, s.of(x.into[0]).columns = scales.factor, scales.factor
		}
	}
	var rescaled []*job
	for _, x := range norms {
		is, err := s.norm(ctx, x)
		if err != nil {
			return err
		}
		if is {
			rescaled = append(rescaled, s.job(x.from))
		}
	}
	if err := c.judgeRescaled(ctx, r, s.found, rescaled, at); err != nil {
		return err
	}
	for _, x := range scalings {
		if from := s.job(x.from); !x.rows && from != nil && at[from].Class == Equal {
			if err := s.alone(ctx, x, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// norm reports whether the factors of a norm cancel. It forgets those that do not.
func (s *rescaling) norm(ctx context.Context, x scaling) (bool, error) {
	var into []*job
	for _, name := range x.into {
		into = append(into, s.job(name))
	}
	given := &measured{s.of(x.from).rows, make([]float64, len(s.of(x.from).rows))}
	scales, err := s.cancel(ctx, s.r, given, into, s.found)
	if scales == nil && err == nil {
		for _, j := range into {
			s.found[j].columns = nil
		}
		delete(s.found, s.job(x.from))
	}
	return scales != nil, err
}

// judgeRescaled holds the tensors of codes to the original times their factors, which are known to cancel. So the norms are right.
func (c *comparison) judgeRescaled(ctx context.Context, r *reader, found map[*job]*factors, norms []*job, at map[*job]*Row) error {
	for j, f := range found {
		if slices.Contains(norms, j) || f.columns == nil && f.rows == nil {
			continue
		}
		local := j.local
		if !local.Coding.Moves {
			local = moving(local) // the factors are measured, and AWQ clips
		}
		row, err := c.pair(ctx, r, local, f.of(j.original))
		if err != nil {
			return err
		}
		row.Name, row.Original = at[j].Name, stored(j.original)
		if f.columns != nil {
			least, most := slices.Min(f.columns), slices.Max(f.columns)
			row.note("its columns are the original's times %s to %s, and what they are multiplied with is divided by the same", number(least), number(most))
		}
		if f.rows != nil {
			least, most := slices.Min(f.rows), slices.Max(f.rows)
			row.note("its rows are the original's divided by %s to %s, and the columns that they are multiplied with are times the same", number(least), number(most))
		}
		*at[j] = row
	}
	for _, j := range norms {
		row := newRow(j.local, j.original)
		row.Name, row.Relative, row.Class = at[j].Name, at[j].Relative, Rescaled
		row.note("it is the original's divided by %s to %s, and the columns that it is multiplied with are times the same, as AWQ does", number(slices.Min(found[j].rows)), number(slices.Max(found[j].rows)))
		*at[j] = row
	}
	return nil
}
