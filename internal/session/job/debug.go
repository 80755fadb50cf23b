package job

import (
	"os"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/settings"
)

// DebugLog is the log of a side that runs here and records a scope; nil where nothing is to be shown. A reference is stored
// at level 3 with everything in it: of that the log shows what was asked for.
func (j *Job) DebugLog(e *settings.Env, side string, recorded capture.Scope) *debug.Log {
	if !e.Debug {
		return nil
	}
	o := debug.Options{Side: side, Passes: ShownPasses(j.Settings.Scope), Layers: ShownLayers(j.Settings.Scope), Positions: j.Settings.Scope.Positions, Starts: []int{0}}
	for i, n := range j.Input.Lengths() {
		o.Starts = append(o.Starts, o.Starts[i]+n)
	}
	if side == "reference" && !recorded.Narrow() { // else it is what was asked for, to the row
		o.Only = capture.Only(j.Order.Record, j.Settings.Scope, j.Input.Lengths())
	}
	if j.Input.tok != nil {
		o.Text = j.Input.tok.Text
	}
	return debug.New(e.Errors, o)
}

// ShownPasses returns the number of passes to show in full: from the command line, else from the environment, else
// the default.
func ShownPasses(s capture.Scope) int {
	if n := s.Passes.Max(); len(s.Passes) > 0 {
		return min(n, capture.NoEnd-1) + 1
	}
	if n := debug.PassesWanted(os.Getenv); n > 0 {
		return n
	}
	return debug.Passes
}

// ShownLayers is how many layers of a pass are shown tensor by tensor: all that are recorded where layers or tensors were
// typed, else what the environment says, else the default.
func ShownLayers(s capture.Scope) int {
	if len(s.Layers) > 0 || len(s.Tensors) > 0 {
		return capture.NoEnd
	}
	if n := debug.LayersWanted(os.Getenv); n > 0 {
		return n
	}
	return debug.Layers
}

// Shown limits the printed lines of transformers, while its trace is stored whole. It returns nil for a recording.
func (j *Job) Shown() *reference.Shown {
	if j.Order.Record == nil {
		return nil
	}
	o := &reference.Shown{Passes: j.Settings.Scope.Passes, Positions: j.Settings.Scope.Positions}
	for _, e := range j.Settings.Scope.Select(j.Order.Record) {
		o.Names = append(o.Names, e.Name)
	}
	return o
}
