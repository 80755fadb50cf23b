package weights_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/compare/weights"
	"github.com/tracediff/tracediff/internal/dump"
	"github.com/tracediff/tracediff/internal/gguf"
	"github.com/tracediff/tracediff/internal/quant"
)

// TestGroupsAreJudgedAsElementsAre: a tensor of blocks in which some bytes were changed gets the same class by its groups, which is the quick
// way, and by its elements one by one.
func TestGroupsAreJudgedAsElementsAre(t *testing.T) {
	const rows, columns = 8, 256
	f, err := dump.Open("../../fixtures/weights/wide/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var original weights.Side
	for i := range f.Tensors {
		if x := &f.Tensors[i]; x.Name == "model.layers.0.mlp.up_proj.weight" {
			raw := make([]byte, x.Size())
			if _, err := x.ReadAt(raw, 0); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			original.Tensors = []*weights.Tensor{{Name: "w", Shape: []int{rows, columns}, DType: x.DType, Data: bytes.NewReader(raw)}}
		}
	}
	formats := map[string]quant.Block{"wide.Q8_0.gguf": quant.Q8_0, "wide.Q4_K.gguf": quant.Q4_K, "wide.Q6_K.gguf": quant.Q6_K}
	blocks := map[string][]byte{}
	for name, b := range formats {
		data, err := os.ReadFile("../../fixtures/weights/" + name)
		if err != nil {
			t.Fatal(err)
		}
		g, err := gguf.Read(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range g.Tensors {
			if x.Name == "blk.0.ffn_up.weight" {
				blocks[name] = data[x.Offset:][:rows*columns/b.Elements()*b.Bytes()]
			}
		}
	}
	class := func(t *rapid.T, q *quant.Tensor, quick bool) weights.Class {
		p := q.Planes()
		local := &weights.Tensor{Name: "w", Shape: []int{rows, columns}, DType: q.Dense().DType, Data: p.Values}
		local.Coding = q.Coding(p.Readers())
		if quick {
			local.Coding.Data().Codes = q
		}
		r, err := weights.Compare(context.Background(), weights.Side{Tensors: []*weights.Tensor{local}}, original, weights.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return r.Tensors[0].Class
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"wide.Q8_0.gguf", "wide.Q4_K.gguf", "wide.Q6_K.gguf"}).Draw(t, "file")
		raw := bytes.Clone(blocks[name])
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			raw[rapid.IntRange(0, len(raw)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		q := formats[name].Tensor("w", []int{rows, columns}, bytes.NewReader(raw), 0)
		if quick, slow := class(t, q, true), class(t, q, false); quick.Right() != slow.Right() {
			t.Fatalf("%s by its groups, %s by its elements", quick, slow)
		}
	})
}
