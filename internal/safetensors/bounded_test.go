package safetensors_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/internal/safetensors"
)

// Tensors are counted before anything is listed; a name that looks like the field does not count.
func TestBounded(t *testing.T) {
	text := []byte(`{"\"data_offsets\"":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`)
	for i := range safetensors.MaxTensors - 1 {
		text = fmt.Appendf(text, `,"t%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, i)
	}
	if err := safetensors.Bounded(append(text, '}')); err != nil {
		t.Error(err)
	}
	err := safetensors.Bounded(append(text, `,"last":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`...))
	if err == nil || !strings.Contains(err.Error(), "131073 tensors, more than 131072") {
		t.Error(err)
	}
	// The mean of ten calls, rounded down: the runtime may allocate a little beside them.
	if n := testing.AllocsPerRun(10, func() { _ = safetensors.Bounded(text) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
