// Package ordertest draws small random models of every family, for tests that need many: a configuration, weights and
// token ids, all determined by a family and a number. The shapes are more awkward than any published model's: odd widths,
// one channel, windows of two, layers that share everything, steps of several tokens. Mistakes that goldens of ordinary
// shapes do not show, these do.
//
// What is drawn is legal, not likely: weights are Gaussian, so a model says nothing, and some of the deep and narrow ones
// amplify rounding more than trained ones do.
package ordertest

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
	"github.com/tracediff/tracediff/order"
)

// Gemma are the families that the built-in model runs, by model_type, and Plain those that only transformers and the walk do.
var (
	Gemma = []string{"gemma3n_text", "gemma3_text", "gemma2", "gemma"}
	Plain = []string{"llama", "qwen2", "qwen3"}
)

// Case is a model with random weights and what to feed it.
type Case struct {
	Family string
	Seed   int

	Config     []byte // of config.json
	Weights    []checkpointtest.Tensor
	Checkpoint *checkpoint.Checkpoint // of both, in memory
	List       *order.List
	Passes     [][]int // token ids of the forward calls: a prompt and what follows it
}

// Draw draws case number seed of a family, always the same. Weights have one of the formats that checkpoints have.
func Draw(t testing.TB, family string, seed int) Case {
	t.Helper()
	return DrawWith(t, family, seed, nil)
}

// DrawWith is [Draw] with a configuration changed by edit, such as for an engine's limits; a nil edit changes nothing.
func DrawWith(t testing.TB, family string, seed int, edit func(config map[string]any)) Case {
	t.Helper()
	d := newDrawer(family, seed)
	c := Case{Family: family, Seed: seed}
	raw := d.config(family)
	if edit != nil {
		edit(raw)
	}
	c.Config = must(json.Marshal(raw))(t)
	config := must(order.ReadConfig(c.Config))(t)
	c.List = must(order.New(config))(t)
	var wants []checkpoint.Want
	for _, w := range c.List.Weights() {
		wants = append(wants, checkpoint.Want{Name: w.Name, Fallback: w.Fallback, Shape: w.Shape})
	}
	c.Weights = checkpointtest.Random(wants, pick(d, hooks.F32, hooks.BF16, hooks.F16), "model.", d.Uint64())
	c.Passes = d.passes(config.VocabSize, max(config.SlidingWindow, 2))
	d.zero(c.Weights)
	c.Checkpoint = must(checkpoint.OpenFS("random", fstest.MapFS{
		"config.json": {Data: c.Config}, "model.safetensors": {Data: checkpointtest.File(c.Weights)},
	}))(t)
	return c
}

// Tokens are the numbers of tokens of the passes.
func (c Case) Tokens() []int {
	var n []int
	for _, ids := range c.Passes {
		n = append(n, len(ids))
	}
	return n
}

// zero clears what checkpoints may have as zeros: the vector of the padding token, and now and then a projection of
// Gemma 3n's, which then is rescaled from the floor of magnitudes.
func (d drawer) zero(weights []checkpointtest.Tensor) {
	projections := d.bool()
	for _, w := range weights {
		switch {
		case w.Name == "model.embed_tokens.weight":
			clear(w.Data[:len(w.Data)/w.Shape[0]])
		case strings.HasSuffix(w.Name, "projections.0.weight") && projections:
			clear(w.Data)
		}
	}
}

// must returns a function that fails the test on an error, and else returns the value.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
