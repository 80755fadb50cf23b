package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/ci"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
)

func acceptCommand() *cli.Command {
	return &cli.Command{
		Name:      "accept",
		Usage:     "write the divergences of a report to a baseline of known divergences",
		ArgsUsage: "REPORT.json",
		Description: `Reads a JSON report of "tracediff compare" or "tracediff gate" and writes each mismatch that fails it, by name, to a file,
with a reason and a last day. A comparison with --baseline FILE lets these mismatches pass: it prints each of them every time,
and fails when one is gone, has grown, or is past its last day. An entry that inherited its error and is right on its
own inputs needs no line. docs/verdict.md has the rules.

An existing file is extended; an entry that it already has is replaced. Your own comments are not kept.

Exit status: 0 written, 2 nothing was written.

Examples:
  tracediff compare --all --report json=out.json
  tracediff accept out.json --reason "int8 weights, ported later" --until 2027-01-31
  tracediff accept out.json --reason "int8 weights" --until 2027-01-31 --entries 'layers.3.mlp.*'
  tracediff compare --baseline baseline.toml`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "reason", Category: catCompare, Usage: "`TEXT` that says why the divergences are known; every report prints it"},
			&cli.StringFlag{Name: "until", Category: catCompare, Usage: "`DATE` of the last day on which they are accepted, in UTC: 2027-01-31"},
			&cli.StringSliceFlag{Name: "entries", Category: catCompare, Usage: "only entries whose names match `PATTERN` (repeatable; default: all but inherited ones)"},
			&cli.StringFlag{Name: "baseline", Category: catFiles, Value: gatefile.BaselineName, Usage: "the `FILE` to write or extend"},
		}, talkFlags()...),
		Action: func(c *cli.Context) error {
			if err := checkTalk(c); err != nil {
				return err
			}
			if c.NArg() != 1 {
				return hint.Add(fmt.Errorf("accept takes one report, not %d arguments", c.NArg()), "tracediff accept REPORT.json; tracediff compare --report json=REPORT.json writes one")
			}
			path := c.String("baseline")
			if path == "" {
				return hint.Add(errors.New("--baseline is empty"), "leave the flag out for "+gatefile.BaselineName)
			}
			got, err := ci.Accept(ci.Acceptance{
				Report: c.Args().First(), Patterns: c.StringSlice("entries"), Reason: c.String("reason"), Until: c.String("until"),
			}, time.Now())
			if err != nil {
				return err
			}
			added, err := got.Extend(path)
			if err != nil {
				return err
			}
			return printAccepted(c, path, got, added)
		},
	}
}

// maxAccepted is the number of lines listed without --verbose.
const maxAccepted = 20

// printAccepted lists the divergences that were written.
func printAccepted(c *cli.Context, path string, got *ci.Accepted, added int) error {
	if !c.Bool("quiet") {
		for i, l := range got.Lines {
			if i == maxAccepted && !c.Bool("verbose") {
				fmt.Fprintf(c.App.Writer, "and %d more: --verbose lists them, %s has them all\n", len(got.Lines)-i, plain.Text(path))
				break
			}
			name := l.Key
			if l.Run != "" {
				name = l.Run + ": " + name
			}
			fmt.Fprintf(c.App.Writer, "accepted: %s %s\n", plain.Text(name), l.Class)
		}
		if got.Inherited > 0 {
			fmt.Fprintf(c.App.Writer, "not written: %s with an inherited error; they need no line where they are certified\n", amount.Of(got.Inherited, "row"))
		}
	}
	text := fmt.Sprintf("%s new", amount.Of(added, "known divergence"))
	if n := len(got.Lines) - added; n > 0 {
		text += fmt.Sprintf(", %d replaced", n)
	}
	_, err := fmt.Fprintf(c.App.Writer, "wrote %s: %s, until %s\n", plain.Text(path), text, got.Lines[0].Until)
	return err
}
