package order_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
	"github.com/tracediff/tracediff/order/recorded"
)

// anyRows is a weight of any numbers.
type anyRows struct {
	shape []int
	d     hooks.DType
}

func (m anyRows) Size() (rows, cols int) {
	cols = m.shape[len(m.shape)-1]
	rows = 1
	for _, n := range m.shape[:len(m.shape)-1] {
		rows *= n
	}
	return rows, cols
}

func (m anyRows) Row(dst []float64, i int) error {
	r := rand.New(rand.NewPCG(uint64(i), 99))
	for k := range dst {
		dst[k] = floats.Round(m.d, math.Exp(2*r.NormFloat64())*r.NormFloat64())
	}
	return nil
}

// Norms, gated products, rotations, softmaxes and scores of recorded programs are known operations with the numbers of the steps, and have
// every element of the steps: on other numbers than those by which they were found, of many sizes.
func TestLift(t *testing.T) {
	want := map[string]string{ // in float32 nothing tells a rounding before the weight from none
		"llama-tiny.bfloat16 layers.0.input_layernorm":     `{"kind":"rms_norm","eps":0.00001,"gain":"after"}`,
		"gemma-tiny.float32 layers.1.input_layernorm":      `{"kind":"rms_norm","eps":0.000001,"gain":"oneplus"}`,
		"mixtral-tiny layers.0.input_layernorm":            `{"kind":"rms_norm","eps":0.00001,"gain":"after"}`,
		"qwen3-tiny.bfloat16 layers.0.self_attn.q_norm":    `{"kind":"rms_norm","eps":0.000001,"gain":"after"}`,
		"qwen3-tiny.bfloat16 layers.0.self_attn.q_rope":    `{"kind":"rope"}`,
		"qwen3-tiny.bfloat16 layers.0.self_attn.probs_f32": `{"kind":"softmax"}`,
		"llama-tiny.bfloat16 layers.1.mlp.act_fn":          `{"kind":"silu"}`,
		"llama-tiny.bfloat16 layers.1.mlp.gated":           `{"kind":"mul"}`,
		"llama-tiny.bfloat16 layers.1.mlp.down_proj":       `{"kind":"linear","bias":true}`,
		"llama-tiny.bfloat16 layers.0.self_attn.values":    `{"kind":"cache","transpose":true}`,
		"llama-tiny.bfloat16 embed_tokens.lookup":          `{"kind":"lookup","rows":180}`,
		"mixtral-tiny layers.0.mlp.gate.1":                 `{"kind":"routing","score":"softmax","normalised":true}`,
		"mixtral-tiny layers.0.mlp.gate.2":                 `{"kind":"choice","k":2}`,
		"mixtral-tiny layers.0.mlp.experts":                `{"kind":"experts","experts":4}`,
		"llama-tiny.bfloat16 mask.full":                    `{"kind":"mask"}`,
		"mamba-tiny layers.0.mixer.x_proj.in":              `{"kind":"convolution","kernel":4,"bias":true,"silu":true}`,
		"mamba-tiny layers.1.mixer.out_proj.in":            `{"kind":"selective_scan","state":16,"rank":4,"from":64}`,
		"mamba2 layers.0.mixer.norm.in":                    `{"kind":"state_space","kernel":4,"state":16,"groups":1}`,
		"qwen3_next layers.0.linear_attn.norm.in":          `{"kind":"delta_rule","kernel":4,"heads":2,"size":16,"eps":0.000001,"woven":true}`,
		"qwen3_next layers.0.linear_attn.norm":             `{"kind":"norm_gated","eps":0.000001,"act":"silu"}`,
		"olmo_hybrid layers.0.linear_attn.o_norm.in":       `{"kind":"delta_rule","kernel":4,"heads":2,"size":16,"eps":0.000001,"double":true}`,
		"gpt_oss layers.0.self_attn.probs_f32":             `{"kind":"sink_softmax"}`,
		"gpt_oss layers.0.self_attn.q_rope":                `{"kind":"rope_part","dims":16,"pairs":"halves","out":"halves"}`,
		"deepseek_v3 layers.0.self_attn.keys":              `{"kind":"latent_keys","dims":8,"pairs":"neighbours","out":"halves","half":true}`,
		"deepseek_v3 layers.1.mlp.gate.2":                  `{"kind":"choice","k":2,"score":"sigmoid","bias":true}`,
		"deepseek_v3 layers.1.mlp.experts.act_fn.in":       `{"kind":"expert_rows","experts":4}`,
		"gpt2 h.0.attn.c_attn":                             `{"kind":"linear","bias":true,"turned":true}`,
		"gpt2 h.0.mlp.act":                                 `{"kind":"gelu_steps"}`,
	}
	files, err := filepath.Glob("../fixtures/programs/*.program.json")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, dir := range []string{"lifted/*", "*-tiny/bfloat16"} {
		more, err := filepath.Glob("../fixtures/programs/" + dir + ".program.json")
		if err != nil || len(more) < 2 {
			t.Fatal("no programs", err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "bfloat16.program.json" {
			name = filepath.Base(filepath.Dir(file))
		}
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := recorded.Read(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		list, err := order.Recorded(p)
		if err != nil {
			t.Fatal(err)
		}
		var past []int
		for _, pass := range p.Passes {
			past = append(past, pass.Past)
		}
		all, lifted := 0, 0
		for pass := range p.Passes[:2] {
			for i := range list.Entries {
				n := order.Node{Entry: i, Pass: pass}
				if !list.In(n) || list.Entries[i].Level == recorded.Unnamed {
					continue
				}
				all++
				e, ok := list.Lift(n)
				if !ok {
					continue
				}
				lifted++
				got, err := op.Marshal(e.Op)
				if err != nil {
					t.Fatal(err)
				}
				key := strings.TrimSuffix(name, ".program.json") + " " + e.Name
				if w, ok := want[key]; ok && string(got) != w {
					t.Errorf("%s is %s, want %s", key, got, w)
				}
				found[key] = true
				sameElements(t, list, n, e, p.DType, past...)
			}
		}
		if 100*lifted < 70*all {
			t.Errorf("%s: %d of %d entries are known operations", name, lifted, all)
		}
	}
	for key := range want {
		if !found[key] {
			t.Errorf("%s is no known operation", key)
		}
	}
}

// small is a program of what the fixtures do not have: halves of one product, and norms of two kinds.
const small = `{"format":"tracediff program","version":1,"class":"m.Net","model_type":"net","layers":"layers","dtype":"bfloat16",
"passes":[{"tokens":2,"past":0,"calls":[[0,-1,[]]]}],
"templates":[[
{"name":"input_ids","of":"c0","level":1},
{"op":"embedding","in":["w:a","c0"],"out":[["bfloat16",[1,2,16]]]},{"name":"fused","of":"t0","level":2},
{"op":"embedding","in":["w:b","c0"],"out":[["bfloat16",[1,2,8]]]},{"name":"x","of":"t1","level":2},
{"op":"silu","in":[["t0",[1,2,8],[32,16,1],8]],"out":[["bfloat16",[1,2,8]]]},{"name":"act","of":"t2","level":2},
{"op":"mul","in":["t2",["t0",[1,2,8],[32,16,1],0]],"out":[["bfloat16",[1,2,8]]]},{"name":"gated","of":"t3","level":2},
{"op":"native_layer_norm","in":["t3","w:w","w:v"],"out":[["bfloat16",[1,2,8]],["bfloat16",[1,2,1]],["bfloat16",[1,2,1]]],"attr":{"normalized_shape":[8],"eps":0.001}},
{"name":"norm","of":"t4","level":2},
{"op":"to","in":["t4"],"out":[["float32",[1,2,8]]]},{"op":"to","in":["t1"],"out":[["float32",[1,2,8]]]},
{"op":"silu","in":["t8"],"out":[["float32",[1,2,8]]]},{"op":"mul","in":["t7","t9"],"out":[["float32",[1,2,8]]]},
{"op":"pow","in":["t10",2],"out":[["float32",[1,2,8]]]},
{"op":"mean","in":["t11"],"out":[["float32",[1,2,1]]],"attr":{"dim":[-1],"keepdim":true}},
{"op":"add","in":["t12",0.00025],"out":[["float32",[1,2,1]]]},{"op":"rsqrt","in":["t13"],"out":[["float32",[1,2,1]]]},
{"op":"mul","in":["t10",["t14",[1,2,8],[2,1,0],0]],"out":[["float32",[1,2,8]]]},{"op":"to","in":["t15"],"out":[["bfloat16",[1,2,8]]]},
{"op":"mul","in":["w:w","t16"],"out":[["bfloat16",[1,2,8]]]},{"name":"last","of":"t17","level":2},
{"op":"mul","in":["t17",0.75],"out":[["bfloat16",[1,2,8]]]},{"name":"scaled","of":"t18","level":2}
]],
"weights":{"a":{"dtype":"bfloat16","shape":[5,16]},"b":{"dtype":"bfloat16","shape":[5,8]},"w":{"dtype":"bfloat16","shape":[8]},"v":{"dtype":"bfloat16","shape":[8]}},
"constants":[{"dtype":"int64","shape":[1,2],"from":[{"kind":"ids"}],"depends":["input_ids"],"sha256":""}],"lines":[]}`

// The halves of a product that is gate and up in one, layer norms and gated norms are operations with their constants.
func TestLiftGatesAndNorms(t *testing.T) {
	p, err := recorded.Read(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"x": `{"kind":"lookup","rows":5}`, "act": "", "gated": `{"kind":"gating","half":0}`, "norm": `{"kind":"layer_norm","eps":0.001,"bias":true}`,
		"last": `{"kind":"gated_norm","eps":0.00025}`, "scaled": `{"kind":"scale","by":{"value":0.75}}`,
	} {
		n := order.Node{Entry: list.Index(name)}
		e, ok := list.Lift(n)
		if !ok && want == "" {
			continue
		}
		if !ok {
			t.Errorf("%s is no known operation", name)
			continue
		}
		if got, err := op.Marshal(e.Op); err != nil || string(got) != want {
			t.Errorf("%s is %s, want %q: %v", name, got, want, err)
		}
		sameElements(t, list, n, e, p.DType)
	}
}

// sameElements evaluates an entry by its steps and by a known operation, on other numbers than those that found it.
func sameElements(t *testing.T, list *order.List, n order.Node, e *order.Entry, model hooks.DType, past ...int) {
	t.Helper()
	cut, err := list.Cut(func(m order.Node) bool { return list.Entries[m.Entry].Level != recorded.Unnamed }, n)
	if err != nil {
		t.Fatal(err)
	}
	_, otherOrder := e.Op.(op.OtherOrder)
	env := order.Env{
		Arith: program.Arith{DType: model, Emulated: !otherOrder}, Passes: make([]order.Pass, n.Pass+1),
		Read: func(at order.Node) (program.Value, error) {
			v := program.Value{Shape: list.Size(at, make([]order.Pass, at.Pass+1))}
			r := rand.New(rand.NewPCG(uint64(at.Entry), uint64(at.Pass)))
			size := 1
			for _, d := range v.Shape {
				size *= d
			}
			for k := range size {
				if list.At(at).Name == "position_ids" {
					v.Data = append(v.Data, float64(past[at.Pass]+k))
					continue
				}
				if !list.At(at).DTypeOf(model).Float() { // indexes
					v.Data = append(v.Data, float64(r.IntN(2)))
					continue
				}
				v.Data = append(v.Data, floats.Round(list.At(at).DTypeOf(model), math.Exp(2*r.NormFloat64())*r.NormFloat64()))
			}
			return v, nil
		},
		Weights: func(w order.Weight) (program.Rows, error) { return anyRows{w.Shape, model}, nil },
	}
	want, err := cut.Value(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	got, err := cut.With(n, e).Value(context.Background(), env)
	if err != nil {
		t.Fatal(err)
	}
	env.Round(want, e.DTypeOf(model))
	env.Round(got, e.DTypeOf(model))
	largest := 0.0
	for _, x := range want.Data {
		largest = math.Max(largest, math.Abs(x))
	}
	for i, x := range want.Data {
		y := got.Data[i]
		if otherOrder && math.Abs(x-y) <= 1e-11*(math.Abs(x)+math.Abs(y))+1e-13*largest { // float64 of sums in another order
			continue
		}
		if y != x && (x == x || y == y) {
			t.Fatalf("%s of pass %d: element %d is %v by %s, and %v by the steps", e.Name, n.Pass, i, got.Data[i], op.Form(e.Op), x)
		}
	}
}
