package gemma_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture/gemma"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
)

// wants is what a configuration needs of a checkpoint.
func wants(l *order.List) []checkpoint.Want {
	var all []checkpoint.Want
	for _, w := range l.Weights() {
		all = append(all, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
	}
	return all
}

// randomModel makes a model with random weights in memory.
func randomModel(t testing.TB, config string, dtype hooks.DType) model {
	t.Helper()
	c, err := order.ReadConfig([]byte(config))
	must(t, err)
	l, err := order.New(c)
	must(t, err)
	files := fstest.MapFS{
		"config.json":       {Data: []byte(config)},
		"model.safetensors": {Data: checkpointtest.File(checkpointtest.Random(wants(l), dtype, "model.", 7))},
	}
	ck, err := checkpoint.OpenFS("random", files)
	must(t, err)
	return model{ck, l}
}

// wide is large enough for products to be split over cores; wideConfigs have it in every family.
const wide = `"vocab_size": 300, "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
	"num_key_value_heads": 2, "head_dim": 32, "sliding_window": 5, "attention_bias": true,
	"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]`

var wideConfigs = []string{
	`{"model_type": "gemma3n_text", "vocab_size_per_layer_input": 290, "hidden_size_per_layer_input": 16, "laurel_rank": 8,
		"num_kv_shared_layers": 1, "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0], ` + wide + `}`,
	`{"model_type": "gemma3_text", ` + wide + `}`,
	`{"model_type": "gemma2", ` + wide + `}`,
	`{"model_type": "gemma", ` + strings.ReplaceAll(wide, "sliding_attention", "full_attention") + `}`,
}

// Points fire in the order of the list, in every pass, and nothing else fires.
func TestFiringOrderIsTensorOrder(t *testing.T) {
	for _, name := range checkpoints {
		m := openModel(t, name)
		var fired []string
		var reg hooks.Registry
		must(t, reg.Observe("*", func(e hooks.Event) error {
			fired = append(fired, fmt.Sprintf("%d %s", e.Pass, e.Name))
			return nil
		}))
		m.run(t, hooks.F32, &reg, [][]int{{5, 6, 7}, {8}})
		var want []string
		for pass := range 2 {
			for _, n := range m.list.Names() {
				want = append(want, fmt.Sprintf("%d %s", pass, n))
			}
		}
		if diff := cmp.Diff(want, fired); diff != "" {
			t.Errorf("%s (-list +fired):\n%s", name, diff)
		}
	}
}

// logits returns the bytes of every pass's logits, taken by an observer of that name alone or, with all, by one that
// sees every tensor, takes a copy and then overwrites the copy.
func logits(t *testing.T, m model, dtype hooks.DType, passes [][]int, all bool) [][]byte {
	t.Helper()
	var reg hooks.Registry
	var out [][]byte
	if all {
		must(t, reg.Observe("*", func(e hooks.Event) error {
			own := bytes.Clone(e.Tensor.Data)
			for i := range own {
				own[i] = 0xff
			}
			return nil
		}))
	}
	must(t, reg.Observe("logits", func(e hooks.Event) error { out = append(out, bytes.Clone(e.Tensor.Data)); return nil }))
	m.run(t, dtype, &reg, passes)
	return out
}

// Logits are the same to the bit with every hook observed and with none but their own, in every family and dtype, in
// decode too, on one core and on two.
func TestObservingChangesNothing(t *testing.T) {
	for _, config := range wideConfigs {
		m := randomModel(t, config, hooks.BF16)
		for _, dtype := range []hooks.DType{hooks.F32, hooks.BF16, hooks.F16} {
			t.Run(m.list.Config.ModelType+"/"+dtype.String(), func(t *testing.T) { observe(t, m, dtype) })
		}
	}
}

func observe(t *testing.T, m model, dtype hooks.DType) {
	passes := [][]int{{2, 295, 4, 5, 6, 7, 8}, {9}, {10}}
	var first [][]byte
	for _, cores := range []int{1, 2} {
		for _, all := range []bool{false, true} {
			before := runtime.GOMAXPROCS(cores)
			got := logits(t, m, dtype, passes, all)
			runtime.GOMAXPROCS(before)
			if first == nil {
				first = got
			}
			if diff := cmp.Diff(first, got); diff != "" || len(got) != len(passes) {
				t.Errorf("%d cores, all hooks %v: %d passes, logits differ", cores, all, len(got))
			}
		}
	}
}

// A registry with nothing to observe costs no allocation.
func TestRegistryAllocatesNothing(t *testing.T) {
	// A collection empties the pools of scratch, and to fill them again counts as allocations.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	count := func(m model, reg *hooks.Registry) float64 {
		g, err := gemma.New(m.ck, m.list, hooks.F32, reg, gemma.All)
		must(t, err)
		in := gemma.Input{Passes: [][]int{{5, 6, 7}}, LastLayer: gemma.All}
		return testing.AllocsPerRun(20, func() {
			if _, err := g.Run(context.Background(), reg, in); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, name := range checkpoints {
		m := openModel(t, name)
		if without, with := count(m, nil), count(m, &hooks.Registry{}); without != with {
			t.Errorf("%s: %v allocations a forward without a registry, %v with an empty one", name, without, with)
		}
	}
}

// Two layers of the published E2B width. The vocabulary and the per-layer table are small, which makes the forward
// cheaper and the share of the hooks larger than in the whole model.
const e2bWidth = `{"model_type": "gemma3n_text", "vocab_size": 512, "vocab_size_per_layer_input": 512, "num_hidden_layers": 2,
	"intermediate_size": 8192, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"],
	"activation_sparsity_pattern": [0.95, 0.0]}`

// BenchmarkPoints times a forward with nothing observed, and beside it a point that nobody looks at. hooks-% is the
// cost of one point, times the points of a forward, over the time of the forward.
func BenchmarkPoints(b *testing.B) {
	for _, name := range append(slices.Clone(checkpoints), "E2B-width") {
		b.Run(name, func(b *testing.B) {
			var m model
			if name == "E2B-width" {
				m = randomModel(b, e2bWidth, hooks.BF16)
			} else {
				m = openModel(b, name)
			}
			for _, reg := range []*hooks.Registry{nil, {}} {
				b.Run(map[bool]string{true: "no-registry", false: "empty-registry"}[reg == nil], func(b *testing.B) {
					benchmarkForward(b, m, reg)
				})
			}
		})
	}
}

func benchmarkForward(b *testing.B, m model, reg *hooks.Registry) {
	g, err := gemma.New(m.ck, m.list, hooks.BF16, reg, gemma.All)
	must(b, err)
	ids := []int{2, 5, 6, 7}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Run(context.Background(), reg, gemma.Input{Passes: [][]int{ids}, LastLayer: gemma.All}); err != nil {
			b.Fatal(err)
		}
	}
	forward := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	point := nilPoint(1 << 22)
	b.ReportMetric(point, "ns/point")
	b.ReportMetric(float64(len(m.list.Entries)), "points/op")
	b.ReportMetric(100*point*float64(len(m.list.Entries))/forward, "hooks-%")
}

// nilPoint is the time in nanoseconds of firing a point that nobody looks at.
func nilPoint(n int) float64 {
	var none *hooks.Registry
	p := none.Point("norm")
	t := hooks.Tensor{DType: hooks.F32, Shape: []int{1}, Data: make([]byte, 4)}
	started := time.Now()
	for range n {
		if p.Fire(t) != nil {
			panic("a nil point returned an error")
		}
	}
	return float64(time.Since(started).Nanoseconds()) / float64(n)
}

// ids draws n token ids.
func ids(n, vocabulary int) []int {
	rng := rand.New(rand.NewPCG(3, 4))
	out := make([]int, n)
	for i := range out {
		out[i] = rng.IntN(vocabulary)
	}
	return out
}

// A run starts afresh: the tokens of an earlier run are not its past.
func TestRunsStartAfresh(t *testing.T) {
	m := openModel(t, "gemma3n-tiny")
	var reg hooks.Registry
	var out [][]byte
	must(t, reg.Observe("logits", func(e hooks.Event) error { out = append(out, bytes.Clone(e.Tensor.Data)); return nil }))
	g, err := gemma.New(m.ck, m.list, hooks.BF16, &reg, gemma.All)
	must(t, err)
	for range 2 {
		_, err := g.Run(context.Background(), &reg, gemma.Input{Passes: [][]int{{5, 6, 7}, {8}}, LastLayer: gemma.All})
		must(t, err)
	}
	if len(out) != 4 || !bytes.Equal(out[0], out[2]) || !bytes.Equal(out[1], out[3]) {
		t.Error("the second run gives other logits than the first")
	}
}

// gemmaNew builds a model that nobody observes.
func gemmaNew(m model) (*gemma.Model, error) {
	return gemma.New(m.ck, m.list, hooks.F32, nil, gemma.All)
}

// A run that is limited to some layers decodes the same tokens as the whole model: only its last pass stops after the
// last of them, since the others leave the cache that the choice of a token needs. Without decoding every pass stops.
func TestLayerLimitWithDecoding(t *testing.T) {
	for _, name := range checkpoints {
		t.Run(name, func(t *testing.T) { limitLayers(t, openModel(t, name)) })
	}
}

func limitLayers(t *testing.T, m model) {
	run := func(last, steps int) (gemma.Output, map[string]bool) {
		var reg hooks.Registry
		fired := map[string]bool{}
		must(t, reg.Observe("*", func(e hooks.Event) error { fired[fmt.Sprintf("%d %s", e.Pass, e.Name)] = true; return nil }))
		g, err := gemma.New(m.ck, m.list, hooks.F32, &reg, gemma.All)
		must(t, err)
		out, err := g.Run(context.Background(), &reg, gemma.Input{Passes: [][]int{{2, 5}, {6}}, MaxNewTokens: steps, LastLayer: last})
		must(t, err)
		return out, fired
	}
	whole, _ := run(gemma.All, 2)
	limited, fired := run(1, 2)
	if diff := cmp.Diff(whole.Passes, limited.Passes); diff != "" {
		t.Errorf("the tokens (-whole +limited): %s", diff)
	}
	_, replayed := run(1, 0)
	for pass := range 4 {
		for name, want := range map[string]bool{"layers.1.out": true, "layers.2.in": pass < 3, "logits": pass < 3} {
			key := fmt.Sprintf("%d %s", pass, name)
			if fired[key] != want {
				t.Errorf("decoding: %s fired: %v, want %v", key, !want, want)
			}
			if want := pass < 2 && name == "layers.1.out"; replayed[key] != want {
				t.Errorf("replaying: %s fired: %v, want %v", key, !want, want)
			}
		}
	}
}
