package order_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/order"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func list(t testing.TB, config string) *order.List {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", config+".config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := order.ReadConfig(data)
	if err != nil {
		t.Fatal(err)
	}
	l, err := order.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// golden compares text with testdata/name, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// Every entry of the two tiny lists, whole: name, level, shape, op with constants, inputs, weights and where
// transformers shows it. The number of names is that of transformers 5.23's tensors.
func TestGoldenLists(t *testing.T) {
	for _, c := range []struct {
		config         string
		names, derived int
	}{{"gemma3n-tiny", 422, 33}, {"gemma3n-odd", 317, 26}} {
		t.Run(c.config, func(t *testing.T) {
			l := list(t, c.config)
			derived := 0
			var lines strings.Builder
			for _, e := range l.Entries {
				if e.Derived() {
					derived++
				}
				line, err := json.Marshal(e)
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(line, '\n'))
			}
			if len(l.Entries) != c.names || derived != c.derived {
				t.Errorf("%d names, %d of them derived; want %d and %d", len(l.Entries), derived, c.names, c.derived)
			}
			golden(t, c.config+".names.txt", strings.Join(l.Names(), "\n")+"\n")
			golden(t, c.config+".entries.jsonl", lines.String())
		})
	}
}

// drawConfig draws a configuration of Gemma 3n that transformers could run.
func drawConfig(t *rapid.T) map[string]any {
	layers := rapid.IntRange(1, 9).Draw(t, "layers")
	types := rapid.SliceOfN(rapid.SampledFrom([]string{order.Sliding, order.Full}), layers, layers).Draw(t, "types")
	shared := rapid.IntRange(0, layers).Draw(t, "shared")
	for first := layers - shared; shared > 0; shared, first = shared-1, first+1 {
		if first == 0 { // everything shared: nothing is
			break
		}
		if !slices.ContainsFunc(types[first:], func(s string) bool { return !slices.Contains(types[:first], s) }) {
			break
		}
	}
	kv := rapid.IntRange(1, 3).Draw(t, "kv")
	streams := rapid.IntRange(2, 5).Draw(t, "streams")
	return map[string]any{
		"model_type": "gemma3n_text", "num_hidden_layers": layers, "layer_types": types, "num_kv_shared_layers": shared,
		"hidden_size": rapid.IntRange(1, 40).Draw(t, "hidden"), "head_dim": 2 * rapid.IntRange(1, 8).Draw(t, "half"),
		"num_key_value_heads": kv, "num_attention_heads": kv * rapid.IntRange(1, 3).Draw(t, "groups"),
		"intermediate_size": rapid.SliceOfN(rapid.IntRange(1, 50), layers, layers).Draw(t, "widths"),
		"activation_sparsity_pattern": rapid.SliceOfN(rapid.SampledFrom([]float64{0, 0.3, 0.95}), layers, layers).
			Draw(t, "sparsity"),
		"altup_num_inputs": streams, "altup_active_idx": rapid.IntRange(0, streams-1).Draw(t, "active"),
		"sliding_window": rapid.IntRange(2, 9).Draw(t, "window"), "attention_bias": rapid.Bool().Draw(t, "bias"),
		"altup_correct_scale": rapid.Bool().Draw(t, "scale"), "tie_word_embeddings": rapid.Bool().Draw(t, "tied"),
	}
}

// What every list has to be: names are unique; an input is an earlier entry, and one of the pass before any entry; an
// entry has an op, and where it has no inputs it is an argument of the caller; shapes have an axis role each.
func TestListProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(drawConfig(t))
		if err != nil {
			t.Fatal(err)
		}
		c, err := order.ReadConfig(data)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		l, err := order.New(c)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for i, e := range l.Entries {
			if first, dup := all[e.Name]; dup {
				t.Errorf("%s is entry %d and entry %d", e.Name, first, i)
			}
			all[e.Name] = i
		}
		weights := map[string]bool{}
		for i, e := range l.Entries {
			checkEntry(t, all, i, e)
			for _, w := range e.Weights {
				weights[w.Name] = true
			}
		}
		if len(l.Weights()) != len(weights) {
			t.Errorf("Weights has %d tensors, the entries name %d", len(l.Weights()), len(weights))
		}
	})
}

func checkEntry(t *rapid.T, all map[string]int, i int, e order.Entry) {
	switch {
	case e.Op == nil:
		t.Errorf("%s has no op", e.Name)
	case len(e.Inputs) == 0 && e.Op.Kind() != "argument":
		t.Errorf("%s has no input", e.Name)
	case len(e.Axes) != len(e.Shape):
		t.Errorf("%s has axes %q for shape %v", e.Name, e.Axes, e.Shape)
	case e.Level < 1 || e.Level > 3:
		t.Errorf("%s has level %d", e.Name, e.Level)
	case e.HF.Kind == "":
		t.Errorf("%s does not say where transformers shows it", e.Name)
	}
	for _, in := range e.Inputs {
		at, ok := all[in.Name]
		switch {
		case !ok:
			t.Errorf("%s: input %s is no entry", e.Name, in.Name)
		case !in.Prev && at >= i:
			t.Errorf("%s: input %s comes later", e.Name, in.Name)
		}
	}
	for _, w := range e.Weights {
		if w.Name == "" || len(w.Shape) == 0 {
			t.Errorf("%s: weight %+v is not described", e.Name, w)
		}
	}
}

