package propose_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/order"
)

// port is a dump of the same numbers by a program with names and layouts of its own: no batch axis, heads behind tokens, query, key and
// value in one, gate and up by turns.
func port(t *testing.T, trace *capture.Trace, list *order.List, spoil func(name string, data []byte)) []capture.Source {
	t.Helper()
	var out []capture.Source
	add := func(name string, r capture.Record, shape []int, data []byte) {
		spoil(name, data)
		out = append(out, capture.Source{Key: name, Name: name, DType: r.DType, Shape: shape, Data: bytes.NewReader(data)})
	}
	c := list.Config
	r, ids := mappingtest.Raw(t, trace, 0, order.InputIDs)
	tokens := r.Shape[1]
	add(order.InputIDs, r, r.Shape, ids)
	r, e := mappingtest.Raw(t, trace, 0, "embed_tokens")
	add("start", r, []int{tokens, c.HiddenSize}, e)
	for l := range c.NumLayers {
		at := fmt.Sprintf("layers.%d.", l)
		my := fmt.Sprintf("stage%d/", l)
		for name, of := range map[string]string{"a": "input_layernorm", "b": "post_attention_layernorm", "z": "out", "down": "mlp.down_proj"} {
			r, data := mappingtest.Raw(t, trace, 0, at+of)
			add(my+name, r, r.Shape[1:], data)
		}
		rows := func(parts ...string) (joined []byte) {
			for token := range tokens {
				for _, p := range parts {
					r, data := mappingtest.Raw(t, trace, 0, at+p)
					n := int(r.Size) / r.Shape[1]
					joined = append(joined, data[token*n:(token+1)*n]...)
				}
			}
			return joined
		}
		r, _ := mappingtest.Raw(t, trace, 0, at+"self_attn.q_proj")
		add(my+"qkv", r, []int{tokens, (c.NumHeads + 2*c.NumKVHeads) * c.HeadDim}, rows("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"))
		_, gate := mappingtest.Raw(t, trace, 0, at+"mlp.gate_proj")
		_, up := mappingtest.Raw(t, trace, 0, at+"mlp.up_proj")
		var turns []byte
		for i := 0; i < len(gate); i += 4 {
			turns = append(append(turns, gate[i:i+4]...), up[i:i+4]...)
		}
		add(my+"gu", r, []int{tokens, 2 * len(gate) / 4 / tokens}, turns)
		_, q := mappingtest.Raw(t, trace, 0, at+"self_attn.q_rope")
		moved := make([]byte, 0, len(q))
		for token := range tokens {
			for h := range c.NumHeads {
				for d := range c.HeadDim { // pairs as neighbours
					from := ((h*tokens+token)*c.HeadDim + d%2*c.HeadDim/2 + d/2) * 4
					moved = append(moved, q[from:from+4]...)
				}
			}
		}
		add(my+"turned", r, []int{tokens, c.NumHeads, c.HeadDim}, moved)
	}
	return out
}

func proposed(t *testing.T, dump *capture.Trace, list *order.List, ref *capture.Trace) (*propose.Proposal, string) {
	t.Helper()
	p, err := propose.Map(t.Context(), dump, dump, list, ref, propose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b, "port.npz", "golden"); err != nil {
		t.Fatal(err)
	}
	return p, b.String()
}

// A dump in names and layouts of its own is mapped by its values, also where a layer is wrong, and then holds the reference's tensors.
func TestProposedMapRestoresTheReference(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	for _, c := range []struct {
		name  string
		spoil func(string, []byte)
		wrong []string
	}{
		{"right", func(string, []byte) {}, nil},
		{"a layer of zeros", func(name string, data []byte) {
			if strings.HasPrefix(name, "stage1/") {
				clear(data)
			}
		}, []string{"layers.1."}},
		{"a layer and what follows it", func(name string, data []byte) {
			if strings.HasPrefix(name, "stage") && !strings.HasPrefix(name, "stage0/") {
				for i := range data {
					data[i] ^= 0x15
				}
			}
		}, []string{"layers.1.", "layers.2."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dump := mappingtest.Assembled(t, port(t, trace, list, c.spoil)...)
			p, text := proposed(t, dump, list, trace)
			if len(p.Choices)+len(p.Left) > 0 {
				t.Errorf("choices and left:\n%s", text)
			}
			a := remade(t, dump, list, text)
			if want := `axes = "t h (p:3 r) -> 1 h t (r p)" }`; !strings.Contains(text, want) || strings.Count(text, "; interleaved rotary pairs\n") != 1 {
				t.Errorf("it lacks %s, or says nothing of the pairs\n%s", want, text)
			}
			names := 0
			for _, r := range a.Trace.Records() {
				if slices.ContainsFunc(c.wrong, func(w string) bool { return strings.HasPrefix(r.Name, w) }) {
					continue
				}
				want, data := mappingtest.Raw(t, trace, 0, r.Name)
				_, got := mappingtest.Raw(t, a.Trace, 0, r.Name)
				shape := want.Shape[len(want.Shape)-len(r.Shape):] // the batch axis is put back by whoever opens dumps
				if !bytes.Equal(got, data) || !slices.Equal(r.Shape, shape) {
					t.Errorf("%s: %v, want %v", r.Name, r.Shape, want.Shape)
				}
				names++
			}
			if names < 10 {
				t.Errorf("%d tensors\n%s", names, text)
			}
		})
	}
}

