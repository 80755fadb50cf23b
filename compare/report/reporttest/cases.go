package reporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/fixtures"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

var (
	// IDs are the token ids of most cases.
	IDs    = Tensor(0, "input_ids", []int{1, 3}, 2, 500, 501)
	places = Tensor(0, "position_ids", []int{1, 3}, 0, 1, 2)
	embed  = Tensor(0, "embed_tokens", []int{1, 3, 32}, cycled(96, 1, -2, 3, -4, 5, -6)...)
	eight  = []float64{1, -2, 3, -4, 5, -6, 7, -8}
)

// cycled repeats values until there are n.
func cycled(n int, values ...float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = values[i%len(values)]
	}
	return out
}

func times(by float64, values []float64) []float64 {
	out := make([]float64, len(values))
	for i := range values {
		out[i] = by * values[i]
	}
	return out
}

func tiny(t *testing.T) *order.List {
	t.Helper()
	data, err := fixtures.Files.ReadFile("gemma3n-tiny/config.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Case is one comparison to be reported.
type Case struct {
	Local, Reference         []hooks.Event
	EditLocal, EditReference func(*capture.Manifest)
	Options                  compare.Options
	AB                       bool
}

// Run compares the two traces.
func (c Case) Run(t *testing.T) *compare.Result {
	t.Helper()
	lm, rm := LocalManifest(), ReferenceManifest()
	if c.EditLocal != nil {
		c.EditLocal(&lm)
	}
	if c.EditReference != nil {
		c.EditReference(&rm)
	}
	compared := compare.Traces
	if c.AB {
		compared = compare.AB
	}
	res, err := compared(context.Background(), Trace(t, lm, c.Local...), Trace(t, rm, c.Reference...), c.Options)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func texts() (func(id int) string, error) {
	return func(id int) string { return fmt.Sprintf("▁t%d", id) }, nil
}

// Cases are the comparisons whose reports stand in testdata.
func Cases(t *testing.T) map[string]Case {
	mlp := func(by float64) []hooks.Event {
		return []hooks.Event{
			IDs, embed, Tensor(0, "layers.0.mlp.gated", []int{1, 3, 64}, cycled(192, eight...)...),
			Tensor(0, "layers.0.mlp.down_proj", []int{1, 3, 32}, cycled(96, times(by, eight)...)...),
		}
	}
	undeclared := func(m *capture.Manifest) { m.Scope = capture.Scope{} }
	const low = -math.MaxFloat32
	scores := func(v ...float64) []hooks.Event {
		return []hooks.Event{IDs, Tensor(0, "layers.0.self_attn.scores_masked", []int{1, 4, 3, 3}, cycled(36, v...)...)}
	}
	decode := func(last float64) []hooks.Event {
		return []hooks.Event{
			IDs, Tensor(0, "logits", []int{1, 3, 2}, 1, 2, 3, 4, 5, 6),
			Tensor(1, "input_ids", []int{1, 1}, 7), Tensor(1, "logits", []int{1, 1, 2}, 9, last),
		}
	}
	two := func(m *capture.Manifest) { m.Passes = 2 }
	vocabulary := func(v ...float64) []hooks.Event {
		return []hooks.Event{IDs, places, Tensor(0, "logits", []int{1, 3, 6}, v...)}
	}
	window := func(size string) func(*capture.Manifest) {
		return func(m *capture.Manifest) { m.Scope, m.Config = capture.Scope{}, json.RawMessage(`{"window":`+size+`}`) }
	}
	return map[string]Case{
		"match": {Local: mlp(1)[:2], Reference: mlp(1)[:2], Options: compare.Options{Order: Names(t, "input_ids", "embed_tokens"), Reporting: compare.Reporting{ReferenceLabel: "golden", TokenTexts: texts}}},
		"divergence": {
			Local: mlp(2), Reference: mlp(1), EditLocal: undeclared, EditReference: undeclared,
			Options: compare.Options{Order: tiny(t), Reporting: compare.Reporting{ReferenceLabel: "golden", TokenTexts: texts}},
		},
		"tokens": {
			Local: []hooks.Event{Tensor(0, "input_ids", []int{1, 3}, 500, 501, 9)}, Reference: []hooks.Event{IDs},
			Options: compare.Options{Order: Names(t, "input_ids", "x"), Reporting: compare.Reporting{TokenTexts: texts}},
		},
		"uncertified": {Local: mlp(1)[:2], Reference: mlp(1)[:2], Options: compare.Options{Order: Names(t, "input_ids", "embed_tokens"), Certification: compare.Certification{NotIsolated: "the order has names and no operations"}}},
		"missing":     {Local: mlp(1)[:2], Reference: mlp(1), Options: compare.Options{Order: Names(t, "input_ids", "embed_tokens", "layers.0.mlp.gated", "layers.0.mlp.down_proj")}},
		"decode":      {Local: decode(10.5), Reference: decode(10), EditLocal: two, EditReference: two, Options: compare.Options{Order: Names(t, "input_ids", "logits"), All: true}},
		"mask": {
			Local: scores(1, low, low, 3, 4, low), Reference: scores(1, 2, low, 3, 4, 5), EditLocal: undeclared, EditReference: undeclared, Options: compare.Options{Order: tiny(t)},
		},
		"shape": {
			Local: []hooks.Event{IDs, Tensor(0, "x", []int{4, 2}, eight...)}, Reference: []hooks.Event{IDs, Tensor(0, "x", []int{2, 4}, eight...)},
			Options: compare.Options{Order: Names(t, "input_ids", "x")},
		},
		"tie": {
			Local:     vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 2, 1, 2, 8.001, 4, 8, -9),
			Reference: vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1, 1, 2, 8, 4, 8.001, -9),
			Options: compare.Options{
				Order:     Names(t, "input_ids", "position_ids", "logits"),
				Reporting: compare.Reporting{TokenTexts: texts},
				Judging: compare.Judging{Noise: &gate.NoiseFloor{
					DType: "float32", Entries: map[string]gate.Noise{"logits": {RelL2: 1e-4}},
				}},
				All: true,
			},
		},
		"ab": {
			Local: mlp(2), Reference: mlp(1), EditLocal: window("4"), EditReference: window("8"),
			AB:      true,
			Options: compare.Options{Order: tiny(t), Reporting: compare.Reporting{LocalLabel: "off.safetensors", ReferenceLabel: "on.safetensors", TokenTexts: texts}},
		},
		"expected": {
			Local:     append(mlp(2), vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 2, 1, 2, 8, 4, 7, -9)[2]),
			Reference: append(mlp(1), vocabulary(1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 2, 1, 2, 8, 4, 7, -9)[2]),
			AB:        true,
			Options: compare.Options{
				Order:     Names(t, "input_ids", "embed_tokens", "layers.0.mlp.gated", "layers.0.mlp.down_proj", "logits"),
				Judging:   compare.Judging{Different: []string{"*.down_proj", "*.gated"}},
				Reporting: compare.Reporting{TokenTexts: texts},
			},
		},
		"notes": {
			Local:     []hooks.Event{IDs, Tensor(0, "zero", []int{2}, 0, 0), Tensor(0, "x", []int{2}, 1, math.NaN()), Tensor(0, "other", []int{1}, 1)},
			Reference: []hooks.Event{IDs, Tensor(0, "zero", []int{2}, 0, 0), Tensor(0, "x", []int{2}, 1, math.NaN())},
			Options:   compare.Options{Order: Names(t, "input_ids", "zero", "x"), Scope: capture.Scope{Level: 2, Passes: capture.Ranges{{From: 0, To: 0}}}},
		},
	}
}
