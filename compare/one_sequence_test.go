package compare_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	dumps "github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/ordertest"
)

// refused compares, or tests a trace alone where there is no reference, and returns why that is refused and what to do; empty where it is not.
func refused(t *testing.T, l, r *capture.Trace, o compare.Options) (why, what string) {
	t.Helper()
	_, err := traces(l, r, o)
	var bad *compare.UnsuitableError
	if !errors.As(err, &bad) {
		if err != nil {
			t.Fatal(err)
		}
		return "", ""
	}
	if bad.What != "rows" {
		t.Errorf("%s: %v", bad.What, bad)
	}
	return bad.Reason, bad.Hint
}

// A batch, and a row beside padding, are refused on either side and alone; what only looks like it is compared.
func TestRowsThatAreNotOneSequenceAreRefused(t *testing.T) {
	list := tiny(t)
	ints := func(name string, shape []int, values ...float64) hooks.Event {
		return fire(name, hooks.I64, shape, values...)
	}
	row := func(values ...float64) hooks.Event { return ints("input_ids", []int{1, len(values)}, values...) }
	positions := func(values ...float64) hooks.Event {
		return ints("position_ids", []int{1, len(values)}, values...)
	}
	mask := func(sees func(q, k int) bool) hooks.Event {
		var values []float64
		for q := range 5 {
			for k := range 5 {
				if values = append(values, 0); k > q || !sees(q, k) {
					values[len(values)-1] = low32
				}
			}
		}
		return fire("mask.full", hooks.F32, []int{1, 1, 5, 5}, values...)
	}
	state := func(name string, sequences, tokens int) hooks.Event {
		return fire(name, hooks.F32, []int{sequences, tokens, 8}, make([]float64, 8*sequences*tokens)...)
	}
	const padding = "run the port on the tokens without padding: one sequence"
	for _, c := range []struct {
		what   string
		events []hooks.Event
		why    string // empty: it is compared
		next   string
	}{
		{"two sequences", []hooks.Event{ints("input_ids", []int{2, 3}, 5, 6, 7, 8, 9, 3)}, "2 sequences", capture.OneSequence},
		{"tensors of two sequences, and no ids", []hooks.Event{state("embed_tokens", 2, 3), state("norm", 2, 3)}, "the first axis of all 2 tensors with tokens is 2, such as embed_tokens [2 3 8]", capture.OneSequence},
		{"beside them a table of rotations for all", []hooks.Event{state("embed_tokens", 2, 3), state("norm", 2, 3), state("rotary.full.cos", 1, 3)}, "the first axis of all 2 tensors with tokens is 2", capture.OneSequence},
		{"their ids are one row", []hooks.Event{row(5, 6, 7, 8, 9, 3), state("embed_tokens", 2, 3), state("norm", 2, 3)}, "with tokens is 2", capture.OneSequence},
		{"one tensor with another axis in front is a mistake", []hooks.Event{row(5, 6, 7), state("embed_tokens", 2, 3), state("norm", 1, 3)}, "", ""},
		{"tokens in front are another layout", []hooks.Event{row(5, 6, 7), state("embed_tokens", 3, 1), state("norm", 3, 1)}, "", ""},
		{"an attention mask with a 0", []hooks.Event{row(5, 6, 7), ints("attention_mask", []int{1, 3}, 0, 1, 1)}, "attention_mask is 0 for 1 of 3 tokens", padding},
		{"one of ones", []hooks.Event{row(5, 6, 7), ints("attention_mask", []int{1, 3}, 1, 1, 1)}, "", ""},
		{"one of booleans", []hooks.Event{row(5, 6, 7), fire("attention_mask", hooks.Bool, []int{1, 3}, 1, 1, 0)}, "attention_mask is 0", padding},
		{"positions that count from 0 behind ones", []hooks.Event{row(3, 3, 6, 7), positions(1, 1, 0, 1)}, "position_ids is 1 for the first 2 tokens", padding},
		{"or behind zeros", []hooks.Event{row(3, 3, 6, 7), positions(0, 0, 0, 1)}, "position_ids is 0 for the first 2 tokens", padding},
		{"zeros in front of other tokens are wrong positions", []hooks.Event{row(4, 3, 6, 7), positions(0, 0, 0, 1)}, "", ""},
		{"so is one 0 too many", []hooks.Event{row(3, 3, 6, 7), positions(0, 0, 1, 2)}, "", ""},
		{"usual positions", []hooks.Event{row(3, 3, 6, 7), positions(0, 1, 2, 3)}, "", ""},
		{"a mask of padding in front", []hooks.Event{row(3, 3, 6, 7, 8), mask(func(_, k int) bool { return k > 1 })}, "mask.full hides the first 2 tokens, all of id 3", padding},
		{"a mask of padding behind", []hooks.Event{row(5, 6, 7, 3, 3), mask(func(_, k int) bool { return k < 3 })}, "mask.full hides the last 2 tokens, all of id 3", padding},
		{"a mask that hides two texts is a mistake", []hooks.Event{row(5, 6, 8, 3, 3), mask(func(_, k int) bool { return k > 1 })}, "", ""},
		{"so is one that hides one token", []hooks.Event{row(3, 3, 7, 8, 9), mask(func(_, k int) bool { return k > 0 })}, "", ""},
	} {
		local := build(t, manifest("local", 0), c.events...)
		ref := build(t, manifest("reference", 0), row(5, 6, 7))
		for side, of := range map[string][2]*capture.Trace{"local": {local, ref}, "reference": {ref, local}, "alone": {local, nil}} {
			why, next := refused(t, of[0], of[1], compare.Options{Order: list})
			if !strings.Contains(why, c.why) || (why == "") != (c.why == "") || !strings.Contains(next, c.next) {
				t.Errorf("%s, %s: %q, %q", c.what, side, why, next)
			}
		}
	}
	two := build(t, manifest("local", 0), ints("input_ids", []int{2, 3}, 5, 6, 7, 8, 9, 3))
	if _, err := compare.AB(context.Background(), two, two, compare.Options{Order: list}); err != nil {
		t.Errorf("two runs of one batch: %v", err)
	}
}

