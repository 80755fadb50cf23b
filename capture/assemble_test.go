package capture_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/hooks"
)

// What no trace can be is refused where it is put together, before anything is counted by it.
func TestAssembleRefuses(t *testing.T) {
	good := capture.Source{Key: "norm", Name: "norm", DType: hooks.F32, Shape: []int{1}, Data: bytes.NewReader(make([]byte, 4))}
	far := good
	far.Pass = 1 << 16
	nameless := good
	nameless.Name = ""
	for _, c := range []struct {
		sources []capture.Source
		want    string
	}{
		{[]capture.Source{good}, ""},
		{[]capture.Source{good, good}, "two tensors for"},
		{[]capture.Source{far}, "has pass 65536: the last pass of a trace is 65535 at most"},
		{[]capture.Source{nameless}, "has no name, pass, shape or dtype"},
	} {
		_, err := capture.Assemble("dump", c.sources, capture.Manifest{}, false, nil, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
