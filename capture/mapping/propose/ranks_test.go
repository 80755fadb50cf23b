package propose_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/tracediff/tracediff/internal/seeds"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/capture/mapping/propose"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// piece is the part of a tensor that lies between two indexes of an axis.
func piece(data []byte, shape []int, axis, from, to int) ([]byte, []int) {
	inner := 4
	for _, n := range shape[axis+1:] {
		inner *= n
	}
	var out []byte
	for at := 0; at < len(data); at += shape[axis] * inner {
		out = append(out, data[at+from*inner:at+to*inner]...)
	}
	part := slices.Clone(shape)
	part[axis] = to - from
	return out, part
}

// halves are two float32 tensors of which one is the sum: the second has every other element, times two, less than all.
func halves(data []byte) (a, b []byte) {
	for i := 0; i < len(data); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(data[i:]))
		y := x / 2 // both are exact
		if i%8 == 0 {
			y = -x
		}
		a = binary.LittleEndian.AppendUint32(a, math.Float32bits(x-y))
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(y))
	}
	return a, b
}

// restored holds the tensors that a proposed map makes of a dump to those of a trace, and returns how many there are.
func restored(t *rapid.T, dump, trace *capture.Trace, list *order.List) int {
	p, err := propose.Map(t.Context(), dump, dump, list, trace, propose.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := p.Write(&b, "dump", "golden"); err != nil {
		t.Fatal(err)
	}
	if len(p.Choices)+len(p.Left) > 0 {
		t.Fatalf("choices and left:\n%s", b.String())
	}
	m, err := mapping.Parse("map.toml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	a, err := m.Apply(dump, list)
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if len(a.Differ) > 0 {
		t.Fatal(a.Differ)
	}
	for _, r := range a.Trace.Records() {
		want, ok := trace.Lookup(0, r.Name)
		if !ok {
			t.Fatalf("%s\n%s", r.Name, b.String())
		}
		got, data := make([]byte, r.Size), make([]byte, want.Size)
		if _, err := a.Trace.ReadAt(r, got, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.ReadAt(want, data, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data) {
			t.Fatalf("%s of shape %v is not the reference's\n%s", r.Name, r.Shape, b.String())
		}
	}
	return len(a.Trace.Records())
}

// Whatever two ranks have of a tensor, the same, partial sums or parts along an axis, the map that is proposed puts it together.
func TestRanksArePutTogether(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	kinds := []string{"embed_tokens", "norm", "layers.%d.input_layernorm", "layers.%d.self_attn.q_proj", "layers.%d.self_attn.q_rope", "layers.%d.self_attn.k_rope", "layers.%d.self_attn.context", "layers.%d.mlp.gate_proj", "layers.%d.mlp.down_proj"}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"rank%d/%s", "tp_%d.%s", "gpu%02d-%s", "my.shard_%d/%s"}).Draw(t, "name")
		unknown := rapid.Bool().Draw(t, "unknown names")
		sources := []capture.Source{}
		r, ids := mappingtest.Raw(t, trace, 0, order.InputIDs)
		sources = append(sources, capture.Source{Key: r.Name, Name: r.Name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(ids)})
		for n, kind := range rapid.Permutation(kinds).Draw(t, "kinds")[:3] {
			how := rapid.SampledFrom([]string{"same", "sum", "parts"}).Draw(t, kind)
			axis := -1
			for l := range list.Config.NumLayers {
				of, to := kind, kind
				if strings.Contains(kind, "%d") {
					of, to = fmt.Sprintf(kind, l), fmt.Sprintf(kind, l)
				} else if l > 0 {
					break
				}
				if unknown {
					to = fmt.Sprintf("block%d.thing%c", l, 'a'+rune(n))
					if of == kind {
						to = fmt.Sprintf("thing%c", 'a'+rune(n))
					}
				}
				r, data := mappingtest.Raw(t, trace, 0, of)
				if axis < 0 {
					axis = rapid.SampledFrom(divisible(r.Shape)).Draw(t, "axis")
				}
				for rank := range 2 {
					part, shape := data, r.Shape
					switch how {
					case "sum":
						a, b := halves(data)
						part = [][]byte{a, b}[rank]
					case "parts":
						half := r.Shape[axis] / 2
						part, shape = piece(data, r.Shape, axis, rank*half, (rank+1)*half)
					}
					key := fmt.Sprintf(name, rank, to)
					sources = append(sources, capture.Source{Key: key, Name: key, DType: r.DType, Shape: shape, Data: bytes.NewReader(part)})
				}
			}
		}
		dump, err := capture.Assemble("dump", sources, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		restored(t, dump, trace, list)
	})
}

// divisible are the axes that two ranks can have in parts.
func divisible(shape []int) (axes []int) {
	for i, n := range shape {
		if n%2 == 0 {
			axes = append(axes, i)
		}
	}
	return axes
}

