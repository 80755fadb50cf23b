package compare_test

import (
	"testing"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/hooks"
)

func TestAxesOfATrace(t *testing.T) {
	x := fire("x", hooks.F32, []int{2, 4}, some...)
	wrong := fire("x", hooks.F32, []int{2, 4}, with(some, 6, -7)...)
	tests := []struct {
		why         string
		local, ref  string // what the traces declare
		first, last string // the names of the two axes, empty when they are not compared
	}{
		{"nobody declares them", "", "", "axis 0", "axis 1"},
		{"the reference does", "", "t c", "token", "channel"},
		{"both do", "h s", "h s", "head", "key"},
		{"a letter that means nothing", "", "t x", "token", "axis 1"},
		{"they contradict each other", "t c", "c t", "", ""},
	}
	for _, tt := range tests {
		declare := func(side, axes string) capture.Manifest {
			m := manifest(side, hooks.F32)
			if axes != "" {
				m.Axes = map[string]string{"x": axes}
			}
			return m
		}
		res := run(t, build(t, declare("local", tt.local), wrong), build(t, declare("reference", tt.ref), x), compare.Options{Order: names(t, "x")})
		row := res.Rows[0]
		if tt.first == "" {
			if row.Class != gate.Shape || row.Metrics != nil {
				t.Errorf("%s: class %q", tt.why, row.Class)
			}
			continue
		}
		if a := row.Metrics.Axes; row.Class != gate.Value || len(a) != 2 || a[0].Axis != tt.first || a[1].Axis != tt.last || a[0].Worst != 1 || a[1].Worst != 2 {
			t.Errorf("%s: class %q, axes %+v", tt.why, row.Class, row.Metrics.Axes)
		}
	}
}