// Without a reference known names decide, and what shapes leave open is a choice.
func TestProposedByNames(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	var sources []capture.Source
	add := func(name, of string, cut int) {
		r, data := mappingtest.Raw(t, trace, 0, of)
		sources = append(sources, capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape[cut:], Data: bytes.NewReader(data)})
	}
	add(order.InputIDs, order.InputIDs, 0)
	add("/model/embed_tokens/Gather_output_0", "embed_tokens", 0)
	for l := range list.Config.NumLayers {
		add(fmt.Sprintf("/model/layers.%d/self_attn/o_proj/MatMul_output_0", l), fmt.Sprintf("layers.%d.self_attn.o_proj", l), 0)
		add(fmt.Sprintf("ffn_gate-%d", l), fmt.Sprintf("layers.%d.mlp.gate_proj", l), 1)
		add(fmt.Sprintf("what_%d", l), fmt.Sprintf("layers.%d.mlp.up_proj", l), 1)
	}
	p, text := proposed(t, mappingtest.Assembled(t, sources...), list, nil)
	for _, want := range []string{
		`"/model/embed_tokens/Gather_output_0" = "embed_tokens" # name`,
		`"/model/layers.{L}/self_attn/o_proj/MatMul_output_0" = "layers.{L}.self_attn.o_proj" # name`,
		`"ffn_gate-{L}" = "layers.{L}.mlp.gate_proj" # name`,
		`# "what_{L}" = "layers.{L}.mlp.up_proj" # shape`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("it lacks %s\n%s", want, text)
		}
	}
	if len(p.Choices) != 1 {
		t.Errorf("%d choices\n%s", len(p.Choices), text)
	}
}

// Engines have names of their own for the same tensors, and each is known. {L} is 0 and 1.
func TestKnownSchemes(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	for scheme, names := range map[string]map[string]string{ // by the name in the dump
		"ONNX":            {"/model/layers.{L}/mlp/down_proj/MatMul_output_0": "layers.{L}.mlp.down_proj", "/model/norm/Mul_1_output_0": "norm"},
		"llama.cpp":       {"attn_norm-{L}": "layers.{L}.input_layernorm", "l_out-{L}": "layers.{L}.out", "result_norm": "norm", "kqv_out-{L}": "layers.{L}.self_attn.context"},
		"GGUF":            {"blk.{L}.ffn_down": "layers.{L}.mlp.down_proj", "blk.{L}.attn_output": "layers.{L}.self_attn.o_proj"},
		"MLX":             {"layers.{L}.attention.wo": "layers.{L}.self_attn.o_proj", "layers.{L}.feed_forward.w2": "layers.{L}.mlp.down_proj", "tok_embeddings": "embed_tokens"},
		"Flax":            {"layer_{L}.attn.attn_vec_einsum": "layers.{L}.self_attn.o_proj", "layer_{L}.pre_attention_norm": "layers.{L}.input_layernorm", "embedder": "embed_tokens", "final_norm": "norm"},
		"Keras":           {"decoder_block_{L}.attention.attention_output": "layers.{L}.self_attn.o_proj", "decoder_block_{L}.ffw_linear": "layers.{L}.mlp.down_proj", "token_embedding": "embed_tokens"},
		"TensorRT-LLM":    {"transformer.layers.{L}.attention.dense": "layers.{L}.self_attn.o_proj", "transformer.vocab_embedding": "embed_tokens", "transformer.ln_f": "norm"},
		"vLLM":            {"model.layers.{L}.self_attn.o_proj.0": "layers.{L}.self_attn.o_proj", "model.layers.{L}.mlp.down_proj.0": "layers.{L}.mlp.down_proj"},
		"TransformerLens": {"blocks.{L}.hook_resid_mid": "layers.{L}.attn_residual", "blocks.{L}.ln1.hook_normalized": "layers.{L}.input_layernorm", "ln_final.hook_normalized": "norm"},
	} {
		t.Run(scheme, func(t *testing.T) {
			sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
			for name, of := range names {
				for l := range list.Config.NumLayers {
					if l == 0 || strings.Contains(name, "{L}") {
						at := strings.NewReplacer("{L}", fmt.Sprint(l))
						sources = append(sources, copied(t, trace, at.Replace(name), at.Replace(of), 0))
					}
				}
			}
			p, text := proposed(t, mappingtest.Assembled(t, sources...), list, nil)
			for name, of := range names {
				if !strings.Contains(text, fmt.Sprintf("%q = %q # name\n", name, of)) {
					t.Errorf("%s is not %s", name, of)
				}
			}
			if len(p.Choices)+len(p.Left) > 0 || t.Failed() {
				t.Error(text)
			}
		})
	}
}

// Names of a hostile file stay in their lines.
func TestProposalQuotes(t *testing.T) {
	_, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	name := "a\n[weights]\n\"x\" = \"y\"\u2028\\"
	hostile := mappingtest.Counted(name, 0, 0, 3, 7)
	_, text := proposed(t, mappingtest.Assembled(t, mappingtest.IDs(0, 3), hostile), list, nil)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line != "[tensors]" && line[0] != '#' {
			t.Errorf("%q", line)
		}
	}
	if !strings.Contains(text, `\U00002028`) {
		t.Errorf("%s", text)
	}
}

// copied is a tensor of the reference under another name, without the axes in front that cut says.
func copied(t *testing.T, trace *capture.Trace, name, of string, cut int) capture.Source {
	t.Helper()
	r, data := mappingtest.Raw(t, trace, 0, of)
	return capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape[cut:], Data: bytes.NewReader(data)}
}
