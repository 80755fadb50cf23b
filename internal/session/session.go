// Package session goes from settings to two open traces, and from two traces to a comparison of them. It decides what a
// person would otherwise have to: which reference fits and is the best there is, which settings apply, what is stale,
// which checkpoint certifies a trace, which limits hold.
//
// It reads no command line and prints no result. Settings, Env and Asked are plain data; remarks go to a writer.
package session

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

	Notes   io.Writer // remarks that are no result
	Errors  io.Writer // standard error
	Quiet   bool      // Notes go nowhere
	Verbose bool      // each step is said on Errors
	Debug   bool      // each hook is shown on Errors as it fires
	Sight   bool      // comparisons ask which of the usual mistakes they would have shown

	// Progress is asked for before what takes its time: what runs, the word for its steps, and how many bytes are written or read so
	// far; nil where nobody counts them. It may be nil.
	Progress func(what, unit string, bytes func() int64) Progress

	// Spare is told of files before they are read or written, and refuses what would be lost by it. It may be nil.
	Spare func(paths ...string) error
}

// Progress is told how far a run is. One that is an io.Writer, too, takes the lines that are printed meanwhile.
type Progress interface {
	Step(pass, passes, at, steps int) // before each step of each pass
	Doing(what string)                // what is computed for the next step; from several goroutines
	Done()
}

type noProgress struct{}

func (noProgress) Step(int, int, int, int) {}
func (noProgress) Doing(string)            {}
func (noProgress) Done()                   {}

func (e *Env) progress(what, unit string, bytes func() int64) Progress {
	if e == nil || e.Progress == nil {
		return noProgress{}
	}
	return e.Progress(what, unit, bytes)
}

// within is where a session takes place that keeps to so much memory.
func (e *Env) within(memory int64) *Env {
	own := *e
	own.Memory = memory
	return &own
}

// growing is the size of a trace that is being written; 0 before it is there.
func growing(path string) func() int64 {
	return func() int64 {
		info, err := os.Stat(path + capture.Suffix)
		if err != nil {
			return 0
		}
		return info.Size()
	}
}

func (e *Env) spare(paths ...string) error {
	if e.Spare == nil {
		return nil
	}
	return e.Spare(paths...)
}

// detail says a step, where each is to be said.
func (e *Env) detail(format string, args ...any) {
	if e.Verbose {
		fmt.Fprintf(e.Errors, "verbose: "+format+"\n", args...)
	}
}
