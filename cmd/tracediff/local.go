package main

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/session/job"
	"github.com/tracediff/tracediff/internal/settings"
)

// captureLocal captures your port and prints the trace.
func captureLocal(c *cli.Context, e *settings.Env, j *job.Job) error {
	started := time.Now()
	t, greedy, err := session.Capture(c.Context, e, j)
	if err != nil {
		return err
	}
	defer t.Close()
	var bytes int64
	for _, r := range t.Records() {
		bytes += r.Size
	}
	fmt.Fprintf(c.App.Writer, "local: %s, %s, %s of data -> %s\n", plain.Text(session.Describe(t)), amount.Of(len(t.Records()), "tensor"), amount.Bytes(bytes), plain.Text(t.Path()))
	if c.Bool("quiet") {
		return nil
	}
	for n, id := range greedy {
		if id >= 0 {
			fmt.Fprintf(c.App.Writer, "next token after pass %d: %d %q\n", n, id, j.Input.Text(id))
		}
	}
	if f, ok := c.App.ErrWriter.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		return nil // a log does not need the time
	}
	fmt.Fprintf(notes(c), "captured in %s\n", time.Since(started).Round(time.Millisecond))
	return nil
}
