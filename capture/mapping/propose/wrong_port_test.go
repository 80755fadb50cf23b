package propose_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// What a port calls the tensors that it dumps, in the order in which it writes them.
var ownNames = [][2]string{
	{"emb", "embed_tokens"},
	{"blocks.{L}.norm_a", "layers.{L}.input_layernorm"},
	{"blocks.{L}.attn.q", "layers.{L}.self_attn.q_proj"},
	{"blocks.{L}.attn.k", "layers.{L}.self_attn.k_proj"},
	{"blocks.{L}.attn.v", "layers.{L}.self_attn.v_proj"},
	{"blocks.{L}.attn.qn", "layers.{L}.self_attn.q_norm"},
	{"blocks.{L}.attn.kn", "layers.{L}.self_attn.k_norm"},
	{"blocks.{L}.attn.q_rot", "layers.{L}.self_attn.q_rope"},
	{"blocks.{L}.attn.k_rot", "layers.{L}.self_attn.k_rope"},
	{"blocks.{L}.attn.mix", "layers.{L}.self_attn.context"},
	{"blocks.{L}.attn.out", "layers.{L}.self_attn.o_proj"},
	{"blocks.{L}.norm_b", "layers.{L}.post_attention_layernorm"},
	{"blocks.{L}.norm_c", "layers.{L}.pre_feedforward_layernorm"},
	{"blocks.{L}.ffn.g", "layers.{L}.mlp.gate_proj"},
	{"blocks.{L}.ffn.u", "layers.{L}.mlp.up_proj"},
	{"blocks.{L}.ffn.act", "layers.{L}.mlp.act_fn"},
	{"blocks.{L}.ffn.down", "layers.{L}.mlp.down_proj"},
	{"blocks.{L}.norm_d", "layers.{L}.post_feedforward_layernorm"},
	{"blocks.{L}.x", "layers.{L}.out"},
	{"final", "norm"},
	{"scores_out", "logits"},
}

var layerNumber = regexp.MustCompile(`layers\.([0-9]+)\.`)

// wrongPort runs a model whose entries of one name, or with names that match a pattern, are spoilt, and returns the dump of a port in names of its own, without a batch axis.
func wrongPort(t *testing.T, model string, golden *capture.Trace, list *order.List, spoilt string, spoil func(x []float64, of func(name string) []float64)) (*capture.Trace, propose.Weights) {
	t.Helper()
	values, weights := wrongValues(t, model, golden, list, spoilt, spoil)
	return written(t, golden, list, values), weights
}

// wrongValues are the values of all entries of a model whose entries of one name, or with names that match a pattern, are spoilt.
func wrongValues(t *testing.T, model string, golden *capture.Trace, list *order.List, spoilt string, spoil func(x []float64, of func(name string) []float64)) (map[string]program.Value, propose.Weights) {
	t.Helper()
	weights := weightsOf(t, model)
	return valuesWith(t, weights, golden, list, spoilt, spoil), weights
}