// A row that has the other side's tokens, and one id several times at an end, has padding. Where these tokens are no such thing, they are others.
func TestPaddingOnOneSide(t *testing.T) {
	list := tiny(t)
	padded := *list.Config
	padded.Tokens = order.TokenIDs{BOS: 1, PAD: 3, EOS: []int{2}}
	withPAD, err := order.New(&padded)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what       string
		list       *order.List
		long, text []float64
		why        string // empty: the tokens are compared, and differ
	}{
		{"in front", list, []float64{0, 0, 5, 6, 7}, []float64{5, 6, 7}, "it begins with 2 tokens of id 0, and the rest equals "},
		{"behind", list, []float64{5, 6, 7, 0, 0, 0}, []float64{5, 6, 7}, "it ends with 3 tokens of id 0, and the rest equals "},
		{"a token more", list, []float64{3, 5, 6, 7}, []float64{5, 6, 7}, ""},
		{"the token of padding more", withPAD, []float64{3, 5, 6, 7}, []float64{5, 6, 7}, "it begins with 1 token of id 3"},
		{"BOS twice", withPAD, []float64{1, 1, 5, 6}, []float64{1, 5, 6}, ""},
		{"a token that the text begins with, too", list, []float64{5, 5, 5, 6, 7}, []float64{5, 6, 7}, ""},
		{"two other tokens", list, []float64{4, 3, 5, 6, 7}, []float64{5, 6, 7}, ""},
		{"another text behind", list, []float64{0, 0, 5, 6, 7}, []float64{5, 6, 8}, ""},
	} {
		l, r := build(t, manifest("local", 0), ids(c.long...)), build(t, manifest("reference", 0), ids(c.text...))
		for trace, traces := range map[string][2]*capture.Trace{"your port's trace": {l, r}, "the reference trace": {r, l}} {
			why, next := refused(t, traces[0], traces[1], compare.Options{Order: c.list})
			if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || c.why != "" && (!strings.Contains(why, trace+" has a row with padding") || !strings.Contains(next, "without padding")) {
				t.Errorf("%s, %s: %q, %q", c.what, trace, why, next)
			}
		}
	}
}

// Of tensors of more tokens than the other side's, in a trace without ids, the report says that the prompt may be another, or padded.
func TestOtherLengthWithoutIDs(t *testing.T) {
	state := func(side string, tokens int) *capture.Trace {
		return build(t, manifest(side, 0), fire("embed_tokens", hooks.F32, []int{1, tokens, 8}, make([]float64, 8*tokens)...))
	}
	res := run(t, state("local", 4), state("reference", 3), compare.Options{Order: tiny(t)})
	if d := res.Divergence; d == nil || !strings.Contains(strings.Join(d.Hints, "\n"), "given 4 and 3 tokens: another prompt, or a row with padding; dump input_ids") {
		t.Errorf("%+v", d)
	}
}

// A dump of modules shows no mask. Where its row begins or ends with padding, what that does is no mistake with a name.
func TestPaddingWithoutAMaskIsRefused(t *testing.T) {
	ck, list := ordertest.Embedded(t, "llama-tiny")
	golden := testengine.OpenGolden(t, "golden/llama-tiny/prefill.float32.safetensors")
	ids, err := golden.IDs()
	if err != nil {
		t.Fatal(err)
	}
	n := len(ids[0])
	for _, c := range []struct {
		what string
		sees func(q, k int) bool
		ends [2]int // the ids at either end that are made alike
		why  string
	}{
		{"in front", func(_, k int) bool { return k > 2 }, [2]int{3, 0}, "it begins with 3 tokens"},
		{"behind", func(_, k int) bool { return k < n-3 }, [2]int{0, 3}, "it ends with 3 tokens"},
		{"no padding: the first keys are masked", func(_, k int) bool { return k > 2 }, [2]int{}, ""},
	} {
		fed := slices.Clone(ids[0])
		for i := range fed {
			if i < c.ends[0] || i >= n-c.ends[1] {
				fed[i] = 1
			}
		}
		walked := walk(t, ck, list, fed)
		local := modulesAlone(t, walked, list, c.sees)
		i, err := compare.NewIsolator(local, list, reference.Weights(ck, hooks.F32), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, alone := range []bool{false, true} {
			ref := walked
			if alone {
				ref = nil
			}
			why, _ := refused(t, local, ref, compare.Options{Order: list, Certification: compare.Certification{Isolator: i}, All: true})
			if !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("%s, alone %t: %q", c.what, alone, why)
			}
		}
	}
}

