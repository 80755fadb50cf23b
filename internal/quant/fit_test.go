package quant_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
)

// all are the block formats.
var all = []quant.Block{quant.Q4_0, quant.Q4_1, quant.Q5_0, quant.Q5_1, quant.Q8_0, quant.Q4_K, quant.Q5_K, quant.Q6_K}

// of is a tensor of n zero elements in a format.
func of(b quant.Block, n int) *quant.Tensor {
	return b.Tensor(b.String(), []int{n}, bytes.NewReader(make([]byte, n/b.Elements()*b.Bytes())), 0)
}

// mlx is a tensor of n zero elements as MLX stores them.
func mlx(t testing.TB, bits, group string, scale hooks.DType, n, words, groups int) *quant.Tensor {
	t.Helper()
	part := func(name string, d hooks.DType, n int) container.Tensor {
		return container.Tensor{Name: name, DType: d, Shape: []int{1, n}, Data: bytes.NewReader(make([]byte, n*d.Size()))}
	}
	found, _, err := quant.Find([]container.Tensor{part("a.weight", hooks.U32, words), part("a.scales", scale, groups), part("a.biases", scale, groups)},
		[]byte(`{"quantization": {"bits": `+bits+`, "group_size": `+group+`}}`))
	if err != nil || found[0].Elements() != int64(n) {
		t.Fatalf("%v", err)
	}
	return found[0]
}

// values are numbers as weights have them, or worse: of any scale, on one side, with outliers, of a dtype that a writer takes them in.
func values(t *rapid.T, n int) []float32 {
	seed := rapid.Uint64().Draw(t, "seed")
	size := math.Exp2(rapid.Float64Range(-30, 8).Draw(t, "size"))
	shift := rapid.SampledFrom([]float64{0, 0, 0, 1, -1, 20}).Draw(t, "shift")
	outlier := rapid.SampledFrom([]float64{1, 1, 8, 1000}).Draw(t, "outlier")
	zeros := rapid.SampledFrom([]float64{0, 0, 0.5, 1}).Draw(t, "zeros")
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		v := (r.NormFloat64() + shift) * size
		switch u := r.Float64(); {
		case u < zeros:
			v = 0
		case u > 0.98:
			v *= outlier
		}
		x[i] = float32(max(-60000, min(60000, v)))
	}
	return x
}

// taken is x as a writer takes it: as it is, or rounded to a narrower dtype first.
func taken(t *rapid.T, x []float32) []float32 {
	out := make([]float32, len(x))
	by := rapid.SampledFrom([]func(float32) float32{func(v float32) float32 { return v }, floats.RoundBF16, floats.RoundF16}).Draw(t, "taken in")
	for i, v := range x {
		out[i] = by(v)
	}
	return out
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// What the usual writer makes of any values is never called wrong, whatever it took them in; and of its own values it is exact.
func TestHealthyFits(t *testing.T) {
	const n = 512
	tensors := []*quant.Tensor{mlx(t, "4", "64", hooks.BF16, n, n/8, n/64), mlx(t, "8", "32", hooks.F16, n, n/4, n/32), mlx(t, "8", "128", hooks.BF16, n, n/4, n/128)}
	for _, b := range all {
		tensors = append(tensors, of(b, n))
	}
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom(tensors).Draw(t, "format")
		x := values(t, n)
		var c quant.Codes
		if !q.Usual(&c, taken(t, x), 0) {
			t.Fatal("no usual writer")
		}
		var f quant.Fit
		f.Add(wide(x), &c, 0)
		if f.Wrong > 0 || f.Nonfinite > 0 || f.Elements != n {
			t.Fatalf("%s: %d wrong, %d not finite: %+v", q.Scheme.Name, f.Wrong, f.Nonfinite, f.Worst)
		}
		if f.Nearest2 > f.Error2*(1+1e-9) {
			t.Fatalf("the nearest codes are worse: %v, %v", f.Nearest2, f.Error2)
		}
		own := make([]float32, n)
		c.Values(own)
		exact := quant.Fit{}
		exact.Add(wide(own), &c, 0)
		if exact.Wrong > 0 || exact.Other > 0 {
			t.Fatalf("%s: of its own values %d are wrong, %d not the nearest", q.Scheme.Name, exact.Wrong, exact.Other)
		}
	})
}

