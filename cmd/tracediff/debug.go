package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/internal/hint"
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
		return hint.Add(errors.New("--quiet and --debug were both given"), "leave one of them out")
	}
	if debugs(c) && !c.IsSet("passes") && os.Getenv("TRACEDIFF_DEBUG_PASSES") != "" && debug.PassesWanted(os.Getenv) == 0 {
		fmt.Fprintf(notes(c), "note: TRACEDIFF_DEBUG_PASSES is no number of passes, 1 or more: the first %d are shown in full\n", debug.Passes)
	}
	return nil
}
