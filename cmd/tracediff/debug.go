package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture/debug"
	"github.com/tracediff/tracediff/internal/hint"
)

// debugFlag is the flag of commands that run a side.
func debugFlag() cli.Flag {
	return &cli.BoolFlag{
		Name: "debug", Category: catFiles,
		Usage: "print a line on standard error as each hook fires, with statistics and times (also TRACEDIFF_DEBUG=1, DEBUG=1); the first " + fmt.Sprint(debug.Passes) + " passes and " + fmt.Sprint(debug.Layers) + " layers in full, or the ones that --passes and --layers name",
	}
}

// debugs reports whether runs show each hook. A typed --debug or --quiet overrides the environment.
func debugs(c *cli.Context) bool {
	if c.IsSet("debug") {
		return c.Bool("debug")
	}
	return !c.Bool("quiet") && debug.Wanted(os.Getenv)
}

// checkDebug returns an error for typed flags that contradict debug mode, and notes unknown values in the
// environment.
func checkDebug(c *cli.Context) error {
	if c.Bool("debug") && c.Bool("quiet") {
		return hint.Add(errors.New("--quiet and --debug were both given"), "leave one of them out")
	}
	if unknown := debug.Unknown(os.Getenv); unknown != "" && !c.IsSet("debug") {
		fmt.Fprintf(notes(c), "note: %s\n", unknown)
	}
	if !debugs(c) {
		return nil
	}
	env := func(name string) string {
		passes, layers := c.IsSet("passes"), c.IsSet("layers") || c.IsSet("tensors")
		if passes && name == "TRACEDIFF_DEBUG_PASSES" || layers && name == "TRACEDIFF_DEBUG_LAYERS" {
			return "" // a typed flag overrides the environment
		}
		return os.Getenv(name)
	}
	for _, wrong := range debug.Wrong(env) {
		fmt.Fprintf(notes(c), "note: %s\n", wrong)
	}
	return nil
}
