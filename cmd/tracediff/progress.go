package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/tracediff/tracediff/internal/amount"
	"github.com/tracediff/tracediff/internal/plain"
	"github.com/tracediff/tracediff/internal/settings"
)

// progress shows how far a run is. On a terminal it shows the current work, the bytes written or read, and their rate. Elsewhere, such as in the log
// of a CI job, it writes a line every half minute.
type progress struct {
	bars    *mpb.Progress
	bar     *mpb.Bar
	what    string
	unit    string
	bytes   func() int64 // nil if bytes are not counted
	started time.Time
	doing   atomic.Value // a string: the computation that precedes the next step
	notes   io.Writer    // for lines, without a terminal

	at, steps atomic.Int64
	end       context.CancelFunc // ends the writer of lines; nil on a terminal and without output
	lines     sync.WaitGroup
}

// aliveEvery is the time between two lines, without a terminal.
const aliveEvery = 30 * time.Second

// newProgress shows nothing before the first step. In debug mode it never shows anything, since a bar would be drawn over the lines.
// what is the current work and unit a step, in words, such as "statistics" and "tensor".
func newProgress(c *cli.Context, what, unit string, bytes func() int64) *progress {
	if c.Bool("quiet") || debugs(c) {
		return &progress{notes: notes(c)}
	}
	if f, ok := c.App.ErrWriter.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		p := &progress{what: what, unit: unit, started: time.Now(), notes: notes(c)}
		ctx, end := context.WithCancel(c.Context)
		p.end = end
		p.lines.Go(func() {
			tick := time.NewTicker(aliveEvery)
			defer tick.Stop()
			p.alive(ctx, tick.C)
		})
		return p
	}
	return &progress{
		bars: mpb.New(mpb.WithOutput(c.App.ErrWriter), mpb.WithWidth(30)), what: what, unit: unit, bytes: bytes, started: time.Now(), notes: notes(c),
	}
}

// drawn returns newProgress as a function for a session.
func drawn(c *cli.Context) func(what, unit string, bytes func() int64) settings.Progress {
	return func(what, unit string, bytes func() int64) settings.Progress {
		return newProgress(c, what, unit, bytes)
	}
}

// Step is called before each step of each pass.
func (p *progress) Step(pass, passes, at, steps int) {
	p.at.Store(int64(pass*steps + at))
	p.steps.Store(int64(passes * steps))
	if p.bars == nil {
		return
	}
	if p.bar == nil {
		state := func(decor.Statistics) string { return p.amount(time.Since(p.started)) }
		doing := func(decor.Statistics) string { return p.now() }
		p.bar = p.bars.AddBar(int64(passes*steps), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.what+" ")),
			mpb.AppendDecorators(decor.CountersNoUnit(p.unit+" %d of %d"), decor.Any(state), decor.Any(doing)))
	}
	p.bar.SetCurrent(int64(pass*steps + at))
}

// Doing is called with the computation that precedes the next step.
func (p *progress) Doing(what string) { p.doing.Store(what) }

// mostDoing is the number of shown characters of the current computation, so that the bar stays in one line.
const mostDoing = 40

// now is the current computation, as the end of the line: " layers.3.mlp.down_proj".
func (p *progress) now() string {
	what, _ := p.doing.Load().(string)
	if what == "" {
		return ""
	}
	what = plain.Text(what)
	if r := []rune(what); len(r) > mostDoing {
		what = string(r[:mostDoing-1]) + "…"
	}
	return " " + what
}

// Write prints lines above the bar.
func (p *progress) Write(text []byte) (int, error) {
	if p.bars == nil {
		return p.notes.Write(text)
	}
	return p.bars.Write(text)
}

// amount is the number of bytes so far, and the rate: ", 12.4 MiB, 35.0 MiB/s". It is empty if no bytes are counted.
func (p *progress) amount(elapsed time.Duration) string {
	if p.bytes == nil || elapsed <= 0 {
		return ""
	}
	n := p.bytes()
	if n == 0 {
		return ""
	}
	rate := float64(n) / elapsed.Seconds()
	return fmt.Sprintf(", %s, %s/s", amount.Bytes(n), amount.Bytes(int64(rate)))
}

// alive writes a line at each tick.
func (p *progress) alive(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick:
			line := fmt.Sprintf("%s for %v", p.what, now.Sub(p.started).Round(time.Second))
			if n := p.steps.Load(); n > 0 {
				line += fmt.Sprintf(", %s %d of %d", p.unit, p.at.Load(), n)
			}
			if what := p.now(); what != "" {
				line += ":" + what
			}
			fmt.Fprintln(p.notes, line)
		}
	}
}

// Done removes the bar, or ends the lines.
func (p *progress) Done() {
	if p.end != nil {
		p.end()
		p.lines.Wait()
	}
	if p.bar != nil {
		p.bar.Abort(true)
	}
	if p.bars != nil {
		p.bars.Wait()
	}
}
