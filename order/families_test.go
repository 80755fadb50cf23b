package order_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
)

// modelTypes are all that a configuration can be of.
var modelTypes = slices.Concat(ordertest.Gemma, ordertest.Plain)

// drawConfig draws a configuration of a family that transformers could run.
func drawConfig(t *rapid.T, modelType string) map[string]any {
	layers := rapid.IntRange(1, 9).Draw(t, "layers")
	kv := rapid.IntRange(1, 3).Draw(t, "kv")
	c := map[string]any{
		"model_type": modelType, "num_hidden_layers": layers, "vocab_size": rapid.IntRange(2, 40).Draw(t, "vocab"),
		"hidden_size": rapid.IntRange(1, 40).Draw(t, "hidden"), "head_dim": 2 * rapid.IntRange(1, 8).Draw(t, "half"),
		"num_key_value_heads": kv, "num_attention_heads": kv * rapid.IntRange(1, 3).Draw(t, "groups"),
		"intermediate_size": rapid.SliceOfN(rapid.IntRange(1, 50), layers, layers).Draw(t, "widths"),
		"attention_bias":    rapid.Bool().Draw(t, "bias"), "tie_word_embeddings": rapid.Bool().Draw(t, "tied"),
	}
	activation := rapid.SampledFrom([]string{"gelu_pytorch_tanh", "gelu", "silu"})
	switch modelType {
	case "gemma3n_text":
		drawGemma3n(t, c, layers)
	case "gemma3_text":
		drawSliding(t, c, layers)
		c["final_logit_softcapping"] = rapid.SampledFrom([]any{nil, 30.0}).Draw(t, "final cap")
		c["query_pre_attn_scalar"] = rapid.IntRange(1, 300).Draw(t, "scalar")
		c["hidden_activation"] = activation.Draw(t, "activation")
	case "gemma2":
		drawSliding(t, c, layers)
		c["attn_logit_softcapping"] = rapid.SampledFrom([]any{nil, 50.0}).Draw(t, "cap")
		c["final_logit_softcapping"] = rapid.SampledFrom([]any{nil, 30.0}).Draw(t, "final cap")
		c["query_pre_attn_scalar"] = rapid.IntRange(1, 300).Draw(t, "scalar")
		c["hidden_activation"] = activation.Draw(t, "activation")
	case "llama":
		c["mlp_bias"] = rapid.Bool().Draw(t, "mlp bias")
		c["hidden_act"] = activation.Draw(t, "activation")
	case "qwen2", "qwen3":
		if rapid.Bool().Draw(t, "slides") {
			drawSliding(t, c, layers)
			c["use_sliding_window"] = true
		}
		c["hidden_act"] = activation.Draw(t, "activation")
	case "gemma":
	default:
		t.Fatalf("nothing says what a configuration of %s has", modelType)
	}
	return c
}

func drawSliding(t *rapid.T, c map[string]any, layers int) []string {
	types := rapid.SliceOfN(rapid.SampledFrom([]string{order.Sliding, order.Full}), layers, layers).Draw(t, "types")
	c["layer_types"], c["sliding_window"] = types, rapid.IntRange(2, 9).Draw(t, "window")
	return types
}

func drawGemma3n(t *rapid.T, c map[string]any, layers int) {
	types := drawSliding(t, c, layers)
	shared := rapid.IntRange(0, layers).Draw(t, "shared")
	for first := layers - shared; shared > 0; shared, first = shared-1, first+1 {
		if first == 0 { // everything shared: nothing is
			break
		}
		if !slices.ContainsFunc(types[first:], func(s string) bool { return !slices.Contains(types[:first], s) }) {
			break
		}
	}
	streams := rapid.IntRange(2, 5).Draw(t, "streams")
	c["num_kv_shared_layers"] = shared
	c["vocab_size_per_layer_input"] = rapid.IntRange(2, 40).Draw(t, "per-layer vocab")
	c["hidden_size_per_layer_input"] = rapid.IntRange(1, 9).Draw(t, "per-layer width")
	c["activation_sparsity_pattern"] = rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.3, 0.95}), layers, layers).Draw(t, "sparsity")
	c["altup_num_inputs"], c["altup_active_idx"] = streams, rapid.IntRange(0, streams-1).Draw(t, "active")
	c["laurel_rank"] = rapid.IntRange(1, 9).Draw(t, "rank")
	c["altup_correct_scale"] = rapid.Bool().Draw(t, "scale")
}

