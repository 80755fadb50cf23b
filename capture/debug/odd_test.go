package debug_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/floats"
)

// tensor makes a tensor of a few numbers.
func tensor(d hooks.DType, shape []int, values ...float64) hooks.Tensor {
	x := hooks.Tensor{DType: d, Shape: shape}
	le := binary.LittleEndian
	for _, v := range values {
		switch d {
		case hooks.F64:
			x.Data = le.AppendUint64(x.Data, math.Float64bits(v))
		case hooks.F32:
			x.Data = le.AppendUint32(x.Data, math.Float32bits(float32(v)))
		case hooks.F16:
			x.Data = le.AppendUint16(x.Data, floats.F16(float32(v)))
		case hooks.BF16:
			x.Data = le.AppendUint16(x.Data, floats.BF16(float32(v)))
		case hooks.I64, hooks.U64:
			x.Data = le.AppendUint64(x.Data, uint64(int64(v)))
		case hooks.I32, hooks.U32:
			x.Data = le.AppendUint32(x.Data, uint32(int32(v)))
		case hooks.I16, hooks.U16:
			x.Data = le.AppendUint16(x.Data, uint16(int16(v)))
		default:
			x.Data = append(x.Data, byte(int8(v)))
		}
	}
	return x
}

// odd is a run with everything that a line can have to show: each dtype that every recorder knows, what is not finite,
// scalars and nothing, names that could break a line, sections, a second firing, more ids than are listed, more passes than
// are shown in full, equal logits.
func odd() []hooks.Event {
	nan, inf := math.NaN(), math.Inf(1)
	f32 := func(shape []int, values ...float64) hooks.Tensor { return tensor(hooks.F32, shape, values...) }
	ids := make([]float64, 40)
	for i := range ids {
		ids[i] = float64(31 * i)
	}
	all := []hooks.Event{
		{Name: "input_ids", Tensor: tensor(hooks.I64, []int{1, 40}, ids...)},
		{Name: "position_ids", Tensor: tensor(hooks.I64, []int{1, 2}, 0, 1)},
		{Name: "mask.full", Tensor: f32([]int{1, 1, 2, 2}, 0, -inf, 0, 0)},
		{Name: "embed_tokens", Tensor: tensor(hooks.BF16, []int{1, 2, 2}, -1.5, 3, 0.25, 1e30)},
		{Name: "layers.0.in", Tensor: tensor(hooks.F16, []int{2, 2}, -1.5, 65504, 6e-8, nan)},
		{Name: "layers.0", Tensor: tensor(hooks.F64, []int{3}, 1e-9, 1e-9, 1e-9)},
		{Name: "layers.0", Tensor: tensor(hooks.F64, []int{3}, 1e5, 1e5+1, 1e5+2)},
		{Name: "layers.1.out", Tensor: f32([]int{2}, nan, inf)},
		{Name: "norm.in", Tensor: f32(nil, 2.5)},
		{Name: "norm", Tensor: f32([]int{0, 4})},
		{Name: "lm_head", Tensor: f32([]int{2}, math.Copysign(0, -1), 0)},
		{Name: "logits", Tensor: f32([]int{1, 2, 7}, 9, 9, 9, 9, 9, 9, 9, 1, 3, nan, 3, -2, -inf, 2.5)},
		{Name: "loss", Tensor: f32(nil, 1.25)},
		{Name: "a name\twith \"what\" could=break\\ \u0085 größe 木", Tensor: tensor(hooks.I32, []int{2}, -7, 12345678)},
		{Name: "layers.x.out", Tensor: tensor(hooks.I16, []int{2}, -300, 300)},
		{Name: "layersx", Tensor: tensor(hooks.I8, []int{2}, -128, 127)},
		{Name: "step.1", Tensor: tensor(hooks.U64, []int{2}, 1, 1<<53)},
		{Name: "a.step.0123456789", Tensor: tensor(hooks.U32, []int{2}, 0, -1)},
		{Name: "w.u16", Tensor: tensor(hooks.U16, []int{2}, 0, -1)},
		{Name: "w.u8", Tensor: tensor(hooks.U8, []int{2}, 0, -1)},
		{Name: "w.bool", Tensor: tensor(hooks.Bool, []int{4}, 0, 1, 1, 1)},
	}
	all = append(all, oddMasks()...)
	all = append(all, oddSteps()...)
	all = append(all, oddBatch()...)
	for pass := 2; pass < 8; pass++ {
		all = append(
			all,
			hooks.Event{Name: "input_ids", Pass: pass, Tensor: tensor(hooks.I64, []int{1, 1}, float64(pass))},
			hooks.Event{Name: "layers.0.out", Pass: pass, Tensor: f32([]int{2}, 1, float64(pass))},
			hooks.Event{Name: "logits", Pass: pass, Tensor: f32([]int{1, 1, 3}, 0, float64(pass%3), 1)},
		)
	}
	return all
}

