package diagnose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// soundModels are random models in which mistakes are made: families with settings that make a small model have all that a model of the family may have.
var soundModels = []struct {
	name, family string
	seed         int
	config       map[string]any
}{
	{"llama", "llama", 1, map[string]any{"attention_bias": true, "rope_parameters": rope("linear")}},
	{"llama3", "llama", 2, map[string]any{"rope_parameters": rope("llama3")}},
	{"qwen2", "qwen2", 3, map[string]any{
		"use_sliding_window": true, "sliding_window": 4, "layer_types": []string{order.Sliding, order.Full, order.Sliding},
	}},
	{"qwen3", "qwen3", 4, nil},
	{"gemma", "gemma", 5, map[string]any{"hidden_act": "gelu_pytorch_tanh"}},
	{"gemma2", "gemma2", 6, map[string]any{
		"sliding_window": 4, "layer_types": []string{order.Sliding, order.Full, order.Sliding}, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0,
		"query_pre_attn_scalar": 7, "hidden_activation": "gelu_pytorch_tanh",
	}},
	{"gemma3", "gemma3_text", 7, map[string]any{
		"sliding_window": 4, "layer_types": []string{order.Sliding, order.Full, order.Sliding},
		"rope_parameters": map[string]any{order.Sliding: rope("default"), order.Full: map[string]any{"rope_type": "default", "rope_theta": 1e6}},
	}},
	{"gemma3n", "gemma3n_text", 9, map[string]any{
		"sliding_window": 4, "layer_types": []string{order.Sliding, order.Full, order.Sliding}, "intermediate_size": []int{20, 20, 20},
		"rope_parameters":  map[string]any{order.Sliding: rope("default"), order.Full: rope("default")},
		"altup_num_inputs": 3, "altup_active_idx": 1, "altup_correct_scale": true, "laurel_rank": 3, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 20,
		"activation_sparsity_pattern": []float64{0.9, 0.8, 0}, "num_kv_shared_layers": 0, "final_logit_softcapping": 3.0,
	}},
}

