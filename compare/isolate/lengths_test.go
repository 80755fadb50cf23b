package isolate_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/op"
	"github.com/tracediff/tracediff/order/recorded"
)

// A recorded program has operations that only its decode steps have, such as what puts a key behind those before. One of them that has not
// reproduced the reference keeps the list from being cleared, and what is computed by it from accusing.
func TestOperationsOfLaterPassesCertify(t *testing.T) {
	data, err := recorded.File("../../fixtures/lengths/llama/recorded.program.json")
	if err != nil {
		t.Fatal(err)
	}
	file, err := recorded.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.Recorded(file)
	if err != nil {
		t.Fatal(err)
	}
	c := isolate.Cleared(list)
	if left := c.Unverified(list); !c.Clears(list) || len(left) > 0 {
		t.Fatalf("a list that is cleared: %v", left)
	}
	at := list.Index("layers.0.self_attn.keys")
	form := op.Form(list.At(order.Node{Entry: at, Pass: 1}).Op)
	if form == op.Form(list.At(order.Node{Entry: at}).Op) {
		t.Fatalf("both passes have %s", form)
	}
	c[form] = false
	if c.Clears(list) || c.Unverified(list)["layers.0.self_attn.keys"] != form {
		t.Errorf("%s has not reproduced the reference: %v", form, c.Unverified(list))
	}
	delete(c, form)
	if c.Clears(list) || c.Knows(list) || c.Unverified(list)["layers.0.self_attn.keys"] != form {
		t.Errorf("%s was not looked at: %v", form, c.Unverified(list))
	}
}

// A program that was recorded on nine tokens and two decode steps gives transformers' own trace of another prompt, of twelve tokens
// and three steps: with causal masks, a window that ends before the prompt does, experts, and a scan with a state. Of the same prompt
// with a mistake in the model it names the entry of the mistake.
func TestRecordedProgramsOnOtherLengths(t *testing.T) {
	for _, c := range []struct{ model, wrong string }{
		{"llama", "layers.1.post_attention_layernorm"},
		{"mistral", "mask.full"},
		{"qwen3_moe", "layers.1.mlp.gate.1"},
		{"mamba2", "layers.1.mixer.norm.in"},
	} {
		folder := filepath.Join("../../fixtures/lengths", c.model)
		for _, trace := range []string{"recorded", "other"} {
			r, err := certified(folder, "recorded", filepath.Join(folder, trace+".safetensors"), 0)
			if err != nil {
				t.Fatalf("%s %s: %v", c.model, trace, err)
			}
			if len(r.wrong)+len(r.open)+len(r.unverified) > 0 || r.outside > 0 || r.exact < 70 || r.exact+r.rounding != r.entries {
				t.Errorf("%s %s: %+v", c.model, trace, r)
			}
		}
		r, err := certified(folder, "recorded", filepath.Join(folder, "wrong.safetensors"), 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.wrong) == 0 || r.wrong[0] != c.wrong || len(r.wrong) > 2*2 {
			t.Errorf("%s: wrong are %v, want %s first", c.model, r.wrong, c.wrong)
		}
	}
}
