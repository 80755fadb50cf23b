package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/capture/gemma"
)

// captureLocal makes the local side's trace and says what it left.
func (j *job) captureLocal(c *cli.Context) error {
	started := time.Now()
	t, greedy, err := j.local(c)
	if err != nil {
		return err
	}
	defer t.Close()
	var bytes int64
	for _, r := range t.Records() {
		bytes += r.Size
	}
	fmt.Fprintf(c.App.Writer, "local: %s, %s, %s -> %s\n", describe(t), plural(len(t.Records()), "tensor"), size(bytes), t.Path())
	if c.Bool("quiet") {
		return nil
	}
	for n, id := range greedy {
		if id >= 0 {
			fmt.Fprintf(c.App.Writer, "pass %d goes on with token %d %q\n", n, id, j.text(id))
		}
	}
	if f, ok := c.App.ErrWriter.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		return nil // a log has no use for it
	}
	fmt.Fprintf(notes(c), "captured in %s\n", time.Since(started).Round(time.Millisecond))
	return nil
}

// local makes the local side's trace, if it is not a file that is given, and opens it. greedy has the token that the Go
// model would have gone on with after each pass, −1 where it stopped early.
func (j *job) local(c *cli.Context) (_ *capture.Trace, greedy []int, err error) {
	started := time.Now()
	if j.Local.Kind == kindFile {
		detail(c, "local side %s, as it is", j.Local.Text)
		t, err := openTrace(j.Local.Text)
		return t, nil, err
	}
	// Until the trace is open: another run's would be taken for it. What is open stays, whatever takes its place.
	release, err := j.lockSide("local")
	if err != nil {
		return nil, nil, err
	}
	defer release()
	switch j.Local.Kind {
	case kindExec:
		err = j.runCommand(c, j.Local, "local", j.path("local"))
	default:
		var out gemma.Output
		out, err = j.runModel(c)
		greedy = out.Greedy
	}
	if err != nil {
		return nil, nil, err
	}
	t, err := capture.Open(j.path("local"))
	detail(c, "local side %s after %s", j.path("local"), took(started))
	return t, greedy, err
}

// checkLocal reports, before anything runs, what would keep the local side from being run or compared.
func (j *job) checkLocal(c *cli.Context) error {
	switch j.Local.Kind {
	case kindFile:
		t, err := openTrace(j.Local.Text)
		if err != nil {
			return err
		}
		defer t.Close()
		return j.suitable(t, "local side", c.Bool("partial"))
	case kindExec:
		return j.checkCommand(j.Local, "local")
	}
	return hinted(gemma.CheckFamily(j.list), "compare a port of it: --local 'exec:COMMAND' or --local FILE; or capture the reference alone with --side reference")
}

// runModel captures the Go model to the local side's place.
func (j *job) runModel(c *cli.Context) (gemma.Output, error) {
	m := capture.Manifest{
		Producer: capture.Producer{Name: "tracediff", Version: version()}, Model: j.ck.Name(), Weights: j.weights, Scope: j.Scope,
	}
	if j.Prompt != nil {
		m.Prompt = *j.Prompt
	}
	p := newProgress(c, "capturing the local model", "layer", j.path("local"))
	defer p.done()
	log := j.debugLog(c, "local", j.Scope)
	defer log.End()
	out, err := gemma.Capture(c.Context, gemma.Job{
		Checkpoint: j.ck, List: j.list, Record: j.record, DType: j.dtype, Passes: j.passes, NewTokens: j.further,
		Path: j.path("local"), Manifest: m, Progress: p.step, Debug: log,
	})
	if errors.Is(err, context.Canceled) {
		return out, hinted(errors.New("interrupted"), "what was captured so far is in "+j.path("local")+capture.Suffix)
	}
	return out, err
}