// rope are the settings of a rotary embedding.
func rope(kind string) map[string]any {
	r := map[string]any{"rope_type": kind, "rope_theta": 1e4}
	switch kind {
	case "linear":
		r["factor"] = 4.0
	case "llama3":
		maps.Copy(r, map[string]any{"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64})
	}
	return r
}

// soundTokens are the tokens of the passes.
var soundTokens = []int{9, 1, 1}

// soundModel is one of the random models with every tensor of its run in float32.
func soundModel(t *testing.T, family string, seed int, config map[string]any) *Model {
	t.Helper()
	c := ordertest.DrawWith(t, family, seed, func(raw map[string]any) {
		delete(raw, "layer_types")
		delete(raw, "sliding_window")
		maps.Copy(raw, map[string]any{
			"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "hidden_size": 24, "intermediate_size": 20, "vocab_size": 32,
			"rms_norm_eps": 1e-2, "tie_word_embeddings": false, "use_sliding_window": false, "rope_parameters": rope("default"), "attention_bias": false, "mlp_bias": false,
			"hidden_act": "silu",
		})
		maps.Copy(raw, config)
	})
	m := &Model{List: c.List, Passes: order.Passes(soundTokens), Room: 1 << 30, Weights: reference.Weights(c.Checkpoint, hooks.F32), Work: 1 << 60}
	values := map[order.Node]program.Value{}
	var all []order.Node
	for pass := range m.Passes {
		for k := range m.List.Entries {
			n := order.Node{Entry: k, Pass: pass}
			if _, given := m.List.At(n).Op.(op.Given); !given {
				all = append(all, n)
				continue
			}
			v := program.Value{Shape: m.List.Size(n, m.Passes)}
			for k := range program.Size(v.Shape) {
				at := m.Passes[pass].Past + k
				if m.List.At(n).Name == order.InputIDs {
					at = (7*at + at*at + 3) % m.List.Config.VocabSize
				}
				v.Data = append(v.Data, float64(at))
			}
			values[n] = v
		}
	}
	m.Has = func(n order.Node) bool { return n.Entry >= 0 && values[n].Shape != nil }
	m.Read = func(n order.Node) (program.Value, error) {
		if v, ok := values[n]; ok {
			return v, nil
		}
		return program.Value{}, fmt.Errorf("there is no %v", n)
	}
	plan, err := m.List.Plan(m.Has, all)
	if err != nil {
		t.Fatal(err)
	}
	visit := func(n order.Node, v program.Value) error {
		values[n] = program.Value{Shape: slices.Clone(v.Shape), Data: slices.Clone(v.Data)}
		return nil
	}
	env := order.Env{Arith: program.Arith{DType: hooks.F32, Emulated: true}, Passes: m.Passes, Read: m.Read, Weights: m.Weights, Visit: visit}
	if err := plan.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	return m
}

// port is the judge of an entry whose tensor is what a mistake makes of it, in float32.
type port struct {
	e     *Entry
	right program.Value // of the entry's own program
	y     []float64
	half  []float64
}

func (p *port) Small() *Entry                           { return p.e }
func (*port) Choices(*program.Program) []program.Choice { return nil }
func (p *port) Target() (y, half []float64)             { return p.y, p.half }

// gives reports whether a value before its last rounding may be an element.
func (p *port) gives(x program.Value, i int) bool {
	v, y := x.Data[i], p.y[i]
	return v == y || v != v && y != y || math.Abs(v-y) <= x.Bound[i]+p.half[i]
}

func (p *port) Leaves(x program.Value, limit int) ([]int, error) {
	var left []int
	for i := range p.y {
		if len(left) < limit && !p.gives(x, i) {
			left = append(left, i)
		}
	}
	return left, nil
}

func (p *port) Far(x program.Value) float64 {
	sum := 0.0
	for i, v := range x.Data {
		sum += (v - p.y[i]) * (v - p.y[i])
	}
	return math.Sqrt(sum / float64(max(len(x.Data), 1)))
}

func (*port) Refuses(*program.Program, program.Call) (bool, error) { return false, nil }

func (p *port) Explains(of *program.Program, c program.Call) (all bool, shown, rows int, err error) {
	x, err := of.Eval(c)
	if err != nil {
		return false, 0, 0, err
	}
	for i := range p.y {
		if !p.gives(x, i) {
			return false, 0, 0, nil
		}
	}
	shown, rows = p.differs(x)
	return true, shown, rows, nil
}

// differs counts the elements of a value that differ from those of the entry's own program, and the rows where they lie.
func (p *port) differs(x program.Value) (shown, rows int) {
	in := map[int]bool{}
	for i := range p.y {
		if p.apart(x, i) {
			shown++
			in[i/p.e.Program.Out.Last()] = true
		}
	}
	return shown, len(in)
}

// apart reports whether the program's own value of an element is another one than a value.
func (p *port) apart(x program.Value, i int) bool {
	a, b := x.Data[i], p.right.Data[i]
	return a != b && !(math.Abs(a-b) <= x.Bound[i]+p.right.Bound[i]+2*p.half[i])
}

// hold makes a value the tensor of the port, rounded to float32.
func (p *port) hold(x program.Value) {
	p.y, p.half, p.e.Left = make([]float64, len(x.Data)), make([]float64, len(x.Data)), nil
	for i, v := range x.Data {
		p.y[i] = float64(float32(v))
		if p.half[i] = math.Abs(p.y[i]) * 0x1p-24; math.IsInf(p.y[i], 0) {
			p.half[i] = 0
		}
		if !p.gives(p.right, i) {
			p.e.Left = append(p.e.Left, i)
		}
	}
	p.e.tokens = nil
}

// soundEntry is an entry of a node whose program begins with what has accepts; nil where that is no program.
func soundEntry(t *testing.T, m *Model, n order.Node, has func(order.Node) bool) *Entry {
	t.Helper()
	plan, err := m.List.Cut(func(o order.Node) bool { return o != n && has(o) }, n)
	if err != nil {
		return nil
	}
	f, err := plan.FormulaOf(m.Passes, hooks.F32, 0, nil)
	if err != nil {
		return nil
	}
	e := &Entry{Node: n, Program: f.Program, Inputs: f.Inputs, Weights: f.Weights}
	for k := range f.Inputs {
		e.Items = append(e.Items, f.Item(k))
	}
	env := order.Env{Arith: program.Arith{DType: hooks.F32, Emulated: true, Bounds: true}, Passes: m.Passes, Read: m.Read, Weights: m.Weights}
	if e.Call, err = f.Call(m.List, env); err != nil {
		t.Fatal(err)
	}
	p := &port{e: e}
	e.Judge = p
	if p.right, err = e.Program.Eval(e.Call); err != nil {
		t.Fatal(err)
	}
	p.hold(p.right)
	return e
}
