package quant

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

// Bounds of what is read at a time: the widest published layers have some 60,000 inputs.
const (
	maxRow    = 1 << 22 // elements of a group, or of a row that is one
	maxInputs = 1 << 18 // of GPTQ and AWQ, whose outputs are read at least eight at a time
)

// settings are the keys of config.json about stored weights.
type settings struct {
	Method string `json:"quant_method"`
	Bits   int    `json:"bits"`
	Group  int    `json:"group_size"`
	Mode   string `json:"mode"`   // of MLX
	Format string `json:"format"` // of GPTQ, of compressed-tensors
	Old    string `json:"checkpoint_format"`
	Kind   string `json:"version"` // of AWQ

	layers map[string]json.RawMessage // MLX: settings of single layers
}

// finder collects the tensors that belong together.
type finder struct {
	settings
	byName map[string]*container.Tensor
	used   map[string]bool
	found  []*Tensor
}

// Find takes the weights that are stored as codes out of the tensors of a checkpoint. config is config.json, or nil without the file.
// Each weight becomes a tensor with its shape in torch, under the name with ".weight"; rest are the other tensors, in their order.
//
// It reads MLX (weight, scales, biases: affine, 4 and 8 bits), GPTQ (qweight, qzeros, scales, g_idx: 4 and 8 bits), AWQ (qweight, qzeros,
// scales: 4 bits, version gemm), compressed-tensors (weight_packed, weight_scale, weight_shape), int8 with scales
// (weight_scale, scale, scales) by tensor, row or group, and bitsandbytes (int8 weight, SCB). Another way of storing weights is an error that names it: codes taken for weights would be wrong.
func Find(tensors []container.Tensor, config []byte) (packed []*Tensor, rest []container.Tensor, err error) {
	f := finder{byName: make(map[string]*container.Tensor, len(tensors)), used: map[string]bool{}}
	if err := f.configure(config); err != nil {
		return nil, nil, err
	}
	for i := range tensors {
		f.byName[tensors[i].Name] = &tensors[i]
	}
	for i := range tensors {
		t := &tensors[i]
		if err := f.look(t); err != nil {
			return nil, nil, fmt.Errorf("weights %s: %w", plain.Quote(t.Name), err)
		}
	}
	for _, t := range tensors {
		if f.used[t.Name] {
			continue
		}
		if why := leftover(t.Name); why != "" {
			return nil, nil, hint.Add(fmt.Errorf("tensor %s: %s, which is not read", plain.Quote(t.Name), why), next)
		}
		rest = append(rest, t)
	}
	return f.found, rest, nil
}

const next = "read: MLX affine, GPTQ, AWQ (gemm), compressed-tensors int4 and int8, bitsandbytes int8, GGUF; or name a checkpoint in bfloat16, float16 or float32"

// methods are those of transformers whose weights are read.
var methods = []string{"", "gptq", "awq", "compressed-tensors", "bitsandbytes"}

// configure reads the settings: quantization is MLX's key, quantization_config transformers'.
func (f *finder) configure(config []byte) error {
	if config == nil {
		return nil
	}
	var keys struct {
		MLX json.RawMessage `json:"quantization"`
		HF  json.RawMessage `json:"quantization_config"`
	}
	if err := json.Unmarshal(config, &keys); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	given := keys.HF
	if string(given) == "null" || given == nil {
		given = keys.MLX
	}
	if given == nil || string(given) == "null" {
		return nil
	}
	if err := json.Unmarshal(given, &f.layers); err != nil {
		return fmt.Errorf("config.json: quantization: %w", err)
	}
	if method, ok := f.layers["quant_method"]; ok {
		if err := json.Unmarshal(method, &f.Method); err != nil || !slices.Contains(methods, f.Method) {
			return hint.Add(fmt.Errorf("config.json: quant_method %.100s, which is not read", method), next)
		}
		f.layers = nil
	}
	err := json.Unmarshal(given, &f.settings)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return fmt.Errorf("config.json: quantization: %s is a %s; want a value of type %s", other.Field, other.Value, other.Type)
	}
	if err != nil {
		return fmt.Errorf("config.json: quantization: %w", err)
	}
	return nil
}

