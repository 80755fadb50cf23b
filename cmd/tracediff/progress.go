package main

import (
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/amount"
)

// progress shows, on a terminal and nowhere else, how far a run is: what is captured, the bytes on the disk and their rate.
type progress struct {
	bars    *mpb.Progress
	bar     *mpb.Bar
	what    string
	unit    string
	path    string // of the trace that grows; empty where none does
	started time.Time
}

// newProgress shows nothing yet, and in debug mode nothing at all: a bar would be drawn over the lines. what runs and unit are words, such as "local model" and "layer"; path is the trace that is
// being written, if one is.
func newProgress(c *cli.Context, what, unit, path string) *progress {
	if f, ok := c.App.ErrWriter.(*os.File); !ok || c.Bool("quiet") || debugs(c) || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return &progress{}
	}
	return &progress{
		bars: mpb.New(mpb.WithOutput(c.App.ErrWriter), mpb.WithWidth(30)), what: what, unit: unit, path: path, started: time.Now(),
	}
}

// Step is told before each step of each pass.
func (p *progress) Step(pass, passes, at, steps int) {
	if p.bars == nil {
		return
	}
	if p.bar == nil {
		state := func(decor.Statistics) string { return p.amount(time.Since(p.started)) }
		p.bar = p.bars.AddBar(int64(passes*steps), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.what+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit(p.unit+" %d of %d"), decor.Any(state)))
	}
	p.bar.SetCurrent(int64(pass*steps + at))
}

// amount is how much of the trace is written, and how fast: ", 12.4 MiB, 35.0 MiB/s". It is empty where no file grows.
func (p *progress) amount(elapsed time.Duration) string {
	if p.path == "" {
		return ""
	}
	info, err := os.Stat(p.path + capture.Suffix)
	if err != nil || elapsed <= 0 {
		return ""
	}
	rate := float64(info.Size()) / elapsed.Seconds()
	return fmt.Sprintf(", %s, %s/s", amount.Bytes(info.Size()), amount.Bytes(int64(rate)))
}

// Done takes the bar away.
func (p *progress) Done() {
	if p.bar != nil {
		p.bar.Abort(true)
	}
	if p.bars != nil {
		p.bars.Wait()
	}
}
