package propose_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// What the names, shapes and values of a dump say is proposed, and what they leave open is offered.
func TestProposals(t *testing.T) {
	type tensors func(*testing.T, *capture.Trace, *order.List) []capture.Source
	each := func(name, of string, cut int) tensors {
		return func(t *testing.T, trace *capture.Trace, list *order.List) (out []capture.Source) {
			for l := range list.Config.NumLayers {
				out = append(out, copied(t, trace, fmt.Sprintf(name, l), fmt.Sprintf(of, l), cut))
			}
			return out
		}
	}
	one := func(name, of string, cut int) tensors {
		return func(t *testing.T, trace *capture.Trace, _ *order.List) []capture.Source {
			return []capture.Source{copied(t, trace, name, of, cut)}
		}
	}
	firing := func(n int, from tensors) tensors {
		return func(t *testing.T, trace *capture.Trace, list *order.List) []capture.Source {
			out := from(t, trace, list)
			for i := range out {
				out[i].Firing = n
			}
			return out
		}
	}
	turned := func(from tensors) tensors { // its last axes in front
		return func(t *testing.T, trace *capture.Trace, list *order.List) []capture.Source {
			out := from(t, trace, list)
			s := out[0].Shape
			out[0].Shape = append(slices.Clone(s[1:]), s[0])
			return out
		}
	}
	// between has the mean of two entries, which is as far from the one as from the other.
	between := func(name, a, b string, share float32) tensors {
		return func(t *testing.T, trace *capture.Trace, _ *order.List) []capture.Source {
			r, data := mappingtest.Raw(t, trace, 0, a)
			_, other := mappingtest.Raw(t, trace, 0, b)
			mixed := make([]byte, 0, len(data))
			for i := 0; i < len(data); i += 4 {
				x, y := math.Float32frombits(binary.LittleEndian.Uint32(data[i:])), math.Float32frombits(binary.LittleEndian.Uint32(other[i:]))
				mixed = binary.LittleEndian.AppendUint32(mixed, math.Float32bits(x+share*(y-x)))
			}
			return []capture.Source{{Key: name, Name: name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(mixed)}}
		}
	}
	for _, c := range []struct {
		name, model string
		values      bool
		dump        []tensors
		want        []string
		choices     int
	}{
		{
			"the firings of llama.cpp's names", "llama-tiny", false,
			[]tensors{firing(0, each("Qcur-%d", "layers.%d.self_attn.q_proj", 0)), firing(1, each("Qcur-%d", "layers.%d.self_attn.q_rope", 0))},
			[]string{`"Qcur-{L}#0" = "layers.{L}.self_attn.q_proj" # name`, `"Qcur-{L}#1" = "layers.{L}.self_attn.q_rope" # name`},
			0,
		},
		{
			"steps in names", "llama-tiny", true,
			[]tensors{one("step_3/what", "norm", 0), one("step_4/what", "layers.0.out", 0)},
			[]string{`"step_{S}/what" = { to = "norm", pass = "S-3" } # values: 1 of 1`},
			0,
		},
		{
			"steps at the end of names", "llama-tiny", true,
			[]tensors{each("h%d.q.step2", "layers.%d.self_attn.q_proj", 0), each("h%d.q.step3", "layers.%d.mlp.gate_proj", 0), one("what-pass_2", "norm", 0)},
			[]string{`"h{L}.q.step{S}" = { to = "layers.{L}.self_attn.q_proj", pass = "S-2" } # values: 3 of 3`, `"what-pass_{S}" = { to = "norm", pass = "S-2" } # values: 1 of 1`},
			0,
		},
		{
			"what a layer returns, beside what it has", "llama-tiny", true,
			[]tensors{each("h%d.0", "layers.%d.out", 0), each("h%d.1.0", "layers.%d.self_attn.k_rope", 0), each("h%d.q", "layers.%d.self_attn.q_proj", 0)},
			[]string{`"h{L}.0" = "layers.{L}.out" # values: 3 of 3`, `"h{L}.1.0" = "layers.{L}.self_attn.k_rope" # values: 3 of 3`, `"h{L}.q" = "layers.{L}.self_attn.q_proj" # values: 3 of 3`},
			0,
		},
		{
			"one layer of several", "llama-tiny", true,
			[]tensors{one("block1/w2", "layers.1.mlp.down_proj", 1), one("block1/n1", "layers.1.input_layernorm", 1)},
			[]string{`"block{L}/w2" = "layers.{L}.mlp.down_proj" # values: 1 of 1`, `"block{L}/n1" = "layers.{L}.input_layernorm" # values: 1 of 1`},
			0,
		},
		{
			"more entries than are offered", "llama-tiny", false, []tensors{each("what_%d", "layers.%d.out", 0)}, []string{` more fit: tracediff order lists the entries.`}, 1,
		},
		{
			"the nearer of two", "llama-tiny", true, []tensors{between("what", "norm", "layers.0.out", 0.0001)}, []string{`"what" = "norm" # values: 1 of 1`}, 0,
		},
		{
			"a known name of one layer", "llama-tiny", false,
			[]tensors{one("kq_soft_max-0", "layers.0.self_attn.probs", 0)},
			[]string{`"kq_soft_max-{L}" = "layers.{L}.self_attn.probs" # name`},
			0,
		},
		{
			"the axes of a known name", "llama-tiny", false,
			[]tensors{turned(one("kq_soft_max-0", "layers.0.self_attn.probs", 1))},
			[]string{
				`# "kq_soft_max-{L}" = { to = "layers.{L}.self_attn.probs", axes = "t s h -> 1 h t s" } # name; its axes could be these`,
				`# "kq_soft_max-{L}" = { to = "layers.{L}.self_attn.probs", axes = "s t h -> 1 h t s" } # name; its axes could be these`,
			},
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace, list := mappingtest.Golden(t, c.model+"/prefill.float32")
			r, _ := mappingtest.Raw(t, trace, 0, order.InputIDs)
			sources := []capture.Source{copied(t, trace, order.InputIDs, order.InputIDs, 0)}
			for _, d := range c.dump {
				sources = append(sources, d(t, trace, list)...)
			}
			ref := trace
			if !c.values {
				ref = nil
			}
			p, text := proposed(t, mappingtest.Assembled(t, sources...), list, ref)
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("it lacks %s", want)
				}
			}
			if len(p.Choices) != c.choices || len(p.Left) > 0 || t.Failed() {
				t.Errorf("%d tokens\n%s", r.Shape[1], text)
			}
		})
	}
}

