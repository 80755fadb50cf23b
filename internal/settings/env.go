package settings

import (
	"fmt"
	"io"
	"os"

	"github.com/tracediff/tracediff/capture"
)

// DefaultDir is where traces are kept when no other place is named.
const DefaultDir = ".tracediff"

// Env is where a session takes place, and how it talks.
type Env struct {
	Dir     string // where traces are kept
	Version string // of the program, for the manifests of what it captures
	Gate    bool   // only transformers may be the reference
	Partial bool   // traces of runs that did not finish are accepted
	Memory  int64  // how many bytes a walk may take; 0 for reference.DefaultMemory. No result depends on it

	Process *Process // the running program; nil: nothing is kept for the next session

	Notes  io.Writer // remarks that are no result
	Errors io.Writer // standard error
	Volume
	Sight bool // comparisons ask which of the usual mistakes they would have shown

	// Progress is called before a slow step, with the name of the step, the word for its units, and a function
	// returning the number of bytes written or read; the function may be nil. Progress may be nil.
	Progress func(what, unit string, bytes func() int64) Progress

	// Spare is called with the paths of files before a session reads or writes them, and returns an error for a
	// path whose content would be lost. It may be nil.
	Spare func(paths ...string) error
}

// Volume is the amount of text printed besides the result.
type Volume struct {
	Quiet   bool // Notes go nowhere
	Verbose bool // each step is said on Errors
	Debug   bool // each hook is shown on Errors as it fires
}

// Progress receives the progress of a run. If it is also an io.Writer, output lines go through it.
type Progress interface {
	Step(pass, passes, at, steps int) // before each step of each pass
	Doing(what string)                // what is computed for the next step; from several goroutines
	Done()
}

type noProgress struct{}

func (noProgress) Step(int, int, int, int) {}
func (noProgress) Doing(string)            {}
func (noProgress) Done()                   {}

// Begin starts the progress display of a slow step.
func (e *Env) Begin(what, unit string, bytes func() int64) Progress {
	if e == nil || e.Progress == nil {
		return noProgress{}
	}
	return e.Progress(what, unit, bytes)
}

// Within is where a session takes place that keeps to so much memory.
func (e *Env) Within(memory int64) *Env {
	own := *e
	own.Memory = memory
	return &own
}

// Growing returns a function for the current size of an unfinished trace; the size is 0 before the file exists.
func Growing(path string) func() int64 {
	return func() int64 {
		info, err := os.Stat(path + capture.Suffix)
		if err != nil {
			return 0
		}
		return info.Size()
	}
}

// Protect returns an error if reading or writing one of the files would destroy its content. See Env.Spare.
func (e *Env) Protect(paths ...string) error {
	if e.Spare == nil {
		return nil
	}
	return e.Spare(paths...)
}

// Detail says a step, where each is to be said.
func (e *Env) Detail(format string, args ...any) {
	if e.Verbose {
		fmt.Fprintf(e.Errors, "verbose: "+format+"\n", args...)
	}
}
