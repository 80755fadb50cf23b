package choice

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/hooks"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/order"
)

// A reference is captured whole up to the stated size, and beyond it as narrow as was asked for, as far as the runner
// knows how; a command is told what is wanted and nothing else.
func TestStoredScope(t *testing.T) {
	config, err := origin.ReadConfig("")
	must(t, err)
	list, err := order.New(config)
	must(t, err)
	asked := capture.Scope{Level: 1, Layers: capture.Ranges{{From: 0, To: 1}}, Tensors: []string{"*.mlp.*"}, Positions: capture.Ranges{{From: 0, To: 0}}}
	all := capture.Scope{Level: 3}
	for _, test := range []struct {
		tokens int
		runner string
		want   capture.Scope
	}{
		{16, reference.GoWalk, all},
		{16, reference.Transformers, all},
		{16, reference.External, asked},
		{1 << 14, reference.GoWalk, asked},
		{1 << 14, reference.Transformers, capture.Scope{Level: 1, Layers: asked.Layers}},
		{1 << 14, reference.External, asked},
	} {
		c := chooser{job: &job.Job{
			Settings: settings.Settings{Scope: asked}, Model: job.Model{DType: hooks.F32},
			Input: job.Input{Passes: [][]int{make([]int, test.tokens)}}, Order: job.Order{List: list},
		}}
		if diff := cmp.Diff(test.want, c.storedScope(reference.Runner{Name: test.runner})); diff != "" {
			t.Errorf("%d tokens by %s: want -, got +\n%s", test.tokens, test.runner, diff)
		}
	}
}
