package main

import (
	"os"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows, on a terminal and nowhere else, how far a run is.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
	what string
	unit string
}

// newProgress shows nothing yet. what runs and unit are words, such as "local model" and "layer".
func newProgress(c *cli.Context, what, unit string) *progress {
	if f, ok := c.App.ErrWriter.(*os.File); !ok || c.Bool("quiet") || !isatty.IsTerminal(f.Fd()) {
		return &progress{}
	}
	return &progress{bars: mpb.New(mpb.WithOutput(c.App.ErrWriter), mpb.WithWidth(40)), what: what, unit: unit}
}

// step is told before each step of each pass.
func (p *progress) step(pass, passes, at, steps int) {
	if p.bars == nil {
		return
	}
	if p.bar == nil {
		p.bar = p.bars.AddBar(int64(passes*steps), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.what+" ")), mpb.AppendDecorators(decor.CountersNoUnit(p.unit+" %d of %d")))
	}
	p.bar.SetCurrent(int64(pass*steps + at))
}

// done takes the bar away.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.Abort(true)
	}
	if p.bars != nil {
		p.bars.Wait()
	}
}