// A code that is moved by two steps or more is found, where it is; so is a step that is off by an exponent, and one that is not a number.
func TestPlantedMistakes(t *testing.T) {
	const n = 512
	r := rand.New(rand.NewPCG(3, 4))
	x := make([]float32, n)
	for i := range x {
		x[i] = floats.RoundBF16(float32(r.NormFloat64() * 0.05))
	}
	for _, b := range all {
		q := of(b, n)
		var c quant.Codes
		q.Usual(&c, x, 0)
		for i := range c.Code {
			for _, by := range []int{-3, 3} {
				code := int(c.Code[i]) + by
				if code < c.Lo || code > c.Hi || c.Step[i/c.Group] == 0 {
					continue
				}
				c.Code[i] = int16(code)
				var f quant.Fit
				f.Add(wide(x), &c, 1000)
				if f.Wrong != 1 || f.First.Element != int64(1000+i) || f.First != f.Worst || f.First.Code != code || f.First.Steps < 2 || f.First.Steps > 4 {
					t.Fatalf("%s: code %d moved by %d: %d wrong, first %+v", b, i, by, f.Wrong, f.First)
				}
				c.Code[i] -= int16(by)
			}
		}
		for _, by := range []float64{0.5, 2, -1} {
			g := len(c.Step) / 2
			was := c.Step[g]
			c.Step[g] *= by
			var f quant.Fit
			f.Add(wide(x), &c, 0)
			if at := int64(g * c.Group); f.Wrong < int64(c.Group)/4 || f.First.Element < at || f.First.Element >= at+int64(c.Group) {
				t.Errorf("%s: step times %v: %d wrong, first %+v", b, by, f.Wrong, f.First)
			}
			c.Step[g] = was
		}
		// The step of an ordinary group becomes zero: nothing can be told from the codes.
		at := c.Group
		was := c.Step[1]
		c.Step[1] = 0
		var zero quant.Fit
		zero.Add(wide(x), &c, 0)
		if zero.Wrong < int64(c.Group)*3/4 || zero.First.Element < int64(at) || zero.First.Element > int64(at+4) || !math.IsInf(zero.First.Steps, 1) {
			t.Errorf("%s: a step of zero: %d wrong, first %+v", b, zero.Wrong, zero.First)
		}
		c.Step[1] = was
		c.Step[1] = math.NaN()
		var f quant.Fit
		f.Add(wide(x), &c, 0)
		if f.Nonfinite != int64(c.Group) || f.Bad != int64(c.Group) || f.Wrong != 0 {
			t.Errorf("%s: a step that is NaN: %d not finite from %d on, %d wrong", b, f.Nonfinite, f.Bad, f.Wrong)
		}
	}
}

// FuzzBlocks looks for blocks that make a decoder panic, give a code that the format does not have, or are wrong of their own values.
func FuzzBlocks(f *testing.F) {
	f.Add(uint8(1), []byte("a block of q4_0..."))
	f.Add(uint8(6), bytes.Repeat([]byte{0x11, 0x2c, 0x83, 0x29, 0xff}, 60))
	f.Add(uint8(8), bytes.Repeat([]byte{0x7f, 0x80, 0x00, 0x3c}, 60))
	f.Fuzz(func(t *testing.T, format uint8, raw []byte) {
		b := all[int(format)%len(all)]
		blocks := len(raw) / b.Bytes()
		if blocks == 0 {
			return
		}
		n := blocks * b.Elements()
		q := b.Tensor("fuzzed", []int{n}, bytes.NewReader(raw), 0)
		var c quant.Codes
		if err := q.Reader().Codes(&c, 0, n); err != nil {
			t.Fatal(err)
		}
		x := make([]float32, n)
		c.Values(x)
		var fit quant.Fit
		fit.Add(wide(x), &c, 0)
		for _, code := range c.Code {
			if int(code) < c.Lo || int(code) > c.Hi {
				t.Fatalf("%s: code %d", b, code)
			}
		}
		if fit.Wrong > 0 || fit.Elements != int64(n) {
			t.Fatalf("%s: %d of its own values are wrong: %+v", b, fit.Wrong, fit.First)
		}
		q.Usual(&c, x, 0)
	})
}

