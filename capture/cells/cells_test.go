package cells_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/cells"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
)

// config is a model of two layers, of which the first has a window of 3.
const config = `{"model_type": "gemma3_text", "num_hidden_layers": 2, "hidden_size": 4, "intermediate_size": 4, "num_attention_heads": 2,
	"num_key_value_heads": 1, "head_dim": 2, "vocab_size": 9, "sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"]}`

func list(t *testing.T) *order.List {
	t.Helper()
	c, err := order.ReadConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	l, err := order.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// floats is a tensor of float32.
func floats(name string, pass int, shape []int, value func(i int) float32) hooks.Event {
	n, _ := hooks.Elements(shape)
	var data []byte
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value(i)))
	}
	return hooks.Event{Name: name, Pass: pass, Tensor: hooks.Tensor{DType: hooks.F32, Shape: shape, Data: data}}
}

func ids(pass, n int) hooks.Event {
	return hooks.Event{Name: "input_ids", Pass: pass, Tensor: hooks.Tensor{DType: hooks.I64, Shape: []int{1, n}, Data: make([]byte, 8*n)}}
}

func trace(t *testing.T, events ...hooks.Event) *capture.Trace {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.safetensors")
	w, err := capture.Create(path, capture.Manifest{Side: "local", Passes: 3, Weights: "unknown", Scope: capture.Scope{Level: 3}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if err := w.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tr, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// number is an element by its place: what is read says where it was.
func number(i int) float32 { return float32(i) }

// Of passes of five tokens and one, the last tokens of each axis of keys are read, wherever the axis is, in pieces of any size.
func TestKeysOfTheOrderAreRead(t *testing.T) {
	const probs, keys = "layers.0.self_attn.probs", "layers.0.self_attn.keys"
	tr := trace(t, ids(0, 5), ids(1, 1), floats(probs, 1, []int{1, 2, 1, 8}, number), floats(keys, 1, []int{1, 1, 8, 2}, number))
	fitted, err := cells.Fit(tr, list(t))
	if err != nil {
		t.Fatal(err)
	}
	if notes := fitted.Notes(); len(notes) != 1 || notes[0] != "2 tensors have cells of keys that no query may attend to: up to 2 that hold no token, up to 3 before the window; left out if their probability is zero" {
		t.Errorf("%q", notes)
	}
	if fitted.Status() != tr.Status() || fitted.Path() != tr.Path() || !fitted.Sequence() {
		t.Error("the manifest is lost")
	}
	for name, want := range map[string][]float64{probs: {3, 4, 5, 11, 12, 13}, keys: {6, 7, 8, 9, 10, 11}} {
		v, err := fitted.Value(1, name)
		if err != nil || !slices.Equal(v.Data, want) {
			t.Errorf("%s: %v %v, %v", name, v.Shape, v.Data, err)
		}
		rec, _ := fitted.Lookup(1, name)
		whole := make([]byte, rec.Size)
		if n, err := fitted.ReadAt(rec, whole, 0); n != len(whole) || err != nil {
			t.Fatal(n, err)
		}
		rng := rand.New(rand.NewPCG(34, 3))
		for range 200 {
			off := rng.IntN(len(whole) + 1)
			part := make([]byte, rng.IntN(len(whole)+4))
			n, err := fitted.ReadAt(rec, part, int64(off))
			if want := min(len(part), len(whole)-off); n != want || !bytes.Equal(part[:n], whole[off:off+n]) || (n < len(part)) != errors.Is(err, io.EOF) {
				t.Errorf("%s from %d, %d bytes: %d, %v", name, off, len(part), n, err)
			}
		}
		off, err := rec.LeftOff.Cells()
		if err != nil || !slices.Equal(off, []capture.Cell{{At: 0, Key: 0}, {At: 1, Key: 1}, {At: 2, Key: 2}, {At: 6, Key: -1}, {At: 7, Key: -1}}) {
			t.Errorf("%s: left off %v, %v", name, off, err)
		}
	}
	if again, err := cells.Fit(fitted, list(t)); err != nil || again != fitted {
		t.Errorf("a trace that was read so is read again: %v", err)
	}
}

// A tensor that is another one beside its keys, or has fewer of them, stays what it is.
func TestOtherShapesStay(t *testing.T) {
	for why, e := range map[string]hooks.Event{
		"another number of heads": floats("layers.0.self_attn.probs", 1, []int{1, 3, 1, 8}, number), "fewer keys": floats("layers.0.self_attn.probs", 1, []int{1, 2, 1, 2}, number),
		"as many": floats("layers.0.self_attn.probs", 1, []int{1, 2, 1, 3}, number), "no keys": floats("layers.0.self_attn.o_proj", 1, []int{1, 8, 4}, number),
		"fewer cells than tokens, and no keys": floats("layers.0.self_attn.probs", 1, []int{1, 2, 1, 4}, number), "a pass without ids": floats("layers.0.self_attn.probs", 2, []int{1, 2, 1, 8}, number),
	} {
		tr := trace(t, ids(0, 5), ids(1, 1), e)
		if fitted, err := cells.Fit(tr, list(t)); err != nil || fitted != tr {
			t.Errorf("%s: %v, %v", why, err, fitted.Notes())
		}
	}
	tr := trace(t, floats("layers.0.self_attn.probs", 1, []int{1, 2, 1, 8}, number))
	for _, l := range []*order.List{nil, list(t)} {
		if fitted, err := cells.Fit(tr, l); err != nil || fitted != tr {
			t.Errorf("without ids: %v", err)
		}
	}
}

// Cells that are used again have the keys that are in them, also where a cache has fewer digits than the keys were made with.
func TestKeysSayWhichCellIsWhose(t *testing.T) {
	const at = "layers.0.self_attn."
	rng := rand.New(rand.NewPCG(34, 4))
	made := make([]float32, 12) // of six tokens
	for i := range made {
		made[i] = rng.Float32()
	}
	for _, digits := range []string{"all", "bfloat16", "bfloat16 in float32"} {
		// In four cells, key k is in cell k modulo 4: the sixth key has the cell of the second.
		of := []int{4, 5, 2, 3}
		cached := floats(at+"keys", 1, []int{1, 1, 4, 2}, func(i int) float32 { return made[of[i/2]*2+i%2] })
		if digits != "all" {
			var data []byte
			for i := range 8 {
				bits := math.Float32bits(made[of[i/2]*2+i%2])
				bits = (bits + 0x7fff + bits>>16&1) >> 16
				if digits == "bfloat16" {
					data = binary.LittleEndian.AppendUint16(data, uint16(bits))
				} else {
					data = binary.LittleEndian.AppendUint32(data, bits<<16)
				}
			}
			if cached.Tensor.Data = data; digits == "bfloat16" {
				cached.Tensor.DType = hooks.BF16
			}
		}
		tr := trace(t, ids(0, 5), floats(at+"k_rope", 0, []int{1, 1, 5, 2}, func(i int) float32 { return made[i] }), ids(1, 1),
			floats(at+"k_rope", 1, []int{1, 1, 1, 2}, func(i int) float32 { return made[10+i] }), cached, floats(at+"probs", 1, []int{1, 2, 1, 4}, number))
		fitted, err := cells.Fit(tr, list(t))
		if err != nil {
			t.Fatal(err)
		}
		v, err := fitted.Value(1, at+"probs")
		if err != nil || !slices.Equal(v.Data, []float64{3, 0, 1, 7, 4, 5}) {
			t.Errorf("%s: %v %v, notes %q", digits, v.Data, err, strings.Join(fitted.Notes(), "; "))
		}
	}
}
