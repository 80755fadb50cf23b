package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
)

func mapCommand() *cli.Command {
	return &cli.Command{
		Name:      "map",
		Usage:     "propose how the names and layouts of a dump map to the order's",
		ArgsUsage: "LOCAL [REFERENCE]",
		Description: `LOCAL is a dump with its own names and layouts: any file or folder that compare reads. The map is written to standard output, a
line for each tensor of a layer: by the names of known engines, by shapes and, with a REFERENCE of the same tokens, by
values. A wrong layer gets the names of the right layers. If the numbers leave a choice open, the map offers the choices and takes
none. compare and capture take the map as --map FILE, and gate as the table [map.tensors] of tracediff.toml.

Exit status: 0 the map is ready, 1 a choice is open or a tensor fits nothing, 2 a file cannot be used.

Examples:
  tracediff map port.npz reference.safetensors > map.toml
  tracediff compare port.npz reference.safetensors --map map.toml
  tracediff map port.npz --model ./Llama-3.2-1B`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "program", Category: catInput, Usage: "recorded program `FILE` of a model that no order describes (default: the one next to the reference)"},
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` whose config.json gives the order (default: the model that the reference names, else the built-in model)"},
		}, talkFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() < 1 || c.NArg() > 2 {
				return hint.Add(fmt.Errorf("map takes a dump, and a reference if there is one, not %d arguments", c.NArg()), "tracediff map LOCAL [REFERENCE]")
			}
			if err := checkTalk(c); err != nil {
				return err
			}
			p, err := session.ProposeMap(c.Context, &settings.Env{Progress: drawn(c)}, plain.Writer(c.App.Writer), session.Unmapped{
				Local: c.Args().Get(0), Reference: c.Args().Get(1), Model: c.String("model"), Program: c.String("program"),
			})
			if err != nil {
				return err
			}
			switch open := p.Open(); {
			case p.Needless():
				fmt.Fprintln(notes(c), "note: no map is needed: compare the dump as it is")
			case open == 1:
				fmt.Fprintln(notes(c), "note: 1 pattern is left open: it is a comment in the map")
			case open > 1:
				fmt.Fprintf(notes(c), "note: %d patterns are left open: each is a comment in the map\n", open)
			}
			if p.Open() > 0 {
				return mismatch{}
			}
			return nil
		},
	}
}