// FuzzPacked looks for packed parts that make a reader panic: shapes, settings and an index of groups that disagree.
func FuzzPacked(f *testing.F) {
	f.Add([]byte(`{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 16}}`), int64(8), int64(16), int64(4), []byte("codes and scales"))
	f.Add([]byte(`{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 16}}`), int64(64), int64(2), int64(4), []byte{1, 2, 3})
	f.Add([]byte(`{"quantization": {"bits": 4, "group_size": 32}}`), int64(4), int64(8), int64(2), []byte{255})
	f.Add([]byte(`{}`), int64(4), int64(8), int64(1), []byte{255, 0, 1})
	f.Fuzz(func(t *testing.T, config []byte, rows, cols, groups int64, raw []byte) {
		if rows < 0 || cols < 0 || groups < 0 || rows > 1<<6 || cols > 1<<6 || groups > 1<<6 {
			return
		}
		part := func(name string, d hooks.DType, shape ...int64) container.Tensor {
			x := container.Tensor{Name: name, DType: d}
			size := int64(d.Size())
			for _, n := range shape {
				x.Shape = append(x.Shape, int(n))
				size *= n
			}
			data := make([]byte, size)
			for i := range data {
				if len(raw) > 0 {
					data[i] = raw[i%len(raw)]
				}
			}
			x.Data = bytes.NewReader(data)
			return x
		}
		shape := part("d.weight_shape", hooks.I64, 2)
		shape.Data = bytes.NewReader(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rows)), uint64(cols*8)))
		for _, tensors := range [][]container.Tensor{
			{part("a.qweight", hooks.I32, rows, cols), part("a.qzeros", hooks.I32, groups, cols), part("a.scales", hooks.F16, groups, cols*8)},
			{part("a.qweight", hooks.I32, rows, cols), part("a.qzeros", hooks.I32, groups, cols/8), part("a.scales", hooks.F16, groups, cols), part("a.g_idx", hooks.I32, rows*8)},
			{part("b.weight", hooks.U32, rows, cols), part("b.scales", hooks.BF16, rows, groups), part("b.biases", hooks.BF16, rows, groups)},
			{part("c.weight", hooks.I8, rows, cols), part("c.weight_scale", hooks.F32, rows, groups)},
			{part("d.weight_packed", hooks.I32, rows, cols), part("d.weight_scale", hooks.F32, rows, groups), shape},
		} {
			found, _, err := quant.Find(tensors, config)
			if err != nil {
				continue
			}
			for _, q := range found {
				d := q.Dense()
				if _, err := d.ReadAt(make([]byte, d.Size()), 0); err != nil {
					t.Fatalf("%s %v: %v", q.Scheme.Name, q.Shape, err)
				}
			}
		}
	})
}

// The files that the gguf package and ggml wrote of a checkpoint fit it, whole; one corrupt block and rows of a neighbour do not, and are
// found where they are.
func TestWideFits(t *testing.T) {
	original := dumped(t, "wide/model.safetensors")
	names := map[string]string{"token_embd": "embed_tokens", "attn_q": "q_proj", "attn_k": "k_proj", "attn_v": "v_proj", "attn_output": "o_proj", "ffn_gate": "gate_proj", "ffn_up": "up_proj", "ffn_down": "down_proj"}
	for _, file := range []string{"wide.Q8_0.gguf", "wide.Q4_K.gguf", "wide.Q6_K.gguf"} {
		checked := 0
		for _, x := range opened(t, file).Tensors {
			q, ok := x.Quantised()
			if !ok {
				continue
			}
			checked++
			parts := strings.Split(x.Name, ".")
			var v []float64
			for i := range original {
				if strings.HasSuffix(original[i].Name, "."+names[parts[len(parts)-2]]+".weight") {
					v = numbers(t, &original[i])
				}
			}
			var c quant.Codes
			if err := q.Reader().Codes(&c, 0, len(v)); err != nil {
				t.Fatal(err)
			}
			var f quant.Fit
			f.Add(v, &c, 0)
			if relative := math.Sqrt(f.Error2 / f.X2); f.Wrong > 0 || f.Nonfinite > 0 || relative > 0.1 || relative < 1e-3 {
				t.Errorf("%s %s: %d wrong, relative error %v", file, x.Name, f.Wrong, relative)
			}
			row := x.Shape[1]
			shifted := append(append([]float64(nil), v[row:]...), v[:row]...)
			var s quant.Fit
			if s.Add(shifted, &c, 0); s.Wrong < int64(len(v))/2 || s.First.Element > 16 {
				t.Errorf("%s %s: rows shifted by one: %d wrong of %d, first %d", file, x.Name, s.Wrong, len(v), s.First.Element)
			}
			at := len(v) / 2 / q.Unit * q.Unit
			for i := range q.Unit { // a block of codes that are all the lowest
				c.Code[at+i] = int16(c.Lo)
			}
			var b quant.Fit
			if b.Add(v, &c, 0); b.Wrong < int64(q.Unit)/2 || b.Wrong > int64(q.Unit) || b.First.Element < int64(at) || b.First.Element > int64(at+8) {
				t.Errorf("%s %s: a corrupt block at %d: %d wrong, first %d", file, x.Name, at, b.Wrong, b.First.Element)
			}
		}
		if checked != 8 {
			t.Errorf("%s: %d tensors of codes, want 8", file, checked)
		}
	}
}
