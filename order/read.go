package order

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrModelType is wrapped by the error for a model_type that is not known.
var ErrModelType = errors.New("model_type is not supported")

// errSetting is wrapped by the error for a setting of a known family that no operation here has.
var errSetting = errors.New("not supported")

// Undescribed reports whether an error says that no order describes a model: the family is unknown, or the model has
// a setting, such as YaRN's scaling, that no operation here supports. The program of such a model can be recorded.
func Undescribed(err error) bool { return errors.Is(err, ErrModelType) || errors.Is(err, errSetting) }

// ReadConfig resolves a config.json as transformers 5.23 reads it: text settings nested or at top level, absent fields
// and nulls replaced by the defaults of the class, both forms of RoPE settings, layer types derived where not given.
// Unknown keys are ignored. The error names the field.
func ReadConfig(data []byte) (*Config, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	f := fields{m: top}
	outer := f.text("model_type", "")
	if nested, ok := f.object("text_config"); ok {
		f = fields{m: nested, outer: top, err: f.err}
	}
	f.outerType = outer
	fam, ok := families[f.text("model_type", outer)]
	if !ok {
		return nil, fmt.Errorf("%w: %q; known are %s", ErrModelType, f.text("model_type", outer), strings.Join(knownTypes(), ", "))
	}
	c := fam.read(&f)
	if f.err != nil {
		return nil, fmt.Errorf("reading config.json: %w", f.err)
	}
	o := f.outerFirst()
	c.Tokens = TokenIDs{BOS: o.int("bos_token_id", -1), PAD: o.int("pad_token_id", -1), EOS: o.ints("eos_token_id")}
	c.DType = o.text("dtype", o.text("torch_dtype", ""))
	if o.err != nil {
		return nil, fmt.Errorf("reading config.json: %w", o.err)
	}
	c.keys = f.ropeKeys(c)
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("config.json of a %s model: %w", c.ModelType, err)
	}
	return c, nil
}

