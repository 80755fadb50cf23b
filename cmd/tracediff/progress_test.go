package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

// A bar says how many bytes there are and how fast they come, and nothing of the kind where none are counted.
func TestProgressAmount(t *testing.T) {
	count := func(n int64) func() int64 { return func() int64 { return n } }
	for _, c := range []struct {
		bytes   func() int64
		elapsed time.Duration
		want    string
	}{
		{count(3 << 20), 2 * time.Second, ", 3.0 MiB, 1.5 MiB/s"},
		{count(3 << 20), 0, ""},
		{count(0), time.Second, ""},
		{nil, time.Second, ""},
	} {
		p := &progress{bytes: c.bytes}
		if got := p.amount(c.elapsed); got != c.want {
			t.Errorf("after %v: %q, want %q", c.elapsed, got, c.want)
		}
	}
}

// Where nothing is drawn a long run says what it is at, a line at each tick, and no line after its end.
func TestARunWithoutATerminalSaysThatItGoesOn(t *testing.T) {
	out := make(lines, 8)
	ctx, end := context.WithCancel(t.Context())
	p := &progress{what: "comparing and verifying", unit: "entry", started: time.Now(), notes: out, end: end}
	tick := make(chan time.Time)
	p.lines.Go(func() { p.alive(ctx, tick) })
	for _, c := range []struct {
		say  func()
		at   time.Duration
		want string
	}{
		{func() {}, 30 * time.Second, "comparing and verifying for 30s\n"},
		{func() { p.Step(0, 2, 7, 350) }, time.Minute, "comparing and verifying for 1m0s, entry 7 of 700\n"},
		{func() { p.Doing("looking for what is wrong with x") }, 90 * time.Second, "comparing and verifying for 1m30s, entry 7 of 700: looking for what is wrong with x\n"},
	} {
		c.say()
		tick <- p.started.Add(c.at)
		if got := <-out; got != c.want {
			t.Errorf("after %v: %q, want %q", c.at, got, c.want)
		}
	}
	p.Done()
	select {
	case tick <- p.started.Add(time.Hour):
		t.Error("a line after the end")
	default:
	}
}

// lines hands on each text that is written.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// showProgress is a command that is 40 % through a stage of 3 MiB, for a second.
func showProgress() {
	app := cli.NewApp()
	app.ErrWriter = os.Stderr
	app.Flags = []cli.Flag{&cli.BoolFlag{Name: "quiet"}, &cli.BoolFlag{Name: "debug"}}
	app.Action = func(c *cli.Context) error {
		p := newProgress(c, "capturing transformers", "MB", func() int64 { return 3 << 20 })
		p.Step(0, 1, 2, 5)
		time.Sleep(time.Second)
		fmt.Fprintln(p, "a line above")
		p.Done()
		return nil
	}
	if err := app.Run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func TestCommit(t *testing.T) {
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}
	for _, c := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, "unknown"},
		{[]debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}}, "0123456789ab"},
		{[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, revision}, "0123456789ab, modified"},
	} {
		if got := commitOf(c.settings); got != c.want {
			t.Errorf("%v: %q, want %q", c.settings, got, c.want)
		}
	}
}