// look makes a tensor of t and its companions, if t has the codes.
func (f *finder) look(t *container.Tensor) error {
	switch name, end := split(t.Name); {
	case end == "weight" && t.DType == hooks.U32 && t.Unknown == "":
		return f.mlx(t, name)
	case end == "qweight":
		return f.transposed(t, name)
	case end == "weight_packed":
		return f.packed(t, name)
	case end == "weight" && t.DType == hooks.I8 && t.Unknown == "":
		return f.bytes(t, name)
	case end == "weight" && t.Unknown == "" && !t.DType.Float() && len(t.Shape) > 0 && !f.bnb(t.Name):
		return hint.Add(fmt.Errorf("%s codes, packed in an unknown order", t.DType), next)
	}
	return nil
}

// bnb reports a weight with the companions of bitsandbytes.
func (f *finder) bnb(name string) bool { return f.byName[name+".absmax"] != nil }

// split cuts a name at its last dot.
func split(name string) (before, end string) {
	at := strings.LastIndexByte(name, '.')
	return name[:max(at, 0)], name[at+1:]
}

// take finds a part of a weight by its name, checks its dtype and shape, and marks the part as used. It returns nil if an optional part is
// missing.
func (f *finder) take(name string, must bool, shape []int, of ...hooks.DType) (*container.Tensor, error) {
	t, ok := f.byName[name]
	switch {
	case !ok && must:
		return nil, fmt.Errorf("%s is missing", plain.Quote(name))
	case !ok:
		return nil, nil
	case t.Unknown != "" || !slices.Contains(of, t.DType):
		return nil, fmt.Errorf("%s is %s; want %v", plain.Quote(name), dtype(t), of)
	case !slices.Equal(t.Shape, shape):
		return nil, fmt.Errorf("%s is %v; want %v", plain.Quote(name), t.Shape, shape)
	}
	f.used[name] = true
	return t, nil
}

func dtype(t *container.Tensor) string {
	if t.Unknown != "" {
		return t.Unknown
	}
	return t.DType.String()
}

// numbers are the dtypes of scales.
var numbers = []hooks.DType{hooks.F16, hooks.BF16, hooks.F32}

// add keeps a tensor that was found, whose codes are those of t.
func (f *finder) add(t *container.Tensor, name string, shape []int, scheme Scheme, s *rows) {
	f.keep(t, name, &Tensor{Shape: shape, Scheme: scheme, Unit: s.group, source: s, group: s.group, grain: s.group})
}

func (f *finder) keep(t *container.Tensor, name string, found *Tensor) {
	f.used[t.Name] = true
	found.Name = strings.TrimPrefix(name+".weight", ".")
	f.found = append(f.found, found)
}

// matrix reports codes that are no matrix, or a stack of them, of some dtype.
func matrix(t *container.Tensor, least int, of hooks.DType) error {
	if t.Unknown != "" || t.DType != of || len(t.Shape) < least {
		return fmt.Errorf("%s of shape %v; want %s with %d axes", dtype(t), t.Shape, of, least)
	}
	for _, n := range t.Shape {
		if n < 1 || n > 1<<31 {
			return fmt.Errorf("shape %v", t.Shape)
		}
	}
	return nil
}

// with is the shape with another last size.
func with(shape []int, last int) []int {
	return append(slices.Clone(shape[:len(shape)-1]), last)
}

// leftovers are name endings of weights stored as codes in a way without a reader.
var leftovers = map[string]string{
	"absmax": "4 bits of bitsandbytes", "quant_map": "4 bits of bitsandbytes", "bitsandbytes__nf4": "4 bits of bitsandbytes", "bitsandbytes__fp4": "4 bits of bitsandbytes",
	"weight_scale_inv": "float8 with scales", "weight_scale": "codes with scales", "weight_packed": "packed codes", "qzeros": "packed zeros", "g_idx": "an order of groups",
	"SCB": "scales of int8", "weight_scale_2": "codes with scales", "weight_zero_point": "zero points", "weight_shape": "packed codes",
	"qweight": "packed codes",
}

// leftover says what a tensor is a part of that no weight took.
func leftover(name string) string {
	_, end := split(name)
	if end == "weight" {
		return ""
	}
	return leftovers[end]
}
