package isolate_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/isolate"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/testengine"
	"github.com/tracediff/tracediff/order"
)

// A port whose tensors are NaN from some layer on computes in the dtype of those that are not.
func TestNaNIsOfNoDType(t *testing.T) {
	golden := testengine.OpenGolden(t, "golden/gemma3-tiny/prefill.float32.safetensors")
	config, err := order.ParseCanonical(golden.Manifest().Config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoilt := range map[string]float32{"NaN": float32(math.NaN()), "zeros": 0, "infinite": float32(math.Inf(1))} {
		sources := golden.Sources()
		for i := range sources {
			s := &sources[i]
			if e, ok := list.Lookup(s.Name); !ok || !s.DType.Float() || e.Layer < 0 {
				continue
			}
			n, _ := hooks.Elements(s.Shape)
			var data []byte
			for range n {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(spoilt))
			}
			s.Data = bytes.NewReader(data)
		}
		dump, err := capture.Assemble("dump", sources, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := isolate.ModelDType(list, dump, dump); d != hooks.F32 || err != nil {
			t.Errorf("%s: %v, %v", name, d, err)
		}
	}
}