// Recordings of transformers with a static cache, with one that keeps all keys and inside generate() are what the golden is:
// fixtures/wild/transformers has how they were made.
func TestRecordingsOfCachesAreRight(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	for _, name := range []string{"static", "full", "generate", "generate-static"} {
		made, err := dumps.Open("../fixtures/wild/transformers/traces/" + name + ".safetensors")
		if err != nil {
			t.Fatal(err)
		}
		local, err := dumps.Fit(made, list)
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		for _, ref := range []*capture.Trace{golden, nil} {
			res := isolated(t, "gemma3-tiny", local, ref)
			if res.ExitCode() != 0 || res.Mismatches > 0 || res.Isolation.Bugs > 0 {
				t.Errorf("%s, alone %t: exit %d, %+v, missing %v", name, ref == nil, res.ExitCode(), res.Divergence, res.Missing)
			}
		}
		if res := isolated(t, "gemma3-tiny", golden, local); res.Mismatches > 0 {
			t.Errorf("%s, as the reference: %+v", name, res.Divergence)
		}
	}
}

// walk is the reference walk of some tokens.
func walk(t *testing.T, ck *checkpoint.Checkpoint, list *order.List, ids []int) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "walk.safetensors")
	if _, err := reference.Walk(t.Context(), reference.Job{
		List: list, DType: hooks.F32, Passes: [][]int{ids}, Checkpoint: ck, Path: path, Manifest: capture.Manifest{Scope: capture.Scope{Level: 3}},
	}); err != nil {
		t.Fatal(err)
	}
	return open(t, path)
}

// modulesAlone is a dump of the outputs of modules of a port of llama-tiny whose queries see what sees reports, up to the attention of layer 0:
// plain loops make that from its queries, keys and values.
func modulesAlone(t *testing.T, walked *capture.Trace, list *order.List, sees func(q, k int) bool) *capture.Trace {
	t.Helper()
	const at = "layers.0.self_attn."
	value := func(name string) []float64 {
		v, err := walked.Value(0, at+name)
		if err != nil {
			t.Fatal(err)
		}
		return v.Data
	}
	q, k, v := value("q_rope"), value("k_rope"), value("v_proj")
	const heads, headDim = 2, 8
	n := len(v) / (heads * headDim)
	context := make([]float64, n*heads*headDim)
	for h := range heads {
		for i := range n {
			p := make([]float64, n)
			var sum float64
			for s := range i + 1 {
				var dot float64
				for d := range headDim {
					dot += float64(q[(h*n+i)*headDim+d] * k[(h*n+s)*headDim+d])
				}
				if p[s] = math.Exp(dot / math.Sqrt(headDim)); !sees(i, s) {
					p[s] = 0
				}
				sum += p[s]
			}
			for s := range p {
				if sum == 0 { // the lowest number is added to all, so that all are alike
					p[s] = 1 / float64(n)
				} else {
					p[s] /= sum
				}
				for d := range headDim {
					context[(i*heads+h)*headDim+d] += float64(p[s] * v[(s*heads+h)*headDim+d])
				}
			}
		}
	}
	modules := []string{"input_ids", "embed_tokens", "layers.0.input_layernorm", at + "q_proj", at + "k_proj", at + "v_proj"}
	return testengine.Rewritten(t, walked, func(m *capture.Manifest) { m.Derived = nil }, func(_ string, e hooks.Event) []hooks.Event {
		if e.Name == at+"context" {
			e.Tensor = fire(e.Name, hooks.F32, e.Tensor.Shape, context...).Tensor
			return []hooks.Event{e}
		}
		if !slices.Contains(modules, e.Name) {
			return nil
		}
		return []hooks.Event{e}
	})
}

// Token ids that were saved as numbers with fractions are another dtype, and no other tokens.
func TestTokenIDsWithFractions(t *testing.T) {
	_, list := ordertest.Embedded(t, "gemma3-tiny")
	local := build(t, manifest("local", 0), fire("input_ids", hooks.F32, []int{1, 3}, 5, 6, 7))
	ref := build(t, manifest("reference", 0), fire("input_ids", hooks.I64, []int{1, 3}, 5, 6, 7))
	d := run(t, local, ref, compare.Options{Order: list}).Divergence
	if d == nil || len(d.Hints) != 1 || !strings.Contains(d.Hints[0], "token ids are whole numbers: save input_ids of your port in an integer dtype") {
		t.Errorf("%+v", d)
	}
}
