package capture_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/lanes"
)

// A tensor in a file has the statistics, to the bit, that it has in memory: whole blocks, a part of one, holes, nothing.
func TestMomentsOfAFile(t *testing.T) {
	for _, n := range []int{0, 1, lanes.Strip + 1, lanes.Block, 2*lanes.Block + 3*lanes.Strip + 5} {
		var data []byte
		for i := range n {
			x := float32(1000 + math.Sin(float64(i)))
			if i%777 == 5 {
				x = float32(math.NaN())
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		}
		tensor := hooks.Tensor{DType: hooks.F32, Shape: []int{n}, Data: data}
		tr := open(t, write(t, capture.Manifest{}, 0, event(0, "x", tensor)))
		r := tr.Records()[0]
		got, err := tr.Moments(r)
		if err != nil {
			t.Fatal(err)
		}
		var want lanes.Moments
		if err := want.Tensor(tensor); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%d elements: %+v of the file, %+v of the tensor", n, got, want)
		}
		seen := int64(0)
		if err := tr.Each(r, func(at int64, x []float64) error {
			if at != seen {
				t.Errorf("%d elements: a strip begins at %d, want %d", n, at, seen)
			}
			seen += int64(len(x))
			return nil
		}); err != nil || seen != int64(n) {
			t.Errorf("%d elements, %d handed out: %v", n, seen, err)
		}
	}
}
