package health_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/health"
)

// weight makes a float32 weight of n values.
func weight(name string, role health.Role, n int, value func(i int) float64) health.Weight {
	data := make([]byte, 0, 4*n)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(value(i))))
	}
	return health.Weight{Name: name, Role: role, Tensor: hooks.Tensor{DType: hooks.F32, Shape: []int{n}, Data: data}}
}

func always(v float64) func(int) float64 { return func(int) float64 { return v } }

// wave goes round a mean.
func wave(mean, size float64) func(int) float64 {
	return func(i int) float64 { return mean + size*math.Sin(float64(i)) }
}

func TestValues(t *testing.T) {
	for _, c := range []struct {
		name    string // what is wrong, or why nothing is
		weights []health.Weight
		want    string // the first line
	}{
		{"sound", []health.Weight{weight("a", health.Matrix, 10, wave(0, 1)), weight("n", health.Gain, 10, wave(1, 0.3))}, "ok: values: all 20 looked at"},
		{"published norm weights of 1+w are below zero here and there", []health.Weight{weight("n", health.OneGain, 100, wave(0.9, 1))}, "ok: values: all 100 looked at"},
		{"norm weights of w are around 1", []health.Weight{weight("n", health.Gain, 100, wave(1, 0.3))}, "ok: values: all 100 looked at"},
		{"1 added already", []health.Weight{weight("n", health.OneGain, 100, wave(1.1, 0.3)), weight("m", health.OneGain, 100, wave(0.9, 0.3))}, "warning: nothing in the 2 norm weights is below zero (least 0.6, mean 1.00): 1 may have been added already"},
		{"untrained, plain", []health.Weight{weight("n", health.Gain, 5, always(1))}, "warning: 1 norm weight, all at the initial value 1"},
		{"untrained, 1+w", []health.Weight{weight("n", health.OneGain, 5, always(0)), weight("m", health.OneGain, 5, always(0))}, "warning: 2 norm weights, all at the initial value 0"},
		{"biases may be zero", []health.Weight{weight("b", health.Bias, 5, always(0))}, "ok: values: all 5 looked at"},
		{"never loaded", []health.Weight{weight("a", health.Matrix, 5, always(0)), weight("n", health.Gain, 5, always(0))}, "warning: 2 weights all zero: a, n"},
		{"infinite", []health.Weight{weight("a", health.Matrix, 5, always(math.Inf(-1)))}, "error: 1 weight not finite: a has 0 NaN and 5 Inf in 5"},
		{"no weights", nil, "ok: values: all 0 looked at"},
		{"no elements", []health.Weight{weight("a", health.Matrix, 0, nil)}, "ok: values: all 0 looked at"},
	} {
		var s health.Section
		health.Values(t.Context(), &s, c.weights, 0.02, false)
		if got := texts(s)[0]; got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A large weight is sampled, its ends included, and the line says how much was seen; --full finds a single bad element.
func TestSample(t *testing.T) {
	const n = 1<<20 + 13
	bad := func(at int) health.Weight {
		return weight("w", health.Matrix, n, func(i int) float64 {
			if i == at {
				return math.NaN()
			}
			return 1
		})
	}
	for _, at := range []int{0, n - 1} {
		var s health.Section
		health.Values(t.Context(), &s, []health.Weight{bad(at)}, 0.02, false)
		if !strings.HasPrefix(texts(s)[0], "error: 1 weight not finite: w has 1 NaN") {
			t.Errorf("NaN at %d: %q", at, texts(s))
		}
	}
	const between = 3000 // behind the first block
	var sampled, whole health.Section
	health.Values(t.Context(), &sampled, []health.Weight{bad(between)}, 0.02, false)
	health.Values(t.Context(), &whole, []health.Weight{bad(between)}, 0.02, true)
	if diff := cmp.Diff([]string{"ok: values: 32768 of 1048589 looked at (small weights whole, large ones in 16 places; --full reads all)"}, texts(sampled)); diff != "" {
		t.Errorf("sampled: %s", diff)
	}
	if diff := cmp.Diff([]string{"error: 1 weight not finite: w has 1 NaN and 0 Inf in 1048589", "ok: values: all 1048589 looked at"}, texts(whole)); diff != "" {
		t.Errorf("whole: %s", diff)
	}
}
