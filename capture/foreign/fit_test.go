package foreign_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/fixtures/ondisk"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// tiny is the order of a checkpoint of the fixtures.
func tiny(t *testing.T, dir string) *order.List {
	t.Helper()
	text, err := fs.ReadFile(ondisk.Files(), dir+"/config.json")
	if err != nil {
		t.Fatal(err)
	}
	config, err := order.ReadConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// tensor is a dump's tensor, whose bytes count up.
func tensor(key string, d hooks.DType, shape ...int) capture.Source {
	n, _ := hooks.Elements(shape)
	data := make([]byte, n*d.Size())
	for i := range data {
		data[i] = byte(i * 7)
	}
	pass, name, firing, _ := capture.ParseKey(key)
	return capture.Source{Name: name, Pass: pass, Firing: firing, DType: d, Shape: shape, Data: bytes.NewReader(data)}
}

func lastRow(s capture.Source) capture.Source {
	s.LastRow = true
	return s
}

func fit(t *testing.T, list *order.List, m capture.Manifest, sources ...capture.Source) *capture.Trace {
	t.Helper()
	dump, err := capture.Assemble("dump", sources, m, false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	trace, err := foreign.Fit(dump, list)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// What is read in another way is what can be read in one way only; everything else stays as it is, and is a mismatch where it
// is compared.
func TestFit(t *testing.T) {
	list := tiny(t, "gemma3-tiny") // hidden 16, 4 heads of 6, vocabulary 160
	ids := tensor("input_ids", hooks.I64, 1, 5)
	for _, c := range []struct {
		what    string
		sources []capture.Source
		want    string // name and shape, of the last source; LAST behind the last row alone
		note    string // a part of the notes; empty: none
	}{
		{"as the order has it", []capture.Source{ids, tensor("layers.0.in", hooks.F32, 1, 5, 16)}, "layers.0.in [1 5 16]", ""},
		{"a prefix", []capture.Source{ids, tensor("model.layers.0.mlp.up_proj", hooks.F32, 1, 5, 40)}, "layers.0.mlp.up_proj [1 5 40]", `"model." is removed from the names of 1 tensor`},
		{"the longest prefix", []capture.Source{ids, tensor("model.language_model.norm", hooks.F32, 1, 5, 16)}, "norm [1 5 16]", `"model.language_model." is removed from`},
		{"a prefix of another tower", []capture.Source{ids, tensor("vision_model.norm", hooks.F32, 1, 5, 16)}, "vision_model.norm [1 5 16]", ""},
		{"two tensors of one name", []capture.Source{ids, tensor("norm", hooks.F32, 1, 5, 16), tensor("model.norm", hooks.F32, 1, 5, 16)}, "model.norm [1 5 16]", ""},
		{"two prefixes for one name", []capture.Source{ids, tensor("text_model.norm", hooks.F32, 1, 5, 16), tensor("model.norm", hooks.F32, 1, 5, 16)}, "model.norm [1 5 16]", "text_model."},
		{"a module for its output", []capture.Source{ids, tensor("model.layers.1", hooks.F32, 1, 5, 16)}, "layers.1.out [1 5 16]", "layers.0 is taken for layers.0.out"},
		{"a module and its output", []capture.Source{ids, tensor("model.layers.1.out", hooks.F32, 1, 5, 16), tensor("model.layers.1", hooks.F32, 1, 5, 16)}, "model.layers.1 [1 5 16]", ""},
		{"one tensor of two names", []capture.Source{ids, tensor("embed_tokens", hooks.F32, 1, 5, 16)}, "embed_tokens [1 5 16]", "1 tensor with two names in the order: layers.0.in is embed_tokens; compared under the name that the dump has"},
		{"both names", []capture.Source{ids, tensor("layers.1.in", hooks.F32, 1, 5, 16), tensor("layers.0.out", hooks.F32, 1, 5, 16)}, "layers.0.out [1 5 16]", ""},
		{"no batch axis", []capture.Source{ids, tensor("norm", hooks.F32, 5, 16)}, "norm [1 5 16]", "1 tensor without leading axes of size 1"},
		{"no batch axis, ids unknown", []capture.Source{tensor("norm", hooks.F32, 5, 16)}, "norm [1 5 16]", "1 tensor without leading axes of size 1"},
		{"no batch axis, heads", []capture.Source{ids, tensor("layers.0.self_attn.q_norm", hooks.F32, 5, 4, 6)}, "layers.0.self_attn.q_norm [1 5 4 6]", "without leading axes of size 1"},
		{"other tokens than the ids", []capture.Source{ids, tensor("norm", hooks.F32, 4, 16)}, "norm [4 16]", ""},
		{"transposed", []capture.Source{ids, tensor("norm", hooks.F32, 16, 5)}, "norm [16 5]", ""},
		{"flat", []capture.Source{ids, tensor("norm", hooks.F32, 80)}, "norm [80]", ""},
		{"an axis too many", []capture.Source{ids, tensor("norm", hooks.F32, 1, 1, 5, 16)}, "norm [1 1 5 16]", ""},
		{"two axes too few", []capture.Source{ids, tensor("norm", hooks.F32, 16)}, "norm [16]", ""},
		{"two axes too few, one token", []capture.Source{tensor("input_ids", hooks.I64, 1, 1), tensor("norm", hooks.F32, 16)}, "norm [1 1 16]", "without leading axes of size 1"},
		{"logits of the last token", []capture.Source{ids, tensor("logits", hooks.F32, 160)}, "logits [1 1 160] LAST", "1 of 5 rows compared"},
		{"logits of the last token, two axes", []capture.Source{ids, tensor("logits", hooks.F32, 1, 160)}, "logits [1 1 160] LAST", "1 of 5 rows"},
		{"logits of the last token, three axes", []capture.Source{ids, tensor("logits", hooks.F32, 1, 1, 160)}, "logits [1 1 160] LAST", "1 of 5 rows"},
		{"logits of two tokens", []capture.Source{ids, tensor("logits", hooks.F32, 2, 160)}, "logits [2 160]", ""},
		{"logits of another vocabulary", []capture.Source{ids, tensor("logits", hooks.F32, 128)}, "logits [128]", ""},
		{"logits without ids", []capture.Source{tensor("logits", hooks.F32, 1, 1, 160)}, "logits [1 1 160]", ""},
		{"logits of the only token", []capture.Source{tensor("input_ids", hooks.I64, 1), tensor("logits", hooks.F32, 160)}, "logits [1 1 160]", "without leading axes of size 1"},
		{"the last row of what a map says", []capture.Source{ids, lastRow(tensor("norm", hooks.F32, 16))}, "norm [1 1 16] LAST", "1 tensor with only the row of the last token: 1 of 5 rows"},
		{"the last row of the only token", []capture.Source{tensor("input_ids", hooks.I64, 1, 1), lastRow(tensor("logits", hooks.F32, 160))}, "logits [1 1 160] LAST", "without leading axes of size 1"},
		{"the last row of something else", []capture.Source{ids, tensor("norm", hooks.F32, 1, 1, 16)}, "norm [1 1 16]", ""},
		{"flat ids", []capture.Source{tensor("input_ids", hooks.I32, 5)}, "input_ids [1 5]", "read as [1, tokens]"},
		{"one id", []capture.Source{tensor("pass1/input_ids", hooks.I64)}, "input_ids [1 1]", "read as [1, tokens]"},
		{"ids by another name", []capture.Source{tensor("tokens", hooks.I64, 1, 5)}, "input_ids [1 5]", "tokens is taken for input_ids"},
		{"ids by two other names", []capture.Source{tensor("ids", hooks.I64, 1, 5), tensor("tokens", hooks.I64, 1, 5)}, "tokens [1 5]", ""},
		{"ids of floats", []capture.Source{tensor("tokens", hooks.F32, 1, 5)}, "tokens [1 5]", ""},
		{"ids of two sequences", []capture.Source{tensor("input_ids", hooks.I64, 2, 5)}, "input_ids [2 5]", ""},
		{"ids with fractions", []capture.Source{tensor("input_ids", hooks.F32, 1, 5)}, "input_ids [1 5]", "input_ids is float32: token ids are integers"},
		{"ids of two sequences by another name", []capture.Source{tensor("tokens", hooks.I64, 2, 5)}, "input_ids [2 5]", "tokens is taken for input_ids"},
		{"ids beside those of two sequences", []capture.Source{tensor("ids", hooks.I64, 5), tensor("tokens", hooks.I64, 2, 5)}, "tokens [2 5]", "ids is taken for input_ids"},
		{"heads first", []capture.Source{ids, tensor("layers.0.self_attn.q_norm", hooks.F32, 1, 4, 5, 6)}, "layers.0.self_attn.q_norm [1 5 4 6]", "heads before the axis of tokens"},
		{"heads first where the order has them so", []capture.Source{ids, tensor("layers.0.self_attn.q_rope", hooks.F32, 1, 5, 4, 6)}, "layers.0.self_attn.q_rope [1 5 4 6]", ""},
		{"as many heads as tokens, nothing tells", []capture.Source{tensor("input_ids", hooks.I64, 1, 4), tensor("layers.0.self_attn.q_norm", hooks.F32, 1, 4, 4, 6)}, "layers.0.self_attn.q_norm [1 4 4 6]", ""},
	} {
		trace := fit(t, list, capture.Manifest{}, c.sources...)
		r := trace.Records()[len(c.sources)-1]
		got := fmt.Sprint(r.Name, " ", r.Shape)
		if r.LastRow {
			got += " LAST"
		}
		notes := strings.Join(trace.Notes(), "\n")
		if got != c.want || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: %s, want %s; notes %q", c.what, got, c.want, notes)
		}
	}
}

// An axis of one key head is missing as the batch axis is, where the ids say how many tokens there are.
func TestFitOneKeyHead(t *testing.T) {
	list := tiny(t, "qwen3-tiny") // 1 key head of 12
	ids, keys := tensor("input_ids", hooks.I64, 1, 5), "layers.0.self_attn.k_rope"
	for _, c := range []struct {
		sources []capture.Source
		want    []int
	}{
		{[]capture.Source{ids, tensor(keys, hooks.F32, 5, 12)}, []int{1, 1, 5, 12}},
		{[]capture.Source{ids, tensor(keys, hooks.F32, 1, 5, 12)}, []int{1, 1, 5, 12}},
		{[]capture.Source{ids, tensor(keys, hooks.F32, 12, 5)}, []int{12, 5}},
		{[]capture.Source{ids, tensor(keys, hooks.F32, 60)}, []int{60}},
		{[]capture.Source{ids, tensor(keys, hooks.F32, 12)}, []int{12}},
		{[]capture.Source{tensor(keys, hooks.F32, 5, 12)}, []int{5, 12}},
		{[]capture.Source{tensor("input_ids", hooks.I64, 1, 1), tensor(keys, hooks.F32, 12)}, []int{1, 1, 1, 12}},
	} {
		records := fit(t, list, capture.Manifest{}, c.sources...).Records()
		if got := records[len(records)-1].Shape; !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.sources[len(c.sources)-1].Shape, got, c.want)
		}
	}
}

