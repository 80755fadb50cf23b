package main

import (
	"os"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows, on a terminal and nowhere else, which layer of which pass is running.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

func newProgress(c *cli.Context) *progress {
	if f, ok := c.App.ErrWriter.(*os.File); !ok || c.Bool("quiet") || !isatty.IsTerminal(f.Fd()) {
		return &progress{}
	}
	return &progress{bars: mpb.New(mpb.WithOutput(c.App.ErrWriter), mpb.WithWidth(40))}
}

// layer is told before each layer of each pass.
func (p *progress) layer(pass, passes, layer, layers int) {
	if p.bars == nil {
		return
	}
	if p.bar == nil {
		p.bar = p.bars.AddBar(int64(passes*layers), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name("local model ")), mpb.AppendDecorators(decor.CountersNoUnit("layer %d of %d")))
	}
	p.bar.SetCurrent(int64(pass*layers + layer))
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