// drawList draws a configuration of any family and returns its list.
func drawList(t *rapid.T) *order.List {
	data, err := json.Marshal(drawConfig(t, rapid.SampledFrom(modelTypes).Draw(t, "model type")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := order.ReadConfig(data)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	l, err := order.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What every list has to be: names are unique; an input is an earlier entry, and one of the pass before any entry; an
// entry has an op, and where it has no inputs it is an argument of the caller; shapes have an axis role each, and are
// those that the operation makes of its inputs' and weights'; a weight has one shape wherever it is used.
func TestListProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawList(t)
		all := map[string]int{}
		for i, e := range l.Entries {
			if first, dup := all[e.Name]; dup {
				t.Errorf("%s is entry %d and entry %d", e.Name, first, i)
			}
			all[e.Name] = i
		}
		prompt := order.Pass{Tokens: rapid.IntRange(1, 12).Draw(t, "prompt")}
		next := order.Pass{Past: prompt.Tokens, Tokens: rapid.IntRange(1, 4).Draw(t, "next")}
		weights := map[string]string{}
		for i, e := range l.Entries {
			checkEntry(t, all, i, e)
			checkShapes(t, l, e, prompt, next)
			for _, w := range e.Weights {
				one := fmt.Sprint(w.Shape)
				if other, ok := weights[w.Name]; ok && other != one {
					t.Errorf("%s wants %s of shape %s, another entry %s", e.Name, w.Name, one, other)
				}
				weights[w.Name] = one
			}
		}
		if len(l.Weights()) != len(weights) {
			t.Errorf("Weights has %d tensors, the entries name %d", len(l.Weights()), len(weights))
		}
	})
}

func checkEntry(t *rapid.T, all map[string]int, i int, e order.Entry) {
	switch {
	case e.Op == nil:
		t.Fatalf("%s has no op", e.Name)
	case len(e.Inputs) == 0 && e.Op.Kind() != "argument":
		t.Errorf("%s has no input", e.Name)
	case len(e.Axes) != len(e.Shape):
		t.Errorf("%s has axes %q for shape %v", e.Name, e.Axes, e.Shape)
	case e.Level < 1 || e.Level > 3:
		t.Errorf("%s has level %d", e.Name, e.Level)
	case e.HF.Kind == "":
		t.Errorf("%s does not say where transformers shows it", e.Name)
	}
	for _, in := range e.Inputs {
		at, ok := all[in.Name]
		switch {
		case !ok:
			t.Fatalf("%s: input %s is no entry", e.Name, in.Name)
		case !in.Prev && at >= i:
			t.Errorf("%s: input %s comes later", e.Name, in.Name)
		}
	}
}

// The plain decoders have as many entries a pass as the families' tensors come to: 23 a layer that all have, two norms
// of heads, two norms behind attention and MLP, and the cap of scores; around the layers 8, and a mask and a pair of
// rotary tables for each type of layer that has its own.
func TestNumberOfEntries(t *testing.T) {
	perLayer := map[string]int{"gemma3_text": 27, "gemma2": 25, "gemma": 23, "llama": 23, "qwen2": 23, "qwen3": 25}
	rapid.Check(t, func(t *rapid.T) {
		l := drawList(t)
		c := l.Config
		layer, plain := perLayer[c.ModelType]
		if !plain {
			if c.Gemma3n == nil {
				t.Errorf("nothing says how many entries a layer of %s has", c.ModelType)
			}
			return
		}
		if c.AttnSoftcap > 0 {
			layer++
		}
		masks, tables := len(c.Types()), 1
		if c.ModelType == "gemma3_text" {
			tables = masks
		}
		if want := 4 + masks + 2*tables + layer*c.NumLayers + 4; len(l.Entries) != want {
			t.Errorf("%d entries, want %d", len(l.Entries), want)
		}
	})
}