// Keys seen by sliding layers are the last window−1 of the past and the new ones.
func TestSizes(t *testing.T) {
	l := list(t, "gemma3n-tiny")
	for _, c := range []struct {
		name  string
		pass  order.Pass
		shape []int
	}{
		{"embed_tokens", order.Pass{Tokens: 11}, []int{1, 11, 32}},
		{"layers.0.self_attn.keys", order.Pass{Tokens: 11}, []int{1, 2, 11, 8}},
		{"layers.0.self_attn.keys", order.Pass{Past: 2, Tokens: 1}, []int{1, 2, 3, 8}},
		{"layers.0.self_attn.keys", order.Pass{Past: 11, Tokens: 1}, []int{1, 2, 4, 8}},
		{"layers.2.self_attn.scores", order.Pass{Past: 11, Tokens: 2}, []int{1, 4, 2, 13}},
		{"mask.sliding", order.Pass{Past: 11, Tokens: 2}, []int{1, 1, 2, 5}},
	} {
		e, ok := l.Lookup(c.name)
		if !ok {
			t.Fatalf("no entry %s", c.name)
		}
		if got := e.Size(c.pass, l.Config.SlidingWindow); !slices.Equal(got, c.shape) {
			t.Errorf("%s at %+v is %v, want %v", c.name, c.pass, got, c.shape)
		}
	}
}

func TestUnknownModelType(t *testing.T) {
	if _, err := order.New(&order.Config{ModelType: "mamba"}); !errors.Is(err, order.ErrModelType) {
		t.Errorf("New gave %v, want ErrModelType", err)
	}
}

func TestReadNames(t *testing.T) {
	l, err := order.ReadNames(strings.NewReader("# mine\nlayers.12.mlp\n\n  norm  \nlayers.x.out\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"layers.12.mlp", "norm", "layers.x.out"}, l.Names()); diff != "" {
		t.Error(diff)
	}
	if l.Entries[0].Layer != 12 || l.Entries[1].Layer != -1 || l.Entries[2].Layer != -1 {
		t.Errorf("layers %d %d %d, want 12 -1 -1", l.Entries[0].Layer, l.Entries[1].Layer, l.Entries[2].Layer)
	}
	for text, want := range map[string]string{
		"":                                "no names",
		"a\nb\na\n":                       `line 3: "a" is there already, in line 1`,
		"a b\n":                           "line 1",
		"ok\npass1/x\n":                   "line 2",
		"x\xff\n":                         "line 1",
		strings.Repeat("x", 1<<17) + "\n": "line 1",
	} {
		if _, err := order.ReadNames(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadNames(%.20q) gave %v, want an error with %q", text, err, want)
		}
	}
}

// A picked list has the token ids, then the user's order, with the entries' rules.
func TestPick(t *testing.T) {
	l := list(t, "gemma3n-tiny")
	names, err := order.ReadNames(strings.NewReader("norm\nlayers.0.self_attn.scores_masked\nmine\n"))
	if err != nil {
		t.Fatal(err)
	}
	picked := l.Pick(names)
	if diff := cmp.Diff(append([]string{"input_ids"}, names.Names()...), picked.Names()); diff != "" {
		t.Error(diff)
	}
	if e, _ := picked.Lookup("layers.0.self_attn.scores_masked"); e.Compare != order.Allowed {
		t.Errorf("the rule of scores_masked is %q", e.Compare)
	}
	if e, _ := picked.Lookup("mine"); e.Op != nil {
		t.Error("a name that the order does not have has an op")
	}
}

func FuzzReadConfig(f *testing.F) {
	for _, name := range []string{"gemma3n-tiny", "gemma3n-odd"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".config.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"model_type":"gemma3","text_config":{"rope_scaling":{"rope_type":"linear","factor":8}}}`))
	f.Add([]byte(`{"model_type":"llama","num_hidden_layers":-3,"intermediate_size":[1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := order.ReadConfig(data)
		if err != nil {
			return
		}
		l, err := order.New(c)
		if err != nil {
			return
		}
		if len(l.Entries) == 0 {
			t.Error("an empty list")
		}
	})
}

func FuzzReadNames(f *testing.F) {
	f.Add("norm\nlayers.3.out\n# no\n")
	f.Add("a\na\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := order.ReadNames(strings.NewReader(text))
		if err != nil {
			return
		}
		again, err := order.ReadNames(strings.NewReader(strings.Join(l.Names(), "\n")))
		if err != nil || !slices.Equal(again.Names(), l.Names()) {
			t.Errorf("the names of %q read back as %v, %v", text, again, err)
		}
	})
}

func ExampleSource_String() {
	item := 1
	fmt.Println(order.Source{Kind: order.Out, Module: "rotary_emb", When: order.Full, Item: &item})
	fmt.Println(order.Source{Kind: order.In, Module: "layers.0", Name: "position_ids"})
	fmt.Println(order.Source{Kind: order.Call, Module: "layers.0.altup", Name: "correct", Arg: "activated"})
	// Output:
	// out:rotary_emb[full_attention].1
	// in:layers.0(position_ids)
	// call:layers.0.altup.correct(activated)
}
