package orders_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session/orders"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

// A trace that declares its configuration has the order of its family, and so has its model. One that declares none has no order.
func TestOrderOfTraceAndModel(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/qwen3-tiny/prefill.float32.safetensors")
	bare := testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Config = nil }, nil)
	list, err := orders.OfTraces(bare, golden)
	if err != nil || list.Index("layers.0.self_attn.q_norm") < 0 {
		t.Fatalf("%v, %v", list, err)
	}
	model, err := orders.OfModel("../../../fixtures/qwen3-tiny", "")
	if err != nil || len(model.Entries) != len(list.Entries) {
		t.Errorf("the model's order: %v", err)
	}
	if none, err := orders.OfTraces(bare, bare); none != nil || err != nil {
		t.Errorf("without a configuration: %v, %v", none, err)
	}
	family := testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Config = []byte(`{"model_type":"mamba"}`) }, nil)
	if none, err := orders.OfTraces(family, bare); none != nil || err != nil {
		t.Errorf("of a family without an order: %v, %v", none, err)
	}
	broken := testengine.Rewritten(t, golden, func(m *capture.Manifest) {
		m.Config = []byte(strings.Replace(string(m.Config), `"num_hidden_layers":`, `"num_hidden_layers":-`, 1))
	}, nil)
	if _, err := orders.OfTraces(broken, bare); err == nil || !strings.Contains(err.Error(), "its configuration") {
		t.Errorf("a configuration that cannot be: %v", err)
	}
}

// A file of names narrows an order to these, in the file's sequence, with the ids that all begin with, and is an order of names where there is no other.
func TestPickedNames(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("names.txt", "norm\nembed_tokens\n")
	list, err := orders.OfModel("../../../fixtures/qwen3-tiny", file)
	if err != nil || !slices.Equal(namesOf(list), []string{order.InputIDs, "norm", "embed_tokens"}) {
		t.Fatalf("%v, %v", list, err)
	}
	if names, err := orders.Picked(nil, file); err != nil || !slices.Equal(namesOf(names), []string{"norm", "embed_tokens"}) {
		t.Errorf("%v, %v", names, err)
	}
	if same, err := orders.Picked(list, ""); same != list || err != nil {
		t.Errorf("%v, %v", same, err)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), write("twice.txt", "norm\nnorm\n")} {
		if _, _, err := orders.ReadNames(path); err == nil || !hinted(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What was typed and can select nothing is an error with a hint, before anything runs.
func TestScopesThatSelectNothing(t *testing.T) {
	list, err := orders.OfModel("../../../fixtures/qwen3-tiny", "")
	if err != nil {
		t.Fatal(err)
	}
	ranges := func(text string) capture.Ranges {
		r, err := capture.ParseRanges(text)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, s := range map[string]capture.Scope{"layers": {Layers: ranges("99")}, "tensors": {Tensors: []string{"nothing.*"}}} {
		if err := orders.CheckScope(s, list); err == nil || !hinted(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := orders.CheckScope(capture.Scope{Layers: ranges("0"), Level: 2}, list); err != nil {
		t.Error(err)
	}
	if err := orders.CheckRun(capture.Scope{Passes: ranges("3")}, []int{5, 1}); err == nil || !hinted(err) {
		t.Errorf("a pass too many: %v", err)
	}
	m := testengine.Manifest("local", hooks.F32)
	m.Passes = 2
	ids := testengine.Build(t, m, testengine.Fire(order.InputIDs, hooks.I64, []int{1, 3}, 2, 5, 9),
		testengine.InPass(1, testengine.Fire(order.InputIDs, hooks.I64, []int{1, 1}, 4)))
	if tokens := orders.RunTokens(ids); !slices.Equal(tokens, []int{3, 1}) {
		t.Errorf("%v", tokens)
	}
}

// hinted reports whether an error says what to do.
func hinted(err error) bool {
	_, ok := hint.Of(err)
	return ok
}

func namesOf(list *order.List) (names []string) {
	for _, e := range list.Entries {
		names = append(names, e.Name)
	}
	return names
}
