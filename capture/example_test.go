package capture_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// A port in Go records itself: a registry, a writer that observes it, and two lines a hook. The README shows these lines.
func Example() {
	dir, err := os.MkdirTemp("", "port")
	check(err)
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "local.safetensors")

	reg := &hooks.Registry{}
	w, err := capture.Create(out, capture.Manifest{Side: "local", DType: hooks.F32}, 0)
	check(err)
	check(reg.Observe("*", w.Observe))
	down := reg.Point("layers.0.mlp.down_proj") // once, when the model is built; nil where nobody observes

	reg.BeginPass(0)
	y := floats32(1, 2, 3, 4, 5, 6)
	check(down.Fire(hooks.Tensor{DType: hooks.F32, Shape: []int{1, 2, 3}, Data: y})) // in the forward pass
	check(w.Close())

	t, err := capture.Open(out)
	check(err)
	defer t.Close()
	for _, r := range t.Records() {
		fmt.Println(r.Key, r.DType, r.Shape)
	}
	// Output: layers.0.mlp.down_proj float32 [1 2 3]
}

func floats32(values ...float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
