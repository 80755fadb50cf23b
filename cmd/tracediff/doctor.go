package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/urfave/cli/v2"

	"github.com/tracediff/tracediff/capture/reference"
	"github.com/tracediff/tracediff/internal/health"
	"github.com/tracediff/tracediff/internal/tokenizer"
	"github.com/tracediff/tracediff/order"
)

func doctorCommand() *cli.Command {
	const catMachine = "MACHINE"
	return &cli.Command{
		Name:  "doctor",
		Usage: "the checklist: is it the input, the weights, the settings or the machine, before it is the arithmetic?",
		Description: `The checklist, in the order in which a person should look: the machine; the model's configuration; the token ids
beside their texts, BOS, chat template, vocabulary; the weights: all there, whole, none left as it was before training; the
generation settings; an example, end to end: the embedded model against transformers, then one forward call of this
model. Then Python with torch and transformers, the room that traces of the input take, and what earlier captures have
left. Every line is ok, a warning, an error or skipped, with a next step. Where no input is named, it is that of the last capture,
as for "tracediff compare". A model of some GiB takes seconds.
Exit status: 0 no error, 1 an error, 2 the command cannot be used.

Examples:
  tracediff doctor
  tracediff doctor --model ./gemma-3n-E2B --prompt "Hello world" --level 3
  tracediff doctor --python ~/venv/bin/python --format json
  tracediff doctor --clean                                   remove what captures have put into .tracediff`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "model", Category: catInput, Usage: "checkpoint `DIR` as Hugging Face writes it (default: the embedded tiny Gemma 3n)"},
			&cli.StringFlag{Name: "prompt", Category: catInput, Usage: "`TEXT` to estimate traces of (default: the single token \"What\")"},
			&cli.StringFlag{Name: "tokens", Category: catInput, Usage: "token `IDS` instead of a prompt: 2,513,88; passes separated by ';'"},
			&cli.StringFlag{Name: "dtype", Category: catInput, Value: "auto", Usage: "`TYPE` to compute in: float32, bfloat16, float16, or auto for the checkpoint's"},
			&cli.BoolFlag{Name: "chat", Category: catInput, Usage: "put the prompt into the model's turn template"},
			&cli.IntFlag{Name: "max-new-tokens", Category: catInput, Usage: "decode `N` tokens, each a pass of its own"},
			&cli.IntFlag{Name: "level", Category: catScope, Value: 2, Usage: "1 block boundaries, 2 module outputs, 3 internals"},
			&cli.StringFlag{Name: "dir", Category: catFiles, Value: defaultDir, Usage: "`DIR` where traces are kept"},
			&cli.BoolFlag{Name: "clean", Category: catFiles, Usage: "remove traces, stored references and all else that tracediff has put into DIR, and nothing else"},
			&cli.BoolFlag{Name: "full", Category: catFiles, Usage: "look at every value of every weight, show every id, and run the model however long it takes"},
			&cli.StringFlag{Name: "python", Category: catMachine, Value: "python3", Usage: "the Python to ask: a `PATH` or a name"},
			&cli.DurationFlag{Name: "timeout", Category: catMachine, Value: time.Minute, Usage: "kill Python after this `TIME`: importing torch from a network disk can take long"},
			&cli.StringFlag{Name: "format", Value: "text", Usage: "`FORMAT`: text, or json"},
			&cli.StringFlag{Name: "color", Value: "auto", Usage: "`WHEN`: auto, always or never"},
		},
		Action: func(c *cli.Context) error {
			if err := noArguments(c); err != nil {
				return err
			}
			err := examine(c)
			return hinted(err, doctorHint(err))
		},
	}
}

// doctorGeneral is for errors that say themselves what is wrong: the general hint sends people here.
const doctorGeneral = "the line says what is wrong; tracediff doctor --help says what each flag wants"

