package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare"
	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/docs"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/origin"
	"github.com/tracediff/tracediff/internal/session"
	"github.com/tracediff/tracediff/internal/settings"
	"github.com/tracediff/tracediff/internal/tracefolder"
	"github.com/tracediff/tracediff/order"
)

const (
	demoName   = "demo"
	demoPrompt = "Hello world"

	// demoEpsilon is the mistake of the demo: the default of many frameworks, where config.json has another value.
	demoEpsilon = 1e-5
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  demoName,
		Usage: "find a mistake in the built-in model, and explain the report",
		Description: `Runs the built-in model with the epsilon of its norms set to 1e-5, compares it with the built-in trace of transformers, explains
each line of the report, and says what to type next for your own port. It takes a second, needs no Python, no checkpoint and no network,
leaves no files, and changes no settings.

Exit status: 0 the mistake was found and named, 1 it was not.

Examples:
  tracediff demo
  tracediff demo --report html=demo.html`,
		Flags: append(reportFlags(), talkFlags()...),
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if err := checkTalk(c); err != nil {
				return err
			}
			out, err := readOutputs(c)
			if err != nil {
				return err
			}
			defer out.close()
			return demo(c, out)
		},
	}
}

// demo compares the built-in model, computed with a mistake, with its golden, in a temporary folder that is removed at the end.
func demo(c *cli.Context, out *outputs) (err error) {
	e := env(c, out)
	if e.Dir, err = files.MkdirTemp("tracediff-demo-*"); err != nil {
		return err
	}
	defer func() { err = hint.Also(err, os.RemoveAll(e.Dir)) }()
	s, prompt := settings.Defaults(), demoPrompt
	s.Prompt = &prompt
	pictures := out.pictures()
	var right float64
	asked := session.Asked{
		Limits: &gate.Limits{}, Observe: pictures.Observer(),
		Mistake: func(config *order.Config) { right, config.RMSNormEps = config.RMSNormEps, demoEpsilon },
	}
	result, err := session.Compare(c.Context, e, s, asked)
	one := newRun("", result, err)
	one.Pictures = pictures
	d := report.NewDocument(version(), one)
	explained := err == nil && out.format == "text" && !out.style.Terse()
	if explained {
		fmt.Fprintf(c.App.Writer, "The built-in model, %s, reads %q. It runs with a mistake:\n"+
			"its norms have an epsilon of %g, and config.json says %g. The comparison is not told.\n\n", origin.Embedded, prompt, demoEpsilon, right)
	}
	switch err := out.publish(c, d, err); {
	case err == nil: // a match: the mistake was not found
		return mismatch{}
	case !errors.As(err, new(mismatch)):
		return err
	}
	page := mistakePage(result)
	if explained {
		if err := explainReport(c.App.Writer, d, page); err != nil {
			return err
		}
	}
	if page != docs.MistakesPage+"#epsilon" {
		return mismatch{}
	}
	return nil
}

// mistakePage is the section of docs/mistakes.md for the mistake that a comparison found; empty without a named
// mistake.
func mistakePage(r *compare.Result) string {
	if r.Divergence == nil {
		return ""
	}
	f, _ := r.Divergence.Bug()
	if f == nil || !f.Named() {
		return ""
	}
	return f.Page
}

// readComparison reads the settings and the flags of a comparison that captures your port again. The settings are the settings of the last capture
// in the folder of traces, or the defaults for a command line that names its input. Without a capture and without an input the built-in model would run,
// and a match would say nothing about a port: this is an error, and so is any run of the built-in model with CI=true.
func readComparison(c *cli.Context) (settings.Settings, *session.Asked, error) {
	dir := c.String("dir")
	s, captured, err := settings.Defaults(), false, error(nil)
	if !namesInput(c) {
		if s, captured, err = settings.LastSettings(dir); err != nil {
			return s, nil, err
		}
	}
	if s, err = readFlags(c, s); err != nil {
		return s, nil, err
	}
	a, err := readAsked(c)
	if err != nil {
		return s, nil, err
	}
	switch {
	case !captured && !namesInput(c) && s.InputFile() == "":
		if err := tracefolder.CheckDir(dir); err != nil {
			return s, nil, err
		}
		return s, nil, hint.Add(fmt.Errorf("nothing was captured in %s, and the command names no input: there is nothing to compare", dir),
			"capture first: tracediff capture --model DIR --prompt TEXT; or run the built-in model: tracediff demo")
	case s.Model == "" && inCI():
		return s, nil, hint.Add(errors.New("no model is named, and with CI=true the built-in model is not compared"),
			"name the checkpoint with --model DIR; tracediff demo runs the built-in model")
	}
	return s, a, nil
}
