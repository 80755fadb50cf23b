package quant_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
	"github.com/tracediff/tracediff/internal/floats"
	"github.com/tracediff/tracediff/internal/quant"
	_ "github.com/tracediff/tracediff/internal/seeds"
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

// errorsOf are those of all groups.
func errorsOf(c *quant.Codes, x []float64) quant.Errors {
	all := quant.Errors{Nearest: true, Least: math.Inf(1), Most: math.Inf(-1)}
	for g := range c.Step {
		e := c.Errors(g, x[g*c.Group:min((g+1)*c.Group, len(x))])
		all.Add(&e)
	}
	return all
}

// What the usual writer makes of any values is exact of its own values, has the step that its ends give where there is a formula, and errs by
// what it says.
func TestUsualFits(t *testing.T) {
	const n = 512
	tensors := []*quant.Tensor{mlx(t, "4", "64", hooks.BF16, n, n/8, n/64), mlx(t, "8", "32", hooks.F16, n, n/4, n/32), mlx(t, "8", "128", hooks.BF16, n, n/4, n/128)}
	for _, b := range all {
		tensors = append(tensors, of(b, n))
	}
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom(tensors).Draw(t, "format")
		x := taken(t, values(t, n))
		var c quant.Codes
		if !q.Usual(&c, x) {
			t.Fatal("no usual writer")
		}
		for g := range c.Step {
			e := c.Errors(g, wide(x[g*c.Group:(g+1)*c.Group]))
			if step, ok := q.UsualStep(e.Least, e.Most); ok && step != math.Abs(c.Step[g]) {
				t.Fatalf("%s: the step of group %d is %v, by its ends %v", q.Scheme.Name, g, c.Step[g], step)
			}
		}
		own := make([]float32, n)
		c.Values(own)
		if e := errorsOf(&c, wide(own)); !e.Nearest || e.Error2 > e.X2*0x1p-46 {
			t.Fatalf("%s: of its own values %+v", q.Scheme.Name, e)
		}
		var error2, x2 float64
		for i, v := range wide(x) {
			error2 += (float64(own[i]) - v) * (float64(own[i]) - v)
			x2 += v * v
		}
		if e := errorsOf(&c, wide(x)); math.Abs(e.Error2-error2) > 1e-3*error2+1e-12*x2 || math.Abs(e.X2-x2) > 1e-9*x2 || e.Least > e.Most {
			t.Fatalf("%s: %+v, want %v and %v", q.Scheme.Name, e, error2, x2)
		}
	})
}

// A code that is moved by two steps or more is not the nearest; nor are those of a step that is off by an exponent, or no number.
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
		q.Usual(&c, x)
		nearest := func(g int) bool { return c.Errors(g, wide(x[g*c.Group:(g+1)*c.Group])).Nearest }
		for i := range c.Code {
			for _, by := range []int{-3, 3} {
				code := int(c.Code[i]) + by
				if code <= c.Lo || code >= c.Hi || c.Step[i/c.Group] == 0 {
					continue
				}
				c.Code[i] = int16(code)
				if nearest(i / c.Group) {
					t.Fatalf("%s: code %d moved by %d is the nearest", b, i, by)
				}
				c.Code[i] -= int16(by)
			}
		}
		for _, by := range []float64{0.5, 2, -1, 0, math.NaN(), math.Inf(1)} {
			g := len(c.Step) / 2
			was := c.Step[g]
			before := c.Errors(g, wide(x[g*c.Group:(g+1)*c.Group]))
			c.Step[g] *= by
			e := c.Errors(g, wide(x[g*c.Group:(g+1)*c.Group]))
			if e.Nearest && e.Beyond2 <= 0.2*e.X2 && e.Error2 < 4*before.Error2 {
				t.Errorf("%s: a step times %v: %+v, before %+v", b, by, e, before)
			}
			c.Step[g] = was
		}
	}
}

// FuzzBlocks looks for blocks that make a decoder panic, give a code that the format does not have, or are wrong of their own values.
func FuzzBlocks(f *testing.F) {
	f.Add(uint8(1), []byte("a block of q4_0..."))
	f.Add(uint8(6), bytes.Repeat([]byte{0x11, 0x2c, 0x83, 0x29, 0xff}, 60))
	f.Add(uint8(8), bytes.Repeat([]byte{0x7f, 0x80, 0x00, 0x3c}, 60))
	f.Add(uint8(0xdd), append([]byte("0\x000x"), bytes.Repeat([]byte{'0'}, 140)...)) // steps that are nothing beside the offsets
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
		for _, code := range c.Code {
			if int(code) < c.Lo || int(code) > c.Hi {
				t.Fatalf("%s: code %d", b, code)
			}
		}
		for _, v := range x {
			if v-v != 0 {
				return
			}
		}
		if e := errorsOf(&c, wide(x)); !e.Nearest {
			t.Fatalf("%s: of its own values %+v", b, e)
		}
		q.Usual(&c, x)
	})
}

// A step that is stored in bfloat16 or float32 was rounded by half of the smallest number of that at least.
func TestSlackOfASubnormalStep(t *testing.T) {
	for _, d := range []hooks.DType{hooks.BF16, hooks.F32} {
		q := mlx(t, "8", "32", d, 32, 8, 1)
		c := &quant.Codes{}
		if err := q.Reader().Codes(c, 0, 32); err != nil {
			t.Fatal(err)
		}
		least := floats.RoundingError(d, 0)
		if c.Step[0], c.Code[0] = 3*least, 2; c.Slack(0) < 2*least {
			t.Errorf("%s: the slack is %g, and a step may be off by %g", d, c.Slack(0), least)
		}
	}
}
