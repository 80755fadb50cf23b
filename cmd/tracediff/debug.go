package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/capture/reference"
)

// debugFlag is of the commands that run a side.
func debugFlag() cli.Flag {
	return &cli.BoolFlag{
		Name: "debug", Category: catFiles,
		Usage: "print a line on standard error as each hook fires, with statistics and times (also TRACEDIFF_DEBUG=1, DEBUG=1); the first " + fmt.Sprint(debug.Passes) + " passes in full, or those of --passes",
	}
}

// debugs reports whether what runs is to be shown hook by hook. A flag that was typed goes before the environment, and so
// does --quiet.
func debugs(c *cli.Context) bool {
	if c.IsSet("debug") {
		return c.Bool("debug")
	}
	return !c.Bool("quiet") && debug.Wanted(os.Getenv)
}

// checkDebug reports what was typed and contradicts debug mode, and says what of its environment is not understood.
func checkDebug(c *cli.Context) error {
	if c.Bool("debug") && c.Bool("quiet") {
		return hinted(errors.New("--quiet and --debug were both given"), "leave one of them out")
	}
	if debugs(c) && !c.IsSet("passes") && os.Getenv("TRACEDIFF_DEBUG_PASSES") != "" && debug.PassesWanted(os.Getenv) == 0 {
		fmt.Fprintf(notes(c), "note: TRACEDIFF_DEBUG_PASSES is no number of passes, 1 or more: the first %d are shown in full\n", debug.Passes)
	}
	return nil
}

// debugLog is the log of a side that runs here and records a scope; nil where nothing is to be shown. A reference is stored
// at level 3 with everything in it: of that the log shows what was asked for.
func (j *job) debugLog(c *cli.Context, side string, recorded capture.Scope) *debug.Log {
	if !debugs(c) {
		return nil
	}
	o := debug.Options{Side: side, Passes: j.debugPasses(), Positions: j.Scope.Positions, Starts: []int{0}}
	for i, n := range j.tokens() {
		o.Starts = append(o.Starts, o.Starts[i]+n)
	}
	if side == "reference" && !recorded.Narrow() { // else it is what was asked for, to the row
		o.Only = capture.Only(j.record, j.Scope, j.tokens())
	}
	if j.tok != nil {
		o.Text = j.tok.Text
	}
	return debug.New(c.App.ErrWriter, o)
}

// debugPasses is how many passes are shown in full: those that were typed, else what the environment says, else the
// default.
func (j *job) debugPasses() int {
	if n := j.Scope.Passes.Max(); len(j.Scope.Passes) > 0 {
		return min(n, capture.NoEnd-1) + 1
	}
	if n := debug.PassesWanted(os.Getenv); n > 0 {
		return n
	}
	return debug.Passes
}

// debugOnly is what transformers' lines are limited to, whose trace is stored whole.
func (j *job) debugOnly() *reference.Shown {
	o := &reference.Shown{Passes: j.Scope.Passes, Positions: j.Scope.Positions}
	for _, e := range j.Scope.Select(j.record) {
		o.Names = append(o.Names, e.Name)
	}
	return o
}
