package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/gatefile"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
)

// example is a tracediff.toml with every key explained. It works unchanged, on the embedded checkpoint.
//
//go:embed tracediff.toml
var example []byte

func initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a tracediff.toml for the gate, with every key explained",
		ArgsUsage: "[FILE]",
		Description: `After a capture, the file has the model, the port and the tokens of that capture, and the command prints them: the gate then
compares what "tracediff compare" did. For a port the file has its map and the names that the port dumped: a name that
disappears later fails. For the built-in model the gate compares everything, even if less was captured.
Without a capture it is an example that works as it is, on the embedded tiny checkpoint. An existing file is kept.

Examples:
  tracediff init
  tracediff init ci/tracediff.toml
  tracediff init --dir /tmp/traces`,
		Flags: []cli.Flag{&cli.StringFlag{Name: "dir", Category: catFiles, Value: settings.DefaultDir, Usage: "`DIR` where the traces of the last capture are kept"}},
		Action: func(c *cli.Context) error {
			path := gatefile.ConfigName
			switch c.NArg() {
			case 0:
			case 1:
				path = c.Args().First()
			default:
				return hint.Add(fmt.Errorf("init takes one file, not %d arguments", c.NArg()), "tracediff init FILE")
			}
			if path == "" {
				return hint.Add(errors.New("the name of the file is empty"), "tracediff init FILE, or without a name for "+gatefile.ConfigName)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				if err == nil {
					err = errors.New("it exists already and was not changed")
				}
				return hint.Add(fmt.Errorf("%s: %w", path, err), "name another file: tracediff init FILE; or move this one away")
			}
			text, taken, err := session.Initial(example, path, c.String("dir"))
			if err != nil {
				return err
			}
			if err := files.WriteWhole(path, text); err != nil {
				return hint.Add(err, "can files be created in that folder?")
			}
			next := "tracediff gate"
			if path != gatefile.ConfigName {
				next += " --config " + plain.QuoteShell(path)
			}
			fmt.Fprintf(c.App.Writer, "wrote %s; the next step: %s\n", path, next)
			if taken != nil {
				fmt.Fprintf(c.App.Writer, "from the last capture, %s:\n", filepath.Join(c.String("dir"), settings.SettingsFile))
			}
			for _, t := range taken {
				fmt.Fprintf(c.App.Writer, "  %s = %s\n", t.Key, plain.Text(t.Value))
			}
			return nil
		},
	}
}
