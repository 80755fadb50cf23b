package compare_test

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
	"github.com/tracediff/tracediff/order/program"
)

// No number of a formula is off in transformers, nor in the engines that round elsewhere. In float32 there is most to be seen.
func TestNumbersOfHealthyEnginesAreRight(t *testing.T) {
	numbers := 0
	right := func(name, model string, trace *capture.Trace) {
		ck, list := ordertest.Embedded(t, model)
		all, err := isolator(t, trace, ck, list).Below(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		numbers += len(all)
		for _, e := range all {
			if e.Remarkable {
				t.Errorf("%s: %s", name, e.Text())
			}
		}
	}
	golden, err := fs.Glob(ondisk.Files(), "golden/*/decode.float32.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range golden {
		right(name, path.Base(path.Dir(name)), testengine.OpenGolden(t, name))
	}
	wild, err := filepath.Glob(filepath.Join(wildFolder, "*", "*.float32.safetensors"))
	if err != nil || len(golden) < 8 || len(wild) < 4 {
		t.Fatalf("%d goldens, %d traces of other engines, %v", len(golden), len(wild), err)
	}
	for _, name := range wild {
		if model, _, _ := strings.Cut(filepath.Base(name), "."); filepath.Base(filepath.Dir(name)) != shippedFolder {
			right(name, model, open(t, name))
		}
	}
	if numbers < 100 {
		t.Errorf("%d numbers were estimated", numbers)
	}
}

// A scale that is off by less than the bounds of its sums moves few elements, and all of them the same way.
func TestScaleBelowTheBoundIsNoted(t *testing.T) {
	const layers, heads, tokens, dim = 8, 4, 64, 256
	config, err := order.ReadConfig([]byte(`{"model_type":"llama","vocab_size":50,"hidden_size":1024,"intermediate_size":16,"num_hidden_layers":8,
		"num_attention_heads":4,"num_key_value_heads":4,"head_dim":256,"max_position_embeddings":512,"rms_norm_eps":1e-6,"rope_theta":10000}`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	none := func(order.Weight) (program.Rows, error) { return nil, isolate.ErrNoWeights }
	for _, tt := range []struct {
		off  float64
		note bool
	}{{0, false}, {2e-6, true}, {-2e-6, true}} {
		rng := rand.New(rand.NewPCG(1, 2))
		drawn := func() []float64 {
			x := make([]float64, heads*tokens*dim)
			for k := range x {
				x[k] = rounded(hooks.BF16, rng.NormFloat64())
			}
			return x
		}
		events := []hooks.Event{fire("input_ids", hooks.I64, []int{1, tokens}, 2)}
		for k := range layers {
			at := func(name string) string { return "layers." + string(rune('0'+k)) + ".self_attn." + name }
			q, keys := drawn(), drawn()
			var scores []float64
			for h := range heads {
				for i := range tokens {
					for s := range tokens {
						var sum float32
						for d := range dim {
							sum += float32(q[(h*tokens+i)*dim+d]) * float32(keys[(h*tokens+s)*dim+d])
						}
						scores = append(scores, float64(sum*float32((1+tt.off)/16)))
					}
				}
			}
			events = append(events,
				fire(at("q_rope"), hooks.BF16, []int{1, heads, tokens, dim}, q...), fire(at("keys"), hooks.BF16, []int{1, heads, tokens, dim}, keys...),
				fire(at("scores"), hooks.BF16, []int{1, heads, tokens, tokens}, scores...))
		}
		trace := build(t, manifest("local", hooks.BF16), events...)
		i, err := compare.NewIsolator(trace, list, none, isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range layers {
			c, err := i.Certify(t.Context(), "layers."+string(rune('0'+k))+".self_attn.scores", 0)
			if err != nil || !c.Good() {
				t.Fatalf("off by %g: layer %d: %+v, %v", tt.off, k, c, err)
			}
		}
		all, err := i.Below(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		e := all[0]
		if e.Remarkable != tt.note || e.Entries != layers || !(math.Abs(float64(e.Off)-tt.off) < 4*float64(e.Error)) {
			t.Errorf("off by %g: %s", tt.off, e.Text())
		}
	}
}

func rounded(d hooks.DType, v float64) float64 { return floats.Round(d, v) }
