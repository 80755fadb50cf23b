package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
)

func captureCommand() *cli.Command {
	side := &cli.StringFlag{Name: "side", Category: catInput, Value: "both", Usage: "`SIDE` to capture: local, reference or both"}
	return &cli.Command{
		Name:  "capture",
		Usage: "dump the tensors of the local model and of the reference to files",
		Description: `Runs the local model with hooks and writes local.safetensors, and puts the reference's trace of the same
tokens beside it. The next "tracediff compare" repeats the local side with these settings.

Examples:
  tracediff capture --prompt "Hello world"
  tracediff capture --model ./gemma-3n-E2B --prompt "Hello world" --side local --layers 0-3 --level 3
  tracediff capture --tokens '2,513,88;17' --dtype float32`,
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

func defaults() settings { return settings{DType: "auto", Scope: capture.Scope{Level: 2}} }

func captureSides(c *cli.Context, s settings, side string) error {
	if side != "both" && side != "local" && side != "reference" {
		return fmt.Errorf("--side is %q, want local, reference or both", side)
	}
	j, err := openJob(s, c.String("dir"))
	if err != nil {
		return err
	}
	defer j.ck.Close()
	var ref *found
	if side != "local" {
		if ref, err = j.findReference(c); err != nil {
			return err
		}
		defer ref.Close()
		j.replay(ref.passes)
	}
	if err := j.checkPasses(); err != nil {
		return err
	}
	j.showInput(c.App.Writer)
	j.noteInput(c.App.Writer)
	if side != "reference" {
		if err := j.captureLocal(c); err != nil {
			return err
		}
	}
	if ref == nil {
		return nil
	}
	if err := j.store(ref, c.String("reference")); err != nil {
		return err
	}
	fmt.Fprintf(c.App.Writer, "reference: %s (%s), %d tensors -> %s\n", describe(ref.Trace), ref.label, len(ref.Records()), j.path("reference"))
	return nil
}

// replay feeds the local side the reference's ids, so that one tie does not make every later pass incomparable.
func (j *job) replay(passes [][]int) {
	j.further = max(0, len(j.passes)+j.further-len(passes))
	j.passes = passes
}

// captureLocal runs the local model and says what it left.
func (j *job) captureLocal(c *cli.Context) error {
	started := time.Now()
	result, err := j.runLocal(c.Context, c)
	if err != nil {
		return err
	}
	t, err := capture.Open(j.path("local"))
	if err != nil {
		return err
	}
	defer t.Close()
	var bytes int64
	for _, r := range t.Records() {
		bytes += r.Size
	}
	fmt.Fprintf(c.App.Writer, "local: %s, %d tensors, %s -> %s\n", describe(t), len(t.Records()), size(bytes), j.path("local"))
	if !c.Bool("quiet") {
		for n, id := range result.Greedy {
			if id >= 0 {
				fmt.Fprintf(c.App.Writer, "pass %d goes on with token %d %q\n", n, id, j.text(id))
			}
		}
		fmt.Fprintf(notes(c), "captured in %s\n", time.Since(started).Round(time.Millisecond))
	}
	return nil
}

// runLocal captures the local side to its place.
func (j *job) runLocal(ctx context.Context, c *cli.Context) (gemma.Output, error) {
	again, err := j.settings.absolute()
	if err != nil {
		return gemma.Output{}, err
	}
	typed, err := json.Marshal(again)
	if err != nil {
		return gemma.Output{}, err
	}
	m := capture.Manifest{
		Producer: capture.Producer{Name: "tracediff", Version: version()}, Model: j.ck.Name(), Weights: j.weights, Scope: j.Scope, Settings: typed,
	}
	if j.Prompt != nil {
		m.Prompt = *j.Prompt
	}
	p := newProgress(c)
	defer p.done()
	out, err := gemma.Capture(ctx, gemma.Job{
		Checkpoint: j.ck, List: j.list, Record: j.record, DType: j.dtype, Passes: j.passes, NewTokens: j.further,
		Path: j.path("local"), Manifest: m, Progress: p.layer,
	})
	if errors.Is(err, context.Canceled) {
		return out, hinted(errors.New("interrupted"), "what was captured so far is in "+j.path("local")+capture.Suffix)
	}
	return out, err
}

// lastSettings reads the settings of the last capture from its trace; false when there is none.
func lastSettings(path string) (settings, bool, error) {
	t, err := capture.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return settings{}, false, nil
	}
	if err != nil {
		return settings{}, false, hinted(fmt.Errorf("reading the settings of the last capture: %w", err), "name the input: tracediff compare --prompt TEXT, or capture again")
	}
	defer t.Close()
	s := defaults()
	if raw := t.Manifest().Settings; raw != nil {
		if err := json.Unmarshal(raw, &s); err != nil {
			return s, false, fmt.Errorf("%s: its settings: %w", path, err)
		}
		return s, true, s.check()
	}
	return s, false, hinted(fmt.Errorf("%s does not say how it was captured", path), "name the input: tracediff compare --prompt TEXT")
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

// version of this build: the module's, or the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	if info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

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