// doctorHint is the next step of an error that the checklist has met.
func doctorHint(err error) string {
	if h := hintFor(err); h != generalHint {
		return h
	}
	return doctorGeneral
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
	checks := p.checks()
	if c.Bool("clean") {
		checks = []health.Check{{Section: "store", Run: p.clean}}
	}
	before, done := announce(c)
	lines, err := health.Run(c.Context, checks, before)
	done()
	if err != nil {
		return errors.New("interrupted")
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

	folder  fs.FS // the model directory
	config  *order.Config
	list    *order.List // nil: the model is not described, or cannot be read
	spread  float64     // of weights before training
	failed  bool        // there is an error in the model or in the input
	tok     *tokenizer.Tokenizer
	passes  [][]int // the ids; nil when they are not known
	further int     // tokens to decode after them
}

// checks is the list that grows: a check is a name and a function that adds lines. It is the order in which a person
// should look: most wrong outputs come of the wrong ids, then of the wrong weights, and only then of arithmetic. What a
// capture needs besides comes last.
func (p *patient) checks() []health.Check {
	return []health.Check{
		{Section: "machine", Run: func(_ context.Context, s *health.Section) { health.Machine(s, "tracediff "+version()) }},
		{Section: "model", Run: p.noting(p.checkModel)},
		{Section: "input", Run: p.noting(p.checkInput)},
		{Section: "weights", Run: p.noting(p.checkWeights)},
		{Section: "decode", Run: p.noting(p.checkDecode)},
		{Section: "example", Run: p.checkExample},
		{Section: "python", Run: func(ctx context.Context, s *health.Section) { health.Python(ctx, s, p.python) }},
		{Section: "disk", Run: p.checkDisk},
		{Section: "store", Run: p.checkStore},
	}
}

// noting makes a check note its errors.
func (p *patient) noting(run func(context.Context, *health.Section)) func(context.Context, *health.Section) {
	return func(ctx context.Context, s *health.Section) {
		run(ctx, s)
		p.failed = p.failed || slices.ContainsFunc(s.Lines, func(l health.Line) bool { return l.Status == health.Error })
	}
}

// newPatient reads the flags. What was typed wrongly is an error of usage, not a line.
func newPatient(c *cli.Context) (*patient, error) {
	s := defaults()
	if last, found, err := lastSettings(c.String("dir")); err == nil && found && !namesInput(c) {
		s = last // what cannot be read of them is a line, see checkStore
	}
	s, err := readFlags(c, s)
	if err != nil {
		return nil, err
	}
	if c.Duration("timeout") <= 0 {
		return nil, fmt.Errorf("--timeout is %v, want a time such as 60s", c.Duration("timeout"))
	}
	if s.Tokens != "" {
		if _, err := parseTokens(s.Tokens); err != nil {
			return nil, err
		}
	}
	p := &patient{settings: s, dir: c.String("dir"), full: c.Bool("full")}
	p.python = health.Interpreter{Path: cmp.Or(s.Python, c.String("python")), Typed: s.Python != "", Timeout: c.Duration("timeout")}
	p.python.Command = quoteShell(p.python.Path)
	p.python.Pins, err = pins()
	return p, err
}

// pins are the versions that the goldens were made with, of what the transformers runner uses.
func pins() ([]health.Pin, error) {
	versions, err := reference.Pins()
	if err != nil {
		return nil, err
	}
	var list []health.Pin
	for _, name := range []string{"torch", "transformers", "tokenizers", "safetensors", "numpy"} {
		list = append(list, health.Pin{Name: name, Version: versions[name]})
	}
	return list, nil
}

// slow says why a check takes its time.
var slow = map[string]string{
	"weights": " (a sample of each; with --full every one is read)",
	"example": " (the model runs: some seconds where its weights have GiB)",
	"python":  " (torch takes seconds to import)",
}

// announce shows, on a terminal and nowhere else, what is being looked at.
func announce(c *cli.Context) (before func(section string), done func()) {
	f, ok := c.App.ErrWriter.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	const clearLine = "\r\x1b[K"
	return func(section string) { fmt.Fprintf(f, "%slooking at: %s%s ...", clearLine, section, slow[section]) }, func() { fmt.Fprint(f, clearLine) }
}
