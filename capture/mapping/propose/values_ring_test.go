package propose_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/mapping/mappingtest"
	"github.com/tracediff/tracediff/order"
)

// Cached values in a ring of slots get a ring, also where some layer has the same value in several slots, of the same tokens.
func TestValuesInARing(t *testing.T) {
	trace, list := mappingtest.Golden(t, "gemma3-tiny/decode.float32")
	var sources []capture.Source
	total := 0
	for pass := 0; ; pass++ {
		r, data := rawOr(trace, pass, order.InputIDs)
		if data == nil {
			break
		}
		total += r.Shape[1]
		sources = append(sources, capture.Source{Key: capture.Key(pass, r.Name, 0), Name: r.Name, Pass: pass, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})
		for l := range list.Config.NumLayers {
			r, data := rawOr(trace, pass, fmt.Sprintf("layers.%d.self_attn.values", l))
			slots, row := r.Shape[2], r.Shape[3]*4
			if slots < total && pass > 0 { // position p is in slot p mod the slots
				moved := slices.Clone(data)
				for h := range r.Shape[1] {
					for i := range slots {
						to := (total - slots + i) % slots
						copy(moved[(h*slots+to)*row:][:row], data[(h*slots+i)*row:][:row])
					}
				}
				data = moved
			}
			name := fmt.Sprintf("kv/%d/values", l)
			sources = append(sources, capture.Source{Key: capture.Key(pass, name, 0), Name: name, Pass: pass, DType: r.DType, Shape: r.Shape, Data: bytes.NewReader(data)})
		}
	}
	_, text := proposed(t, mappingtest.Assembled(t, sources...), list, trace)
	if want := `"kv/{L}/values" = { to = "layers.{L}.self_attn.values", axes = "1 h s c -> 1 h s c", ring = "s" }`; !strings.Contains(text, want) {
		t.Errorf("it lacks %s\n%s", want, text)
	}
}

// rawOr is raw, and nothing where there is no such tensor.
func rawOr(trace *capture.Trace, pass int, name string) (capture.Record, []byte) {
	r, ok := trace.Lookup(pass, name)
	if !ok {
		return r, nil
	}
	b := make([]byte, r.Size)
	if _, err := trace.ReadAt(r, b, 0); err != nil {
		return r, nil
	}
	return r, b
}