// oddMasks are masks and scores as ports write them, tensors of other names with the same numbers, and layers beyond the ones
// that are listed, of which a tensor with NaN is all the same.
func oddMasks() []hooks.Event {
	nan, inf, lowest := math.NaN(), math.Inf(-1), -math.MaxFloat32
	return []hooks.Event{
		{Name: "mask.sliding", Tensor: tensor(hooks.F32, []int{2, 3}, 0, lowest, inf, 0, -1e9, 0)},
		{Name: "causal_MASK", Tensor: tensor(hooks.BF16, []int{2}, -3.3e38, -3.3e38)},
		{Name: "layers.0.scores_masked", Tensor: tensor(hooks.F16, []int{2, 2}, 1.5, -65504, -32752, -32736)},
		{Name: "layers.1.attn_scores", Tensor: tensor(hooks.F32, []int{2, 2}, 2, lowest, 4, nan)},
		{Name: "layers.1.mlp", Tensor: tensor(hooks.F32, []int{2}, 2, lowest)},
		{Name: "layers.1.maskless", Tensor: tensor(hooks.I32, []int{2}, 2, -2e8)},
		{Name: "layers.2.in", Tensor: tensor(hooks.F32, []int{2}, 2, 3)},
		{Name: "layers.2.out", Tensor: tensor(hooks.F32, []int{2}, nan, 3)},
		{Name: "layers.10", Tensor: tensor(hooks.F32, []int{2}, nan, 3)},
		{Name: "layers.1.late", Tensor: tensor(hooks.F32, []int{2}, 2, 3)},
	}
}

// oddBatch is a pass of six sequences, with one and with all rows of logits, and a loss that is not of one number.
func oddBatch() []hooks.Event {
	const pass = 1
	ids, logits := make([]float64, 12), make([]float64, 36)
	for i := range ids {
		ids[i] = float64(i * i)
	}
	for i := range logits {
		logits[i] = float64(i * 7 % 11)
	}
	return []hooks.Event{
		{Name: "input_ids", Pass: pass, Tensor: tensor(hooks.I64, []int{6, 2}, ids...)},
		{Name: "layers.0.out", Pass: pass, Tensor: tensor(hooks.F32, []int{2}, 3, 1)},
		{Name: "layers.2.out", Pass: pass, Tensor: tensor(hooks.F32, []int{2}, 3, 1)},
		{Name: "layers.3.out", Pass: pass, Tensor: tensor(hooks.F32, []int{2}, math.NaN(), 1)},
		{Name: "other.logits", Pass: pass, Tensor: tensor(hooks.F32, []int{5, 3}, logits[:15]...)},
		{Name: "logits", Pass: pass, Tensor: tensor(hooks.F32, []int{6, 2, 3}, logits...)},
		{Name: "draft.logits", Pass: pass, Tensor: tensor(hooks.F32, []int{6, 3}, logits[:18]...)},
		{Name: "aux.loss", Pass: pass, Tensor: tensor(hooks.BF16, []int{3}, 0.5, 1, 1.5)},
	}
}

// oddSteps are series that start anew, miss a step, change their shape, are of tokens, logits or zeros, and of what is not
// finite.
func oddSteps() []hooks.Event {
	var all []hooks.Event
	add := func(series string, n int, x hooks.Tensor) {
		all = append(all, hooks.Event{Name: fmt.Sprintf("%s.step.%d", series, n), Pass: 0, Tensor: x})
	}
	pair := func(a, b float64) hooks.Tensor { return tensor(hooks.F32, []int{1, 2}, a, b) }
	add("s", 0, pair(1, 2))
	add("s", 1, pair(1, 2))
	add("s", 3, pair(2, -1))
	add("s", 4, pair(2, -1.0078125))
	add("s", 0, pair(3, 4))
	add("s", 1, tensor(hooks.F32, []int{2, 1}, 3, 4))
	add("tokens", 5, tensor(hooks.I64, []int{4}, 1, 2, 3, 4))
	add("tokens", 6, tensor(hooks.I64, []int{4}, 1, 2, 3, 5))
	add("tokens", 7, tensor(hooks.I64, []int{4}, 1, 2, 3, 5))
	add("x.logits", 0, tensor(hooks.BF16, []int{1, 2, 2}, 0, 0, 4, 4))
	add("x.logits", 1, tensor(hooks.BF16, []int{1, 2, 2}, 0, 3, -4, 4))
	add("x.confidence", 0, pair(0.5, 0.75))
	add("x.confidence", 1, pair(0.5, math.NaN()))
	add("zero", 0, pair(0, 0))
	add("zero", 1, pair(0, 0))
	add("zero", 2, pair(1, 0))
	add("zero", 3, pair(0, 0))
	add("broken", 0, pair(1, 1))
	add("broken", 1, pair(1, math.Inf(1)))
	add("broken", 2, pair(1, math.Inf(1)))
	for chunk := range 2 { // the second begins anew, with its loss first
		for n := range 3 {
			add("r.loss", n, tensor(hooks.F32, nil, float64(4-n-chunk)))
			add("r.state", n, pair(1, 1+float64(chunk*n)))
			add("r.confidence", n, tensor(hooks.F32, nil, 0.25*float64(n+chunk)))
		}
	}
	return all
}

// writeOdd makes the trace that the other recorders read.
func writeOdd(t *testing.T, path string) {
	t.Helper()
	w, err := capture.Create(path, capture.Manifest{Side: "local", Producer: capture.Producer{Name: "odd_test.go", Version: "1"}}, 8000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range odd() {
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