// Stages of a pipeline, even or not, that count their layers from 0 or go on counting, have the layers of the whole.
func TestStagesHaveTheLayersOfTheWhole(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"stage%d.layers.%d.%s", "pp%d/layers.%d.%s", "pp_rank=%d/blk.%d.%s", "rank%d.model.layers.%d.%s"}).Draw(t, "name")
		first := rapid.IntRange(1, 2).Draw(t, "layers of the first stage")
		global := rapid.Bool().Draw(t, "goes on counting")
		r, ids := mappingtest.Raw(t, trace, 0, order.InputIDs)
		sources := []capture.Source{{Key: r.Name, Name: r.Name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(ids)}}
		all := []string{"out", "self_attn.o_proj"}
		for l := range list.Config.NumLayers {
			stage, layer := 0, l
			if l >= first {
				if stage = 1; !global {
					layer = l - first
				}
			}
			for _, of := range all {
				r, data := mappingtest.Raw(t, trace, 0, fmt.Sprintf("layers.%d.%s", l, of))
				key := fmt.Sprintf(name, stage, layer, of)
				sources = append(sources, capture.Source{Key: key, Name: key, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})
			}
		}
		dump, err := capture.Assemble("dump", sources, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := restored(t, dump, trace, list); n != 1+len(all)*list.Config.NumLayers {
			t.Fatalf("%d tensors", n)
		}
	})
}

// Query, key and value of the heads of a rank in one tensor are cut on each rank, and then put behind each other: q0 q1, k0 k1, v0 v1.
func TestRanksOfFusedTensors(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	r, ids := mappingtest.Raw(t, trace, 0, order.InputIDs)
	sources := []capture.Source{{Key: r.Name, Name: r.Name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(ids)}}
	tokens := r.Shape[1]
	for l := range list.Config.NumLayers {
		for rank := range 2 {
			var joined []byte
			for token := range tokens {
				for _, p := range []string{"q_proj", "k_proj", "v_proj"} {
					x, data := mappingtest.Raw(t, trace, 0, fmt.Sprintf("layers.%d.self_attn.%s", l, p))
					half := x.Shape[2] / 2 * 4
					joined = append(joined, data[token*2*half+rank*half:][:half]...)
				}
			}
			key := fmt.Sprintf("tp%d.layer%d.qkv", rank, l)
			sources = append(sources, capture.Source{Key: key, Name: key, DType: hooks.F32, Shape: []int{tokens, len(joined) / 4 / tokens}, Data: bytes.NewReader(joined)})
		}
	}
	dump := mappingtest.Assembled(t, sources...)
	p, text := proposed(t, dump, list, trace)
	if len(p.Lines) != 1 || len(p.Choices)+len(p.Left) > 0 || !strings.Contains(text, `axes = "t c -> 1 t c", split = "c: 12 | 6 | 6", join = "c" } # values: 3 of 3; the ranks concatenated`) {
		t.Fatal(text)
	}
	a := remade(t, dump, list, text)
	for _, name := range []string{"layers.0.self_attn.q_proj", "layers.1.self_attn.k_proj", "layers.2.self_attn.v_proj"} {
		_, want := mappingtest.Raw(t, trace, 0, name)
		if _, got := mappingtest.Raw(t, a.Trace, 0, name); !bytes.Equal(got, want) {
			t.Errorf("%s is not the reference's\n%s", name, text)
		}
	}
}

// Whatever names and shapes a dump has, the lines that are proposed are a map that can be applied to it.
func TestProposedMapsApply(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/prefill.float32")
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"rank%d/", "tp%d.", "stage%d.", "step_%d/", "pass%d/", "layers.%d.", "block%d/", "layer%d_", "%d.", "x", "norm", "self_attn.q_proj", "qkv", "logits", "{a}", "#1", "\n", "\x00"})
		sources := []capture.Source{}
		taken := map[string]bool{}
		for n := range rapid.IntRange(1, 12).Draw(t, "tensors") {
			name := ""
			for range rapid.IntRange(1, 4).Draw(t, "words") {
				w := word.Draw(t, "word")
				if strings.Contains(w, "%d") {
					w = fmt.Sprintf(w, rapid.IntRange(0, 3).Draw(t, "number"))
				}
				name += w
			}
			if taken[name] {
				continue
			}
			taken[name] = true
			if rapid.Bool().Draw(t, "of the reference") {
				r := trace.Records()[rapid.IntRange(0, len(trace.Records())-1).Draw(t, "tensor")]
				_, data := mappingtest.Raw(t, trace, 0, r.Name)
				sources = append(sources, capture.Source{Key: name, Name: name, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})
				continue
			}
			shape := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 2, 4, 6, 10, 16, 24}), 0, 4).Draw(t, "shape")
			s := mappingtest.Counted(name, 0, n, shape...)
			s.Key = name
			sources = append(sources, s)
		}
		dump, err := capture.Assemble("dump", sources, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Skip(err)
		}
		ref := trace
		if rapid.Bool().Draw(t, "no reference") {
			ref = nil
		}
		p, err := propose.Map(t.Context(), dump, dump, list, ref, propose.Options{})
		if err != nil {
			if err == propose.ErrNoTokens {
				return
			}
			t.Fatal(err)
		}
		var b strings.Builder
		if err := p.Write(&b, "dump", "golden"); err != nil {
			t.Fatal(err)
		}
		if len(p.Lines) == 0 {
			return
		}
		m, err := mapping.Parse("map.toml", []byte(b.String()))
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		if _, err := m.Apply(dump, list); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
	})
}
