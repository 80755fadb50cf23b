package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/session/choice"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
)

func captureCommand() *cli.Command {
	side := &cli.StringFlag{Name: "side", Category: catInput, Value: "both", Usage: "`SIDE` to capture: local, reference or both"}
	return &cli.Command{
		Name:  "capture",
		Usage: "dump the tensors of your port and of the reference to files",
		Description: `Runs your port and writes local.safetensors, and puts the reference trace of the same tokens next to
it. The next "tracediff compare" captures your port again with these settings.

A reference that is run is stored, and used again until something that it depends on changes. It has level 3 and all layers up to ` + amount.Bytes(reference.MaxStored) + ` of
estimated data, else the scope that was asked for.

Examples:
  tracediff capture --prompt "Hello world"
  tracediff capture --model ./gemma-3n-E2B --prompt "Hello world" --side local --layers 0-3 --level 3
  tracediff capture --tokens '2,513,88;17' --dtype float32
  tracediff capture --side local --layers 5 --debug
  tracediff capture --side reference --reference hf --prompt "Hello world"
  tracediff capture --side reference --reference hf --model ./Qwen3-0.6B --weights model.Q8_0.gguf --prompt "Hello world"`,
		Flags: append(jobFlags(), side, memoryFlag(catScope)),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			s, err := readFlags(c, settings.Defaults())
			if err != nil {
				return err
			}
			memory, err := keepToMemory(c)
			if err != nil {
				return err
			}
			return captureSides(c, s, c.String("side"), memory)
		},
	}
}

func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		next := "tracediff " + c.Command.Name + " --help shows what it takes"
		if slices.ContainsFunc(c.Command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "prompt" }) {
			next += "; quote a prompt with spaces"
		}
		return hint.Add(fmt.Errorf("unexpected argument %q", c.Args().First()), next)
	}
	return nil
}

func captureSides(c *cli.Context, s settings.Settings, side string, memory int64) error {
	if !slices.Contains(choices["side"], side) {
		return hint.Add(fmt.Errorf("--side is %q, want local, reference or both", side), "local is your port, reference is the side that your port is compared with, both is the default")
	}
	e := env(c, nil)
	e.Memory = memory
	j, ref, err := session.Prepare(c.Context, e, s, side != "reference", side != "local")
	if err != nil {
		return err
	}
	defer j.Close()
	if ref != nil {
		defer ref.Close()
	}
	j.ShowInput(c.App.Writer)
	j.NoteInput(notes(c))
	if side != "reference" {
		if err := captureLocal(c, e, j); err != nil {
			return err
		}
	}
	if ref == nil {
		tracefolder.RemoveLeftovers(e, s)
		return nil
	}
	path, err := choice.Keep(c.Context, e, j, ref)
	if err != nil {
		return err
	}
	tracefolder.RemoveLeftovers(e, s)
	j.ShowProgram(c.App.Writer)
	fmt.Fprintf(c.App.Writer, "reference: %s (%s), %s -> %s\n", plain.Text(session.Describe(ref.Trace)), ref.Label, amount.Of(len(ref.Records()), "tensor"), plain.Text(path))
	return nil
}

// notes is the writer for remarks that are not a result.
func notes(c *cli.Context) io.Writer {
	if c.Bool("quiet") {
		return io.Discard
	}
	return plain.Writer(c.App.ErrWriter)
}

// detail writes a line for --verbose on standard error, like every remark that is not a result.
func detail(c *cli.Context, format string, args ...any) {
	if c.Bool("verbose") {
		fmt.Fprintf(notes(c), "verbose: "+format+"\n", args...)
	}
}