// What is near to no entry of a reference is left, whatever its shape.
func TestWhatIsNearToNothingIsLeft(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	r, data := mappingtest.Raw(t, trace, 0, "norm")
	_, other := mappingtest.Raw(t, trace, 0, "layers.0.out")
	mixed := make([]byte, 0, len(data))
	for i := 0; i < len(data); i += 4 {
		x, y := math.Float32frombits(binary.LittleEndian.Uint32(data[i:])), math.Float32frombits(binary.LittleEndian.Uint32(other[i:]))
		mixed = binary.LittleEndian.AppendUint32(mixed, math.Float32bits((x+y)/2))
	}
	what := capture.Source{Key: "what", Name: "what", DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(mixed)}
	p, text := proposed(t, mappingtest.Assembled(t, copied(t, trace, order.InputIDs, order.InputIDs, 0), what), list, trace)
	if len(p.Lines)+len(p.Choices) > 0 || !slices.Equal(p.Left, []string{"what"}) {
		t.Errorf("%s", text)
	}
}

// A tensor with the values of an entry gets its name where another tensor has that name and not the values: the other is left out, if the two stand in the same
// pass. Of two names that are exchanged each stays.
func TestProposedNamesAreFree(t *testing.T) {
	trace, list := mappingtest.Golden(t, "llama-tiny/prefill.float32")
	inputs := copied(t, trace, order.InputIDs, order.InputIDs, 0)
	for pass, out := range []bool{true, false} {
		odd := mappingtest.Counted("logits", 0, 0, 3)
		odd.Pass = pass
		dump := mappingtest.Assembled(t, inputs, copied(t, trace, "rank0/logits", "logits", 0), odd)
		p, text := proposed(t, dump, list, trace)
		if strings.Count(text, `"rank0/logits" = "logits"`) != 1 || strings.Contains(text, `"logits" = { to = [] }`) != out || p.Open() > 0 {
			t.Errorf("pass %d\n%s", pass, text)
		}
		m, err := mapping.Parse("map.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(dump, list); err != nil {
			t.Errorf("pass %d: %v\n%s", pass, err, text)
		}
	}
}

// A tensor that has become an entry of one layer keeps its line, whatever it is called: another tensor has become the entry of
// that name, and the map has one line for each.
func TestANameOfAnotherEntryIsOneLine(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	dump := mappingtest.Assembled(t, copied(t, trace, order.InputIDs, order.InputIDs, 0),
		copied(t, trace, "logits", "layers.0.input_layernorm", 0), copied(t, trace, "rank0/head", "logits", 0))
	_, text := proposed(t, dump, list, trace)
	for _, line := range []string{`"logits" = "layers.0.input_layernorm"`, `"rank0/head" = "logits"`} {
		if strings.Count(text, line) != 1 {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	m, err := mapping.Parse("map.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Apply(dump, list); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
}
