package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/reference"
)

func captureCommand() *cli.Command {
	side := &cli.StringFlag{Name: "side", Category: catInput, Value: "both", Usage: "`SIDE` to capture: local, reference or both"}
	return &cli.Command{
		Name:  "capture",
		Usage: "dump the tensors of the local model and of the reference to files",
		Description: `Runs the local side and writes local.safetensors, and puts the reference's trace of the same tokens beside
it. The next "tracediff compare" repeats the local side with these settings.

A reference that is run is kept by a key of everything it depends on, at level 3 and all layers up to ` + size(reference.MaxStored) + ` of
estimated data, else at the scope that was asked for, and used again while the key holds.

Examples:
  tracediff capture --prompt "Hello world"
  tracediff capture --model ./gemma-3n-E2B --prompt "Hello world" --side local --layers 0-3 --level 3
  tracediff capture --tokens '2,513,88;17' --dtype float32
  tracediff capture --side local --layers 5 --debug
  tracediff capture --side reference --reference hf --prompt "Hello world"`,
		Flags: append(jobFlags(), side),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			s, err := readFlags(c, defaults())
			if err != nil {
				return err
			}
			return captureSides(c, s, c.String("side"))
		},
	}
}

func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return hinted(fmt.Errorf("unexpected argument %q", c.Args().First()), "tracediff "+c.Command.Name+" --help shows what it takes; quote a prompt with spaces")
	}
	return nil
}

func captureSides(c *cli.Context, s settings, side string) error {
	if side != "both" && side != "local" && side != "reference" {
		return fmt.Errorf("--side is %q, want local, reference or both", side)
	}
	j, err := openJob(s, c.String("dir"))
	if err != nil {
		return err
	}
	defer j.ck.Close()
	if side != "reference" {
		if err := j.checkLocal(c); err != nil {
			return err
		}
	}
	var ref *found
	if side != "local" {
		if ref, err = j.findReference(c, true); err != nil {
			return err
		}
		defer ref.Close()
		j.replay(ref.passes)
	}
	if err := j.checkPasses(); err != nil {
		return err
	}
	if err := j.save(); err != nil {
		return err
	}
	j.showInput(c.App.Writer)
	j.noteInput(notes(c))
	if side != "reference" {
		if err := j.captureLocal(c); err != nil {
			return err
		}
	}
	if ref == nil {
		return nil
	}
	if err := j.measureFloor(c, ref); err != nil {
		return err
	}
	path, err := j.dump(ref)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "reference: %s (%s), %s -> %s\n", describe(ref.Trace), ref.label, plural(len(ref.Records()), "tensor"), path)
	return nil
}

// replay feeds the local side the reference's ids, so that one tie does not make every later pass incomparable.
func (j *job) replay(passes [][]int) {
	j.further = max(0, len(j.passes)+j.further-len(passes))
	j.passes = passes
}

// describe names who made a trace: "transformers 5.23.0, float32".
func describe(t *capture.Trace) string {
	m := t.Manifest()
	name := m.Producer.Name
	if name == "" {
		name = "unknown producer"
	}
	if m.Producer.Version != "" {
		name += " " + m.Producer.Version
	}
	if m.DType.Valid() {
		name += ", " + m.DType.String()
	}
	return name
}

// notes is where remarks go that are no result.
func notes(c *cli.Context) io.Writer {
	if c.Bool("quiet") {
		return io.Discard
	}
	return c.App.ErrWriter
}

// detail writes a line of what --verbose shows, on standard error with everything else that is no result.
func detail(c *cli.Context, format string, args ...any) {
	if c.Bool("verbose") {
		fmt.Fprintf(c.App.ErrWriter, "verbose: "+format+"\n", args...)
	}
}

// took is how long a step has run, to the millisecond.
func took(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }

// size is a count of bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; v >= unit && i < len(names)-1; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %s", v, names[i])
}