// valuesWith are the values of all entries by some weights, with some entries spoilt.
func valuesWith(t *testing.T, weights propose.Weights, golden *capture.Trace, list *order.List, spoilt string, spoil func(x []float64, of func(name string) []float64)) map[string]program.Value {
	t.Helper()
	ids, err := golden.IDs()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]program.Value{}
	env := order.Env{
		Arith: program.Arith{DType: hooks.F32, Emulated: true}, Passes: order.Passes([]int{len(ids[0])}), Weights: weights,
		Read: func(n order.Node) (program.Value, error) {
			v := program.Value{Shape: []int{1, len(ids[0])}}
			for at, id := range ids[0] {
				if list.At(n).Name != order.InputIDs {
					id = at
				}
				v.Data = append(v.Data, float64(id))
			}
			return v, nil
		},
		Visit: func(n order.Node, v program.Value) error {
			name := list.At(n).Name
			layer := fmt.Sprint(list.At(n).Layer)
			if is, err := path.Match(spoilt, layerNumber.ReplaceAllString(name, "layers.{L}.")); err != nil {
				return err
			} else if is {
				spoil(v.Data, func(name string) []float64 { return values[strings.ReplaceAll(name, "{L}", layer)].Data })
			}
			values[name] = program.Value{Shape: v.Shape, Data: slices.Clone(v.Data)}
			return nil
		},
	}
	plan, err := list.Plan(func(n order.Node) bool { return n.Entry < 2 }, []order.Node{{Entry: list.Index("logits")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	return values
}

// weightsOf are those of a checkpoint of fixtures.
func weightsOf(t *testing.T, model string) propose.Weights {
	t.Helper()
	ck, _ := ordertest.Embedded(t, model)
	return reference.Weights(ck, hooks.F32)
}

// written is the dump: layer after layer, and in each what it computes.
func written(t *testing.T, golden *capture.Trace, list *order.List, values map[string]program.Value) *capture.Trace {
	t.Helper()
	r, data := mappingtest.Raw(t, golden, 0, order.InputIDs)
	all := []capture.Source{{Key: order.InputIDs, Name: order.InputIDs, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)}}
	add := func(own, name string) {
		if list.Index(name) < 0 { // another model has no such norm
			return
		}
		v := values[name]
		if v.Data == nil {
			t.Fatalf("%s was not computed", name)
		}
		var data []byte
		for _, x := range v.Data {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
		}
		all = append(all, capture.Source{Key: own, Name: own, DType: hooks.F32, Shape: v.Shape[1:], Data: bytes.NewReader(data)})
	}
	first, last := ownNames[0], ownNames[len(ownNames)-2:]
	add(first[0], first[1])
	for l := range list.Config.NumLayers {
		for _, names := range ownNames[1 : len(ownNames)-2] {
			add(strings.ReplaceAll(names[0], "{L}", fmt.Sprint(l)), strings.ReplaceAll(names[1], "{L}", fmt.Sprint(l)))
		}
	}
	for _, names := range last {
		add(names[0], names[1])
	}
	dump, err := capture.Assemble("port", all, capture.Manifest{}, false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// backwards is a tensor with its elements in the reverse order, for [wrongValues].
func backwards(x []float64, _ func(string) []float64) { slices.Reverse(x) }

// as is a tensor with the elements of another one.
func as(name string) func([]float64, func(string) []float64) {
	return func(x []float64, of func(string) []float64) { copy(x, of(name)) }
}

// A port that is wrong from its first layer on is mapped whole: what follows the mistake is told by what the port computes it from.
func TestAWrongPortIsMappedWhole(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	scaled := func(x []float64, _ func(string) []float64) {
		for i := range x {
			x[i] *= 1.7
		}
	}
	for _, c := range []struct {
		spoilt string
		spoil  func(x []float64, of func(string) []float64)
	}{
		{"", nil},
		{"embed_tokens", as("embed_tokens.lookup")},
		{"layers.{L}.input_layernorm", scaled},
		{"layers.{L}.self_attn.q_proj", backwards},
		{"layers.{L}.self_attn.q_norm", backwards},
		{"layers.{L}.self_attn.q_rope", backwards},
		{"layers.{L}.self_attn.k_rope", backwards},
		{"layers.{L}.self_attn.v_proj", scaled},
		{"layers.{L}.self_attn.context", backwards},
		{"layers.{L}.self_attn.o_proj", backwards},
		{"layers.{L}.post_attention_layernorm", as("layers.{L}.self_attn.o_proj")},
		{"layers.{L}.attn_residual", as("layers.{L}.post_attention_layernorm")},
		{"layers.{L}.pre_feedforward_layernorm", backwards},
		{"layers.{L}.mlp.gate_proj", backwards},
		{"layers.{L}.mlp.act_fn", as("layers.{L}.mlp.gate_proj")},
		{"layers.{L}.mlp.down_proj", backwards},
		{"layers.{L}.post_feedforward_layernorm", scaled},
		{"layers.{L}.out", as("layers.{L}.attn_residual")},
		{"norm", scaled},
		{"logits", backwards},
	} {
		t.Run(c.spoilt, func(t *testing.T) {
			dump, weights := wrongPort(t, "gemma3-tiny", trace, list, c.spoilt, c.spoil)
			p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, l := range p.Lines {
				got[l.From] = strings.Join(l.To, " ")
				t.Log(l.From, l.To, l.Why)
			}
			for _, names := range ownNames {
				if got[names[0]] != names[1] {
					t.Errorf("%s is %q, want %s", names[0], got[names[0]], names[1])
				}
			}
			if p.Open() > 0 || len(p.Lines) != len(ownNames) {
				t.Errorf("%d lines, %d patterns are open", len(p.Lines), p.Open())
			}
		})
	}
}

// What is no number, or zero throughout, proves no line: one that is not a guess is right.
func TestNothingProvesNothing(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	right := map[string]string{}
	for _, names := range ownNames {
		right[names[0]] = names[1]
	}
	for name, value := range map[string]float64{"NaN": math.NaN(), "zeros": 0, "infinite": math.Inf(1)} {
		for _, spoilt := range []string{"layers.{L}.self_attn.context", "layers.{L}.input_layernorm", "layers.{L}.mlp.gated"} {
			dump, weights := wrongPort(t, "gemma3-tiny", trace, list, spoilt, func(x []float64, _ func(string) []float64) {
				for i := range x {
					x[i] = value
				}
			})
			p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range p.Lines {
				if l.By == "" && (len(l.To) != 1 || l.To[0] != right[l.From]) {
					t.Errorf("%s in %s: %s is %v # %s", name, spoilt, l.From, l.To, l.Why)
				}
			}
		}
	}
}

// Of entries with the same numbers the one that people dump is meant: in Llama logits, not lm_head, also where none has the reference's values.
func TestTheEntryThatPeopleDumpIsMeant(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	dump, weights := wrongPort(t, "llama-tiny", trace, list, "layers.{L}.input_layernorm", func(x []float64, _ func(string) []float64) { slices.Reverse(x) })
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	right := map[string]string{"blocks.{L}.norm_b": "layers.{L}.post_attention_layernorm"}
	for _, names := range ownNames {
		right[names[0]] = names[1]
	}
	for _, l := range p.Lines {
		if l.To[0] != right[l.From] {
			t.Errorf("%s is %v # %s", l.From, l.To, l.Why)
		}
	}
	if p.Open() > 0 {
		t.Errorf("%v, %v", p.Left, p.Choices)
	}
}

// A tensor is not guessed to be an entry from which the rest follows as it should: the port has that entry right, and did not dump it.
func TestAGuessThatTheRestContradictsIsNone(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	right, weights := wrongPort(t, "gemma3-tiny", trace, list, "", nil)
	sources := right.Sources()
	for i := range sources {
		s := &sources[i]
		if !strings.HasSuffix(s.Name, ".ffn.act") {
			continue
		}
		n, _ := hooks.Elements(s.Shape)
		data := make([]byte, 4*n)
		if _, err := s.Data.ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		for k := 0; k < len(data); k += 4 { // what is not the activation
			x := math.Float32frombits(binary.LittleEndian.Uint32(data[k:]))
			binary.LittleEndian.PutUint32(data[k:], math.Float32bits(x+0.5))
		}
		s.Data = bytes.NewReader(data)
	}
	for _, c := range []struct {
		ref     *capture.Trace
		weights propose.Weights
	}{{trace, nil}, {trace, weights}, {nil, weights}} {
		dump := mappingtest.Assembled(t, sources...)
		p, err := propose.Map(t.Context(), dump, dump, list, c.ref, propose.Options{Weights: c.weights})
		if err != nil {
			t.Fatal(err)
		}
		named := slices.ContainsFunc(p.Lines, func(l propose.Line) bool { return l.From == "blocks.{L}.ffn.act" })
		if named || len(p.Lines) != len(ownNames)-1 || p.Open() != 1 {
			t.Errorf("%d lines, %d open, left: %v", len(p.Lines), p.Open(), p.Left)
		}
	}
}

// A comment on a line says only what is so: a tensor that was a guess for an entry does not have the values of that entry.
func TestACommentSaysNoValuesThatATensorDoesNotHave(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump, weights := wrongPort(t, "gemma3-tiny", trace, list, "layers.{L}.out", func(x []float64, of func(string) []float64) { // the residual of the attention is lost
		in, mlp := of("layers.{L}.in"), of("layers.{L}.post_feedforward_layernorm")
		for i := range x {
			x[i] = in[i] + mlp[i]
		}
	})
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Lines, func(l propose.Line) bool { return l.From == "blocks.{L}.x" })
	if i < 0 || p.Lines[i].To[0] != "layers.{L}.out" || p.Lines[i].By != "guess" || !strings.Contains(p.Lines[i].Why, "computed from it confirm it") || strings.Contains(p.Lines[i].Why, "values") {
		t.Errorf("%v", p.Lines)
	}
}

// A port that leaves a layer out has no tensor of that layer: the map says so.
func TestALayerWithoutATensorIsSaid(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	whole, weights := wrongPort(t, "gemma3-tiny", trace, list, "", nil)
	some := mappingtest.Assembled(t, slices.DeleteFunc(whole.Sources(), func(s capture.Source) bool { return strings.HasPrefix(s.Name, "blocks.1.") })...)
	for _, c := range []struct {
		dump *capture.Trace
		want string
	}{{whole, ""}, {some, "# The dump has no tensor of layer 1.\n"}} {
		p, err := propose.Map(t.Context(), c.dump, c.dump, list, trace, propose.Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.Write(&b, "port.npz", "reference"); err != nil {
			t.Fatal(err)
		}
		if text := b.String(); !strings.Contains(text, c.want) || c.want == "" && strings.Contains(text, "No tensor") {
			t.Errorf("want %q in\n%s", c.want, text)
		}
	}
}

// A line says how many layers could not be computed: the input of layer 1 has no tensor before that of the output of layer 0 has its name.
func TestALineSaysWhatCouldNotBeComputed(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump, weights := wrongPort(t, "gemma3-tiny", trace, list, "layers.{L}.input_layernorm", backwards)
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Lines, func(l propose.Line) bool { return l.From == "blocks.{L}.norm_c" })
	if i < 0 || !strings.HasPrefix(p.Lines[i].Why, "recomputed from its operands: 1 of 1, ") || !strings.HasSuffix(p.Lines[i].Why, "; 2 more could not be computed") {
		t.Errorf("%v", p.Lines)
	}
	for _, l := range p.Lines {
		if all := strings.Contains(l.Why, "3 of 3") || strings.HasPrefix(l.Why, "values"); all && strings.Contains(l.Why, "could not") {
			t.Errorf("%s: %s", l.From, l.Why)
		}
	}
}