func newList(t *testing.T, config string) *order.List {
	t.Helper()
	c, err := order.ReadConfig([]byte(config))
	if err != nil {
		t.Fatalf("%s: %v", config, err)
	}
	l, err := order.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The activation is the configuration's, but for Gemma 1: its published files say "gelu", were trained with the tanh
// form, and have another field that is not read.
func TestActivation(t *testing.T) {
	for config, want := range map[string]op.Op{
		`{"model_type": "gemma2"}`:                                                      op.GELUTanh{},
		`{"model_type": "gemma2", "hidden_activation": "gelu"}`:                         op.GELU{},
		`{"model_type": "gemma3_text", "hidden_activation": "silu"}`:                    op.SiLU{},
		`{"model_type": "gemma", "hidden_act": "gelu", "hidden_activation": null}`:      op.GELUTanh{},
		`{"model_type": "gemma", "hidden_act": "silu", "hidden_activation": "gelu"}`:    op.SiLU{},
		`{"model_type": "gemma", "hidden_activation": "gelu"}`:                          op.GELUTanh{},
		`{"model_type": "llama"}`:                                                       op.SiLU{},
		`{"model_type": "qwen2", "hidden_act": "gelu"}`:                                 op.GELU{},
		`{"model_type": "qwen3", "hidden_act": null, "hidden_activation": "gelu"}`:      op.SiLU{},
		`{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}`:        op.GELUTanh{},
		`{"model_type": "gemma3", "text_config": {"hidden_activation": "gelu"}}`:        op.GELU{},
		`{"model_type": "gemma3n", "text_config": {"hidden_activation": null}}`:         op.GELUTanh{},
		`{"model_type": "llama", "hidden_act": "gelu_pytorch_tanh", "mlp_bias": false}`: op.GELUTanh{},
	} {
		e, ok := newList(t, config).Lookup("layers.0.mlp.act_fn")
		if !ok || e.Op != want {
			t.Errorf("%s: the activation is %#v, want %#v", config, e.Op, want)
		}
	}
}

// Caps are operations only where the family's class applies them. Gemma 3 hands none to the attention, and its
// multimodal class gives the head's logits as they are.
func TestSoftcaps(t *testing.T) {
	const caps = `"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0`
	scores := op.Softcap{Cap: 50}
	for _, c := range []struct {
		config        string
		scores, final op.Op // nil for no entry
	}{
		{`{"model_type": "gemma2"}`, scores, op.Softcap{Cap: 30}},
		{`{"model_type": "gemma2", "attn_logit_softcapping": null, "final_logit_softcapping": null}`, nil, op.Identity{}},
		{`{"model_type": "gemma3_text"}`, nil, op.Identity{}},
		{`{"model_type": "gemma3_text", ` + caps + `}`, nil, op.Softcap{Cap: 30}},
		{`{"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", ` + caps + `}}`, nil, op.Identity{}},
		{`{"model_type": "gemma3", "text_config": {` + caps + `}}`, nil, op.Identity{}},
		{`{"model_type": "gemma", ` + caps + `}`, nil, op.Identity{}},
		{`{"model_type": "llama", ` + caps + `}`, nil, op.Identity{}},
		{`{"model_type": "gemma3n", "text_config": {}}`, nil, op.Softcap{Cap: 30}},
	} {
		l := newList(t, c.config)
		if final, _ := l.Lookup("logits"); final.Op != c.final {
			t.Errorf("%s: logits are %#v, want %#v", c.config, final.Op, c.final)
		}
		switch e, ok := l.Lookup("layers.0.self_attn.scores_softcap"); {
		case ok != (c.scores != nil):
			t.Errorf("%s: a cap of scores is listed: %t", c.config, ok)
		case ok && (e.Op != c.scores || !feeds(l, e.Name, "layers.0.self_attn.scores_masked")):
			t.Errorf("%s: the cap of scores is %#v, or is passed by", c.config, e.Op)
		}
	}
}

// feeds reports whether one entry is an input of another.
func feeds(l *order.List, from, to string) bool {
	e, ok := l.Lookup(to)
	return ok && slices.ContainsFunc(e.Inputs, func(in order.Ref) bool { return in.Name == from })
}

// Biases are weights of the projections that have them: in Qwen2 always q, k and v, elsewhere by attention_bias also o.
func TestBiases(t *testing.T) {
	projections := []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}
	for config, want := range map[string]int{ // of the projections, so many have one: q, k, v, o, gate, up, down
		`{"model_type": "qwen2", "attention_bias": false}`:                   3,
		`{"model_type": "qwen3"}`:                                            0,
		`{"model_type": "qwen3", "attention_bias": true}`:                    4,
		`{"model_type": "llama", "attention_bias": true}`:                    4,
		`{"model_type": "llama", "attention_bias": true, "mlp_bias": true}`:  7,
		`{"model_type": "gemma", "attention_bias": true, "mlp_bias": true}`:  4,
		`{"model_type": "gemma2", "attention_bias": true, "mlp_bias": true}`: 4,
		`{"model_type": "gemma3_text"}`:                                      0,
	} {
		l := newList(t, config)
		for i, name := range projections {
			e, _ := l.Lookup("layers.1." + name)
			has := len(e.Weights) == 2 && e.Weights[1].Name == "layers.1."+name+".bias"
			if e.Op != (op.Linear{Bias: i < want}) || has != (i < want) {
				t.Errorf("%s: %s is %#v with %d weights", config, name, e.Op, len(e.Weights))
			}
		}
	}
}
