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

	"github.com/tracediff/tracediff/internal/fuzztest"
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

// Every entry of the tiny lists, whole: name, level, shape, op with constants, inputs, weights and where transformers
// shows it. The number of names is that of transformers 5.23's tensors in a pass.
func TestGoldenLists(t *testing.T) {
	for _, c := range []struct {
		config         string
		names, derived int
	}{
		{"gemma3n-tiny", 422, 33},
		{"gemma3n-odd", 317, 26},
		{"gemma3-tiny", 95, 1},
		{"gemma2-tiny", 90, 1},
		{"gemma-tiny", 80, 1},
		{"llama-tiny", 80, 0},
		{"qwen2-tiny", 81, 0},
		{"qwen3-tiny", 86, 0},
	} {
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
	files := [][]byte{
		[]byte(`{"model_type":"gemma3","text_config":{"rope_scaling":{"rope_type":"linear","factor":8}}}`),
		[]byte(`{"model_type":"llama","num_hidden_layers":-3,"intermediate_size":[1]}`),
	}
	names, err := filepath.Glob("testdata/*.config.json")
	if err != nil || len(names) < 8 {
		f.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		files = append(files, data)
	}
	fuzztest.Files(f, files, func(t *testing.T, data []byte) {
		c, err := order.ReadConfig(data)
		if err != nil {
			return
		}
		l, err := order.New(c)
		if err != nil || len(l.Entries) == 0 {
			t.Fatalf("a configuration that was read has a list of %d entries, %v", len(l.Entries), err)
		}
		again, err := order.ParseCanonical(c.Canonical())
		if err != nil || !order.SameConfig(again.Canonical(), c.Canonical()) {
			t.Fatalf("its canonical form reads back as %+v, %v", again, err)
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
	fmt.Println(order.Source{Kind: order.Out, Module: "layers.0.self_attn.q_norm", HeadsFirst: true})
	// Output:
	// out:rotary_emb[full_attention].1
	// in:layers.0(position_ids)
	// call:layers.0.altup.correct(activated)
	// out:layers.0.self_attn.q_norm.transpose(1,2)
}
