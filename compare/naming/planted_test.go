package naming_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/diagnose"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// portModels are the models of the port in which mistakes are planted, by name: changes of a configuration of two layers, each wide enough
// for codes in groups of 32.
var portModels = map[string]struct {
	family string
	config map[string]any
}{
	"llama": {"llama", map[string]any{"attention_bias": true}},
	"fine":  {"llama", map[string]any{"rms_norm_eps": 1.4e-6}},
	"linear": {"llama", map[string]any{"rope_parameters": map[string]any{
		"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0,
	}}},
	"llama3": {"llama", map[string]any{"rope_parameters": map[string]any{
		"rope_type": "llama3", "rope_theta": 1e4, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
	}}},
	"gelu": {"llama", map[string]any{"hidden_act": "gelu_pytorch_tanh"}},
	"gemma2": {"gemma2", map[string]any{
		"hidden_activation": "gelu_pytorch_tanh", "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 7,
		"layer_types": []string{order.Sliding, order.Full}, "sliding_window": 4,
	}},
	"window": {"qwen3", map[string]any{
		"use_sliding_window": true, "layer_types": []string{order.Sliding, order.Sliding}, "sliding_window": 4,
	}},
}

// portTokens are the tokens of the passes of the port.
var portTokens = []int{9, 1, 1, 1}

// portCase is a model of the port.
func portCase(t *testing.T, name string) ordertest.Case {
	t.Helper()
	m, ok := portModels[name]
	if !ok {
		t.Fatalf("no model %q", name)
	}
	return portCaseOf(t, m.family, m.config)
}

// portCaseOf is a model of the port with another configuration. The weights do not depend on it.
func portCaseOf(t *testing.T, family string, changed map[string]any) ordertest.Case {
	t.Helper()
	c := ordertest.DrawWith(t, family, 1, func(config map[string]any) {
		maps.Copy(config, map[string]any{
			"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_size": 32, "intermediate_size": 64, "vocab_size": 24,
			"rms_norm_eps": 1e-2, "hidden_act": "silu", "attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false, "use_sliding_window": false,
			"max_position_embeddings": 64, "rope_parameters": map[string]any{"rope_type": "default", "rope_theta": 1e4},
		})
		delete(config, "layer_types")
		delete(config, "sliding_window")
		maps.Copy(config, changed)
	})
	rng := rand.New(rand.NewPCG(5, 3))
	c.Passes = nil
	for _, n := range portTokens {
		ids := make([]int, n)
		for i := range ids {
			ids[i] = rng.IntN(c.List.Config.VocabSize)
		}
		c.Passes = append(c.Passes, ids)
	}
	return c
}

// wrongPort is what a mistake may look at: the entry that is computed, and the run so far.
type wrongPort struct {
	testengine.Call
	t   *testing.T
	c   ordertest.Case
	run *testengine.Run
}

// tensor is another weight of the entry's layer.
func (p *wrongPort) tensor(role string) testengine.Tensor {
	name := strings.ReplaceAll(role, "*", fmt.Sprint(p.Entry.Layer))
	for _, w := range p.c.List.Weights() {
		if w.Name == name {
			return p.run.Weight(w)
		}
	}
	p.t.Fatalf("no weight %s", name)
	return testengine.Tensor{}
}

// portRun computes a model in a port of which some entries are wrong: those whose names end so.
func portRun(t *testing.T, c ordertest.Case, d hooks.DType, at []string, wrong func(p *wrongPort) []float64) *compare.Isolator {
	t.Helper()
	a := testengine.Style("strict", testengine.Kernels{Adder: testengine.Adder{Block: 1, Lanes: 1}, DType: d}, nil)
	g := &testengine.Engine{Name: "port", DType: d, Choose: func(*order.Entry, int) testengine.Arithmetic { return a }}
	var r *testengine.Run
	planted := &testengine.Damage{Mistake: testengine.Mistake{Compute: func(calc testengine.Call) []float64 { return wrong(&wrongPort{calc, t, c, r}) }}, At: map[string]bool{}}
	for _, e := range c.List.Entries {
		for _, end := range at {
			planted.At[e.Name] = planted.At[e.Name] || strings.HasSuffix(e.Name, end)
		}
	}
	r = g.Start(t, c, g.Choose, planted)
	i, err := compare.NewIsolator(r.Trace(), c.List, reference.Weights(c.Checkpoint, d), isolate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// plantedName is a mistake in a port, and what its name begins with.
type plantedName struct {
	name  string
	model string
	dtype hooks.DType // float32 where it is none
	at    string      // the end of the names of the entries that have it; several by a comma
	wrong func(p *wrongPort) []float64
	want  string // the beginning of the name; "" for no name
}

// named is the name that a mistake gets.
func (c plantedName) named(t *testing.T) *diagnose.Finding {
	t.Helper()
	d := c.dtype
	if d == 0 {
		d = hooks.F32
	}
	m := portCase(t, c.model)
	at := strings.Split(c.at, ",")
	i := portRun(t, m, d, at, c.wrong)
	for k := range m.List.Entries {
		if strings.HasSuffix(m.List.Entries[k].Name, at[0]) {
			f, err := i.Name(t.Context(), m.List.Entries[k].Name)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
	}
	t.Fatalf("no entry %s", at[0])
	return nil
}

// holdNames holds mistakes to their names.
func holdNames(t *testing.T, all []plantedName) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			f := c.named(t)
			switch {
			case f == nil:
				t.Error("the mistake does not show")
			case c.want == "" && f.Named():
				t.Errorf("%s; want no name", f)
			case c.want != "" && !strings.HasPrefix(f.What, c.want):
				t.Errorf("%s\nwant %s", f, c.want)
			}
		})
	}
}

// in32 rounds to float32.
func in32(x float64) float64 { return float64(float32(x)) }

// largest is the largest size of some numbers.
func largest(x []float64) (top float64) {
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	return top
}
