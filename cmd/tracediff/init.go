package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
)

// example is a tracediff.toml that works as it is, on the embedded checkpoint, and explains every key.
//
//go:embed tracediff.toml
var example []byte

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a tracediff.toml for the gate, with every key explained",
		ArgsUsage: "[FILE]",
		Description: `The file works as it is, on the embedded tiny checkpoint: edit the model and the prompts. A file that is there is
left alone.

Examples:
  tracediff init
  tracediff init ci/tracediff.toml`,
		Action: func(c *cli.Context) error {
			path := session.ConfigName
			switch c.NArg() {
			case 0:
			case 1:
				path = c.Args().First()
			default:
				return hint.Add(fmt.Errorf("init takes one file, not %d arguments", c.NArg()), "tracediff init FILE")
			}
			if path == "" {
				return hint.Add(errors.New("the name of the file is empty"), "tracediff init FILE, or without a name for "+session.ConfigName)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				if err == nil {
					err = errors.New("it is there already, and is left as it is")
				}
				return hint.Add(fmt.Errorf("%s: %w", path, err), "name another file: tracediff init FILE; or move this one away")
			}
			if err := session.WriteWhole(path, example); err != nil {
				return hint.Add(err, "is the folder one where files can be made?")
			}
			fmt.Fprintf(c.App.Writer, "wrote %s; the next step: tracediff gate\n", path)
			return nil
		},
	}
}
