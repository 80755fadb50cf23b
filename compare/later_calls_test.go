package compare_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/order"
	"github.com/tracediff/tracediff/order/recorded"
)

// The second call of a module has an entry of its own in a recorded program, "norm#1": the tensor of that call is compared with it, whatever the
// shape of the first call's, and one that is missing is missing.
func TestLaterCallsOfAModule(t *testing.T) {
	p, err := recorded.Read(strings.NewReader(`{"format":"tracediff program","version":1,"passes":[{"tokens":1,"past":0,"calls":[[0,0,[]]]}],
"templates":[[{"name":"input_ids","of":"c0","level":1},
{"op":"embedding","in":["w:table","c0"],"out":[["float32",[1,1,4]]]},{"name":"layers.0.norm","of":"t0","level":2},
{"op":"embedding","in":["w:other","c0"],"out":[["float32",[1,1,6]]]},{"name":"layers.0.norm#1","of":"t1","level":2}]],
"weights":{"table":{"dtype":"float32","shape":[5,4]},"other":{"dtype":"float32","shape":[5,6]}},"constants":[{"dtype":"int64","shape":[1,1],"from":[{"kind":"ids"}],"sha256":""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := order.Recorded(p)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(n int) *bytes.Reader {
		var data []byte
		for i := range n {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i+1)))
		}
		return bytes.NewReader(data)
	}
	sources := []capture.Source{
		{Name: order.InputIDs, DType: hooks.I64, Shape: []int{1, 1}, Data: bytes.NewReader(make([]byte, 8))},
		{Name: "layers.0.norm", DType: hooks.F32, Shape: []int{1, 1, 4}, Data: numbers(4)},
		{Name: "layers.0.norm", Firing: 1, DType: hooks.F32, Shape: []int{1, 1, 6}, Data: numbers(6)},
	}
	assembled := func(s []capture.Source) *capture.Trace {
		trace, err := capture.Assemble("trace", s, capture.Manifest{}, false, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	res := run(t, assembled(sources), assembled(sources), compare.Options{Order: list.Named(), All: true})
	var keys []string
	for _, r := range res.Rows {
		keys = append(keys, r.Key())
	}
	if want := []string{order.InputIDs, "layers.0.norm", "layers.0.norm#1"}; res.Mismatches > 0 || len(res.Missing) > 0 || !slices.Equal(keys, want) {
		t.Errorf("%d mismatches, missing %v, rows %q", res.Mismatches, res.Missing, keys)
	}
	if res := run(t, assembled(sources[:2]), assembled(sources), compare.Options{Order: list.Named(), All: true}); res.ExitCode() != 1 {
		t.Errorf("a call that your port lacks: %+v", res.Missing)
	}
}
