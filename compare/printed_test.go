package compare_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/tracediff/tracediff/capture"
	dumps "github.com/tracediff/tracediff/capture/foreign"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/container"
)

// text is a trace of one tensor [1, 8, 16] of which a text has the first three and the last three elements of each axis, and the sum.
func text(t *testing.T, r *capture.Trace, at func(token, channel int) float64) *capture.Trace {
	t.Helper()
	const tokens, channels = 8, 16
	var data []byte
	sum := 0.0
	for i := range tokens {
		for k := range channels {
			sum += at(i, k)
			if edge := func(n, size int) bool { return n < 3 || n >= size-3 }; edge(i, tokens) && edge(k, channels) {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(math.Round(at(i, k)*1e4)/1e4)))
			} else {
				data = append(data, container.Elided(hooks.F32)...)
			}
		}
	}
	trace, err := capture.Assemble("text", []capture.Source{{
		Name: "x", DType: hooks.F32, Shape: []int{1, tokens, channels}, Data: bytes.NewReader(data),
		Printed: &capture.Printed{Half: 0.5e-4, Elements: 36, All: tokens * channels, Sum: math.Round(sum*1e6) / 1e6, HasSum: true},
	}}, capture.Manifest{DType: hooks.BF16}, true, nil, nil)
	if err == nil {
		trace, err = dumps.Nearest(trace, r, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// Where one channel is a thousand times as large as the others, an error of it that rounding explains moves the sum by more than all
// others are. The nearest tensor with that sum is off by as much in each of them, and bounds the error of the whole alone: no channel is
// called wrong. A row of a text is never a match, and a larger error of that channel is a mismatch.
func TestTextWithAnOutlier(t *testing.T) {
	channel := func(outlier float64) func(i, k int) float64 {
		return func(i, k int) float64 {
			if k == 7 {
				return outlier
			}
			return 0.001 * float64(1+(i+3*k)%7)
		}
	}
	var values []float64
	for i := range 8 {
		for k := range 16 {
			values = append(values, channel(100)(i, k))
		}
	}
	r := build(t, manifest("reference", hooks.BF16), fire("x", hooks.F32, []int{1, 8, 16}, values...))
	for _, c := range []struct {
		outlier float64
		want    compare.Verdict
	}{{100, compare.Unverified}, {100.5, compare.Unverified}, {200, compare.Mismatch}} {
		res := run(t, text(t, r, channel(c.outlier)), r, compare.Options{Order: names(t, "x"), Certification: compare.Certification{NotIsolated: "text"}})
		if row := res.Rows[0]; row.Verdict != c.want || row.Tested != (c.want == compare.Mismatch) {
			t.Errorf("an outlier of %g: %s, tested %t: %s; want %s", c.outlier, row.Verdict, row.Tested, row.Detail, c.want)
		}
		if res.ExitCode() == 0 {
			t.Errorf("an outlier of %g: exit status 0", c.outlier)
		}
	}
}
