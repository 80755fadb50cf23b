package session

import (
	"os"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/capture/reference"
)

// debugLog is the log of a side that runs here and records a scope; nil where nothing is to be shown. A reference is stored
// at level 3 with everything in it: of that the log shows what was asked for.
func (j *Job) debugLog(e *Env, side string, recorded capture.Scope) *debug.Log {
	if !e.Debug {
		return nil
	}
	o := debug.Options{Side: side, Passes: j.debugPasses(), Layers: j.debugLayers(), Positions: j.Scope.Positions, Starts: []int{0}}
	for i, n := range j.tokens() {
		o.Starts = append(o.Starts, o.Starts[i]+n)
	}
	if side == "reference" && !recorded.Narrow() { // else it is what was asked for, to the row
		o.Only = capture.Only(j.record, j.Scope, j.tokens())
	}
	if j.tok != nil {
		o.Text = j.tok.Text
	}
	return debug.New(e.Errors, o)
}

// debugPasses is how many passes are shown in full: those that were typed, else what the environment says, else the
// default.
func (j *Job) debugPasses() int {
	if n := j.Scope.Passes.Max(); len(j.Scope.Passes) > 0 {
		return min(n, capture.NoEnd-1) + 1
	}
	if n := debug.PassesWanted(os.Getenv); n > 0 {
		return n
	}
	return debug.Passes
}

// debugLayers is how many layers of a pass are shown tensor by tensor: all that are recorded where layers or tensors were
// typed, else what the environment says, else the default.
func (j *Job) debugLayers() int {
	if len(j.Scope.Layers) > 0 || len(j.Scope.Tensors) > 0 {
		return capture.NoEnd
	}
	if n := debug.LayersWanted(os.Getenv); n > 0 {
		return n
	}
	return debug.Layers
}

// debugOnly is what transformers' lines are limited to, whose trace is stored whole; nil for a run that is recorded.
func (j *Job) debugOnly() *reference.Shown {
	if j.record == nil {
		return nil
	}
	o := &reference.Shown{Passes: j.Scope.Passes, Positions: j.Scope.Positions}
	for _, e := range j.Scope.Select(j.record) {
		o.Names = append(o.Names, e.Name)
	}
	return o
}