// A trace that says what it is stays as it is, whatever its shapes.
func TestTracesAreNotFitted(t *testing.T) {
	m := capture.Manifest{Status: capture.StatusComplete}
	trace := fit(t, tiny(t, "gemma3-tiny"), m, tensor("input_ids", hooks.I64, 5), tensor("model.norm", hooks.F32, 5, 16))
	if r := trace.Records()[1]; r.Name != "model.norm" || len(r.Shape) != 2 || trace.Notes() != nil {
		t.Errorf("%+v, %q", r, trace.Notes())
	}
}

// Exchanged axes give the elements of the exchanged indexes.
func TestExchangedHeads(t *testing.T) {
	source := tensor("layers.0.self_attn.q_norm", hooks.F32, 1, 4, 5, 6)
	trace := fit(t, tiny(t, "gemma3-tiny"), capture.Manifest{}, tensor("input_ids", hooks.I64, 1, 5), source)
	x, err := trace.Read(trace.Records()[1])
	if err != nil {
		t.Fatal(err)
	}
	before := make([]byte, 4*5*6*4)
	if _, err := source.Data.ReadAt(before, 0); err != nil {
		t.Fatal(err)
	}
	const row = 6 * 4
	for h := range 4 {
		for token := range 5 {
			if !slices.Equal(x.Data[(token*4+h)*row:][:row], before[(h*5+token)*row:][:row]) {
				t.Fatalf("head %d of token %d is another", h, token)
			}
		}
	}
}