func knownTypes() []string {
	var names []string
	for n := range families {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// fields reads keys of one JSON object with a default each, and keeps the first error. A null counts as absent.
type fields struct {
	m, outer  map[string]json.RawMessage
	outerType string // the model_type of the whole file, which says what class runs it
	err       error
}

func (f *fields) raw(key string) (json.RawMessage, bool) {
	v, ok := f.m[key]
	return v, ok && string(v) != "null"
}

// null reports whether key is there as an explicit null.
func (f *fields) null(key string) bool { return string(f.m[key]) == "null" }

// value decodes key into into and reports whether it was there.
func (f *fields) value(key string, into any, want string) bool {
	v, ok := f.raw(key)
	if !ok {
		return false
	}
	if err := json.Unmarshal(v, into); err != nil {
		f.fail("%s is %.40s, want %s", key, v, want)
		return false
	}
	return true
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) int(key string, def int) int {
	if n := float64(def); f.value(key, &n, "an integer") {
		if n != math.Trunc(n) || math.Abs(n) > 1<<40 {
			f.fail("%s is %g, want an integer", key, n)
			return def
		}
		return int(n)
	}
	return def
}

func (f *fields) float(key string, def float64) float64 {
	f.value(key, &def, "a number")
	return def
}

func (f *fields) bool(key string, def bool) bool {
	f.value(key, &def, "true or false")
	return def
}

func (f *fields) text(key, def string) string {
	f.value(key, &def, "a text")
	return def
}

func (f *fields) texts(key string) (list []string) {
	f.value(key, &list, "a list of texts")
	return list
}

// ints reads an integer or a list of integers.
func (f *fields) ints(key string) []int {
	v, ok := f.raw(key)
	if !ok {
		return nil
	}
	var one int
	if json.Unmarshal(v, &one) == nil {
		return []int{one}
	}
	var list []int
	if err := json.Unmarshal(v, &list); err != nil {
		f.fail("%s is %.40s, want an integer or a list of integers", key, v)
	}
	return list
}

// outerFirst returns a reader of what the outer object of a multimodal file may override: the
// end-of-turn ids of instruction-tuned models, and the dtype.
func (f *fields) outerFirst() *fields {
	m := map[string]json.RawMessage{}
	for _, from := range []map[string]json.RawMessage{f.m, f.outer} {
		for _, key := range []string{"bos_token_id", "pad_token_id", "eos_token_id", "dtype", "torch_dtype"} {
			if v, ok := from[key]; ok && string(v) != "null" {
				m[key] = v
			}
		}
	}
	return &fields{m: m}
}

// perLayer reads a number or a list with one number a layer.
func (f *fields) perLayer(key string, def, layers int) []int {
	if v, ok := f.raw(key); ok && strings.HasPrefix(strings.TrimSpace(string(v)), "[") {
		return f.ints(key)
	}
	n := f.int(key, def)
	if layers < 0 || layers > maxLayers { // validate will say so
		return nil
	}
	return slices.Repeat([]int{n}, layers)
}

func (f *fields) object(key string) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	ok := f.value(key, &m, "an object")
	return m, ok
}

// layerTypes reads layer_types, or derives one type a layer.
func (f *fields) layerTypes(layers int, full func(i int) bool) []string {
	if list := f.texts("layer_types"); list != nil {
		return list
	}
	if layers < 0 || layers > maxLayers {
		return nil
	}
	list := make([]string, layers)
	for i := range list {
		list[i] = Sliding
		if full(i) {
			list[i] = Full
		}
	}
	return list
}

// rope reads the settings of one rotary embedding from the objects given, the first that has a key winning.
func (f *fields) rope(theta float64, positions int, from ...map[string]json.RawMessage) Rope {
	merged := fields{m: map[string]json.RawMessage{}}
	for _, m := range slices.Backward(from) {
		for k, v := range m {
			merged.m[k] = v
		}
	}
	r := Rope{Type: merged.text("rope_type", "default"), Theta: merged.float("rope_theta", theta)}
	switch r.Type {
	case "linear":
		r.Factor = merged.float("factor", 0)
	case "llama3":
		r.Factor = merged.float("factor", 0)
		r.LowFreq, r.HighFreq = merged.float("low_freq_factor", 0), merged.float("high_freq_factor", 0)
		r.OriginalPositions = merged.int("original_max_position_embeddings", positions)
	}
	if merged.err != nil {
		f.fail("rope settings: %v", merged.err)
	}
	return r
}

// ropeByType reads the two embeddings of Gemma 3 and 3n: rope_scaling is laid over the full layers' settings, then
// come rope_parameters by layer type, then the old theta keys. A flat rope_parameters is not read, and the old key
// "type" of rope_scaling has no effect, both as in transformers 5.23.
func (f *fields) ropeByType(positions int) map[string]Rope {
	params, _ := f.object("rope_parameters")
	set := fields{m: params, err: f.err}
	full, _ := set.object(Full)
	sliding, _ := set.object(Sliding)
	f.err = set.err
	scaling, _ := f.object("rope_scaling")
	return map[string]Rope{
		Full:    f.rope(f.float("rope_theta", 1e6), positions, scaling, full),
		Sliding: f.rope(f.float("rope_local_base_freq", 1e4), positions, sliding),
	}
}

// ropeSingle reads the one embedding of the other families: a non-null rope_scaling replaces rope_parameters.
func (f *fields) ropeSingle(positions int) map[string]Rope {
	theta := f.float("rope_theta", 1e4)
	params, ok := f.object("rope_scaling")
	if !ok {
		params, _ = f.object("rope_parameters")
	} else if old, has := params["type"]; has && params["rope_type"] == nil {
		params["rope_type"] = old
	}
	return map[string]Rope{Full: f.rope(theta, positions, params)}
}

// General holds the settings that any config.json has for a text model, even for a family that no order describes:
// its type, the ids that it takes, its dtype, and its numbers of layers and channels. General says nothing about the
// arithmetic, and is no configuration of a [List].
type General struct {
	Config
	// File is config.json as JSON without spaces, with sorted keys. Two checkpoints of a family that no order
	// describes have the same configuration if their Files are equal.
	File json.RawMessage
}

// ReadGeneral reads config.json. An absent vocabulary size or number of positions becomes the largest possible
// number; absent numbers of layers and channels become 0. The error names the field.
func ReadGeneral(data []byte) (*General, error) {
	var top map[string]json.RawMessage
	var all map[string]any
	if err := json.Unmarshal(data, &top); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	delete(all, "transformers_version") // of the program that wrote the file
	g := &General{}
	var err error
	if g.File, err = json.Marshal(all); err != nil {
		return nil, fmt.Errorf("reading config.json: %w", err)
	}
	f := fields{m: top}
	g.ModelType = f.text("model_type", "")
	if nested, ok := f.object("text_config"); ok {
		f = fields{m: nested, outer: top, err: f.err}
		g.ModelType = f.text("model_type", g.ModelType)
	}
	first := func(otherwise int, names ...string) int {
		for _, name := range names {
			if n := f.int(name, 0); n != 0 {
				return n
			}
		}
		return otherwise
	}
	g.VocabSize = first(maxSize, "vocab_size")
	g.MaxPositions = first(maxSize, "max_position_embeddings", "n_positions", "max_seq_len")
	g.NumLayers = first(0, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
	g.HiddenSize = first(0, "hidden_size", "n_embd", "d_model")
	o := f.outerFirst()
	g.Tokens = TokenIDs{BOS: o.int("bos_token_id", -1), PAD: o.int("pad_token_id", -1), EOS: o.ints("eos_token_id")}
	g.DType = o.text("dtype", o.text("torch_dtype", ""))
	for _, e := range []error{f.err, o.err} {
		if e != nil {
			return nil, fmt.Errorf("reading config.json: %w", e)
		}
	}
	return g, nil
}
