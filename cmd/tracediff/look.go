package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/order"
)

// lookMapFlag is --map of commands that inspect traces without a comparison.
func lookMapFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "map", Category: category, Usage: "a `FILE` that says how the names and layouts of a dump map to the reference's: tracediff map proposes one"}
}

// lookMapped applies the map of --map to traces.
func lookMapped(c *cli.Context, list *order.List, traces ...*capture.Trace) ([]*capture.Trace, error) {
	if c.IsSet("map") && c.String("map") == "" {
		return nil, hint.Add(errors.New("--map is empty"), "leave the flag out if the names are the reference's")
	}
	all, differ, err := session.Mapped(c.String("map"), list, traces...)
	for _, d := range differ {
		fmt.Fprintf(notes(c), "note: %s\n", d)
	}
	return all, err
}
