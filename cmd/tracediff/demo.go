package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/compare/gate"
	"github.com/tracediff/tracediff/compare/report"
	"github.com/tracediff/tracediff/internal/files"
	"github.com/tracediff/tracediff/internal/hint"
	"github.com/tracediff/tracediff/internal/session"
)

const (
	demoName   = "demo"
	demoPrompt = "Hello world"
)

func demoCommand() *cli.Command {
	return &cli.Command{
		Name:  demoName,
		Usage: "run the tiny Gemma 3n that is embedded in the program, and compare it with transformers",
		Description: `Captures the local side of the embedded model in a temporary folder and compares it with the embedded trace of transformers.
It needs no Python and no checkpoint, leaves no file behind, and changes no settings.

Examples:
  tracediff demo
  tracediff demo --table`,
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

// demo compares the embedded model with its golden, in a temporary folder that is removed at the end.
func demo(c *cli.Context, out *outputs) (err error) {
	e := env(c, out)
	if e.Dir, err = files.MkdirTemp("tracediff-demo-*"); err != nil {
		return err
	}
	defer func() { err = hint.Also(err, os.RemoveAll(e.Dir)) }()
	s, prompt := session.Defaults(), demoPrompt
	s.Prompt = &prompt
	fmt.Fprintf(notes(c), "demo: the model %s, which is embedded in the program, reads %q\n", session.Embedded, prompt)
	pictures := out.pictures()
	result, err := session.Compare(c.Context, e, s, &session.Asked{Limits: &gate.Limits{}, Pictures: pictures, Numbers: c.Bool("verbose") || writesData(c)})
	one := newRun("", result, err)
	one.Pictures = pictures
	return out.publish(c, report.NewDocument(version(), one), err)
}

// readComparison reads the settings and the flags of a comparison that captures the local side again. The settings are those of the last capture in
// the folder of traces, or the defaults where the command line names its input. Without a capture and without an input the demo model would run, and
// its match would say nothing about a port: that is an error, and so is any run of the demo model with CI=true.
func readComparison(c *cli.Context) (session.Settings, *session.Asked, error) {
	dir := c.String("dir")
	s, captured, err := session.Defaults(), false, error(nil)
	if !namesInput(c) {
		if s, captured, err = session.LastSettings(dir); err != nil {
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
		if err := session.CheckDir(dir); err != nil {
			return s, nil, err
		}
		return s, nil, hint.Add(fmt.Errorf("nothing was captured in %s, and the command names no input: there is nothing to compare", dir),
			"capture first: tracediff capture --model DIR --prompt TEXT; or run the embedded demo model: tracediff demo")
	case s.Model == "" && inCI():
		return s, nil, hint.Add(errors.New("no model is named, and CI=true: what would be compared is the demo model that is embedded in the program"),
			"name the checkpoint with --model DIR; tracediff demo runs the demo model")
	}
	return s, a, nil
}
