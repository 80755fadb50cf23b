package amount_test

import (
	"testing"

	"github.com/tracediff/tracediff/internal/amount"
)

// A count of bytes is read with a unit or without, and as it is written.
func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "17": 17, "17B": 17, "256MiB": 256 << 20, "1.5GiB": 3 << 29, "2 TiB": 2 << 40, "1e3KiB": 1000 << 10, amount.Bytes(3 << 30): 3 << 30} {
		if got, err := amount.ParseBytes(text); err != nil || got != want {
			t.Errorf("%q is %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1GB", "1 g", "NaN", "Inf", "1e300TiB", "one"} {
		if got, err := amount.ParseBytes(text); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// A number stands with its noun in the form that fits.
func TestCount(t *testing.T) {
	for text, want := range map[string]string{
		amount.Of(1, "layer"): "1 layer", amount.Of(2, "layer"): "2 layers", amount.Count(1, "entry", "entries"): "1 entry", amount.Count(0, "entry", "entries"): "0 entries",
	} {
		if text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
