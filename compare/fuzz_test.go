package compare_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/fixtures/ondisk"
)

// FuzzRun compares whatever opens as a trace with itself and with a golden, by several orders: no file makes the walk
// panic, run away or succeed without having tested anything.
func FuzzRun(f *testing.F) {
	seed := func(header string, data int) {
		file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
		f.Add(append(file, make([]byte, data)...))
	}
	seed(`{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8)
	seed(`{"layers.0.mlp.act_fn":{"dtype":"BF16","shape":[1,2,2],"data_offsets":[0,8]},"logits":{"dtype":"I8","shape":[99999999,0],"data_offsets":[8,8]}}`, 8)
	seed(`{"__metadata__":{"tracediff.version":"1","tracediff.status":"complete","tracediff.sequence":"execution","tracediff.scope":"{\"level\":3,\"positions\":\"1-\"}","tracediff.axes":"{\"x\":\"b t\"}"},`+
		`"input_ids":{"dtype":"I64","shape":[1,3],"data_offsets":[0,24]},"x":{"dtype":"F16","shape":[1,2],"data_offsets":[24,28]},"pass9/x#0":{"dtype":"F16","shape":[],"data_offsets":[28,30]}}`, 30)
	golden, err := fs.ReadFile(ondisk.Files(), "golden/gemma3n-tiny/what.bfloat16.safetensors")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	list := tiny(f)
	few := names(f, "x", "input_ids", "logits")
	f.Fuzz(func(t *testing.T, file []byte) {
		l, err := capture.OpenReader("fuzz", bytes.NewReader(file), int64(len(file)))
		if err != nil {
			return
		}
		r, err := capture.OpenReader("golden", bytes.NewReader(golden), int64(len(golden)))
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []*capture.Trace{l, r} {
			for _, o := range []compare.Options{
				{Order: list, All: true, Sides: compare.Sides{Partial: true}},
				{Order: few, Scope: capture.Scope{Positions: capture.Ranges{{From: 1, To: 2}}}},
				{Sides: compare.Sides{Partial: true}, All: true},
			} {
				res, err := compare.Traces(context.Background(), l, other, o)
				if err != nil {
					continue
				}
				if res.ExitCode() == 0 && res.Coverage.Tested == 0 {
					t.Errorf("nothing tested and exit code 0: %+v", res.Coverage)
				}
				if _, err := json.Marshal(res); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
