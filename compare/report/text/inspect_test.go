package text_test

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare/inspect"
	"github.com/tracediff/tracediff/compare/report/text"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/checkpoint/checkpointtest"
)

func inspectionText(t *testing.T, r *inspect.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Inspection(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// No name, path or note of a file writes to the terminal.
func TestInspectionOfAHostileFile(t *testing.T) {
	name := "w\x1b[2J\u202e"
	data := checkpointtest.File([]checkpointtest.Tensor{
		{Name: name, Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 8)}},
		{Name: "w\n2", Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{2}, Data: make([]byte, 8)}},
	})
	tr, err := capture.OpenReader("a\x1b[31m", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []inspect.Options{{}, {Name: name}, {Name: name, TokenText: func(int) string { return "\x1b" }}} {
		r, err := inspect.Run(context.Background(), tr, o)
		if err != nil {
			t.Fatal(err)
		}
		out := inspectionText(t, r)
		if strings.ContainsAny(out, "\x1b\u202e") || !strings.Contains(out, "w\ufffd[2J\ufffd") {
			t.Errorf("%q", out)
		}
		if len(r.List) > 0 && strings.Count(out, "\n") != 8 {
			t.Errorf("a name has broken a line: %q", out)
		}
	}
}

// What is not there is said in words, and none of the numbers is one.
func TestInspectionOfNothing(t *testing.T) {
	nan := hooks.Tensor{DType: hooks.F32, Shape: []int{1, 2}}
	for range 2 {
		bits := math.Float32bits(float32(math.NaN()))
		nan.Data = append(nan.Data, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	}
	data := checkpointtest.File([]checkpointtest.Tensor{
		{Name: "empty", Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{0, 4}, Data: []byte{}}}, {Name: "nan", Tensor: nan},
	})
	tr, err := capture.OpenReader("x", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"empty": "  elements        0, empty\n  min             -\n", "nan": "  elements        2, 2 NaN\n  min             -\n"} {
		r, err := inspect.Run(context.Background(), tr, inspect.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if out := inspectionText(t, r); !strings.Contains(out, want) || strings.Contains(out, "percentile") {
			t.Errorf("%s:\n%s", name, out)
		}
		if r, err = inspect.Pair(context.Background(), tr, tr, inspect.Options{Name: name}); err != nil {
			t.Fatal(err)
		}
		inspectionText(t, r)
	}
}
