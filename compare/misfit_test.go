package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order/ordertest"
)

// replaced is a trace with other tensors of some keys.
func replaced(t testing.TB, from *capture.Trace, keys []string, by func(hooks.Tensor) hooks.Tensor) *capture.Trace {
	t.Helper()
	return testengine.Rewritten(t, from, nil, func(key string, e hooks.Event) []hooks.Event {
		if slices.Contains(keys, key) {
			e.Tensor = by(e.Tensor)
		}
		return []hooks.Event{e}
	})
}

// isolated compares with a reference, all entries of both certified; without one, ref nil, the trace is alone.
func isolated(t testing.TB, dir string, local, ref *capture.Trace) *compare.Result {
	t.Helper()
	ck, list := ordertest.Embedded(t, dir)
	o := compare.Options{Order: list, All: true}
	make := func(trace *capture.Trace) *compare.Isolator {
		i, err := compare.NewIsolator(trace, list, reference.Weights(ck, trace.Manifest().DType), isolate.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	o.Isolator = make(local)
	if ref != nil {
		o.ReferenceIsolator = make(ref)
	}
	return run(t, local, ref, o)
}

// rowOfKey is the row of a key.
func rowOfKey(t testing.TB, res *compare.Result, key string) compare.Row {
	t.Helper()
	for _, r := range res.Rows {
		if r.Key() == key {
			return r
		}
	}
	t.Fatalf("no row %s", key)
	return compare.Row{}
}

// in another dtype, a tensor has all its numbers rounded to it.
func as(d hooks.DType) func(hooks.Tensor) hooks.Tensor {
	return func(x hooks.Tensor) hooks.Tensor {
		out := hooks.Tensor{DType: d, Shape: x.Shape}
		for _, v := range elementsOf(x) {
			out.Data = appendValue(out.Data, d, v)
		}
		return out
	}
}

// Whole numbers are no result of an operation on fractions: the entry is a mismatch whoever it is compared with, none of it
// is certified, and what was computed from it is not either. A fault elsewhere is found all the same.
func TestIntegersAreNoFractions(t *testing.T) {
	const dir, entry, behind, elsewhere = "gemma3-tiny", "layers.1.mlp.gate_proj", "layers.1.mlp.act_fn", "layers.2.mlp.up_proj"
	golden := testengine.OpenGolden(t, "golden/"+dir+"/prefill.float32.safetensors")
	for _, d := range []hooks.DType{hooks.I32, hooks.I64, hooks.Bool} {
		for _, alone := range []bool{true, false} {
			local := replaced(t, replaced(t, golden, []string{elsewhere}, byFactor(1.01)), []string{entry}, as(d))
			ref := golden
			if alone {
				ref = nil
			}
			res := isolated(t, dir, local, ref)
			r := rowOfKey(t, res, entry)
			if r.Verdict != compare.Mismatch || r.Isolated != nil || !strings.Contains(r.NotIsolated, "is "+d.String()+", not float32") {
				t.Errorf("%s, alone %t: %s %s (%s), %+v, not isolated: %q", d, alone, r.Verdict, r.Class, r.Detail, r.Isolated, r.NotIsolated)
			}
			if alone && r.Class != gate.DType {
				t.Errorf("%s alone is %s", d, r.Class)
			}
			if b := rowOfKey(t, res, behind); b.Isolated != nil || !strings.Contains(b.NotIsolated, "computed from "+entry+", which is "+d.String()) || b.Verdict == compare.Mismatch {
				t.Errorf("%s, alone %t: behind it %s, %+v, %q", d, alone, b.Verdict, b.Isolated, b.NotIsolated)
			}
			if e := rowOfKey(t, res, elsewhere); e.Blame != compare.Root || res.ExitCode() != 1 {
				t.Errorf("%s, alone %t: the other fault is %s %s, exit %d", d, alone, e.Verdict, e.Blame, res.ExitCode())
			}
		}
	}
}

// A tensor of another shape than the order gives it, be it as many elements or more or fewer, is a mismatch of its own and
// keeps nothing but what was computed from it from being certified.
func TestOtherShapesAreOneMismatch(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	shapes := []struct {
		what string
		of   func([]int) []int
	}{
		{"no batch", func(s []int) []int { return s[1:] }},
		{"one more axis", func(s []int) []int { return append([]int{1}, s...) }},
		{"none at all", func([]int) []int { return nil }},
		{"empty", func(s []int) []int { return append([]int{0}, s[1:]...) }},
		{"one column more", func(s []int) []int { return append(slices.Clone(s[:len(s)-1]), s[len(s)-1]+1) }},
		{"the other way", func(s []int) []int { s = slices.Clone(s); slices.Reverse(s); return append(s, 3) }},
		{"thrice as many", func(s []int) []int { return append([]int{3}, s[1:]...) }},
	}
	keys := []string{"pass1/layers.1.mlp.down_proj", "layers.1.self_attn.keys", "pass2/layers.1.self_attn.values", "pass1/layers.0.self_attn.scores", "pass1/mask.sliding", "pass1/position_ids", "layers.0.self_attn.k_rope"}
	for i, shape := range shapes {
		for k, key := range keys {
			if (i+k)%3 == 0 { // each key has some of the shapes, and each shape some of the keys
				testOtherShape(t, golden, key, shape.what, shape.of)
			}
		}
	}
}

// A cache with one key too many is one mistake: where the next pass finds its keys is not looked for in it.
func TestOneKeyTooManyIsNoLayout(t *testing.T) {
	const key = "pass1/layers.2.self_attn.keys"
	golden := testengine.OpenGolden(t, "golden/gemma3n-tiny/decode.float32.safetensors")
	local := replaced(t, golden, []string{key}, func(x hooks.Tensor) hooks.Tensor {
		heads, keys, width := x.Shape[1], x.Shape[2], x.Shape[3]*x.DType.Size()
		out := hooks.Tensor{DType: x.DType, Shape: []int{1, heads, keys + 1, x.Shape[3]}}
		for h := range heads {
			head := x.Data[h*keys*width:][:keys*width]
			out.Data = append(append(out.Data, head...), head[:width]...) // the first once more
		}
		return out
	})
	if res := isolated(t, "gemma3n-tiny", local, nil); !slices.Equal(res.Roots, []string{key}) || len(res.Layouts) > 0 {
		t.Errorf("accused %v, layouts %v", res.Roots, res.Layouts)
	}
}

// Keys of other heads than the order has, be they shared with other layers or from others, are one mismatch and no layout.
func TestSharedKeysOfOtherHeads(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3n-tiny/decode.float32.safetensors")
	for layer := range 7 {
		key, heads := fmt.Sprintf("pass1/layers.%d.self_attn.keys", layer), []int{0, 1, 4}[layer%3]
		local := replaced(t, golden, []string{key}, func(x hooks.Tensor) hooks.Tensor {
			shape := slices.Clone(x.Shape)
			shape[1] = heads
			n, _ := hooks.Elements(shape)
			return hooks.Tensor{DType: x.DType, Shape: shape, Data: append(slices.Clone(x.Data), x.Data...)[:n*x.DType.Size()]}
		})
		if res := isolated(t, "gemma3n-tiny", local, nil); !slices.Equal(res.Roots, []string{key}) || rowOfKey(t, res, key).Class != gate.Shape {
			t.Errorf("%s of %d heads: accused %v", key, heads, res.Roots)
		}
	}
}

// A trace with some passes has tensors of passes of which the token ids before are not known, and so not the sizes: they
// are compared, and not isolated.
func TestPassesWithoutIDsBeforeThem(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/decode.float32.safetensors")
	some := capture.Ranges{{From: 0, To: 0}, {From: 2, To: capture.NoEnd}}
	local := testengine.Rewritten(t, golden, func(m *capture.Manifest) { m.Scope.Passes = some }, func(_ string, e hooks.Event) []hooks.Event {
		if !some.Has(e.Pass) {
			return nil
		}
		return []hooks.Event{e}
	})
	res := isolated(t, "gemma3-tiny", local, golden)
	if r := rowOfKey(t, res, "pass2/logits"); r.Verdict != compare.Match || r.NotIsolated == "" || res.Mismatches > 0 {
		t.Errorf("%s, not isolated: %q, %d mismatches", r.Verdict, r.NotIsolated, res.Mismatches)
	}
}

func testOtherShape(t *testing.T, golden *capture.Trace, key, what string, shape func([]int) []int) {
	const elsewhere = "pass1/logits"
	local := replaced(t, replaced(t, golden, []string{elsewhere}, byFactor(1.01)), []string{key}, func(x hooks.Tensor) hooks.Tensor {
		out := hooks.Tensor{DType: x.DType, Shape: shape(x.Shape)}
		n, _ := hooks.Elements(out.Shape)
		for len(out.Data) < n*x.DType.Size() {
			out.Data = append(out.Data, x.Data...)
		}
		out.Data = out.Data[:n*x.DType.Size()]
		return out
	})
	for _, ref := range []*capture.Trace{nil, golden} {
		res := isolated(t, "gemma3-tiny", local, ref)
		if r := rowOfKey(t, res, key); r.Verdict != compare.Mismatch || r.Class != gate.Shape || r.Isolated != nil {
			t.Errorf("%s %s, reference %t: %s %s (%s), %+v", key, what, ref != nil, r.Verdict, r.Class, r.Detail, r.Isolated)
		}
		behind := 0
		for _, r := range res.Rows {
			if strings.Contains(r.NotIsolated, "computed from "+key+", which has shape") {
				behind++
			}
		}
		if e := rowOfKey(t, res, elsewhere); behind == 0 || e.Blame != compare.Root || res.ExitCode() != 1 {
			t.Errorf("%s %s, reference %t: %d not isolated, the other fault is %s %s", key, what, ref != nil, behind, e.Verdict, e.Blame)
		}
		others := slices.DeleteFunc(slices.Clone(res.Roots), func(root string) bool { return root == key || root == elsewhere })
		if n := res.Isolation.Certified; len(others) > 0 || n < 430 {
			t.Errorf("%s %s, reference %t: %v accused beside, %d certified", key, what, ref != nil, others, n)
		}
	}
}

// A tensor with fewer digits than the model computes in is not the model's, though every one of them is right: alone that is
// a mismatch of the dtype, as it is with a reference. What was computed from all the digits is accused of nothing.
func TestFewerDigitsAreNotExact(t *testing.T) {
	for _, c := range []struct {
		golden, key string
		as          hooks.DType
	}{
		{"prefill.float32", "logits", hooks.BF16},
		{"prefill.float32", "logits", hooks.F8E4M3},
		{"prefill.float32", "layers.1.mlp.down_proj", hooks.BF16},
		{"prefill.bfloat16", "layers.1.mlp.down_proj", hooks.F8E4M3},
		{"prefill.bfloat16", "layers.0.self_attn.probs_f32", hooks.BF16},
	} {
		golden := testengine.OpenGolden(t, "golden/gemma3-tiny/"+c.golden+".safetensors")
		local := replaced(t, golden, []string{c.key}, as(c.as))
		for _, ref := range []*capture.Trace{nil, golden} {
			res := isolated(t, "gemma3-tiny", local, ref)
			if r := rowOfKey(t, res, c.key); r.Verdict != compare.Mismatch || r.Isolated != nil || ref == nil && r.Class != gate.DType || !strings.Contains(r.NotIsolated, "is "+c.as.String()+", not ") {
				t.Errorf("%s as %s, reference %t: %s %s (%s), %+v", c.key, c.as, ref != nil, r.Verdict, r.Class, r.Detail, r.Isolated)
			}
			if others := slices.DeleteFunc(slices.Clone(res.Roots), func(root string) bool { return root == c.key }); len(others) > 0 || res.ExitCode() != 1 {
				t.Errorf("%s as %s, reference %t: %v accused, exit %d", c.key, c.as, ref != nil, others, res.ExitCode())
			}
		}
	}
	// More digits than the order's are an engine's own arithmetic.
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	if res := isolated(t, "gemma3-tiny", replaced(t, golden, []string{"layers.1.mlp.down_proj"}, as(hooks.F64)), nil); res.ExitCode() != 0 {
		t.Errorf("float64 in a float32 trace: exit %d, %+v", res.ExitCode(), res.Divergence)
	}
}

// byFactor is every element times a factor.
func byFactor(by float64) func(hooks.Tensor) hooks.Tensor {
	return func(x hooks.Tensor) hooks.Tensor {
		out := hooks.Tensor{DType: x.DType, Shape: x.Shape}
		for _, v := range elementsOf(x) {
			out.Data = appendValue(out.Data, x.DType, v*by)
		}
		return out
	}
}

func elementsOf(x hooks.Tensor) []float64 {
	v := make([]float64, len(x.Data)/x.DType.Size())
	if err := floats.Decode(v, x.DType, x.Data); err != nil {
		panic(err)
	}
	return v
}
