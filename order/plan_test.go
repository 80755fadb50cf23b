package order_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/program"
)

// keys writes nodes as keys of a trace.
func keys(l *order.List, nodes []order.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, capture.Key(n.Pass, l.Entries[n.Entry].Name, 0))
	}
	return out
}

// captured says that all entries up to a level are there, but some.
func captured(l *order.List, level int, but ...string) func(order.Node) bool {
	return func(n order.Node) bool {
		e := &l.Entries[n.Entry]
		return e.Level <= level && !e.Derived() && !slices.Contains(but, capture.Key(n.Pass, e.Name, 0))
	}
}

func TestCut(t *testing.T) {
	l := list(t, "gemma3n-tiny")
	for _, c := range []struct {
		name          string
		target        string
		pass          int
		have          func(order.Node) bool
		leaves, steps []string
	}{
		{"everything is there", "layers.0.mlp.gated", 0, captured(l, 3), []string{"layers.0.mlp.act_fn", "layers.0.mlp.up_proj"}, []string{"layers.0.mlp.gated"}},
		{
			"one stream of a stack", "layers.0.active_prediction", 0, captured(l, 3),
			[]string{"layers.0.altup.predict"},
			[]string{"layers.0.active_prediction"},
		},
		{
			"what the capture recomputes is no leaf", "layers.0.mlp.gate_sparse", 0, captured(l, 3),
			[]string{"layers.0.mlp.gate_proj"},
			[]string{"layers.0.mlp.sparsity.mean", "layers.0.mlp.sparsity.std", "layers.0.mlp.sparsity.cutoff", "layers.0.mlp.gate_sparse"},
		},
		{
			"internals are missing at level 2", "layers.0.self_attn.probs", 0, captured(l, 2),
			[]string{"position_ids", "layers.0.self_attn.q_rope", "layers.0.self_attn.k_rope"},
			[]string{"mask.sliding", "layers.0.self_attn.keys", "layers.0.self_attn.scores", "layers.0.self_attn.scores_masked", "layers.0.self_attn.probs_f32", "layers.0.self_attn.probs"},
		},
		{
			"the cache reaches back", "layers.2.self_attn.keys", 2, captured(l, 2),
			[]string{"layers.2.self_attn.k_rope", "pass1/layers.2.self_attn.k_rope", "pass2/layers.2.self_attn.k_rope"},
			[]string{"layers.2.self_attn.keys", "pass1/layers.2.self_attn.keys", "pass2/layers.2.self_attn.keys"},
		},
		{
			"as far as it was not captured", "layers.2.self_attn.keys", 2, captured(l, 3),
			[]string{"pass1/layers.2.self_attn.keys", "pass2/layers.2.self_attn.k_rope"},
			[]string{"pass2/layers.2.self_attn.keys"},
		},
		{
			"a shared layer reads another's", "layers.5.self_attn.keys", 0, captured(l, 3, "layers.3.self_attn.keys"),
			[]string{"layers.3.self_attn.k_rope"},
			[]string{"layers.3.self_attn.keys", "layers.5.self_attn.keys"},
		},
		{
			"a hole", "layers.0.mlp.down_proj", 0, captured(l, 3, "layers.0.mlp.gated", "layers.0.mlp.up_proj"),
			[]string{"layers.0.pre_feedforward_layernorm", "layers.0.mlp.act_fn"},
			[]string{"layers.0.mlp.up_proj", "layers.0.mlp.gated", "layers.0.mlp.down_proj"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := l.Cut(c.have, order.Node{Entry: l.Index(c.target), Pass: c.pass})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.leaves, keys(l, p.Leaves)); diff != "" {
				t.Errorf("leaves (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.steps, keys(l, p.Steps)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// What nothing computes has to be there: the error names it.
func TestCutNamesWhatIsBare(t *testing.T) {
	l := list(t, "gemma3n-tiny")
	none := func(order.Node) bool { return false }
	for target, want := range map[string]string{"embed_tokens": "input_ids", "rotary.full.cos": "position_ids", "input_ids": "input_ids"} {
		var bare *order.BareError
		_, err := l.Cut(none, order.Node{Entry: l.Index(target), Pass: 1})
		if !errors.As(err, &bare) || bare.Name != want || bare.Pass != 1 {
			t.Errorf("cutting %s from nothing: %v, want that %s of pass 1 is bare", target, err, want)
		}
	}
}

// ones is a weight of ones.
type ones struct{ rows, cols int }

func (o ones) Size() (int, int) { return o.rows, o.cols }

func (o ones) Row(dst []float64, _ int) error {
	for i := range dst[:o.cols] {
		dst[i] = 1
	}
	return nil
}

// A run reads each leaf once, lets go of values after their last use, and hands what a visitor writes on to later steps.
func TestRunReadsOnceAndPassesChangesOn(t *testing.T) {
	l := list(t, "gemma3n-tiny")
	have := captured(l, 3)
	targets := []order.Node{{Entry: l.Index("layers.0.mlp.gated")}, {Entry: l.Index("layers.0.mlp.down_proj")}, {Entry: l.Index("layers.0.mlp.act_fn")}}
	p, err := l.Plan(func(n order.Node) bool { return have(n) && !slices.Contains(targets, n) }, targets)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]int{}
	var last float64
	env := order.Env{
		Arith: program.Arith{DType: hooks.F32, Emulated: true}, Passes: order.Passes([]int{3}),
		Read: func(n order.Node) (program.Value, error) {
			e := &l.Entries[n.Entry]
			reads[e.Name]++
			shape := e.Size(order.Pass{Tokens: 3}, l.Config.SlidingWindow)
			v := program.Value{Shape: shape, Data: make([]float64, 3*shape[2])}
			for i := range v.Data {
				v.Data[i] = 1
			}
			return v, nil
		},
		Weights: func(w order.Weight) (program.Rows, error) { return ones{w.Shape[0], w.Shape[1]}, nil },
		Visit: func(n order.Node, v program.Value) error {
			if l.Entries[n.Entry].Name == "layers.0.mlp.gated" {
				for i := range v.Data {
					v.Data[i] = 2
				}
			}
			last = v.Data[0]
			return nil
		},
	}
	if err := p.Run(context.Background(), env); err != nil {
		t.Fatal(err)
	}
	if want := float64(2 * l.Config.IntermediateSize[0]); last != want {
		t.Errorf("the last step gives %v, want %v", last, want)
	}
	if diff := cmp.Diff(map[string]int{"layers.0.mlp.gate_sparse": 1, "layers.0.mlp.up_proj": 1}, reads); diff != "" {
		t.Errorf("reads (-want +got):\n%s", diff)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Run(stopped, env); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run: %v", err)
	}
}

// A leaf of another shape is an error: operations trust shapes.
func TestRunRefusesOtherShapes(t *testing.T) {
	l := list(t, "gemma3n-tiny")
	p, err := l.Cut(captured(l, 3), order.Node{Entry: l.Index("layers.0.mlp.gated")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Value(context.Background(), order.Env{
		Arith: program.Arith{DType: hooks.F32}, Passes: order.Passes([]int{3}),
		Read: func(order.Node) (program.Value, error) {
			return program.Value{Shape: []int{1, 3, 1}, Data: make([]float64, 3)}, nil
		},
	})
	if err == nil {
		t.Error("a leaf of another shape was taken")
	}
}

// What is in memory at one time is what a layer or two need, however many layers there are: of 30 layers, whose tensors
// together take ten times the limit.
func TestRunKeepsWhatOneLayerNeeds(t *testing.T) {
	const layers, tokens = 30, 64
	config, err := order.ReadConfig([]byte(`{"model_type": "gemma2", "vocab_size": 64, "hidden_size": 64, "intermediate_size": 256,
		"num_hidden_layers": 30, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 16,
		"query_pre_attn_scalar": 16}`))
	if err != nil {
		t.Fatal(err)
	}
	l, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	passes := order.Passes([]int{tokens})
	all := 0
	for i := range l.Entries {
		n := 8
		for _, d := range l.Entries[i].Size(passes[0], config.SlidingWindow) {
			n *= d
		}
		all += n
	}
	given := func(n order.Node) bool {
		_, is := l.Entries[n.Entry].Op.(op.Given)
		return is
	}
	p, err := l.Plan(given, []order.Node{{Entry: l.Index("logits")}})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before, peak, visited := heap(), 0, 0
	env := order.Env{
		Arith: program.Arith{DType: hooks.BF16, Emulated: true}, Passes: passes,
		Read: func(order.Node) (program.Value, error) {
			v := program.Value{Shape: []int{1, tokens}, Data: make([]float64, tokens)}
			for i := range v.Data {
				v.Data[i] = float64(i)
			}
			return v, nil
		},
		Weights: func(w order.Weight) (program.Rows, error) {
			if len(w.Shape) == 1 {
				return ones{1, w.Shape[0]}, nil
			}
			return ones{w.Shape[0], w.Shape[1]}, nil
		},
		Visit: func(order.Node, program.Value) error {
			if visited++; visited%7 == 0 {
				peak = max(peak, heap()-before)
			}
			return nil
		},
	}
	if err := p.Run(context.Background(), env); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d entries, %.1f MB together, at most %.1f MB at one time", len(l.Entries), float64(all)/1e6, float64(peak)/1e6)
	if peak > 2*all/layers {
		t.Errorf("%d bytes at one time, want those of two of %d layers at most, %d", peak, layers, 2*all/layers)
	}
}
