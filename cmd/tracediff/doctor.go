package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

func doctorCommand() *cli.Command {
	const catMachine = "MACHINE"
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what this machine can do, and whether a model directory is sound, before anything runs",
		Description: `Looks at the machine, its Python, torch and transformers, at the files and values of a model directory, and at
the room that traces of an input take. Every line is ok, a warning or an error, with a next step.
Exit status: 0 no error, 1 an error, 2 the command cannot be used.

Examples:
  tracediff doctor
  tracediff doctor --model ./gemma-3n-E2B --prompt "Hello world" --level 3
  tracediff doctor --python ~/venv/bin/python --format json`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` as Hugging Face writes it (default: the embedded tiny Gemma 3n)"},
			&cli.StringFlag{Name: "prompt", Category: catInput, Usage: "`TEXT` to estimate traces of (default: the single token \"What\")"},
			&cli.StringFlag{Name: "tokens", Category: catInput, Usage: "token `IDS` instead of a prompt: 2,513,88; passes separated by ';'"},
			&cli.StringFlag{Name: "dtype", Category: catInput, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
			&cli.IntFlag{Name: "max-new-tokens", Category: catInput, Usage: "decode `N` tokens, each a pass of its own"},
			&cli.IntFlag{Name: "level", Category: catScope, Value: 2, Usage: "1 block boundaries, 2 module outputs, 3 internals"},
			&cli.StringFlag{Name: "dir", Category: catFiles, Value: ".tracediff", Usage: "`DIR` where traces are kept"},
			&cli.BoolFlag{Name: "full", Category: catFiles, Usage: "look at every value of every weight, not at a sample of the large ones"},
			&cli.StringFlag{Name: "python", Category: catMachine, Value: "python3", Usage: "the Python to ask: a `PATH` or a name"},
			&cli.DurationFlag{Name: "timeout", Category: catMachine, Value: time.Minute, Usage: "kill Python after this `TIME`: importing torch from a network disk can take long"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text, or json"},
			&cli.StringFlag{Name: "color", Value: "auto", Usage: "`WHEN`: auto, always or never"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return examine(c)
		},
	}
}

// examine runs the checks and prints what they found.
func examine(c *cli.Context) error {
	p, err := newPatient(c)
	if err != nil {
		return err
	}
	print, err := linePrinter(c)
	if err != nil {
		return err
	}
	before, done := announce(c)
	lines, err := health.Run(c.Context, p.checks(), before)
	done()
	if err != nil {
		return hinted(fmt.Errorf("interrupted"), "nothing was written")
	}
	if err := print(c.App.Writer, lines); err != nil {
		return err
	}
	for _, l := range lines {
		if l.Status == health.Error {
			return mismatch{} // exit status 1; what is wrong is printed
		}
	}
	return nil
}

// patient is what the checks look at. They run in order, and each may use what those before it have found.
type patient struct {
	settings
	dir    string
	python health.Interpreter
	full   bool
	passes [][]int // those typed with --tokens, then those of the prompt

	files  fs.FS // the model directory
	config *order.Config
	list   *order.List // nil: the model is not described, or cannot be read
	tok    *tokenizer.Tokenizer
}

// checks is the list that grows: a check is a name and a function that adds lines.
func (p *patient) checks() []health.Check {
	return []health.Check{
		{Section: "machine", Run: func(_ context.Context, s *health.Section) { health.Machine(s, "tracediff "+version()) }},
		{Section: "python", Run: func(ctx context.Context, s *health.Section) { health.Python(ctx, s, p.python) }},
		{Section: "model", Run: p.checkModel},
		{Section: "input", Run: p.checkInput},
		{Section: "disk", Run: p.checkDisk},
	}
}

// newPatient reads the flags. What was typed wrongly is an error of usage, not a line.
func newPatient(c *cli.Context) (*patient, error) {
	s, err := readFlags(c, settings{DType: "auto", Scope: capture.Scope{Level: 2}})
	if err != nil {
		return nil, err
	}
	if c.Duration("timeout") <= 0 {
		return nil, fmt.Errorf("--timeout is %v, want a time such as 60s", c.Duration("timeout"))
	}
	if c.String("python") == "" {
		return nil, hinted(fmt.Errorf("--python is empty"), "leave the flag out for python3")
	}
	p := &patient{settings: s, dir: c.String("dir"), full: c.Bool("full"), python: health.Interpreter{
		Path: c.String("python"), Typed: c.IsSet("python"), Command: quoteShell(c.String("python")), Timeout: c.Duration("timeout"), Pins: pins,
	}}
	if s.Tokens != "" {
		if p.passes, err = parseTokens(s.Tokens); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// pins are the versions that the goldens were made with, as hooks/python/requirements.txt has them; a test holds the two
// together.
var pins = []health.Pin{
	{Name: "torch", Version: "2.15.0"},
	{Name: "transformers", Version: "5.23.0"},
	{Name: "tokenizers", Version: "0.23.3"},
	{Name: "safetensors", Version: "0.8.0"},
	{Name: "numpy", Version: "2.4.6"},
}

// announce shows, on a terminal and nowhere else, what is being looked at: torch takes seconds to import.
func announce(c *cli.Context) (before func(section string), done func()) {
	f, ok := c.App.ErrWriter.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	const clearLine = "\r\x1b[K"
	return func(section string) { fmt.Fprintf(f, "%slooking at: %s ...", clearLine, section) }, func() { fmt.Fprint(f, clearLine) }
}
